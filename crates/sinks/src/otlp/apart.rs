//! Records that are sent when nothing else is under way: those that need more memory than the sink's own, and
//! those that the peer does not take whole, which are cut.
//!
//! Nothing is held over a wait: before another attempt everything is given back, and the record is read from the
//! journal again. What was sent of a record that is cut is remembered by its items, so it is not sent again
//! (but after a restart).

use super::answer::Fault;
use super::batch::{Batch, Key, Way};
use super::landing::Heard;
use super::parcel::{self, Made, Parcel, Unfit};
use super::peer::PREFIX;
use super::taking::spoken;
use super::translation::{documents, outgoing_len, said};
use super::{Landed, Otlp, SMALLEST};
use crate::batch::Why;
use crate::inbox::Record;
use crate::losses::Losses;
use crate::room::NoRoom;
use tidegate_journal::{Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::{Piece, items, split};
use tidegate_wire::output::SliceOutput;
use tokio::time::Instant;

/// How far a record that is cut has come.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) sequence: u64,
    /// How long a piece is at most.
    most: usize,
    /// Items of the pieces that are done, and what was lost of them.
    done: u64,
    losses: Losses,
}

/// Why sending the pieces of a record ended before its end.
enum Ended {
    /// A piece is to be sent again.
    Later,
    /// Pieces are to be smaller from here on.
    Smaller,
}

impl Otlp {
    /// Sends a record on its own.
    pub(super) async fn send_apart(&mut self, record: Record) {
        self.endpoints.opens().await;
        self.endpoints.let_go(&self.room, self.settings.timeout).await;
        let _turn = self.room.turn().await;
        if let Err(why) = Box::pin(self.read_and_send(&record)).await {
            let items = u64::from(record.meta.items);
            self.inbox.settle_each([record.sequence], Losses::of(why, items));
        }
        // The turn is given back with what was borrowed.
        self.endpoints.let_go(&self.room, self.settings.timeout).await;
    }

    /// Sends a record once, whole or in pieces. An error says why it is lost.
    async fn read_and_send(&mut self, record: &Record) -> Result<(), Dropped> {
        let Some(way) = self.way(record) else { return Err(Dropped::Untranslatable) };
        let is_cut = self.is_cut(record);
        let way = if is_cut { Way::Recode } else { way };
        let key = Key { signal: record.meta.signal, tenant: record.meta.tenant, way };
        let out_len = outgoing_len(&record.meta);
        let batch = match Batch::of(record, key, PREFIX, out_len, 0, &self.room, &mut self.inbox).await {
            Ok(batch) => batch,
            // The journal counts it, and goes on to the next.
            Err(Why::Damaged) => return Ok(()),
            // It was accepted when there was more memory.
            Err(Why::Room(_)) => return Err(Dropped::TooLarge),
        };
        if is_cut {
            return self.send_pieces(batch).await;
        }
        let Some(coder) = self.coder.take() else {
            self.read_again();
            return Ok(());
        };
        let (packed, coder) = Box::pin(parcel::pack(batch, coder, self.room.clone())).await;
        self.coder = Some(coder);
        let parcel = packed.map_err(|Unfit { why, .. }| why.reason())?;
        match self.attempt(parcel).await {
            Some(landed) => self.land(landed, false),
            None => self.read_again(),
        }
        Ok(())
    }

    /// Sends the pieces of the one record in `batch`.
    async fn send_pieces(&mut self, batch: Batch) -> Result<(), Dropped> {
        let Some(sequence) = batch.sequences.first().copied() else { return Ok(()) };
        let most = self.most();
        let Made { frame: raw, untranslatable } = match self.coder.as_mut() {
            Some(coder) => parcel::decoded(&batch, coder, &self.room).await.map_err(Why::reason)?,
            None => Made::default(),
        };
        let known = self.cut.take().filter(|cut| cut.sequence == sequence);
        let is_new = known.is_none();
        let mut cut = match known {
            Some(cut) => cut,
            None => {
                let losses = Losses::of(Dropped::Untranslatable, untranslatable);
                Cut { sequence, most, done: 0, losses }
            }
        };
        let (raw, whole) = match raw {
            Some(raw) => {
                let Batch { key, meta, .. } = batch;
                (raw, (key, meta))
            }
            None => (batch.window, (batch.key, batch.meta)),
        };
        let received = whole.1.received_at_ns;
        let requests = match whole.1.protocol {
            Protocol::Intake => {
                let said = Box::pin(said(raw, received, &self.room)).await;
                let (requests, events) = said.map_err(Why::reason)?;
                if is_new {
                    let unsaid = u64::from(whole.1.items).saturating_sub(events);
                    cut.losses.add(Dropped::Untranslatable, unsaid);
                }
                requests
            }
            Protocol::Bulk => {
                let said = Box::pin(documents(raw, &whole.1, &self.room)).await.map_err(Why::reason)?;
                if is_new {
                    cut.losses.add(Dropped::Untranslatable, said.untranslatable);
                }
                vec![(Signal::Logs, said.frame)]
            }
            _ => vec![(whole.1.signal, raw)],
        };
        loop {
            match Box::pin(self.send_requests(&requests, whole, &mut cut)).await {
                Ok(()) => break,
                Err(Ended::Smaller) => {}
                Err(Ended::Later) => {
                    self.cut = Some(cut);
                    self.read_again();
                    return Ok(());
                }
            }
        }
        self.inbox.settle_each([sequence], cut.losses);
        Ok(())
    }

    /// Sends the pieces of these messages that are not done.
    async fn send_requests(
        &mut self,
        requests: &[(Signal, parcel::Frame)],
        (key, meta): (Key, tidegate_journal::Meta),
        cut: &mut Cut,
    ) -> Result<(), Ended> {
        let mut first = 0;
        for (signal, frame) in requests {
            let signal = *signal;
            let Some(spoken) = spoken(signal) else { continue };
            let message = frame.get(PREFIX..).unwrap_or_default();
            let whole = (Key { signal, ..key }, tidegate_journal::Meta { signal, ..meta });
            let most = cut.most;
            Box::pin(self.send_pieces_of(message, first, most, whole, cut)).await?;
            first += items(spoken, message);
        }
        Ok(())
    }

    /// Sends the pieces of `message` that are not done, of at most `most` bytes each. Its items begin at `first`.
    async fn send_pieces_of(
        &mut self,
        message: &[u8],
        first: u64,
        most: usize,
        whole: (Key, tidegate_journal::Meta),
        cut: &mut Cut,
    ) -> Result<(), Ended> {
        let Some(signal) = spoken(whole.0.signal) else { return Ok(()) };
        let mut start = first;
        for piece in split(signal, message, most) {
            let items = piece.items();
            let end = start + items;
            // What has no items is of no use to anybody.
            if end <= cut.done {
                start = end;
                continue;
            }
            // Nothing below waits where there is no room, or nothing to be sent.
            tokio::task::yield_now().await;
            let Ok(frame) = self.written(&piece).await else {
                if is_cuttable(&piece, most) {
                    cut.most = piece.len() / 2;
                    return Err(Ended::Smaller);
                }
                self.letters.too_large(cut.sequence, whole.1, end - cut.done.max(start), piece.len());
                cut.losses.add(Dropped::TooLarge, end - cut.done.max(start));
                (cut.done, start) = (end, end);
                continue;
            };
            if start < cut.done {
                // Cut elsewhere than before, because pieces have become smaller.
                let message = frame.get(PREFIX..).unwrap_or_default();
                Box::pin(self.send_pieces_of(message, start, most / 2, whole, cut)).await?;
                start = end;
                continue;
            }
            let parcel = match self.piece_packed(frame, items, piece.len(), whole).await {
                Ok(parcel) => parcel,
                Err(_) if is_cuttable(&piece, most) => {
                    cut.most = piece.len() / 2;
                    return Err(Ended::Smaller);
                }
                Err(why) => {
                    self.letters.too_large(cut.sequence, whole.1, items, piece.len());
                    cut.losses.add(why.reason(), items);
                    (cut.done, start) = (end, end);
                    continue;
                }
            };
            let Some(Landed { parcel, place, answer, .. }) = self.attempt(parcel).await else {
                return Err(Ended::Later);
            };
            match self.hear(&parcel, place, answer) {
                Heard::Taken(rejected) => cut.losses.add(Dropped::Rejected, rejected),
                Heard::Later => return Err(Ended::Later),
                Heard::Refused(reason, Fault::Size) if is_cuttable(&piece, most) => {
                    self.letters.refused_in_part(&reason);
                    cut.most = piece.len() / 2;
                    return Err(Ended::Smaller);
                }
                Heard::Refused(reason, fault) => {
                    self.letters.bury(&parcel, &reason);
                    cut.losses.add(fault.reason(), items);
                }
            }
            (cut.done, start) = (end, end);
        }
        Ok(())
    }

    /// A piece in a window of its own.
    async fn written(&mut self, piece: &Piece<'_>) -> Result<parcel::Frame, NoRoom> {
        let mut frame = self.room.window(PREFIX + piece.len()).await?;
        frame.advance(PREFIX);
        let mut out = SliceOutput::new(frame.spare_mut());
        piece.write(&mut out).map_err(|_| NoRoom::Never)?;
        let len = out.len();
        frame.advance(len);
        Ok(frame)
    }

    async fn piece_packed(
        &mut self,
        frame: parcel::Frame,
        items: u64,
        raw_len: usize,
        (key, meta): (Key, tidegate_journal::Meta),
    ) -> Result<Parcel, Why> {
        let Some(coder) = self.coder.as_mut() else { return Err(Why::Room(NoRoom::WithoutTurn)) };
        let frame = parcel::encoded(frame, coder, &self.room).await?;
        Ok(Parcel::piece(frame, coder.encoding(), key, meta, items, raw_len))
    }

    /// Sends a request once. Nothing when no endpoint takes it now.
    async fn attempt(&mut self, parcel: Parcel) -> Option<Landed> {
        let (place, peer) = self.endpoints.place(parcel.request.frame.len(), Instant::now())?;
        let under_way = self.letters.health().under_way();
        let answer = peer.send(&parcel.request).await;
        Some(Landed { parcel, place, answer, _under_way: under_way })
    }
}

/// Whether cutting into half as much gives smaller pieces than this one of at most `most` bytes. One that is longer is
/// a single item with what encloses it.
fn is_cuttable(piece: &Piece<'_>, most: usize) -> bool {
    piece.len() > SMALLEST && piece.len() <= most && piece.items() > 1
}
