//! Follows the frames of a connection from outside: whether half of something lies in it.

/// What a client sends first (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The head of a frame: its length in three bytes, its type, its flags, its stream.
const HEAD: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Where in the client's frames the bytes read so far end.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; HEAD],
    /// How much of a head is there.
    known: usize,
    /// Bytes of the frame, or of the preface, that have not come.
    missing: usize,
    /// A block of headers goes on in the next frame.
    block: bool,
    /// The longest frame so far, without its head.
    longest: usize,
}

impl Frames {
    /// Before the preface.
    pub(super) fn new() -> Frames {
        Frames { head: [0; HEAD], known: 0, missing: PREFACE.len(), block: false, longest: 0 }
    }

    /// Takes in what was read.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let skipped = self.missing.min(bytes.len());
                self.missing -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let wanted = HEAD - self.known;
            let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
            for (to, from) in self.head.iter_mut().skip(self.known).zip(part) {
                *to = *from;
            }
            (self.known, bytes) = (self.known + part.len(), rest);
            if self.known == HEAD {
                self.known = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                self.missing = u32::from_be_bytes([0, a, b, c]) as usize;
                self.longest = self.longest.max(self.missing);
                if matches!(kind, HEADERS | CONTINUATION) {
                    self.block = flags & END_HEADERS == 0;
                }
            }
        }
    }

    /// The longest frame so far, in bytes.
    pub(super) fn longest(&self) -> usize {
        HEAD + self.longest
    }

    /// Whether they end where a frame does, and no headers are to come.
    pub(super) fn are_whole(&self) -> bool {
        self.known == 0 && self.missing == 0 && !self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, len: usize) -> Vec<u8> {
        let [.., a, b, c] = len.to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + len, 0xff);
        frame
    }

    /// Whether something is half there does not depend on the pieces in which it came.
    #[test]
    fn every_cut_is_noticed() {
        let pieces = [
            (PREFACE.to_vec(), true),
            (frame(4, 0, 18), true),
            (frame(HEADERS, END_HEADERS, 100), true),
            (frame(0, 0, 300), true),
            (frame(HEADERS, 1, 50), false),
            (frame(CONTINUATION, 0, 0), false),
            (frame(CONTINUATION, END_HEADERS, 70_000), true),
            (frame(6, 0, 8), true),
        ];
        let whole_at: Vec<(usize, bool)> = pieces
            .iter()
            .scan(0, |end, (piece, whole)| {
                *end += piece.len();
                Some((*end, *whole))
            })
            .collect();
        let all: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
        for step in [1, 2, 7, 9, 10, 64, 1000] {
            let (mut frames, mut at) = (Frames::new(), 0);
            for piece in all.chunks(step) {
                frames.follow(piece);
                at += piece.len();
                let expected = whole_at.iter().any(|(end, whole)| *end == at && *whole);
                assert_eq!(frames.are_whole(), expected, "in steps of {step}, at {at}");
            }
        }
    }
}
