//! Writing to the last segment.

use super::{ActiveSegment, FIRST, Log};
use crate::disk::Disk;
use crate::queue::Append;
use crate::record::{ALIGN, HEADER, Header, size_of_record};
use crate::segment::{SegmentHead, file_name};
use crate::totals::Position;
use std::io::{self, IoSlice};
use std::sync::Arc;
use tidegate_files::folder::{File, Files, write_all};

const PADDING: [u8; ALIGN as usize] = [0; ALIGN as usize];

impl Append {
    /// The bytes of its record on disk.
    pub(crate) fn size(&self) -> u64 {
        size_of_record(self.meta.note.as_bytes().len(), self.body_len)
    }
}

impl Log {
    /// Whether a record of `size` bytes goes to another segment than the last one.
    pub(crate) fn needs_segment(&self, size: u64, disk: &Disk) -> bool {
        self.active.as_ref().is_none_or(|active| {
            active.end > FIRST && active.end.saturating_add(size) > disk.settings.segment_bytes
        })
    }

    /// Creates the next segment. The one before is durable to its end, and not written to again.
    pub(crate) fn begin_segment(&mut self, disk: &mut Disk) -> io::Result<()> {
        self.active = None;
        let number = self.next;
        let name = file_name(&self.prefix(), number);
        let file = create(&*disk.files, &name)?;
        let head =
            SegmentHead { key: disk.key, number, before: self.end, address: self.member.address.to_string() };
        if let Err(error) = write_all(&*file, &mut [IoSlice::new(&head.encode())], 0) {
            // It is created anew by the next append.
            drop(disk.files.remove(&name));
            return Err(error);
        }
        self.active = Some(ActiveSegment { number, file, end: FIRST, durable: 0 });
        self.next = number + 1;
        if self.disk_bytes == 0 {
            self.first = number;
        }
        self.grow(disk, FIRST);
        Ok(())
    }

    /// Writes a record behind the last one. Nothing is durable yet.
    pub(crate) fn write(&mut self, disk: &mut Disk, append: &Append) -> io::Result<()> {
        let Some(active) = &mut self.active else { return Err(io::ErrorKind::NotFound.into()) };
        let note = append.meta.note.as_bytes();
        let body = append.body.as_ref().as_ref();
        let header = Header {
            body_len: append.body_len,
            key: disk.key,
            before: self.end,
            received_at_ns: append.meta.received_at_ns,
            items: append.meta.items,
            note_len: u8::try_from(note.len()).unwrap_or(0),
            crc: append.crc,
        };
        let size = header.size();
        let padding = size as usize - (HEADER + note.len() + body.len());
        let encoded = header.encode();
        let mut parts =
            [&encoded[..], note, body, PADDING.get(..padding).unwrap_or_default()].map(IoSlice::new);
        write_all(&*active.file, &mut parts, active.end)?;
        active.end += size;
        self.end = header.after();
        self.unsynced_received_ns.get_or_insert(append.meta.received_at_ns);
        self.grow(disk, size);
        Ok(())
    }

    /// Begins to make the records durable that were written. It does not wait.
    pub(crate) fn begin_sync(&self, disk: &Disk) {
        if let Some(active) = self.active.as_ref().filter(|_| disk.is_synced()) {
            active.file.begin_sync(active.durable);
        }
    }

    /// Makes the records durable that were written, not yet the segment's name. True where that is not durable either.
    pub(crate) fn sync(&mut self, disk: &Disk) -> io::Result<bool> {
        let Some(active) = &self.active else { return Ok(false) };
        disk.sync(&*active.file)?;
        Ok(active.durable == 0)
    }

    /// Lets the durable records be read.
    pub(crate) fn publish(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.durable = active.end;
        let head = Position { segment: active.number, offset: active.end, before: self.end };
        let received_at_ns = self.unsynced_received_ns.take();
        let mut view = self.member.view();
        let was_empty = view.is_empty();
        view.head = head;
        view.disk_bytes = self.disk_bytes;
        if was_empty && !view.is_empty() {
            view.oldest_ns = received_at_ns.unwrap_or(view.oldest_ns);
            drop(view);
            self.member.readable.notify_waiters();
        }
    }

    /// Gives up what was written and is not durable, and the segment with it: after an error nobody knows what is in it.
    pub(crate) fn roll_back(&mut self, disk: &mut Disk) {
        self.unsynced_received_ns = None;
        self.end = self.member.view().head.before;
        let Some(active) = self.active.take() else { return };
        let undone = if active.durable == 0 {
            let removed = disk.files.remove(&file_name(&self.prefix(), active.number));
            if removed.is_ok() {
                self.next = active.number;
            }
            removed
        } else {
            active.file.set_len(active.durable)
        };
        // Where it stands, it counts: readers stop at the first sequence of the next segment.
        if undone.is_ok() {
            let undone = active.end - active.durable;
            self.disk_bytes = self.disk_bytes.saturating_sub(undone);
            disk.used = disk.used.saturating_sub(undone);
        }
        self.publish_size();
    }

    /// Ends the last segment, which is durable: the next record goes to another one.
    pub(crate) fn end_segment(&mut self) {
        self.active = None;
    }

    fn grow(&mut self, disk: &mut Disk, bytes: u64) {
        self.disk_bytes += bytes;
        disk.used += bytes;
    }
}

/// Creates a file, in the place of one that was left by an append which failed.
fn create(files: &dyn Files, name: &str) -> io::Result<Arc<dyn File>> {
    match files.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files.remove(name)?;
            files.create(name)
        }
        other => other,
    }
}
