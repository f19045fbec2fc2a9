//! Answers requests for the status of files.

use super::Tailer;
use crate::destination::Destination;
use crate::file::{Index, Stage, Tracked};
use crate::resource::FileResource;
use crate::status::{FileState, FileStatus, Order, StatusRequest, TailStatus, UnreadablePath};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Answers a request. If nobody waits for it any more, nothing happens.
    pub(super) fn report(&self, request: StatusRequest) {
        let StatusRequest { filter, order, most, most_text, answer } = request;
        if answer.is_closed() {
            return;
        }
        let mut status = self.totals();
        // The last of them is the first of the next page.
        let mut chosen = Chosen { order, most: most.max(1) + 1, files: BinaryHeap::new() };
        for (index, file) in self.table.iter().filter(|(_, file)| filter.selects(&file.path)) {
            let lag = file.lag();
            status.matching += 1;
            status.lag += lag;
            chosen.offer(lag, index);
        }
        let mut text = 0;
        for index in chosen.in_order() {
            let Some(file) = self.table.get(index) else { continue };
            let file = self.status(file);
            text += file.path.len() + file.input.len() + file.reason.as_ref().map_or(0, String::len);
            if status.files.len() >= most || (text > most_text && !status.files.is_empty()) {
                status.next = (order != Order::Lag).then_some(index);
                break;
            }
            status.files.push(file);
        }
        for path in self.unreadable.iter() {
            text += path.path.len() + path.reason.len();
            if text <= most_text && !status.unreadable.contains(path) {
                status.unreadable.push(UnreadablePath::clone(path));
            }
        }
        let _ = answer.send(status);
    }

    fn totals(&self) -> TailStatus {
        TailStatus {
            known: self.table.len() as u64,
            held: self.held.len() as u64,
            held_bytes: self.held_length(),
            untracked: self.meters.untracked(),
            ..TailStatus::default()
        }
    }

    fn status(&self, file: &Tracked) -> FileStatus {
        let input = self.settings.inputs.get(usize::from(file.input));
        let state = file.state();
        let reason = match state {
            FileState::Skipped => Some(self.skip_reason(file)),
            FileState::Copy => self.original_of(file).map(|original| format!("a copy of {original}")),
            _ => file.error.as_deref().map(str::to_owned),
        };
        FileStatus {
            path: file.path.to_string_lossy().into_owned(),
            input: input.map_or_else(String::new, |input| input.name.to_string()),
            offset: file.committed.offset(),
            size: file.current_length(),
            lag: file.lag(),
            records: file.rate.records,
            rate: file.rate.at(self.now()),
            state,
            reason,
        }
    }

    fn skip_reason(&self, file: &Tracked) -> String {
        let input = self.settings.inputs.get(usize::from(file.input));
        let reason = match &file.error {
            Some(error) => error,
            None if file.coding.is_none() => "excluded",
            None if input.is_some_and(|input| input.compressed) => {
                "compressed, and there before its input was"
            }
            None => "compressed, and `compressed` is off",
        };
        reason.to_owned()
    }

    fn original_of(&self, file: &Tracked) -> Option<std::path::Display<'_>> {
        let Stage::Copy { original } = file.stage else { return None };
        Some(self.table.get(original)?.path.display())
    }
}

/// The files that come first, in a bounded number.
struct Chosen {
    order: Order,
    most: usize,
    /// The one that comes last is at the top.
    files: BinaryHeap<(Reverse<u64>, Index)>,
}

impl Chosen {
    fn offer(&mut self, lag: u64, index: Index) {
        let key = match self.order {
            Order::Lag => (Reverse(lag), index),
            Order::Number(first) if index >= first => (Reverse(0), index),
            Order::Number(_) => return,
        };
        if self.files.len() < self.most {
            self.files.push(key);
        } else if let Some(mut last) = self.files.peek_mut()
            && key < *last
        {
            *last = key;
        }
    }

    fn in_order(self) -> impl Iterator<Item = Index> {
        self.files.into_sorted_vec().into_iter().map(|(_, index)| index)
    }
}

impl Tracked {
    /// The bytes that are not durable yet.
    fn lag(&self) -> u64 {
        if self.coding.is_some() || !self.is_readable() {
            return 0;
        }
        self.current_length().saturating_sub(self.committed.offset())
    }

    /// Its length now. One that does not wait for its turn has not changed.
    fn current_length(&self) -> u64 {
        if !self.is_queued {
            return self.length;
        }
        self.handle.metadata().map_or(self.length, |metadata| metadata.len())
    }

    fn state(&self) -> FileState {
        let is_deleted = || {
            use std::os::unix::fs::MetadataExt;
            self.handle.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
        };
        match self.stage {
            Stage::Copy { .. } => FileState::Copy,
            // Read to its end, now or before its compression.
            Stage::Skipped if self.error.is_none() && self.committed.offset() > 0 => FileState::Compressed,
            Stage::Skipped => FileState::Skipped,
            _ if self.coding.is_some() => FileState::Compressed,
            Stage::Held | Stage::Ending if is_deleted() => FileState::Deleted,
            Stage::Held | Stage::Ending => FileState::Rotated,
            Stage::New | Stage::Reading if self.lag() > 0 => FileState::Reading,
            Stage::New | Stage::Reading => FileState::Idle,
        }
    }
}
