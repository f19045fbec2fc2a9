//! Records that are sent when nothing else is under way, since they need more memory than the sink's own.
//!
//! Nothing is held over a wait: before another attempt everything is given back, and the record is read from the
//! journal again. How many of its documents are done is remembered, so those are not sent again (but after a
//! restart).

use super::documents::outgoing_len;
use super::landing::After;
use super::parcel::{Job, Parcel, Unfit, prepare};
use super::{Batch, Elasticsearch, Landed};
use crate::batch::Why;
use crate::inbox::Record;
use crate::losses::Losses;
use std::sync::Arc;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// How far a record has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    sequence: u64,
    /// Documents that are done, and what was lost of them.
    done: u64,
    rejected: u64,
    too_large: u64,
}

impl Elasticsearch {
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

    /// Sends a record, in pieces where it has to be. An error says why it is lost.
    async fn read_and_send(&mut self, record: &Record) -> Result<(), Dropped> {
        let out_len = outgoing_len(&record.meta, &self.settings);
        let batch = match Batch::of(record, (), 0, out_len, 0, &self.room, &mut self.inbox).await {
            Ok(batch) => batch,
            // The journal counts it, and goes on to the next.
            Err(Why::Damaged) => return Ok(()),
            // It was accepted when there was more memory.
            Err(Why::Room(_)) => return Err(Dropped::TooLarge),
        };
        let progress = self.progress.take().filter(|progress| progress.sequence == record.sequence);
        let mut job = Job::Batch(batch);
        let mut first = true;
        loop {
            let Some(tools) = self.tools.take() else {
                self.read_again();
                return Ok(());
            };
            // What is done is passed over before the first piece is chosen.
            let most = if first && progress.is_some() { 1 } else { self.most() };
            let settings = Arc::clone(&self.settings);
            let (packed, tools) =
                Box::pin(prepare(job, most, tools, self.room.clone(), Arc::clone(&settings))).await;
            self.tools = Some(tools);
            let mut parcel = match packed {
                Ok(parcel) => parcel,
                Err(Unfit { job: Job::Batch(_), why }) => {
                    return Err(why.reason());
                }
                Err(Unfit { job: Job::Piece(mut parcel), .. }) => {
                    parcel.plain = true;
                    job = Job::Piece(parcel);
                    continue;
                }
                Err(Unfit { job: Job::Rest(parcel, _), .. }) => {
                    job = Job::Piece(parcel);
                    continue;
                }
            };
            if std::mem::take(&mut first)
                && let Some(progress) = progress
            {
                parcel.skip(progress.done);
                (parcel.rejected, parcel.too_large) = (progress.rejected, progress.too_large);
                // Some of what comes next may be there.
                parcel.sent = true;
                if parcel.left > 0 {
                    job = Job::Piece(parcel);
                    continue;
                }
            }
            if parcel.left == 0 {
                self.settle(*parcel);
                return Ok(());
            }
            match self.attempt(parcel).await {
                Ok(Landed { parcel, place, answer, .. }) => match self.hear(parcel, place, answer) {
                    After::Done(parcel) => {
                        self.settle(*parcel);
                        return Ok(());
                    }
                    After::Piece(parcel) => {
                        self.remember(record.sequence, &parcel);
                        job = Job::Piece(parcel);
                    }
                    After::Rest(parcel, _) | After::Again(parcel) => {
                        return self.later(record.sequence, &parcel);
                    }
                },
                Err(parcel) => return self.later(record.sequence, &parcel),
            }
        }
    }

    fn later(&mut self, sequence: u64, parcel: &Parcel) -> Result<(), Dropped> {
        self.remember(sequence, parcel);
        self.read_again();
        Ok(())
    }

    fn remember(&mut self, sequence: u64, parcel: &Parcel) {
        self.progress = Some(Progress {
            sequence,
            done: parcel.documents.saturating_sub(parcel.left),
            rejected: parcel.rejected,
            too_large: parcel.too_large,
        });
    }

    /// Sends a request once; gives it back when no endpoint takes it now.
    async fn attempt(&mut self, parcel: Box<Parcel>) -> Result<Landed, Box<Parcel>> {
        let Some(request) = parcel.request.clone() else { return Err(parcel) };
        let Some((place, peer)) = self.endpoints.place(parcel.piece().len(), Instant::now()) else {
            return Err(parcel);
        };
        let under_way = self.letters.health().under_way();
        let answer = peer.send(&request).await;
        Ok(Landed { parcel, place, answer, _under_way: under_way })
    }
}
