//! Finding the end of a head while it arrives, looking at every byte once.

use crate::refusal::{Flaw, Refusal};

/// How far a head has been looked at. It parses nothing but the first line, and that only when more of
/// the head is awaited, so that a client that will never send more is told so at once.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Bytes looked at.
    seen: usize,
    /// Where the line begins that is being looked at.
    line: usize,
    /// Where the request line begins: behind the one empty line that may precede it.
    start: usize,
}

/// What [`Scan::advance`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More must arrive.
    Partial,
    /// The head lies in these bytes: from the request line to the empty line behind the headers.
    Complete { start: usize, end: usize },
}

impl Scan {
    /// Looks at what has arrived: all of it, from the first byte of the request.
    pub(crate) fn advance(&mut self, bytes: &[u8], limit: usize) -> Result<Progress, Refusal> {
        let had_line = self.line > self.start;
        if self.seen == 0 {
            check_first_byte(bytes)?;
        }
        while let Some(found) = memchr::memchr(b'\n', bytes.get(self.seen..).unwrap_or_default()) {
            let feed = self.seen + found;
            let line = bytes.get(self.line..feed).unwrap_or_default();
            if line.last() != Some(&b'\r') {
                return Err(Refusal::Malformed(Flaw::LineEnd));
            }
            let end = feed + 1;
            if line.len() == 1 && self.line > self.start {
                if end - self.start > limit {
                    return Err(Refusal::HeadTooLarge { limit });
                }
                return Ok(Progress::Complete { start: self.start, end });
            }
            if line.len() == 1 {
                // One empty line before the request line is forgiven (RFC 9112, section 2.2).
                if self.start > 0 {
                    return Err(Refusal::Malformed(Flaw::RequestLine));
                }
                self.start = end;
            }
            (self.line, self.seen) = (end, end);
        }
        self.seen = bytes.len();
        let has_line = self.line > self.start;
        if bytes.len() - self.start >= limit {
            return Err(if has_line {
                Refusal::HeadTooLarge { limit }
            } else {
                Refusal::TargetTooLong { limit }
            });
        }
        if has_line && !had_line {
            check_request_line(bytes.get(self.start..self.line).unwrap_or_default())?;
        }
        Ok(Progress::Partial)
    }
}

fn check_request_line(line: &[u8]) -> Result<(), Refusal> {
    // Room for one header: without any, the parser finds that there are too many before it finds none.
    match httparse::Request::new(&mut [httparse::EMPTY_HEADER]).parse(line) {
        Ok(_) => Ok(()),
        Err(error) => Err(super::parse::refusal_of(error, line)),
    }
}

fn check_first_byte(bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.first() {
        Some(0x16) => Err(Refusal::Malformed(Flaw::Tls)),
        Some(byte) if !byte.is_ascii_graphic() && !matches!(byte, b'\r' | b'\n') => {
            Err(Refusal::Malformed(Flaw::RequestLine))
        }
        _ => Ok(()),
    }
}
