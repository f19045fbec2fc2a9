//! An answer that is put together once, and then only dated.

use super::date::with_date;
use super::render::{Ending, connection, head, number, opening, rest};
use super::{Content, Reply};

/// All bytes of an answer but its date, its delay, and what the connection adds. Made at the start from the reply
/// itself, so that what it writes is to the byte what that would write.
#[derive(Debug)]
pub struct Prepared {
    status: u16,
    bytes: Box<[u8]>,
    /// Where the date goes; where the connection's line goes, and before that the delay and the headers; where the
    /// content begins.
    date: usize,
    connection: usize,
    content: usize,
}

impl Prepared {
    /// The answer that `reply` is. Its delay is given with each answer.
    pub fn new(reply: &Reply) -> Prepared {
        let mut bytes = Vec::with_capacity(512);
        opening(reply, &mut bytes);
        let date = bytes.len();
        head(reply, &mut bytes);
        let connection = bytes.len();
        let content = rest(reply, &mut bytes) + connection;
        let follows = reply.content.bytes();
        if content == bytes.len() && !matches!(reply.content, Content::Sentence(..)) {
            bytes.extend_from_slice(follows);
        }
        Prepared { status: reply.status, bytes: bytes.into_boxed_slice(), date, connection, content }
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its content.
    pub fn content(&self) -> &[u8] {
        self.part(self.content..self.bytes.len())
    }

    /// How many bytes it keeps.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn render(&self, retry_after: Option<u32>, ending: Ending, out: &mut Vec<u8>) {
        // The date, a delay and a line about the connection fit into what is left.
        out.reserve(self.bytes.len() + 128);
        out.extend_from_slice(self.part(0..self.date));
        with_date(|date| out.extend_from_slice(date));
        if let Some(seconds) = retry_after {
            out.extend_from_slice(b"\r\nRetry-After: ");
            number(seconds.into(), out);
        }
        out.extend_from_slice(self.part(self.date..self.connection));
        connection(ending, out);
        let end = if ending.bodiless { self.content } else { self.bytes.len() };
        out.extend_from_slice(self.part(self.connection..end));
    }

    fn part(&self, range: std::ops::Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }
}
