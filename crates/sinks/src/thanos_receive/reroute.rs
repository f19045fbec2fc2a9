//! Series of a request whose member left are given to the members that own them now.

use super::message::{Form, PREFIX};
use super::protocol::ThanosProtocol;
use crate::batch::DropReason;
use crate::egress_budget::Charged;
use crate::spread::{BodyInfo, Distributor};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_wire::proto::{Reader, WireType};
use tidegate_wire::snappy::framed::{CHUNK, Chunks};

impl Distributor<ThanosProtocol> {
    /// Spreads the series of a sealed request; returns the items of tenants without a ring.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn spread_message(
        &mut self,
        form: Form,
        frame: Bytes,
        info: &BodyInfo,
    ) -> Result<u64, DropReason> {
        let raw = self.message(frame.get(PREFIX..).unwrap_or_default(), form).await?;
        drop(frame);
        let mut unplaced = 0;
        for series in series_of(&raw) {
            unplaced += Box::pin(self.walk(series, info)).await?.unplaced;
        }
        self.release(raw);
        Ok(unplaced)
    }

    /// The message as it was before compression.
    async fn message(&mut self, message: &[u8], form: Form) -> Result<Charged<Window>, DropReason> {
        let mut raw = self.window(message.len().max(CHUNK)).await?;
        if form == Form::Plain {
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
