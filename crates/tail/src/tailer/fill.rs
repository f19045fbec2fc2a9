//! Fills a batch with the records of the files whose turn it is.

use super::Tailer;
use super::append::Prepared;
use crate::batch::{Effects, EncodedBatch};
use crate::destination::{Buffer, CheckpointChange, Destination};
use crate::file::Index;
use crate::identity::FileId;
use crate::resource::FileResource;
use std::time::Duration;
use tidegate_lines::Stream;
use tidegate_wire::otlp::logs::LogsEncoder;

/// The most bytes that the checkpoint of one file takes in a batch.
pub(super) const MOST_OF_A_FILE: usize = 2 + FileId::KEY + crate::checkpoint::Checkpoint::MOST_BYTES;

/// Turns in one go: those of which no record comes must not keep messages and changes waiting.
const MOST_TURNS: usize = 256;
/// The time of one go after which no further turn begins.
const LONGEST: Duration = Duration::from_millis(20);

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing is left to read for now.
    Idle,
    /// There is more to read.
    More,
    /// The batch has no room.
    Full,
    /// The file was truncated.
    Truncated,
    /// The file is read to its end, and can be forgotten.
    Ended,
}

/// A batch while it is filled.
pub(super) struct Filling<'a> {
    pub(super) encoder: LogsEncoder<'a>,
    pub(super) effects: Effects,
    /// The file whose resource the encoder has.
    pub(super) group: Option<Index>,
    /// The output of that file whose lines are left out, if any.
    pub(super) without: Option<Stream>,
    /// Whether no larger batch is possible.
    pub(super) is_largest: bool,
}

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Gives the files their turns until the batch is full or nothing is left.
    pub(super) fn fill(&mut self, mut buffer: D::Buffer) -> Option<Prepared<D::Buffer>> {
        let most = self.batch_limit.min(self.destination.largest_batch());
        let bytes = buffer.bytes();
        let is_largest = bytes.len() >= most;
        let len = bytes.len().min(most);
        let encoder = LogsEncoder::new(bytes.get_mut(..len).unwrap_or_default());
        let (others, mut set_at) = self.others.take(CheckpointChange::MOST_BYTES);
        let effects = Effects { others, ..Effects::default() };
        let mut filling = Filling { encoder, effects, group: None, without: None, is_largest };
        let (began, mut turns) = (self.now(), 0);
        // Changes that do not fit come before any part that may rely on them.
        while self.others.is_empty()
            && turns < MOST_TURNS
            && self.now().saturating_sub(began) < LONGEST
            && let Some(index) = self.ready.pop_front()
        {
            if !filling.has_room_for(index) {
                self.ready.push_front(index);
                break;
            }
            if let Some(file) = self.table.get_mut(index) {
                file.is_queued = false;
            }
            turns += 1;
            match self.take_turn(index, &mut filling) {
                Turn::Idle => {}
                Turn::More => self.enqueue(index),
                Turn::Full => {
                    if let Some(file) = self.table.get_mut(index) {
                        file.is_queued = true;
                        self.ready.push_front(index);
                    }
                    self.needs_largest = filling.encoder.items() == 0;
                    break;
                }
                Turn::Truncated => {
                    self.truncated(index);
                    // A copy found now has to be in a batch before anything new of the original is.
                    let (found, found_set_at) = self.others.take(filling.room());
                    filling.effects.others.extend(found);
                    set_at = set_at.zip(found_set_at).map(|(one, other)| one.max(other));
                }
                Turn::Ended => self.forget(index),
            }
        }
        let has_room = self.others.is_empty() && filling.room() >= MOST_OF_A_FILE;
        let Filling { encoder, effects, .. } = filling;
        let source_bytes = effects.parts.iter().map(|part| part.bytes).sum();
        let encoded = encoder.finish();
        if effects.is_empty() && encoded.items == 0 {
            return None;
        }
        if let Some(at) = set_at.filter(|_| has_room && effects.parts.is_empty() && encoded.items == 0) {
            self.others.put_back_set(effects.others, at);
            return None;
        }
        let (len, items, largest_item) = (encoded.len, encoded.items, encoded.largest_item);
        self.needs_largest &= items == 0;
        Some(Prepared { batch: EncodedBatch { buffer, len, items, largest_item, source_bytes }, effects })
    }

    fn take_turn(&mut self, index: Index, filling: &mut Filling<'_>) -> Turn {
        let Some(mut file) = self.table.take(index) else { return Turn::Idle };
        let error_before = file.error.take();
        let result = if !file.is_readable() {
            Ok(Turn::Idle)
        } else if file.coding.is_some() {
            self.compressed_turn(index, &mut file, filling)
        } else {
            self.turn(index, &mut file, filling)
        };
        let turn = match result {
            Ok(turn) => turn,
            Err(error) => {
                self.meters.add_errors(1);
                if error_before.is_none() {
                    tracing::warn!(path = %file.path.display(), %error, "cannot read a log file");
                }
                file.error = Some(error.to_string().into());
                self.waiting.insert(index);
                Turn::Idle
            }
        };
        self.table.give_back(index, file);
        turn
    }
}

impl Filling<'_> {
    /// Whether the checkpoint of `file` fits the batch.
    fn has_room_for(&self, file: Index) -> bool {
        self.effects.parts.iter().any(|part| part.file == file) || self.room() >= MOST_OF_A_FILE
    }

    /// The bytes left for checkpoints.
    fn room(&self) -> usize {
        let others: usize = self.effects.others.iter().map(CheckpointChange::bytes).sum();
        let parts: usize =
            self.effects.parts.iter().map(|part| 2 + FileId::KEY + part.checkpoint.encoded_len()).sum();
        CheckpointChange::MOST_BYTES.saturating_sub(others + parts)
    }
}
