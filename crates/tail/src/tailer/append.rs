//! Batches on their way to the destination, one at a time.

use super::Tailer;
use super::fill::MOST_OF_A_FILE;
use crate::batch::{Effects, EncodedBatch, Part};
use crate::checkpoint::Checkpoint;
use crate::destination::{AppendError, CheckpointChange, Destination};
use crate::file::Stage;
use crate::resource::FileResource;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

/// A batch that waits for the one before it.
pub(super) struct Prepared<B> {
    pub(super) batch: EncodedBatch<B>,
    pub(super) effects: Effects,
}

/// A batch that is being appended.
pub(super) type Appending = Pin<Box<dyn Future<Output = Appended>>>;

/// The outcome of a batch.
pub(super) struct Appended {
    effects: Effects,
    items: u32,
    len: usize,
    result: Result<(), AppendError>,
}

/// The smallest batch that is tried after a larger one was refused for its size.
const SMALLEST_BATCH: usize = 4 << 10;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Begins to append a batch. One without records is done at once.
    pub(super) fn append(&mut self, prepared: Prepared<D::Buffer>) -> Option<Appending> {
        let Prepared { batch, effects } = prepared;
        let changes = self.changes_of(&effects);
        let (items, len) = (batch.items, batch.len);
        if items == 0 {
            super::others::set_in_parts(&*self.destination, &changes);
            // More than a batch holds would never leave room for records.
            let bytes: usize = effects.others.iter().map(CheckpointChange::bytes).sum();
            if self.others.is_empty() && bytes + MOST_OF_A_FILE <= CheckpointChange::MOST_BYTES {
                let now = self.now();
                self.others.keep(effects.others.clone(), now);
            }
            let result = Ok(());
            let done = Appended { effects, items, len, result };
            let _ = self.appended::<D::Buffer>(done, &mut None);
            return None;
        }
        let destination = Rc::clone(&self.destination);
        Some(Box::pin(async move {
            let result = destination.append(batch, &changes).await;
            Appended { effects, items, len, result }
        }))
    }

    fn changes_of(&self, effects: &Effects) -> Vec<CheckpointChange> {
        let parts = effects.parts.iter().filter_map(|part| {
            let file = self.table.get(part.file)?;
            Some(self.change(file.id, &part.checkpoint))
        });
        effects.others.iter().cloned().chain(parts).collect()
    }

    /// The change that stores `checkpoint`.
    pub(super) fn change(&self, id: crate::FileId, checkpoint: &Checkpoint) -> CheckpointChange {
        CheckpointChange { key: id.key(self.settings.key).to_vec(), value: Some(checkpoint.encode()) }
    }

    /// Applies what became of a batch; with a refusal, the batch behind it is thrown away too. Breaks when reading is to end.
    pub(super) fn appended<B>(
        &mut self,
        appended: Appended,
        prepared: &mut Option<Prepared<B>>,
    ) -> ControlFlow<()> {
        let Appended { effects, items, len, result } = appended;
        match result {
            Ok(()) => {
                self.batch_limit = (self.batch_limit * 2).min(self.settings.batch);
                self.commit(effects);
            }
            Err(AppendError::TooLarge) if items <= 1 || len <= SMALLEST_BATCH => {
                self.count_too_large(u64::from(items));
                let changes = self.changes_of(&effects);
                super::others::set_in_parts(&*self.destination, &changes);
                self.commit(effects);
            }
            Err(error) => {
                self.meters.add_retries(1);
                // The later one first: the changes of both come back in their order.
                if let Some(prepared) = prepared.take() {
                    self.roll_back(prepared.effects);
                }
                self.roll_back(effects);
                match error {
                    AppendError::Retry(after) => self.retry_at = self.now() + after.max(LEAST_WAIT),
                    AppendError::TooLarge => self.batch_limit = (len / 2).max(SMALLEST_BATCH),
                    AppendError::Stopping => return ControlFlow::Break(()),
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn commit(&mut self, effects: Effects) {
        self.meters.add_counts(&effects.counts);
        self.count_too_large(effects.too_large);
        for part in effects.parts {
            self.commit_part(&part);
        }
    }

    fn count_too_large(&self, records: u64) {
        self.meters.add_too_large(records);
        for _ in 0..records {
            self.destination.count_too_large();
        }
    }

    fn commit_part(&mut self, part: &Part) {
        let now = self.now();
        self.meters.add_bytes(part.bytes);
        self.meters.add_records(part.records);
        let Some(file) = self.table.get_mut(part.file) else { return };
        file.in_batches = file.in_batches.saturating_sub(1);
        file.committed = part.checkpoint;
        if part.bytes > 0 {
            file.progressed = now;
        }
        file.rate.add(part.records, now);
        if file.in_batches > 0 {
            return;
        }
        let has_more = std::mem::take(&mut file.look_again) || file.length != file.next();
        let is_at_rest =
            file.lines.as_ref().is_none_or(|lines| lines.deadline_ns().is_none() && lines.held_bytes() == 0);
        if is_at_rest && !file.is_queued {
            file.lines = None;
        }
        let is_left = file.stage == Stage::Skipped && file.names == 0;
        let is_ending = file.stage == Stage::Ending;
        if (part.is_last && is_ending) || is_left {
            self.forget(part.file);
        } else if is_ending || (has_more && file.coding.is_none()) {
            self.enqueue(part.file);
        }
    }

    /// Reads the lines of a refused batch again.
    fn roll_back(&mut self, effects: Effects) {
        self.others.put_back(effects.others);
        for part in effects.parts {
            if let Some(file) = self.table.get_mut(part.file) {
                let held = file.lines.as_ref().map_or(0, |lines| lines.held_bytes());
                self.held_bytes = self.held_bytes.saturating_sub(held);
                file.in_batches = file.in_batches.saturating_sub(1);
                file.roll_back();
                if file.stage == Stage::Skipped && file.coding.is_some() {
                    file.begin();
                }
            }
            self.enqueue(part.file);
        }
    }
}

/// A refusal without a time must not spin.
const LEAST_WAIT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Memory;
    use crate::{PathResource, Settings, TailMeters};

    fn effects(keys: &[u8]) -> Effects {
        let change = |key: &u8| CheckpointChange { key: vec![*key], value: Some(vec![*key]) };
        Effects { others: keys.iter().map(change).collect(), ..Effects::default() }
    }

    /// The changes of a refused batch come back before those of the one behind it.
    #[test]
    fn a_refusal_keeps_the_order_of_two_batches() {
        let settings = Settings::new(b'f', Vec::new());
        let mut tailer =
            Tailer::new(settings, Memory::default(), PathResource::default(), TailMeters::default());
        let batch =
            EncodedBatch { buffer: Vec::<u8>::new(), len: 0, items: 1, largest_item: 0, source_bytes: 0 };
        let mut prepared = Some(Prepared { batch, effects: effects(&[3, 4]) });
        let result = Err(AppendError::Retry(Duration::ZERO));
        let refused = Appended { effects: effects(&[1, 2]), items: 1, len: 9, result };
        assert!(tailer.appended(refused, &mut prepared).is_continue() && prepared.is_none());
        let (changes, _) = tailer.others.take(1000);
        let keys: Vec<u8> = changes.iter().map(|change| change.key[0]).collect();
        assert_eq!(keys, [1, 2, 3, 4]);
    }
}
