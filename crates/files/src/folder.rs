//! The operations that durable logs ask of a file system, so that tests can put a failing one in its place.

mod real;
#[cfg(feature = "simulated")]
pub mod simulated;

pub use real::RealFiles;

use std::io::{self, IoSlice};
use std::sync::Arc;

/// One folder. Its errors are those of the system's calls.
#[allow(clippy::missing_errors_doc, reason = "every call can fail as the system's do")]
pub trait Files: Send + Sync {
    /// Every file's name and length.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;
    /// Opens an existing file for reading, and for writing where `write` says so.
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn File>>;
    /// Creates a file that must not exist yet.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Renames, replacing what has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes created, renamed and deleted names durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// One open file. Its errors are those of the system's calls.
#[allow(clippy::missing_errors_doc, reason = "every call can fail as the system's do")]
pub trait File: Send + Sync {
    /// Reads at `offset`; fewer bytes than asked only where the file ends.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset`; perhaps fewer bytes than given.
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// Its length, in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Makes the file `len` bytes long and reserves their space where the file system can.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes the file `len` bytes long.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Begins to write what was written from `offset` on to the device, without waiting for it. A hint: where the system does
    /// not take it, [`sync`](Self::sync) does all the work.
    fn begin_sync(&self, offset: u64);
    /// `fdatasync`: what was written before is durable when this returns.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all of `parts` at `offset`.
///
/// # Errors
/// The file's, after which any part of it may have been written.
pub fn write_all(file: &dyn File, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_at(parts, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                IoSlice::advance_slices(&mut parts, written);
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
