//! The checksum of a file, taken while it is written.

use std::fs::File;
use std::io::{Read, Result, Write};
use xxhash_rust::xxh64::Xxh64;

/// A file that knows the length and the xxh64 (seed 0) of all that was written to it.
pub(crate) struct ChecksummedFile {
    file: File,
    hash: Xxh64,
    bytes: u64,
}

impl ChecksummedFile {
    pub(crate) fn new(file: File) -> Self {
        ChecksummedFile { file, hash: Xxh64::new(0), bytes: 0 }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sixteen hexadecimal digits.
    pub(crate) fn checksum(&self) -> String {
        format!("{:016x}", self.hash.digest())
    }
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

/// Length and checksum of what is in `file` from here on.
pub(crate) fn checksum_of(mut file: &File) -> Result<(u64, String)> {
    let mut hash = Xxh64::new(0);
    let mut bytes = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, format!("{:016x}", hash.digest())));
        }
        hash.update(buffer.get(..read).unwrap_or(&[]));
        bytes += read as u64;
    }
}
