//! A request with a chunked body, from one fixed buffer.
//!
//! The head, the chunk's size (always four digits), the chunk and the end lie behind each other in the buffer
//! before it is written, so a small request is one call to the kernel.

use super::connection::{Connection, Deadline, Failure};
use crate::gzip::Gzip;

/// The unit of writing.
pub(crate) const CHUNK: usize = 16 << 10;
/// `FFFF\r\n` in front of a chunk.
const SIZE: usize = 6;
/// `\r\n` after it, and the end of the body.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// The buffers that a sending thread reuses for all its requests.
pub(crate) struct Buffers {
    chunk: Box<[u8]>,
    gzip: Option<Gzip>,
}

impl Buffers {
    pub(crate) fn new(gzip: bool) -> Buffers {
        Buffers { chunk: vec![0; CHUNK].into_boxed_slice(), gzip: gzip.then(Gzip::new) }
    }

    pub(crate) const fn memory(gzip: bool) -> usize {
        CHUNK + if gzip { crate::gzip::STATE_BYTES } else { 0 }
    }
}

/// A body under way.
pub(crate) struct Body<'a> {
    connection: &'a mut Connection,
    patience: Deadline<'a>,
    buffers: &'a mut Buffers,
    gzip: bool,
    /// Where the size of the chunk stands in the buffer.
    start: usize,
    /// Where its next byte goes.
    end: usize,
    /// Bytes written to the connection.
    pub(crate) written: usize,
}

impl<'a> Body<'a> {
    /// Begins a request with its head, all of it up to the empty line.
    pub(crate) fn begin(
        connection: &'a mut Connection,
        patience: Deadline<'a>,
        buffers: &'a mut Buffers,
        head: &[u8],
        gzip: bool,
    ) -> Result<Body<'a>, Failure> {
        let gzip = gzip && buffers.gzip.is_some();
        let mut body = Body { connection, patience, buffers, gzip, start: 0, end: 0, written: 0 };
        let room = body.buffers.chunk.get_mut(..head.len()).ok_or(Failure::Broken)?;
        room.copy_from_slice(head);
        body.start = head.len();
        body.end = head.len() + SIZE;
        if let Buffers { gzip: Some(state), .. } = &mut *body.buffers
            && gzip
        {
            let first = state.begin();
            body.plain(first)?;
        }
        Ok(body)
    }

    /// Appends to the body.
    pub(crate) fn put(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        if !self.gzip {
            return self.plain(bytes);
        }
        while !bytes.is_empty() {
            let Buffers { chunk, gzip: Some(gzip) } = &mut *self.buffers else { return Ok(()) };
            let room = chunk.get_mut(self.end..CHUNK - END.len()).unwrap_or_default();
            let (read, written) = gzip.compress(bytes, room);
            bytes = bytes.get(read..).unwrap_or_default();
            self.end += written;
            if self.is_full() {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    /// Ends the body. Returns how many bytes went over the connection.
    pub(crate) fn end(mut self) -> Result<usize, Failure> {
        while self.gzip {
            let Buffers { chunk, gzip: Some(gzip) } = &mut *self.buffers else { break };
            let room = chunk.get_mut(self.end..CHUNK - END.len()).unwrap_or_default();
            let (written, done) = gzip.finish(room);
            self.end += written;
            if done {
                let trailer = gzip.trailer();
                self.plain(&trailer)?;
                break;
            }
            self.write_chunk()?;
        }
        // An empty chunk would end the body, so it is the end.
        let end = if self.end == self.start + SIZE {
            self.end = self.start;
            END.get(2..).unwrap_or_default()
        } else {
            self.size();
            END
        };
        let room = self.buffers.chunk.get_mut(self.end..self.end + end.len()).ok_or(Failure::Broken)?;
        room.copy_from_slice(end);
        self.end += end.len();
        self.flush()?;
        Ok(self.written)
    }

    fn plain(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let room = self.buffers.chunk.get_mut(self.end..CHUNK - END.len()).unwrap_or_default();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            if let Some(room) = room.get_mut(..now.len()) {
                room.copy_from_slice(now);
            }
            self.end += now.len();
            bytes = later;
            if self.is_full() {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.end == CHUNK - END.len()
    }

    fn write_chunk(&mut self) -> Result<(), Failure> {
        if self.end > self.start + SIZE {
            self.size();
            if let Some(room) = self.buffers.chunk.get_mut(self.end..self.end + 2) {
                room.copy_from_slice(b"\r\n");
            }
            self.end += 2;
            self.flush()?;
        }
        self.start = 0;
        self.end = SIZE;
        Ok(())
    }

    fn size(&mut self) {
        let len = self.end - self.start - SIZE;
        let digit = |shift: u32| b"0123456789ABCDEF".get(len >> shift & 15).copied().unwrap_or(b'0');
        if let Some(room) = self.buffers.chunk.get_mut(self.start..self.start + SIZE) {
            room.copy_from_slice(&[digit(12), digit(8), digit(4), digit(0), b'\r', b'\n']);
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let bytes = self.buffers.chunk.get(..self.end).unwrap_or_default();
        self.connection.write_all(bytes, self.patience)?;
        self.written += bytes.len();
        Ok(())
    }
}
