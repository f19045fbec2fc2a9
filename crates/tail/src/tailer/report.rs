//! Tells what is known of the files, and takes new settings.

use super::Tailer;
use crate::destination::Destination;
use crate::file::{Index, Stage, Tracked};
use crate::resource::FileResource;
use crate::settings::Settings;
use crate::status::{FileState, FileStatus, StatusRequest};
use std::sync::Arc;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Answers a request. If nobody waits for it any more, nothing happens.
    pub(super) fn report(&self, request: StatusRequest) {
        let StatusRequest { most, containing, answer } = request;
        let mut matching: Vec<(u64, Index)> = self
            .table
            .iter()
            .filter(|(_, file)| containing.is_empty() || file.path.to_string_lossy().contains(&containing))
            .map(|(index, file)| (file.lag(), index))
            .collect();
        let all = matching.len();
        matching.sort_unstable_by(|a, b| b.cmp(a));
        matching.truncate(most);
        let files =
            matching.into_iter().filter_map(|(_, index)| Some(self.status(self.table.get(index)?))).collect();
        let _ = answer.send((files, all));
    }

    fn status(&self, file: &Tracked) -> FileStatus {
        let input = self.settings.inputs.get(usize::from(file.input));
        FileStatus {
            path: file.path.to_string_lossy().into_owned(),
            input: input.map_or_else(String::new, |input| input.name.to_string()),
            offset: file.committed.offset(),
            size: file.length,
            lag: file.lag(),
            records: file.rate.records,
            rate: file.rate.at(self.now()),
            state: file.state(),
            error: file.error.as_deref().map(str::to_owned),
        }
    }

    /// Goes on with other inputs.
    pub(super) fn replace_settings(&mut self, settings: Settings) {
        self.line_settings = settings.inputs.iter().map(|input| Arc::new(input.lines.clone())).collect();
        self.batch_limit = settings.batch;
        // The memory for files was planned for these.
        self.settings = Settings { max_files: self.settings.max_files, ..settings };
        for index in self.table.numbers() {
            let Some(path) = self.table.get(index).map(|file| file.path.clone()) else { continue };
            let input = self.input_of(&path);
            let Some(file) = self.table.get_mut(index) else { continue };
            match input {
                Some(input) => file.input = input,
                None if file.in_batches == 0 => self.forget_unread(index),
                None => {}
            }
        }
        // The names are found again, by the new patterns.
        for directory in self.directories.indexes() {
            self.leave_directory(directory);
        }
        self.begin_scan();
    }
}

impl Tracked {
    /// The bytes that are not durable yet.
    fn lag(&self) -> u64 {
        if self.coding.is_some() || !self.is_readable() {
            return 0;
        }
        self.length.saturating_sub(self.committed.offset())
    }

    fn state(&self) -> FileState {
        let is_deleted = || {
            use std::os::unix::fs::MetadataExt;
            self.handle.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
        };
        match self.stage {
            Stage::Copy { .. } => FileState::Copy,
            _ if self.coding.is_some() => FileState::Compressed,
            Stage::Skipped => FileState::Skipped,
            Stage::Held | Stage::Ending if is_deleted() => FileState::Deleted,
            Stage::Held | Stage::Ending => FileState::Rotated,
            Stage::New | Stage::Reading if self.lag() > 0 => FileState::Reading,
            Stage::New | Stage::Reading => FileState::Idle,
        }
    }
}
