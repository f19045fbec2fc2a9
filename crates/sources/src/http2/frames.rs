//! Frames of HTTP/2, and where in them the bytes of one direction end.

/// The client's connection preface (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The head of a frame: its length in three bytes, its type, its flags, its stream.
pub(super) const HEAD: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Bytes behind it. No more than 2^24.
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    pub(super) fn of(bytes: [u8; HEAD]) -> FrameHeader {
        let [a, b, c, kind, flags, d, e, f, g] = bytes;
        let stream = u32::from_be_bytes([d, e, f, g]) & (u32::MAX >> 1);
        FrameHeader { len: u32::from_be_bytes([0, a, b, c]) as usize, kind, flags, stream }
    }

    /// Whether a frame of its kind can end a stream.
    pub(super) fn can_end(self) -> bool {
        matches!(self.kind, DATA | HEADERS)
    }

    pub(super) fn bytes(self) -> [u8; HEAD] {
        let [.., a, b, c] = self.len.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }
}

/// Where in the frames of one side the bytes so far end.
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
    /// Before a preface of so many bytes.
    pub(super) fn after(preface: usize) -> Frames {
        Frames { head: [0; HEAD], known: 0, missing: preface, block: false, longest: 0 }
    }

    /// Takes in what was read.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        self.follow_each(bytes, |_| {});
    }

    /// The same, and shows each head that is complete.
    pub(super) fn follow_each(&mut self, mut bytes: &[u8], mut seen: impl FnMut(FrameHeader)) {
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
                let head = FrameHeader::of(self.head);
                seen(head);
                let FrameHeader { len, kind, flags, .. } = head;
                self.missing = len;
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
            let (mut frames, mut at) = (Frames::after(PREFACE.len()), 0);
            for piece in all.chunks(step) {
                frames.follow(piece);
                at += piece.len();
                let expected = whole_at.iter().any(|(end, whole)| *end == at && *whole);
                assert_eq!(frames.are_whole(), expected, "in steps of {step}, at {at}");
            }
        }
    }
}
