//! Routes records into batches, until a batch is full or has waited long enough.

use super::state::{MemoryState, ReadMode, Treatment};
use super::{Delivery, MAX_OPEN_BATCHES, Pipeline, Preparation, RecordRoute, SinkProtocol};
use crate::batch::{Batch, BatchLimits, DropReason};
use crate::journal_consumer::Record;
use crate::losses::Losses;
use crate::pipeline_stage::Staged;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

impl<P: SinkProtocol> Delivery<P> {
    /// Takes in the record that was read last: what the sink's pipeline makes of it.
    pub(super) async fn take(&mut self, mut record: Record) {
        if self.protocol.knows(&record) {
            return;
        }
        let Pipeline { consumer, room, .. } = &mut self.pipeline;
        if consumer.staging_bytes(&record) > room.part() {
            self.pipeline.send_alone(record.into());
            return;
        }
        match consumer.stage(&mut record, room).await {
            Ok(Staged::Ready) => Box::pin(self.batch(record)).await,
            Ok(Staged::Empty) => self.pipeline.settle([record.sequence], Losses::NONE),
            // The journal counts it, and continues with the next.
            Err(DropReason::Damaged) => {}
            Err(DropReason::Room(_) | DropReason::TooLong) => self.pipeline.wait_for_memory(record),
        }
        // A record that waits holds nothing meanwhile.
        self.pipeline.consumer.release();
    }

    /// Puts a record into a batch.
    async fn batch(&mut self, record: Record) {
        let Delivery { protocol, pipeline, .. } = self;
        let (key, out_len, needed, single) = match protocol.route(pipeline, &record) {
            RecordRoute::Batch { key, out_len, needed, single } => (key, out_len, needed, single),
            RecordRoute::Oversize => {
                pipeline.send_alone(record.into());
                return;
            }
            RecordRoute::Untranslatable => {
                let items = u64::from(record.meta.items);
                return pipeline.lose(record.sequence, Dropped::Untranslatable, items);
            }
        };
        let treatment = pipeline.suspects.treatment(record.sequence);
        if treatment == Treatment::Alone || needed > pipeline.room.part() {
            pipeline.send_alone(record.into());
            return;
        }
        let single = single || treatment == Treatment::Single;
        let limits = protocol.limits(pipeline, &key, pipeline.batch_limits());
        if !single && pipeline.joins(&record, key, out_len, limits) {
            return;
        }
        if P::ORDERED && !(pipeline.open.is_empty() && pipeline.work.is_empty()) {
            // Records go in the order in which they were read.
            pipeline.close_all();
            pipeline.reading = ReadMode::Waiting { record, held: usize::MAX };
            return;
        }
        let usual = if single { 0 } else { pipeline.usual.min(limits.kept) };
        let Pipeline { room, consumer, .. } = pipeline;
        match Batch::of(&record, key, P::PREFIX, out_len, usual, room, consumer).await {
            Ok(batch) if single || batch.is_full(limits) => {
                pipeline.work.push_back(Preparation::Batch(batch))
            }
            Ok(batch) => pipeline.open.push(batch),
            // The journal counts it, and continues with the next.
            Err(DropReason::Damaged) => {}
            Err(DropReason::Room(_) | DropReason::TooLong) => pipeline.wait_for_memory(record),
        }
    }
}

impl<P: SinkProtocol> Pipeline<P> {
    /// Has a record wait until as much of what is held is given back as was missing for it: to stage it anew before that is of no use.
    fn wait_for_memory(&mut self, record: Record) {
        self.consumer.release();
        self.close_all();
        let held = self.room.held().checked_sub(self.room.missing());
        match held.filter(|_| !self.is_idle()) {
            // Something that is held is given back some day.
            Some(held) => {
                self.memory = MemoryState::Exhausted;
                self.reading = ReadMode::Waiting { record, held };
            }
            None => {
                self.send_alone(record.into());
            }
        }
    }

    /// Adds the record to the batch of its key. False when there is none, or none any more; then there is room for
    /// another.
    fn joins(&mut self, record: &Record, key: P::Key, out_len: usize, limits: BatchLimits) -> bool {
        let mut joined = false;
        if let Some(at) = self.open.iter().position(|batch| batch.key == key)
            && let Some(batch) = self.open.get_mut(at)
        {
            joined = batch.add(record, out_len, limits, &mut self.consumer);
            if !joined || batch.is_full(limits) {
                self.close(at);
            }
        }
        if !joined && self.open.len() == MAX_OPEN_BATCHES {
            self.close(0);
        }
        joined
    }

    fn close(&mut self, at: usize) {
        let batch = self.open.remove(at);
        self.usual = batch.window.len();
        self.work.push_back(Preparation::Batch(batch));
    }

    /// Closes all batches.
    pub(super) fn close_all(&mut self) {
        self.work.extend(self.open.drain(..).map(Preparation::Batch));
    }

    /// Closes the batches that have waited long enough.
    pub(super) fn close_old(&mut self) {
        let now = Instant::now();
        let linger = self.limits.linger;
        let old = self.open.extract_if(.., |batch| batch.opened + linger <= now);
        self.work.extend(old.map(Preparation::Batch));
    }
}
