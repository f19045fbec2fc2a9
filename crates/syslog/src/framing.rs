//! Messages in a stream (RFC 6587): by octet counting, or ended by a line feed or a NUL.

/// Counted messages longer than this are no messages: the count is wrong, and where the next begins is not known.
const LONGEST_COUNT: u64 = 1 << 30;
/// The most digits of a count.
const MOST_DIGITS: usize = 20;

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// A message that begins with a number, a space and `<` is counted; others end with a line feed or a NUL.
    #[default]
    Auto,
    /// All are counted.
    OctetCounting,
    /// All end with a line feed or a NUL.
    Newline,
}

/// Finds messages in a stream, of which it gets the bytes that were not used yet. A message that is longer than the limit is
/// cut, and its rest skipped.
#[derive(Debug, Clone)]
pub struct Framer {
    framing: Framing,
    max: usize,
    skip: Skip,
}

/// The rest of a message that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skip {
    Nothing,
    Bytes(u64),
    ToLineEnd,
}

/// The next part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A message, whose frame has so many bytes.
    Message {
        /// The message without its frame.
        bytes: &'a [u8],
        /// The bytes of the frame.
        used: usize,
        /// Whether it was longer.
        is_cut: bool,
    },
    /// So many bytes that are no message.
    Skipped(usize),
    /// Not all of a message.
    Partial,
    /// There is no telling where the next message begins.
    Broken,
}

impl Framer {
    /// For messages of at most `max` bytes.
    #[must_use]
    pub fn new(framing: Framing, max: usize) -> Framer {
        Framer { framing, max: max.max(1), skip: Skip::Nothing }
    }

    /// The bytes within which a whole message is found, or one that is too long: with so many there is always progress.
    #[must_use]
    pub fn lookahead(&self) -> usize {
        self.max + MOST_DIGITS + 2
    }

    /// The next message in `bytes`; `is_end` says that no more bytes follow.
    pub fn next<'a>(&mut self, bytes: &'a [u8], is_end: bool) -> Framed<'a> {
        if bytes.is_empty() {
            return Framed::Partial;
        }
        match self.skip {
            Skip::Nothing => {}
            Skip::Bytes(left) => {
                let used = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - used as u64;
                self.skip = if left == 0 { Skip::Nothing } else { Skip::Bytes(left) };
                return Framed::Skipped(used);
            }
            Skip::ToLineEnd => {
                return match line_end(bytes) {
                    Some(end) => {
                        self.skip = Skip::Nothing;
                        Framed::Skipped(end + 1)
                    }
                    None => Framed::Skipped(bytes.len()),
                };
            }
        }
        match self.framing {
            Framing::Newline => self.line(bytes, is_end),
            Framing::OctetCounting => match count(bytes) {
                Count::Of { digits, count } => self.counted(bytes, digits, count, is_end),
                Count::Partial if !is_end => Framed::Partial,
                // Some senders put a line feed behind a counted message.
                Count::Partial | Count::None => match bytes.first() {
                    Some(b'\n' | b'\r' | 0) => Framed::Skipped(1),
                    _ => Framed::Broken,
                },
            },
            Framing::Auto => match count(bytes) {
                Count::Of { digits, count } => match bytes.get(digits + 1) {
                    Some(b'<') => self.counted(bytes, digits, count, is_end),
                    None if !is_end => Framed::Partial,
                    _ => self.line(bytes, is_end),
                },
                Count::Partial if !is_end => Framed::Partial,
                Count::Partial | Count::None => self.line(bytes, is_end),
            },
        }
    }

    fn counted<'a>(&mut self, bytes: &'a [u8], digits: usize, count: u64, is_end: bool) -> Framed<'a> {
        if count > LONGEST_COUNT {
            return Framed::Broken;
        }
        let front = digits + 1;
        let len = usize::try_from(count).unwrap_or(usize::MAX);
        let rest = bytes.get(front..).unwrap_or_default();
        if let Some(message) = rest.get(..len.min(self.max)) {
            let skipped = len.saturating_sub(self.max);
            if skipped > 0 {
                self.skip = Skip::Bytes(skipped as u64);
            }
            let used = front + message.len();
            return Framed::Message { bytes: trimmed(message), used, is_cut: skipped > 0 };
        }
        if is_end {
            return Framed::Message { bytes: trimmed(rest), used: bytes.len(), is_cut: true };
        }
        Framed::Partial
    }

    fn line<'a>(&mut self, bytes: &'a [u8], is_end: bool) -> Framed<'a> {
        let within = bytes.get(..=self.max).unwrap_or(bytes);
        if let Some(end) = line_end(within) {
            let line = bytes.get(..end).unwrap_or_default();
            return Framed::Message { bytes: trimmed(line), used: end + 1, is_cut: false };
        }
        if bytes.len() > self.max {
            self.skip = Skip::ToLineEnd;
            let line = bytes.get(..self.max).unwrap_or_default();
            return Framed::Message { bytes: trimmed(line), used: self.max, is_cut: true };
        }
        if is_end {
            return Framed::Message { bytes: trimmed(bytes), used: bytes.len(), is_cut: false };
        }
        Framed::Partial
    }
}

/// A count at the start of a frame.
enum Count {
    Of { digits: usize, count: u64 },
    Partial,
    None,
}

/// `MSG-LEN SP`: a number that does not begin with zero.
fn count(bytes: &[u8]) -> Count {
    if !matches!(bytes.first(), Some(b'1'..=b'9')) {
        return Count::None;
    }
    let digits = bytes.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > MOST_DIGITS {
        return Count::None;
    }
    match bytes.get(digits) {
        Some(b' ') => {
            let digit =
                |count: u64, digit: &u8| count.saturating_mul(10).saturating_add(u64::from(digit & 15));
            Count::Of { digits, count: bytes.iter().take(digits).fold(0, digit) }
        }
        Some(_) => Count::None,
        None => Count::Partial,
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', 0, bytes)
}

/// Without the ends of lines that senders put into counted messages and before line feeds.
pub(crate) fn trimmed(mut message: &[u8]) -> &[u8] {
    while let [rest @ .., b'\n' | b'\r' | 0] = message {
        message = rest;
    }
    message
}

#[cfg(test)]
mod tests;
