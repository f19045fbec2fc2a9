//! The bytes of a state: little-endian numbers, with a checksum at the end.

use crate::state::StateError;
use std::io::{self, Read, Write};
use xxhash_rust::xxh64::Xxh64;

const BUFFER_BYTES: usize = 4096;

/// Writes a state through a small buffer.
pub(crate) struct StateWriter<'a, W> {
    out: &'a mut W,
    hash: Xxh64,
    buffer: [u8; BUFFER_BYTES],
    len: usize,
}

impl<'a, W: Write> StateWriter<'a, W> {
    pub(crate) fn new(out: &'a mut W) -> StateWriter<'a, W> {
        StateWriter { out, hash: Xxh64::new(0), buffer: [0; BUFFER_BYTES], len: 0 }
    }

    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.len == BUFFER_BYTES {
                self.write_buffer()?;
            }
            let free = self.buffer.get_mut(self.len..).unwrap_or_default();
            let (now, later) = bytes.split_at(free.len().min(bytes.len()));
            free.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            self.len += now.len();
            bytes = later;
        }
        Ok(())
    }

    pub(crate) fn u64(&mut self, number: u64) -> io::Result<()> {
        self.put(&number.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, number: u32) -> io::Result<()> {
        self.put(&number.to_le_bytes())
    }

    /// Writes the checksum and all that is in the buffer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.write_buffer()?;
        let checksum = self.hash.digest();
        self.out.write_all(&checksum.to_le_bytes())
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let bytes = self.buffer.get(..self.len).unwrap_or_default();
        self.hash.update(bytes);
        self.len = 0;
        self.out.write_all(bytes)
    }
}

/// Reads a state. An input that ends early is damage.
pub(crate) struct StateReader<'a, R> {
    input: &'a mut R,
    hash: Xxh64,
}

impl<'a, R: Read> StateReader<'a, R> {
    pub(crate) fn new(input: &'a mut R) -> StateReader<'a, R> {
        StateReader { input, hash: Xxh64::new(0) }
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), StateError> {
        read(self.input, bytes)?;
        self.hash.update(bytes);
        Ok(())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StateError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, StateError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, StateError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads the checksum.
    pub(crate) fn finish(self) -> Result<(), StateError> {
        let mut checksum = [0; 8];
        read(self.input, &mut checksum)?;
        if u64::from_le_bytes(checksum) == self.hash.digest() { Ok(()) } else { Err(StateError::Damaged) }
    }
}

fn read(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), StateError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => StateError::Damaged,
        _ => StateError::Read(error),
    })
}
