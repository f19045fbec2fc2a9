//! Several records in one system call.

use crate::append::PendingAppend;
use crate::record::{ALIGN, HEADER};
use std::io::{self, IoSlice};
use tidegate_files::folder::{File, write_all};

/// Records in one system call: their slices are well below `IOV_MAX`, and few enough for the stack.
pub(super) const MAX_RECORDS_PER_WRITE: usize = 85;
/// Slices of one record: header and tenant, recipient, note, body, padding.
const SLICES: usize = 5;
/// The unit in which the kernel caches and reads, in bytes. Smaller in tests, whose segments are small, so that old
/// data remains in them.
const PAGE: u64 = if cfg!(test) { 64 } else { 4096 };
/// The minimum after the last record: as many zeros as a header is long.
const END_MARK: [u8; PAGE as usize + HEADER] = [0; PAGE as usize + HEADER];
const PADDING: [u8; ALIGN as usize] = [0; ALIGN as usize];

/// Slices to be written, without empty ones.
struct Slices<'a> {
    slices: [IoSlice<'a>; SLICES * MAX_RECORDS_PER_WRITE + 1],
    used: usize,
}

impl<'a> Slices<'a> {
    fn push(&mut self, bytes: &'a [u8]) {
        if let (false, Some(slice)) = (bytes.is_empty(), self.slices.get_mut(self.used)) {
            *slice = IoSlice::new(bytes);
            self.used += 1;
        }
    }
}

/// Writes `entries` at `at` with one system call where the kernel takes it all, and says where they end.
/// `starts` says where in `heads` each begins.
pub(super) fn write_chunk(
    (file, capacity): (&dyn File, u64),
    at: u64,
    entries: &[(u32, PendingAppend)],
    starts: &[usize],
    heads: &[u8],
) -> io::Result<u64> {
    let slices = [IoSlice::new(&[]); SLICES * MAX_RECORDS_PER_WRITE + 1];
    let mut slices = Slices { slices, used: 0 };
    let mut end = at;
    for ((_, entry), &start) in entries.iter().zip(starts) {
        let head = HEADER + entry.meta.tenant.as_str().len();
        let (recipient, note) = (entry.checkpoints.recipient().as_bytes(), entry.checkpoints.note());
        let unpadded = (head + recipient.len() + note.len()) as u64 + u64::from(entry.len);
        slices.push(heads.get(start..start + head).unwrap_or_default());
        slices.push(recipient);
        slices.push(note);
        slices.push(entry.body());
        slices.push(PADDING.get(..(entry.size() - unpadded) as usize).unwrap_or_default());
        end += entry.size();
    }
    let marked = (end + HEADER as u64).next_multiple_of(PAGE).min(capacity).max(end);
    slices.push(END_MARK.get(..(marked - end) as usize).unwrap_or_default());
    write_all(file, slices.slices.get_mut(..slices.used).unwrap_or_default(), at)?;
    Ok(end)
}
