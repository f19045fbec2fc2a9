//! What waits for a member that left goes to the members that own it now.

use super::{BodyInfo, Distributor};
use crate::batch::DropReason;
use crate::egress_budget::Charged;
use crate::thanos_receive::member::Member;
use crate::thanos_receive::request::{Origin, PREFIX, RequestHead};
use crate::thanos_receive::settlement::Outcome;
use tidegate_arena::Window;
use tidegate_handoff::{ReadError, Record};
use tidegate_ledger::Dropped;
use tidegate_wire::proto::{Reader, WireType};
use tidegate_wire::snappy::framed::{CHUNK, Chunks};

/// How a record of a log went.
enum Rerouted {
    /// It is with other members, or on disk for them.
    Done,
    /// It cannot be read, and counts as damaged.
    Damaged,
}

impl Distributor {
    /// Sends the log of a member that left to the members of the rings, record by record: each is completed when all of it is
    /// delivered or on disk elsewhere. New series wait meanwhile, so that none overtakes an older one.
    ///
    /// # Errors
    /// When the logs were closed.
    pub(in crate::thanos_receive) async fn reroute(&mut self, left: &Member) -> Result<(), ReadError> {
        while let Some(record) = left.log.next().await? {
            let outcome = match Box::pin(self.reroute_record(left, &record)).await {
                Ok(Rerouted::Done) => None,
                Ok(Rerouted::Damaged) | Err(ReadError::WindowTooSmall) => {
                    Some(Outcome::Dropped(Dropped::Damaged))
                }
                Err(ReadError::Damaged | ReadError::Gone) => {
                    left.count_losses(&self.context);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.own = 0;
            // Its items were settled where they went to.
            let completed = left.log.complete(&record);
            if let Some(outcome) = outcome {
                self.context.settlement.settle_handed_off(completed.items, outcome);
            }
        }
        Ok(())
    }

    async fn reroute_record(&mut self, left: &Member, record: &Record) -> Result<Rerouted, ReadError> {
        let Some(head) = RequestHead::of_note(&record.meta.note) else { return Ok(Rerouted::Damaged) };
        let frame = left.read(&self.context, record).await?;
        let message = frame.get(PREFIX..).unwrap_or_default();
        let raw = match self.decoded(message, head.is_compressed).await {
            Ok(raw) => raw,
            Err(_) => return Ok(Rerouted::Damaged),
        };
        drop(frame);
        let info = BodyInfo {
            tenant: head.tenant,
            origin: Origin::Log,
            received_at_ns: record.meta.received_at_ns,
            replica: Some(head.replica),
        };
        let mut unplaced = 0;
        for series in series_of(&raw) {
            match Box::pin(self.walk(series, info)).await {
                Ok(placed) => unplaced += placed.unplaced,
                Err(_) => return Ok(Rerouted::Damaged),
            }
        }
        // The rings may have nobody for the tenant any more. Only first replicas count in the books.
        if head.replica == 0 {
            self.context.settlement.settle_handed_off(unplaced, Outcome::Dropped(Dropped::Rejected));
        }
        self.release(raw);
        self.seal_all().await;
        while self.context.settlement.is_rerouting() {
            self.context.settlement.settled().await;
        }
        Ok(Rerouted::Done)
    }

    /// The message as it was before compression.
    async fn decoded(&mut self, message: &[u8], is_compressed: bool) -> Result<Charged<Window>, DropReason> {
        let mut raw = self.window(message.len().max(CHUNK)).await?;
        if !is_compressed {
            raw.append(message).map_err(|_| DropReason::Damaged)?;
            return Ok(raw);
        }
        let mut chunks = Chunks::new(message).map_err(|_| DropReason::Damaged)?;
        loop {
            while let Err(error) = raw.try_reserve(CHUNK) {
                self.make_room(error).await?;
            }
            match chunks.next_into(raw.spare_mut()).map_err(|_| DropReason::Damaged)? {
                Some(len) => raw.advance(len),
                None => return Ok(raw),
            }
        }
    }
}

/// The series of a request, as fields of bodies of remote write 1.0: the request itself, and its tuples.
fn series_of(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    /// Series with their tenant.
    const TUPLES: u32 = 4;
    let mut reader = Reader::new(message);
    let tuples = std::iter::from_fn(move || {
        loop {
            let key = reader.key().ok()??;
            if key.field == TUPLES && key.wire == WireType::Length {
                return reader.bytes(key).ok();
            }
            reader.skip(key).ok()?;
        }
    });
    std::iter::once(message).chain(tuples)
}
