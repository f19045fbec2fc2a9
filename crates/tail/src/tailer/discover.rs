//! New files, and what checkpoints say of them.

use super::Tailer;
use crate::checkpoint::Checkpoint;
use crate::compressed::Coding;
use crate::destination::{CheckpointChange, Destination};
use crate::directories::DirectoryIndex;
use crate::file::{FirstBytes, Former, Rate, Stage, Tracked, tail_at};
use crate::identity::{FileId, Head, path_hash};
use crate::resource::FileResource;
use crate::settings::StartAt;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_lines::Checkpoint as LinesCheckpoint;
use xxhash_rust::xxh3::xxh3_64;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Takes over the checkpoints of an earlier life.
    pub(super) fn load_checkpoints(&mut self) {
        let kind = self.settings.key;
        let (mut stored, mut markers) = (std::mem::take(&mut self.stored), Vec::new());
        let mut displaced = Vec::new();
        self.destination.checkpoints(&mut |key, value| {
            if let Some(id) = FileId::from_key(kind, key)
                && let Some(checkpoint) = Checkpoint::decode(value)
            {
                stored.insert(id, checkpoint);
            } else if let Some(id) = Former::displaced_of(kind, key)
                && let Some(checkpoint) = Checkpoint::decode(value)
            {
                displaced.push(Former { id, checkpoint, is_displaced: true });
            } else if key.starts_with(&[kind, MARKER]) {
                markers.push(key.to_vec());
            }
        });
        self.stored = stored;
        self.known_inputs = markers;
        displaced.sort_by_key(|former| former.checkpoint.seen);
        for former in displaced {
            if let Some(forgotten) = self.formers.insert(former) {
                self.remove_checkpoint(&forgotten);
            }
        }
    }

    /// A name of the patterns leads to a file.
    pub(super) fn file_seen(
        &mut self,
        at: DirectoryIndex,
        name: &OsStr,
        inode: u64,
        path: &Path,
        input: u16,
    ) {
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.cannot_read(path, &error);
                return;
            }
        };
        if !metadata.is_file() {
            return;
        }
        if let Some(index) = self.known(FileId::of(&metadata)) {
            self.attach(at, name, inode, Some(index));
            self.enqueue(index);
            return;
        }
        // Whatever had the name before has it no more, also if this file cannot be taken.
        let before = self.directories.get(at).and_then(|directory| directory.name(name)?.file);
        let is_full = self.table.len() >= self.settings.max_files;
        if is_full || !self.has_room_for_text(2 * path.as_os_str().len()) {
            if before.is_some() {
                self.detach(at, name);
            }
            self.leave_out(path);
            return;
        }
        match open(path).and_then(|handle| self.found(handle, path, input)) {
            Ok(Some(file)) => {
                let resolved = file.resolved.clone();
                let head = file.head;
                let is_replaced = file.look_again;
                self.text_bytes += file.text_bytes();
                let index = self.table.insert(file);
                self.heads.insert(head, index);
                self.attach(at, name, inode, Some(index));
                if let Some((directory, name)) =
                    resolved.as_deref().and_then(|path| path.parent().zip(path.file_name()))
                    && let Some(directory) = self.enter_directory(directory)
                {
                    self.attach_target(directory, name, index);
                }
                // Its copies come first: what is known of it holds until they have their places.
                if is_replaced && !self.scan.was_complete {
                    self.replaced.push(index);
                } else {
                    self.enqueue(index);
                }
            }
            Ok(None) => {}
            Err(error) => self.cannot_read(path, &error),
        }
    }

    /// A file that was not known.
    fn found(&mut self, handle: File, path: &Path, input: u16) -> io::Result<Option<Box<Tracked>>> {
        let metadata = handle.metadata()?;
        let id = FileId::of(&metadata);
        // Replaced since it was looked at: its change is still to come.
        if !metadata.is_file() || self.known(id).is_some() {
            return Ok(None);
        }
        let first = FirstBytes::of(&handle)?;
        let coding = Coding::of(first.as_slice());
        let born = path_hash(path);
        let now = self.now();
        let resolved = std::fs::canonicalize(path).ok().filter(|resolved| resolved != path);
        let mut file = Box::new(Tracked {
            id,
            input,
            names: 0,
            path: path.into(),
            resolved: resolved.map(PathBuf::into_boxed_path),
            handle,
            committed: Checkpoint::start(born),
            // Known at once, so that what is compressed from it is recognised before its first turn.
            head: if coding.is_none() { Head::of(first.as_slice()) } else { Head::default() },
            length: metadata.len(),
            lines: None,
            stage: Stage::New,
            coding,
            is_queued: false,
            in_batches: 0,
            look_again: false,
            flush: false,
            found: now,
            progressed: now,
            rate: Rate::default(),
            error: None,
        });
        let known = self.stored.remove(&id).or_else(|| self.formers.take(id));
        if let Some(checkpoint) = known {
            self.take_up(&mut file, checkpoint, first.as_slice());
        } else if let Some(offset) = self.start_offset(&file, path, first.as_slice()) {
            self.start_at(&mut file, offset, first.as_slice())?;
        } else if self.starts_at_end(input) {
            self.start_at_end(&mut file, first.as_slice())?;
        }
        Ok(Some(file))
    }

    /// Applies the checkpoint stored for the inode of a file, if it is still the same file.
    fn take_up(&mut self, file: &mut Tracked, checkpoint: Checkpoint, first: &[u8]) {
        if file.coding.is_some() {
            // Whether it is the same one shows when its beginning is decompressed.
            file.committed = checkpoint;
            // Or it is that of another file which had this number, and of which a compressed one may have been made.
            if !checkpoint.finished {
                self.add_former(Former { id: file.id, checkpoint, is_displaced: true });
            }
            return;
        }
        let offset = checkpoint.offset();
        let ends_as_before = || tail_at(&file.handle, offset).is_ok_and(|tail| tail == Some(checkpoint.tail));
        if checkpoint.head.fits(first) && file.length >= offset && (offset == 0 || ends_as_before()) {
            file.committed = checkpoint;
            file.head = checkpoint.head;
            file.stage = Stage::Reading;
            return;
        }
        file.look_again = true;
        // Truncated, or another file with the same number: a copy may have what was there.
        if offset > 0 {
            self.add_former(Former { id: file.id, checkpoint, is_displaced: true });
        }
    }

    /// Where another program stopped reading a file of a new input.
    fn start_offset(&self, file: &Tracked, path: &Path, first: &[u8]) -> Option<u64> {
        let offsets = self.settings.start_offsets.as_ref().filter(|_| self.is_new(file.input))?;
        (offsets.0)(path, file.id, first).filter(|offset| file.coding.is_none() && *offset <= file.length)
    }

    fn is_new(&self, input: u16) -> bool {
        let settings = self.settings.inputs.get(usize::from(input));
        settings
            .is_some_and(|settings| !self.known_inputs.contains(&marker(self.settings.key, &settings.name)))
    }

    fn starts_at_end(&self, input: u16) -> bool {
        let settings = self.settings.inputs.get(usize::from(input));
        settings.is_some_and(|settings| settings.start_at == StartAt::End) && self.is_new(input)
    }

    fn start_at_end(&mut self, file: &mut Tracked, first: &[u8]) -> io::Result<()> {
        if file.coding.is_some() {
            file.committed.finished = true;
            file.stage = Stage::Skipped;
            return Ok(());
        }
        self.start_at(file, file.length, first)
    }

    fn start_at(&mut self, file: &mut Tracked, offset: u64, first: &[u8]) -> io::Result<()> {
        if offset == 0 {
            return Ok(());
        }
        file.head = Head::of(first);
        file.committed = Checkpoint {
            lines: LinesCheckpoint::at(offset),
            head: file.head,
            tail: tail_at(&file.handle, offset)?.unwrap_or_default(),
            seen: unix_seconds(),
            ..file.committed
        };
        file.stage = Stage::Reading;
        self.others.push(self.change(file.id, &file.committed));
        Ok(())
    }

    /// The first listing is complete: whatever has a checkpoint and was not found is gone.
    pub(super) fn first_scan_complete(&mut self) {
        for (id, checkpoint) in std::mem::take(&mut self.stored) {
            self.add_former(Former { id, checkpoint, is_displaced: false });
        }
        for index in std::mem::take(&mut self.replaced) {
            self.enqueue(index);
        }
    }

    /// From the end of a listing on, files that appear in its inputs are new.
    pub(super) fn inputs_listed(&mut self) {
        for input in &self.settings.inputs {
            let marker = marker(self.settings.key, &input.name);
            if !self.known_inputs.contains(&marker) {
                self.others.push(CheckpointChange { key: marker.clone(), value: Some(Vec::new()) });
                self.known_inputs.push(marker);
            }
        }
    }

    /// Remembers a file. What another content of its inode would overwrite gets a key of its own, before that is read.
    pub(super) fn add_former(&mut self, former: Former) {
        if former.is_displaced {
            let checkpoint = Checkpoint { seen: unix_seconds(), ..former.checkpoint };
            let value = Some(checkpoint.encode());
            self.others.push(CheckpointChange { key: former.key(self.settings.key), value });
        }
        if let Some(forgotten) = self.formers.insert(former) {
            self.remove_checkpoint(&forgotten);
        }
    }

    /// Removes the checkpoint of a file that is forgotten.
    fn remove_checkpoint(&mut self, forgotten: &Former) {
        if forgotten.is_displaced || self.known(forgotten.id).is_none() {
            self.others.push(CheckpointChange { key: forgotten.key(self.settings.key), value: None });
        }
    }

    /// Forgets the checkpoints of files that are gone for long.
    pub(super) fn forget_old(&mut self) {
        let remembered = u32::try_from(self.settings.remember.as_secs()).unwrap_or(u32::MAX);
        for former in self.formers.expire(unix_seconds().saturating_sub(remembered)) {
            self.remove_checkpoint(&former);
        }
    }

    /// A file or directory of the patterns cannot be opened. It is tried again in each listing, and told once.
    pub(super) fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        self.meters.add_errors(1);
        if self.unreadable.add(path, error.to_string()) {
            tracing::warn!(path = %path.display(), %error, "cannot read log files there");
        }
    }

    /// A file or directory of the patterns is not read, because as many are known as may be.
    pub(super) fn leave_out(&mut self, path: &Path) {
        self.untracked += u64::from(self.scan.is_counting);
        if !self.max_files_reached {
            self.max_files_reached = true;
            let most = self.settings.max_files;
            tracing::warn!(most, path = %path.display(), "there are more log files, or longer paths, than `max_files` has memory for: others are not read");
        }
    }
}

/// The second byte of the key that says that an input was there before.
const MARKER: u8 = b'i';

/// The key of the marker of an input.
fn marker(kind: u8, name: &str) -> Vec<u8> {
    [&[kind, MARKER], &xxh3_64(name.as_bytes()).to_be_bytes()[..]].concat()
}

fn open(path: &Path) -> io::Result<File> {
    // A pipe with such a name must not block.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Now, in seconds of Unix time.
pub(crate) fn unix_seconds() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
