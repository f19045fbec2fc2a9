//! Finding the end of a head while it arrives, looking at every byte once.

use crate::refusal::{Refusal, SyntaxError};

/// How far a head has been looked at. It parses nothing but the first line, and that only when more of
/// the head is awaited, so that a client that will never send more is told so at once.
#[derive(Debug, Default)]
pub(crate) struct HeadScanner {
    /// Bytes looked at.
    seen: usize,
    /// Where the line begins that is being looked at.
    line: usize,
    /// Where the request line begins: behind the one empty line that may precede it.
    start: usize,
}

/// The result of [`HeadScanner::advance`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScanProgress {
    /// More must arrive.
    Partial,
    /// The head lies in these bytes: from the request line to the empty line behind the headers.
    Complete { start: usize, end: usize },
}

impl HeadScanner {
    /// Looks at what has arrived: all of it, from the first byte of the request. What it finds wrong does
    /// not depend on the pieces in which that arrived.
    pub(crate) fn advance(&mut self, bytes: &[u8], limit: usize) -> Result<ScanProgress, Refusal> {
        if self.seen == 0 {
            check_first_byte(bytes)?;
        }
        let had_line = self.has_line();
        let progress = self.lines(bytes, limit);
        // With a whole head the parser looks at the request line. Else it is looked at here, once.
        if self.has_line() && !had_line && !matches!(progress, Ok(ScanProgress::Complete { .. })) {
            check_request_line(bytes.get(self.start..).unwrap_or_default())?;
        }
        progress
    }

    /// Whether the request line has arrived.
    fn has_line(&self) -> bool {
        self.line > self.start
    }

    fn lines(&mut self, bytes: &[u8], limit: usize) -> Result<ScanProgress, Refusal> {
        while let Some(found) = memchr::memchr(b'\n', bytes.get(self.seen..).unwrap_or_default()) {
            let feed = self.seen + found;
            if feed - self.start >= limit {
                return Err(self.too_long(limit));
            }
            let line = bytes.get(self.line..feed).unwrap_or_default();
            if line.last() != Some(&b'\r') {
                return Err(Refusal::Malformed(SyntaxError::LineEnd));
            }
            let end = feed + 1;
            if line.len() == 1 && self.has_line() {
                return Ok(ScanProgress::Complete { start: self.start, end });
            }
            if line.len() == 1 {
                // One empty line before the request line is forgiven (RFC 9112, section 2.2).
                if self.start > 0 {
                    return Err(Refusal::Malformed(SyntaxError::RequestLine));
                }
                self.start = end;
            }
            (self.line, self.seen) = (end, end);
        }
        self.seen = bytes.len();
        if bytes.len() - self.start >= limit { Err(self.too_long(limit)) } else { Ok(ScanProgress::Partial) }
    }

    fn too_long(&self, limit: usize) -> Refusal {
        if self.has_line() { Refusal::HeadTooLarge { limit } } else { Refusal::TargetTooLong { limit } }
    }
}

/// Checks the line that `bytes` begin with.
fn check_request_line(bytes: &[u8]) -> Result<(), Refusal> {
    let line = memchr::memchr(b'\n', bytes).and_then(|feed| bytes.get(..=feed)).unwrap_or_default();
    // Room for one header: without any, the parser finds that there are too many before it finds none.
    match httparse::Request::new(&mut [httparse::EMPTY_HEADER]).parse(line) {
        Ok(_) => Ok(()),
        Err(error) => Err(super::parse::refusal_of(error, line)),
    }
}

fn check_first_byte(bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.first() {
        Some(0x16) => Err(Refusal::Malformed(SyntaxError::Tls)),
        Some(byte) if !byte.is_ascii_graphic() && !matches!(byte, b'\r' | b'\n') => {
            Err(Refusal::Malformed(SyntaxError::RequestLine))
        }
        _ => Ok(()),
    }
}
