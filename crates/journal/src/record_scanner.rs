//! Walking over a segment's records, and over what is not one.

use crate::meta::Tenant;
use crate::record::{ALIGN, HEADER, Header, MAGIC};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tidegate_files::folder::File;

/// How much is read ahead, in bytes: small records come several to a system call.
pub(crate) const READ_AHEAD: usize = 16 << 10;
/// Bytes skipped when the device cannot read a position.
const UNREADABLE: u64 = 4 << 10;

/// Reads one segment through a buffer of [`READ_AHEAD`] bytes. It never reads behind the `end` it is given,
/// so what it has buffered never changes.
pub(crate) struct RecordScanner {
    file: Arc<dyn File>,
    /// The mark of every record here; learnt from the first whole header if it is unknown.
    key: Option<u64>,
    buffer: Box<[u8]>,
    at: u64,
    filled: usize,
    /// The limit for reading ahead: the end given to the last search.
    end: u64,
}

impl RecordScanner {
    pub(crate) fn new(file: Arc<dyn File>, key: Option<u64>) -> RecordScanner {
        let buffer = vec![0; READ_AHEAD].into_boxed_slice();
        RecordScanner { file, key, buffer, at: 0, filled: 0, end: 0 }
    }

    /// The same buffer over another file.
    pub(crate) fn reopen(&mut self, file: Arc<dyn File>, key: u64) {
        self.file = file;
        self.key = Some(key);
        self.filled = 0;
    }

    pub(crate) fn key(&self) -> Option<u64> {
        self.key
    }

    /// The first record at or behind `from` that has its sequence in `sequences` and lies before `end`
    /// whole; where it is not at `from` itself, something there is damaged or was never written.
    pub(crate) fn find(&mut self, from: u64, end: u64, sequences: Range<u64>) -> Option<(u64, Header)> {
        self.end = end;
        let mut at = from;
        while at + HEADER as u64 <= end {
            if let Some(header) = self.header_at(at, end, &sequences) {
                return Some((at, header));
            }
            at = self.next_magic(at + ALIGN, end);
        }
        None
    }

    /// The record that begins at `at` and lies before `end` whole, if there is one.
    pub(crate) fn record_at(&mut self, at: u64, end: u64, sequences: Range<u64>) -> Option<Header> {
        self.end = end;
        self.header_at(at, end, &sequences)
    }

    /// The record at `at`, if there is a whole header that fits.
    fn header_at(&mut self, at: u64, end: u64, sequences: &Range<u64>) -> Option<Header> {
        let header = Header::decode(self.bytes(at, HEADER, end).ok()?)?;
        let ours = self.key.is_none_or(|key| key == header.key);
        let fits = header.size() <= end - at && sequences.contains(&header.sequence);
        (ours && fits).then(|| {
            self.key = Some(header.key);
            header
        })
    }

    /// The first place at or behind `at` where a magic stands, or `end`.
    fn next_magic(&mut self, mut at: u64, end: u64) -> u64 {
        while at + HEADER as u64 <= end {
            let Ok(bytes) = self.bytes(at, READ_AHEAD, end) else {
                at = (at + 1).next_multiple_of(UNREADABLE);
                continue;
            };
            let steps = bytes.chunks(ALIGN as usize);
            match steps.clone().position(|step| step.starts_with(&MAGIC)) {
                Some(step) => return at + step as u64 * ALIGN,
                // A last incomplete chunk is the end of the file: it is shorter than a header.
                None => at += (steps.len().max(1) as u64) * ALIGN,
            }
        }
        end
    }

    /// The tenant of the record at `at`; `None` if the name was not the written one.
    pub(crate) fn tenant(&mut self, at: u64, header: &Header) -> Option<Tenant> {
        let name = self.prefix(at, header)?.get(..usize::from(header.tenant_len))?;
        Tenant::new(str::from_utf8(name).ok()?)
    }

    /// The name of the only sink that the record at `at` is for; empty where it is for all.
    pub(crate) fn recipient(&mut self, at: u64, header: &Header) -> Option<&str> {
        let start = usize::from(header.tenant_len);
        let name = self.prefix(at, header)?.get(start..start + usize::from(header.recipient_len))?;
        str::from_utf8(name).ok()
    }

    /// The bytes between the recipient and the body.
    pub(crate) fn note(&mut self, at: u64, header: &Header) -> Option<&[u8]> {
        let start = usize::from(header.tenant_len) + usize::from(header.recipient_len);
        self.prefix(at, header)?.get(start..)
    }

    /// Tenant, recipient and note. They fit the buffer by their bounds.
    fn prefix(&mut self, at: u64, header: &Header) -> Option<&[u8]> {
        let len = HEADER + header.prefix();
        self.bytes(at, len, self.end).ok()?.get(HEADER..len)
    }

    /// Reads the body of the record at `at` into `body`, which is as long as it is, and says whether the
    /// checksum agrees.
    pub(crate) fn body(&mut self, at: u64, header: &Header, body: &mut [u8]) -> io::Result<bool> {
        let Some(prefix) = self.prefix(at, header) else { return Ok(false) };
        let sum = crc32c::crc32c(prefix);
        let start = at + (HEADER + header.prefix()) as u64;
        // Buffered data needs no system call.
        let ahead = self.buffered(start);
        let (head, rest) = body.split_at_mut(ahead.len().min(body.len()));
        head.copy_from_slice(ahead.get(..head.len()).unwrap_or_default());
        if !rest.is_empty() && self.file.read_at(rest, start + head.len() as u64)? < rest.len() {
            return Ok(false);
        }
        Ok(crc32c::crc32c_append(sum, body) == header.crc)
    }

    /// Whether the record at `at` is as it was written, read through the buffer alone.
    pub(crate) fn is_whole(&mut self, at: u64, header: &Header) -> bool {
        let mut from = at + HEADER as u64;
        let end = from + header.prefix() as u64 + u64::from(header.body_len);
        let mut sum = 0;
        while from < end {
            match self.bytes(from, READ_AHEAD, end) {
                Ok(bytes) if !bytes.is_empty() => {
                    sum = crc32c::crc32c_append(sum, bytes);
                    from += bytes.len() as u64;
                }
                _ => return false,
            }
        }
        sum == header.crc
    }

    /// Up to `len` bytes from `at` on, fewer only where `end` or the file's end is nearer.
    fn bytes(&mut self, at: u64, len: usize, end: u64) -> io::Result<&[u8]> {
        let wanted = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(len);
        if self.buffered(at).len() < wanted.min(READ_AHEAD) {
            let ahead = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(READ_AHEAD);
            self.filled = 0;
            self.at = at;
            self.filled = self.file.read_at(self.buffer.get_mut(..ahead).unwrap_or_default(), at)?;
        }
        let found = self.buffered(at);
        Ok(found.get(..wanted).unwrap_or(found))
    }

    fn buffered(&self, at: u64) -> &[u8] {
        let Some(skipped) = at.checked_sub(self.at).and_then(|skipped| usize::try_from(skipped).ok()) else {
            return &[];
        };
        self.buffer.get(..self.filled).and_then(|filled| filled.get(skipped..)).unwrap_or_default()
    }
}
