//! The read side of the socket: frames for the codec, and bodies that bypass it into their windows.
//!
//! The codec would keep each `DATA` frame on the heap until the stream takes it, in a buffer of its own. So a
//! body whose window is there does not pass through it: its bytes are read from the socket into the window, and
//! the codec hears only how the stream ends. Whatever else comes is given to the codec as it is.
//!
//! A read into a window may bring more than that body: the heads of its frames, and frames of others behind them.
//! They lie in the part of the window that is still free, and are looked at from there before more is read, so
//! that nothing is kept beside what is charged already.

use super::bodies::{Destination, DirectBodies, Source, behind};
use super::frames::{DATA, END_STREAM, FrameHeader, HEAD, PADDED};
use super::streams::{FrameDestination, Streams};
use super::window_updates::WindowUpdates;
use tidegate_arena::Window;
use tokio::io::ReadBuf;

/// The read size while no window is being filled: frame headers, and the first bytes of a body.
const PIECE: usize = 4 << 10;
/// The read size without memory, for calls to be refused. The buffer belongs to the connection, like the codec's: its
/// slots pay for both (`Http2::PLACES`), so bytes for the codec then arrive in frames that fit.
pub(super) const UNPAID: usize = 512;
/// From so many missing bytes on, a body is read into its window.
const DIRECT: usize = 1 << 10;
/// The most that is read at a time.
const READ: usize = 256 << 10;
/// The room for heads and a short frame behind what a body lacks.
const BEHIND: usize = 1 << 10;
/// The longest frame that is allowed, without its head.
const LONGEST: usize = 16 << 10;

/// Reads frames, and tells bodies from the rest.
pub(super) struct FrameReader {
    part: FramePart,
    /// Made up for the codec.
    made: SynthesizedHead,
    kept: UnparsedBytes,
    piece: Vec<u8>,
    /// The stream of the last body that went past the codec: the next bytes are likely to be its, too.
    last: u32,
    /// A stream whose `DATA` nobody waits for.
    unknown: u32,
    /// The longest `DATA` that the codec is given: longer ones would make its buffer grow.
    most: usize,
}

/// The element that the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum FramePart {
    /// Of the head of a frame, of which some is there.
    Head([u8; HEAD], usize),
    /// Of so many bytes that the codec gets as they are, before what is left of a `DATA` frame.
    Whole(usize, Option<Data>),
    /// The length of the padding of a `DATA` frame.
    Padding(Data),
    Data(Data),
    /// Of padding.
    Skipped(usize),
}

/// The rest of a `DATA` frame.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    left: usize,
    padding: usize,
    /// It is the last of its stream.
    ends: bool,
}

/// Bytes that were not read, but are given to the codec: a head, or one with the length of a padding.
#[derive(Default)]
struct SynthesizedHead {
    bytes: [u8; HEAD + 1],
    from: usize,
    to: usize,
}

/// Where what was read and not looked at lies; in a window, behind what is filled of it.
struct UnparsedBytes {
    place: In,
    from: usize,
    to: usize,
}

enum In {
    Piece,
    /// In the window of this stream's body.
    Body(u32),
    /// In a window that nobody fills any more.
    Left(Window),
}

/// How far it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadStep {
    /// All that was read is looked at.
    Hungry,
    /// The codec has got all that it has room for.
    Full,
    /// The next bytes are for a stream that must be asked first, or exceed the codec's share of a turn.
    Held,
    /// The next bytes open a stream, which must wait until another has ended.
    Crowded,
    /// The next bytes cannot be read for lack of memory.
    Never,
}

impl UnparsedBytes {
    const NOTHING: UnparsedBytes = UnparsedBytes { place: In::Piece, from: 0, to: 0 };

    fn len(&self) -> usize {
        self.to - self.from
    }

    fn bytes<'a>(&'a mut self, piece: &'a [u8], bodies: &'a mut DirectBodies) -> &'a [u8] {
        let (from, len) = (self.from, self.len());
        let bytes = match &mut self.place {
            In::Piece => piece.get(from..).unwrap_or_default(),
            In::Left(window) => behind(window, from),
            In::Body(stream) => bodies.window(*stream).map(|window| behind(window, from)).unwrap_or_default(),
        };
        bytes.get(..len).unwrap_or_default()
    }
}

impl SynthesizedHead {
    fn put(&mut self, bytes: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.to).zip(bytes) {
            *to = *from;
        }
        self.to = (self.to + bytes.len()).min(self.bytes.len());
    }

    fn is_given(&self) -> bool {
        self.from == self.to
    }

    /// Gives the codec what it has room for, and says whether that was all.
    fn give(&mut self, out: &mut ReadBuf<'_>) -> bool {
        let rest = self.bytes.get(self.from..self.to).unwrap_or_default();
        let some = rest.len().min(out.remaining());
        out.put_slice(rest.get(..some).unwrap_or_default());
        self.from += some;
        if self.is_given() {
            (self.from, self.to) = (0, 0);
        }
        self.is_given()
    }
}

impl FrameReader {
    /// Before a preface of so many bytes.
    pub(super) fn after(preface: usize) -> FrameReader {
        let part = FramePart::Whole(preface, None);
        let (made, piece) = (SynthesizedHead::default(), Vec::new());
        FrameReader { part, made, kept: UnparsedBytes::NOTHING, piece, last: 0, unknown: 0, most: LONGEST }
    }

    /// Whether nothing was begun that the codec does not know of.
    pub(super) fn is_whole(&self) -> bool {
        let between =
            matches!(self.part, FramePart::Head(_, 0) | FramePart::Whole(0, None) | FramePart::Skipped(0));
        between && self.kept.len() == 0 && self.made.is_given()
    }

    /// Gives back what is kept for reading.
    pub(super) fn rest(&mut self) {
        if self.kept.len() == 0 {
            (self.kept, self.piece) = (UnparsedBytes::NOTHING, Vec::new());
        }
    }

    /// So many bytes are for the codec alone, and may be read into its own buffer.
    pub(super) fn direct(&self) -> usize {
        match self.part {
            FramePart::Whole(left, _) if self.kept.len() == 0 && self.made.is_given() => left,
            _ => 0,
        }
    }

    /// So many bytes, at most, are still to come of a frame that the codec gets as it is.
    pub(super) fn whole(&self) -> usize {
        match self.part {
            FramePart::Whole(left, _) => left,
            _ => 0,
        }
    }

    /// Notes that so many bytes were read into the codec's buffer.
    pub(super) fn passed(&mut self, bytes: usize) {
        if let FramePart::Whole(left, then) = self.part {
            self.part = FramePart::Whole(left.saturating_sub(bytes), then);
        }
    }

    /// Where the next bytes are to be read to, once what was read is looked at.
    pub(super) fn room<'a>(&'a mut self, bodies: &'a mut DirectBodies, paid: bool) -> &'a mut [u8] {
        self.most = if paid { LONGEST } else { UNPAID };
        let stream = if let FramePart::Data(Data { stream, .. }) = self.part { stream } else { self.last };
        let missing = bodies.missing(stream);
        if missing >= DIRECT
            && let Some(window) = bodies.window(stream)
        {
            self.kept = UnparsedBytes { place: In::Body(stream), from: window.len(), to: window.len() };
            let spare = window.spare_mut();
            let most = spare.len().min(missing.saturating_add(BEHIND)).min(READ);
            return spare.get_mut(..most).unwrap_or_default();
        }
        self.kept = UnparsedBytes::NOTHING;
        self.piece.resize(if paid { PIECE } else { UNPAID }, 0);
        &mut self.piece
    }

    /// Notes that so many bytes were read to there.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.kept.to += bytes;
    }

    /// The window of `stream`, which is not filled any more; nothing when something else lies in it still.
    pub(super) fn leave(&mut self, stream: u32, mut window: Window) -> Option<Window> {
        if !matches!(self.kept.place, In::Body(holder) if holder == stream) {
            return Some(window);
        }
        let UnparsedBytes { from, to, .. } = self.kept;
        let at = from.saturating_sub(window.len());
        match window.spare_mut().get(at..at + (to - from)) {
            Some(bytes) if bytes.len() <= PIECE => {
                self.piece.clear();
                self.piece.extend_from_slice(bytes);
                self.kept = UnparsedBytes { place: In::Piece, from: 0, to: bytes.len() };
                Some(window)
            }
            _ => {
                self.kept.place = In::Left(window);
                None
            }
        }
    }

    /// Looks at what was read: fills windows, and gives the codec what is for it.
    pub(super) fn step(
        &mut self,
        out: &mut ReadBuf<'_>,
        bodies: &mut DirectBodies,
        owed: &mut WindowUpdates,
        streams: &mut Streams,
    ) -> ReadStep {
        loop {
            if !self.made.give(out) {
                return ReadStep::Full;
            }
            match self.part {
                FramePart::Whole(0, None) | FramePart::Skipped(0) => {
                    self.part = FramePart::Head([0; HEAD], 0)
                }
                FramePart::Whole(0, Some(data)) => self.part = FramePart::Data(data),
                FramePart::Whole(left, then) => {
                    let input = self.kept.bytes(&self.piece, bodies);
                    let some = left.min(input.len()).min(out.remaining());
                    if some == 0 {
                        return if input.is_empty() { ReadStep::Hungry } else { ReadStep::Full };
                    }
                    out.put_slice(input.get(..some).unwrap_or_default());
                    self.kept.from += some;
                    self.part = FramePart::Whole(left - some, then);
                }
                FramePart::Skipped(left) => {
                    let some = left.min(self.kept.len());
                    if some == 0 {
                        return ReadStep::Hungry;
                    }
                    self.kept.from += some;
                    self.part = FramePart::Skipped(left - some);
                }
                FramePart::Head(head, HEAD) => match self.begin(head, streams) {
                    Ok(part) => self.part = part,
                    Err(step) => return step,
                },
                FramePart::Head(mut head, known) => {
                    let input = self.kept.bytes(&self.piece, bodies);
                    let some = (HEAD - known).min(input.len());
                    if some == 0 {
                        return ReadStep::Hungry;
                    }
                    for (to, from) in head.iter_mut().skip(known).zip(input) {
                        *to = *from;
                    }
                    self.kept.from += some;
                    self.part = FramePart::Head(head, known + some);
                }
                FramePart::Padding(data) => {
                    if self.holds(data.stream, bodies) {
                        return ReadStep::Held;
                    }
                    let Some(padding) = self.kept.bytes(&self.piece, bodies).first().copied() else {
                        return ReadStep::Hungry;
                    };
                    self.kept.from += 1;
                    self.part = self.padded(data, padding, bodies, owed);
                }
                FramePart::Data(Data { left: 0, ends: false, padding, .. }) => {
                    self.part = FramePart::Skipped(padding)
                }
                FramePart::Data(data) => match self.data(data, bodies, owed, streams) {
                    Ok(part) => self.part = part,
                    Err(step) => return step,
                },
            }
        }
    }

    fn begin(&mut self, bytes: [u8; HEAD], streams: &mut Streams) -> Result<FramePart, ReadStep> {
        let head = FrameHeader::of(bytes);
        let plain = head.kind == DATA && head.stream != 0 && head.len <= LONGEST;
        let ends = head.flags & END_STREAM != 0;
        let data = Data { stream: head.stream, left: head.len, padding: 0, ends };
        if plain && ends {
            streams.end_of_body(head.stream);
        }
        match (plain, head.flags & PADDED != 0) {
            (true, false) => Ok(FramePart::Data(data)),
            (true, true) if head.len > 0 => Ok(FramePart::Padding(data)),
            _ => {
                match streams.enter(head) {
                    FrameDestination::Open => {}
                    FrameDestination::Later => return Err(ReadStep::Held),
                    FrameDestination::Crowded => return Err(ReadStep::Crowded),
                    FrameDestination::Never => return Err(ReadStep::Never),
                }
                self.made.put(&bytes);
                Ok(FramePart::Whole(head.len, None))
            }
        }
    }

    /// Whether a stream's bytes are to wait once until it may have a call.
    fn holds(&mut self, stream: u32, bodies: &mut DirectBodies) -> bool {
        bodies.place(stream) == Destination::Unknown && std::mem::replace(&mut self.unknown, stream) != stream
    }

    fn padded(
        &mut self,
        data: Data,
        length: u8,
        bodies: &mut DirectBodies,
        owed: &mut WindowUpdates,
    ) -> FramePart {
        let (left, padding) = (data.left.saturating_sub(1), usize::from(length));
        if padding > left {
            // The codec knows what to say to that.
            let head = FrameHeader { len: 1, kind: DATA, flags: PADDED, stream: data.stream };
            self.made.put(&head.bytes());
            self.made.put(&[length]);
            return FramePart::Whole(0, None);
        }
        // It counts for the windows, and the codec does not see it.
        owed.connection(1 + padding);
        if !data.ends && bodies.place(data.stream) != Destination::Unknown {
            owed.stream(data.stream, 1 + padding);
        }
        FramePart::Data(Data { left: left - padding, padding, ..data })
    }

    /// Goes on with a `DATA` frame.
    fn data(
        &mut self,
        data: Data,
        bodies: &mut DirectBodies,
        owed: &mut WindowUpdates,
        streams: &mut Streams,
    ) -> Result<FramePart, ReadStep> {
        let Data { stream, left, padding, .. } = data;
        let place = bodies.place(stream);
        if place == Destination::Unknown && streams.is_gone(stream) {
            // The codec would answer each frame of a stream that it has forgotten with another reset, and after a
            // thousand of them with the end of the connection.
            owed.connection(left);
            return Ok(FramePart::Skipped(left + padding));
        }
        let goes_past = matches!(place, Destination::Window(1..)) && left > 0;
        let is_asked = matches!(place, Destination::Prefix(0)) && left > 0;
        if !goes_past && !is_asked && !streams.takes_frame() {
            return Err(ReadStep::Held);
        }
        match place {
            Destination::Unknown if self.holds(stream, bodies) => Err(ReadStep::Held),
            Destination::Unknown | Destination::Codec => Ok(self.through_codec(data, left.min(self.most))),
            Destination::Prefix(0) if left > 0 => Err(ReadStep::Held),
            Destination::Prefix(missing) => {
                let some = missing.min(left);
                bodies.prefix(stream, some);
                Ok(self.through_codec(data, some))
            }
            Destination::Window(0) if left > 0 => Ok(self.through_codec(data, left.min(self.most))),
            Destination::Window(missing) if left > 0 => {
                let some = missing.min(left).min(self.kept.len());
                if some == 0 {
                    return Err(ReadStep::Hungry);
                }
                let from = self.kept.from;
                let source = match &mut self.kept.place {
                    In::Piece => Source::Bytes(self.piece.get(from..).unwrap_or_default()),
                    In::Left(window) => Source::Bytes(behind(window, from)),
                    In::Body(holder) => Source::Window(*holder, from),
                };
                bodies.fill(stream, &source, some);
                owed.connection(some);
                (self.kept.from, self.last) = (self.kept.from + some, stream);
                Ok(FramePart::Data(Data { left: left - some, ..data }))
            }
            Destination::Window(_) => Ok(self.through_codec(data, 0)),
        }
    }

    /// Gives the first `some` bytes of a frame to the codec, as a frame.
    fn through_codec(&mut self, data: Data, some: usize) -> FramePart {
        let left = data.left - some;
        let ends = data.ends && left == 0;
        let flags = if ends { END_STREAM } else { 0 };
        self.made.put(&FrameHeader { len: some, kind: DATA, flags, stream: data.stream }.bytes());
        FramePart::Whole(some, Some(Data { left, ends: data.ends && !ends, ..data }))
    }
}

#[cfg(test)]
mod tests;
