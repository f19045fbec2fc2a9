//! Parses the response to an accepted request, `Export…ServiceResponse`, as it arrives and without storing it.
//!
//! The four responses are alike: field 1 is `partial_success`, whose field 1 counts what was rejected and whose
//! field 2 says why. A response may be 4 MiB long; of one, a counter and the beginning of a text are kept.

/// The most bytes of the peer's words that are kept.
const WORDS: usize = 512;

/// Reads a response, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Response {
    at: ParsePosition,
    /// Bytes left of `partial_success`, while in it.
    inside: Option<u64>,
    /// The number that is being read, and how many bits of it are.
    number: (u64, u32),
    rejected: u64,
    words: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
enum ParsePosition {
    #[default]
    Key,
    /// The number of a field.
    Number(u64),
    /// The length of a field.
    Length(u64),
    Skip(u64),
    Words(u64),
    /// It is no protobuf: what was understood before stands.
    Lost,
}

impl Response {
    /// Reads on.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.at = self.after(*byte);
            if let Some(left) = &mut self.inside {
                // The byte with the length itself is not in it: `after` has added it.
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.inside = None;
                    if !matches!(self.at, ParsePosition::Key) {
                        self.at = ParsePosition::Lost;
                    }
                }
            }
        }
    }

    /// Items that the peer did not take, although it took the request.
    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The peer's message about it.
    pub(super) fn words(&self) -> String {
        String::from_utf8_lossy(&self.words).trim().to_owned()
    }

    fn after(&mut self, byte: u8) -> ParsePosition {
        match self.at {
            ParsePosition::Lost => ParsePosition::Lost,
            ParsePosition::Skip(left) => {
                if left > 1 {
                    ParsePosition::Skip(left - 1)
                } else {
                    ParsePosition::Key
                }
            }
            ParsePosition::Words(left) => {
                if self.words.len() < WORDS {
                    self.words.push(byte);
                }
                if left > 1 { ParsePosition::Words(left - 1) } else { ParsePosition::Key }
            }
            ParsePosition::Key | ParsePosition::Number(_) | ParsePosition::Length(_) => {
                let (value, bits) = &mut self.number;
                if *bits > 63 {
                    return ParsePosition::Lost;
                }
                *value |= u64::from(byte & 0x7f) << *bits;
                *bits += 7;
                if byte >= 0x80 {
                    return self.at;
                }
                let value = std::mem::take(&mut self.number).0;
                self.number_read(value)
            }
        }
    }

    fn number_read(&mut self, value: u64) -> ParsePosition {
        match self.at {
            ParsePosition::Number(field) => {
                if self.inside.is_some() && field == 1 {
                    // A negative number is nonsense.
                    self.rejected = u64::try_from(value.cast_signed()).unwrap_or(0);
                }
                ParsePosition::Key
            }
            ParsePosition::Length(1) if self.inside.is_none() => {
                self.inside = (value > 0).then(|| value.saturating_add(1));
                ParsePosition::Key
            }
            ParsePosition::Length(_) if value == 0 => ParsePosition::Key,
            ParsePosition::Length(2) if self.inside.is_some() => {
                self.words.clear();
                ParsePosition::Words(value)
            }
            ParsePosition::Length(_) => ParsePosition::Skip(value),
            _ => match value & 7 {
                0 => ParsePosition::Number(value >> 3),
                1 => ParsePosition::Skip(8),
                2 => ParsePosition::Length(value >> 3),
                5 => ParsePosition::Skip(4),
                _ => ParsePosition::Lost,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `partial_success` of these, between unknown fields.
    fn response(rejected: u64, words: &str) -> Vec<u8> {
        let mut partial = vec![0x1a, 2, 9, 9, 0x08];
        varint(rejected, &mut partial);
        partial.push(0x12);
        varint(words.len() as u64, &mut partial);
        partial.extend_from_slice(words.as_bytes());
        let mut response = vec![0x7d, 1, 2, 3, 4, 0x0a];
        varint(partial.len() as u64, &mut response);
        response.extend(partial);
        response.extend([0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 7, 0x08, 3]);
        response
    }

    fn varint(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    proptest! {
        /// In whatever pieces it comes, it is read as what it says.
        #[test]
        fn a_response_is_read_in_any_pieces(
            rejected in 0..=i64::MAX as u64,
            words in "[a-z ]{0,700}",
            cut in 1usize..9,
        ) {
            let mut read = Response::default();
            response(rejected, &words).chunks(cut).for_each(|piece| read.read(piece));
            prop_assert_eq!(read.rejected(), rejected);
            prop_assert_eq!(read.words(), words.get(..WORDS).unwrap_or(&words).trim());
        }

        /// Whatever a peer answers is harmless.
        #[test]
        fn nonsense_is_harmless(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut read = Response::default();
            read.read(&bytes);
            prop_assert!(read.words.len() <= WORDS);
        }
    }

    #[test]
    fn an_unset_partial_success_is_a_success() {
        for bytes in [&[][..], &[0x0a, 0]] {
            let mut read = Response::default();
            read.read(bytes);
            assert_eq!((read.rejected(), read.words().as_str()), (0, ""));
        }
    }
}
