//! The streams that the codec knows of, counted where its bytes go by, and what it keeps for them.
//!
//! The codec's tables grow with what is in them at a time, and keep that room for as long as the connection lives. So a
//! stream is let in only once there is room for it that is paid for: for [`OWN`] the connection's places pay, and more
//! is charged as it is needed, until the connection ends. The frames are counted that the codec is given before those
//! who wait for them have run, and the bytes of heads, which become much more when they are looked at.

use super::frames::{CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADERS, RST_STREAM};
use tidegate_arena::{Arena, Charge, Share};

/// Streams at a time. Fewer than the hundred that the protocol recommends (RFC 9113, section 6.5.2): each may
/// bring a head as large as is allowed, and calls of telemetry are large and few.
pub(super) const STREAMS: u32 = 64;
/// Streams that we have reset and the codec remembers: for what it cannot be spared, as trailers. It never sees `DATA` of
/// streams that are [gone](Streams::is_gone).
pub(super) const RESETS: usize = 4;
/// Remembered streams that take the room of one that is open: nothing lies in them.
const RESETS_IN_ROOM: usize = 2;
/// Streams that the peer may have reset before they were looked at.
pub(super) const UNSEEN_RESETS: usize = 16;
/// Streams for which the connection's own places pay.
const OWN: usize = 4;
/// The codec's memory for each concurrent stream, in bytes: its state, its number, and its answer of up to three
/// frames; with the tables' spare capacity.
const EACH: u64 = 2 << 10;
/// The most frames that the codec is given at a time: each is an entry until somebody takes it.
const FRAMES: usize = 32;
/// The most bytes of heads at a time, unless it is one alone. A byte may become 160: an entry of the tables of headers
/// named by its number.
const HEADS: usize = 6 << 10;
/// The codec's memory for a head in several frames until it is complete.
const LONG: u64 = 512 << 10;
/// Heads of more bytes than this leave its buffer for strings so much larger, for good.
const STRINGS: [(usize, u64); 2] = [(2 << 10, 16 << 10), (8 << 10, 128 << 10)];

/// The streams of a connection, from the head that opens one to the frame that ends it.
pub(super) struct Streams {
    arena: Arena,
    open: Vec<Stream>,
    /// The last that the peer has opened.
    last: u32,
    /// How many we have reset, up to as many as the codec remembers.
    resets: usize,
    /// For so many there is room that is paid for.
    room: usize,
    growth: Vec<Charge>,
    /// For a head of which more is to come; how long it is so far; and for what heads have left.
    long: Option<Charge>,
    head: usize,
    strings: [Option<Charge>; 2],
    /// The bytes that the codec may get before waiting tasks have run.
    frames: usize,
    heads: usize,
    /// Whether one waits until another has ended; and whether one has, since.
    crowded: bool,
    freed: bool,
    /// How many have ended.
    ends: u32,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    number: u32,
    /// Whether the peer has ended it, and whether we have.
    ended: [bool; 2],
    /// Nobody waits for its body any more.
    abandoned: bool,
}

/// The destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameDestination {
    /// The codec gets it.
    Open,
    /// It does once what it was given has been looked at.
    Later,
    /// It does once another stream has ended.
    Crowded,
    /// There is no memory to look at it with.
    Never,
}

impl Streams {
    pub(super) fn new(arena: Arena) -> Streams {
        Streams {
            arena,
            open: Vec::new(),
            last: 0,
            resets: 0,
            room: OWN,
            growth: Vec::new(),
            long: None,
            head: 0,
            strings: [None, None],
            frames: OWN,
            heads: HEADS,
            crowded: false,
            freed: false,
            ends: 0,
        }
    }

    /// The codec has processed its input.
    pub(super) fn begin(&mut self) {
        (self.frames, self.heads, self.crowded) = (self.room.min(FRAMES), HEADS, false);
    }

    /// Whether the codec may be given one frame more.
    pub(super) fn takes_frame(&mut self) -> bool {
        let takes = self.frames > 0;
        self.frames = self.frames.saturating_sub(1);
        takes
    }

    /// Whether the codec may be given the frame that begins so.
    pub(super) fn enter(&mut self, head: FrameHeader) -> FrameDestination {
        let is_head = matches!(head.kind, HEADERS | CONTINUATION);
        if self.frames == 0 || is_head && self.heads < HEADS && self.heads < head.len {
            return FrameDestination::Later;
        }
        if is_head && !self.pays_for(head) {
            return FrameDestination::Never;
        }
        if head.kind == HEADERS && head.stream > self.last && !self.let_in(head.stream) {
            self.crowded = true;
            return FrameDestination::Crowded;
        }
        self.frames -= 1;
        if is_head {
            self.heads = self.heads.saturating_sub(head.len);
            self.head = self.length_with(head);
        }
        match head.kind {
            HEADERS if head.flags & END_STREAM != 0 => self.end(head.stream, 0),
            RST_STREAM => self.reset(head.stream, 0),
            _ => {}
        }
        FrameDestination::Open
    }

    /// The length of the head of a request, with this frame of it.
    fn length_with(&self, head: FrameHeader) -> usize {
        if head.kind == HEADERS { head.len } else { self.head.saturating_add(head.len) }
    }

    /// Charges what is kept while a head is not whole, and what a long one leaves.
    fn pays_for(&mut self, head: FrameHeader) -> bool {
        let length = self.length_with(head);
        let comes_in_parts = head.flags & END_HEADERS == 0;
        let all = std::iter::once((comes_in_parts, LONG, &mut self.long));
        let strings = STRINGS
            .iter()
            .zip(&mut self.strings)
            .map(|((above, bytes), paid)| (length > *above, *bytes, paid));
        for (needed, bytes, paid) in all.chain(strings) {
            if needed && paid.is_none() {
                *paid = self.arena.try_charge(Share::Ingest, bytes).ok();
                if paid.is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// Takes in a stream that the peer opens, where there is room for it. One more than are allowed is taken in
    /// always: the codec refuses it, and keeps nothing of it.
    fn let_in(&mut self, number: u32) -> bool {
        if self.open.len() < STREAMS as usize {
            let needed = self.open.len() + 1 + self.resets.div_ceil(RESETS_IN_ROOM);
            while self.room < needed {
                let Ok(charge) = self.arena.try_charge(Share::Ingest, EACH * self.room as u64) else {
                    return false;
                };
                self.growth.push(charge);
                self.room *= 2;
            }
            self.open.push(Stream { number, ended: [false; 2], abandoned: false });
        }
        self.last = number;
        true
    }

    /// The peer says that no more of a body comes.
    pub(super) fn end_of_body(&mut self, number: u32) {
        self.end(number, 0);
    }

    /// Takes in the head of a frame that was written.
    pub(super) fn written(&mut self, head: FrameHeader) {
        match head.kind {
            RST_STREAM => self.reset(head.stream, 1),
            _ if head.flags & END_STREAM != 0 && head.can_end() => self.end(head.stream, 1),
            _ => {}
        }
    }

    /// The call of a stream has ended, or there was none. What still comes of its body is for nobody.
    pub(super) fn abandon(&mut self, number: u32) {
        if let Some(stream) = self.open.iter_mut().find(|stream| stream.number == number) {
            stream.abandoned = true;
        }
    }

    /// Forgets the streams that are over and have no call, once the codec has handed out all that it was given.
    pub(super) fn sweep(&mut self, is_call: impl Fn(u32) -> bool) {
        let before = self.open.len();
        self.open.retain(|stream| stream.ended != [true; 2] || is_call(stream.number));
        self.note_ends(before - self.open.len());
    }

    /// Whether the peer has opened this stream, and nobody waits for its body any more.
    pub(super) fn is_gone(&self, number: u32) -> bool {
        let is_abandoned =
            || self.open.iter().find(|stream| stream.number == number).is_none_or(|s| s.abandoned);
        number % 2 == 1 && number <= self.last && is_abandoned()
    }

    fn end(&mut self, number: u32, side: usize) {
        let Some(stream) = self.open.iter_mut().find(|stream| stream.number == number) else { return };
        if let Some(ended) = stream.ended.get_mut(side) {
            *ended = true;
        }
        if stream.ended == [true; 2] {
            self.remove(number);
        }
    }

    /// A reset of ours ends a stream; one of the peer's does once its call has heard of it.
    fn reset(&mut self, number: u32, side: usize) {
        let Some(stream) = self.open.iter_mut().find(|stream| stream.number == number) else { return };
        stream.ended = [true; 2];
        if side == 1 {
            self.resets = (self.resets + 1).min(RESETS);
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u32) {
        let before = self.open.len();
        self.open.retain(|stream| stream.number != number);
        self.note_ends(before - self.open.len());
    }

    fn note_ends(&mut self, streams: usize) {
        self.freed |= streams > 0;
        self.ends = self.ends.wrapping_add(u32::try_from(streams).unwrap_or(u32::MAX));
    }

    /// Whether one that waited for another's end may come in now.
    pub(super) fn takes_more(&mut self) -> bool {
        let freed = std::mem::take(&mut self.freed);
        let takes = self.crowded && freed;
        if takes {
            self.crowded = false;
        }
        takes
    }

    /// How many have ended, which is progress.
    pub(super) fn ends(&self) -> u32 {
        self.ends
    }

    /// Whether one waits for another's end.
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Whether a stream other than those of `calls` waits for its answer to be taken.
    pub(super) fn has_unsent(&self, is_call: impl Fn(u32) -> bool) -> bool {
        let waits = |stream: &Stream| {
            let [_, ours] = stream.ended;
            !ours && !is_call(stream.number)
        };
        self.open.iter().any(waits)
    }

    /// Whether more is charged than the connection's places pay for.
    pub(super) fn has_grown(&self) -> bool {
        self.room > OWN || self.strings.iter().any(Option::is_some)
    }

    /// No head is half there.
    pub(super) fn whole_heads(&mut self) {
        self.long = None;
    }

    /// Gives back what is not needed while no stream is open.
    pub(super) fn rest(&mut self) {
        self.open.shrink_to(OWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::Floors;

    const WHOLE: u8 = END_HEADERS | END_STREAM;

    fn streams(total: u64) -> (Arena, Streams) {
        let arena = Arena::new(total, Floors::NONE, 1 << 20, 4, 4).unwrap();
        (arena.clone(), Streams::new(arena))
    }

    fn head(kind: u8, flags: u8, stream: u32, len: usize) -> FrameHeader {
        FrameHeader { len, kind, flags, stream }
    }

    fn opened(streams: &mut Streams, number: u32) -> FrameDestination {
        streams.begin();
        streams.enter(head(HEADERS, WHOLE, number, 30))
    }

    fn used(arena: &Arena) -> u64 {
        arena.usage().shares.iter().map(|share| share.used).sum()
    }

    /// The charge follows the largest number of concurrent streams, and stays.
    #[test]
    fn room_is_charged_before_it_is_used_and_for_good() {
        let (arena, mut streams) = streams(4 << 20);
        let mut charged = Vec::new();
        for number in 0..STREAMS {
            assert_eq!(opened(&mut streams, 2 * number + 1), FrameDestination::Open);
            charged.push(used(&arena));
        }
        assert_eq!((charged[OWN - 1], charged[OWN]), (0, OWN as u64 * EACH));
        assert_eq!(charged[63], (64 - OWN as u64) * EACH);
        for number in 0..STREAMS {
            streams.written(head(0, END_STREAM, 2 * number + 1, 0));
        }
        assert!(streams.open.is_empty() && streams.has_grown());
        assert_eq!(used(&arena), charged[63]);
        drop(streams);
        assert_eq!(used(&arena), 0);
    }

    /// Without memory no more come in than the places pay for, until one has ended: by both sides, or by a reset.
    #[test]
    fn without_memory_streams_wait_for_each_other() {
        let (arena, mut streams) = streams(1 << 20);
        let _all = arena.try_charge(Share::Ingest, 1 << 20).unwrap();
        for number in [1, 3, 5, 7] {
            assert_eq!(opened(&mut streams, number), FrameDestination::Open);
        }
        assert_eq!(opened(&mut streams, 9), FrameDestination::Crowded);
        assert!(streams.is_crowded() && !streams.takes_more());
        streams.written(head(HEADERS, END_HEADERS, 3, 10));
        assert!(!streams.takes_more(), "its answer is not at its end");
        streams.written(head(HEADERS, WHOLE, 3, 10));
        assert!(streams.takes_more() && !streams.is_crowded());
        assert_eq!(opened(&mut streams, 9), FrameDestination::Open);
        // A reset stream is remembered, and keeps its slot.
        streams.written(head(RST_STREAM, 0, 5, 4));
        assert_eq!(opened(&mut streams, 11), FrameDestination::Crowded);
        // A reset of the peer's counts when the call has heard of it.
        streams.begin();
        assert_eq!(streams.enter(head(RST_STREAM, 0, 7, 4)), FrameDestination::Open);
        streams.sweep(|stream| stream == 7);
        assert_eq!(streams.open.len(), 3);
        streams.sweep(|_| false);
        assert_eq!(streams.open.len(), 2);
        assert_eq!(opened(&mut streams, 11), FrameDestination::Open);
        assert_eq!(opened(&mut streams, 13), FrameDestination::Crowded);
        streams.written(head(HEADERS, WHOLE, 1, 10));
        assert!(streams.takes_more());
        assert_eq!(opened(&mut streams, 13), FrameDestination::Open);
    }

    /// However many were reset, by whomever: a stream that is alone never waits for another, of which there is none.
    #[test]
    fn without_memory_resets_leave_room_for_streams() {
        let (arena, mut streams) = streams(1 << 20);
        let _all = arena.try_charge(Share::Ingest, 1 << 20).unwrap();
        for number in (1..400).step_by(4) {
            assert_eq!(opened(&mut streams, number), FrameDestination::Open, "{number}");
            streams.written(head(RST_STREAM, 0, number, 4));
            assert_eq!(opened(&mut streams, number + 2), FrameDestination::Open, "{number}");
            streams.begin();
            assert_eq!(streams.enter(head(RST_STREAM, 0, number + 2, 4)), FrameDestination::Open);
            // The codec handed it out, and it was refused.
            streams.abandon(number + 2);
            streams.sweep(|_| false);
        }
        assert!(streams.open.is_empty());
    }

    /// The body of a stream is for nobody once its call has ended, or once the stream has; not before it is opened.
    #[test]
    fn bodies_of_ended_calls_are_gone() {
        let (_arena, mut streams) = streams(4 << 20);
        streams.begin();
        assert!(!streams.is_gone(1));
        assert_eq!(streams.enter(head(HEADERS, END_HEADERS, 3, 30)), FrameDestination::Open);
        assert!(!streams.is_gone(3) && streams.is_gone(1), "3 closes 1, which was idle");
        streams.abandon(3);
        assert!(streams.is_gone(3));
        streams.written(head(RST_STREAM, 0, 3, 4));
        assert!(streams.is_gone(3) && !streams.is_gone(5) && !streams.is_gone(2));
    }

    /// However small frames are, no more of them lie in the codec than it has room for; and heads no more than can be
    /// looked at.
    #[test]
    fn frames_and_heads_are_counted_until_they_are_looked_at() {
        let (_, mut streams) = streams(4 << 20);
        streams.begin();
        let taken = (0..1000).filter(|_| streams.takes_frame()).count();
        assert_eq!(taken, OWN);
        assert_eq!(streams.enter(head(HEADERS, WHOLE, 1, 30)), FrameDestination::Later);
        streams.begin();
        assert_eq!(streams.enter(head(HEADERS, WHOLE, 1, 4000)), FrameDestination::Open);
        assert_eq!(streams.enter(head(HEADERS, WHOLE, 3, 4000)), FrameDestination::Later);
        streams.begin();
        assert_eq!(
            streams.enter(head(HEADERS, WHOLE, 3, 16_000)),
            FrameDestination::Open,
            "one alone is looked at"
        );
        assert_eq!(streams.enter(head(HEADERS, WHOLE, 5, 10)), FrameDestination::Later);
    }

    /// A long head is paid for while it comes, and for what it leaves; it is not read otherwise.
    #[test]
    fn long_heads_are_paid_for() {
        let (arena, mut streams) = streams(4 << 20);
        streams.begin();
        assert_eq!(streams.enter(head(HEADERS, 0, 1, 16_000)), FrameDestination::Open);
        let strings: u64 = STRINGS.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(used(&arena), LONG + strings);
        streams.begin();
        assert_eq!(streams.enter(head(CONTINUATION, END_HEADERS, 1, 16_000)), FrameDestination::Open);
        streams.whole_heads();
        assert_eq!(used(&arena), strings);
        drop(streams);
        let _all = arena.try_charge(Share::Ingest, arena.free(Share::Ingest)).unwrap();
        let mut streams = Streams::new(arena);
        streams.begin();
        assert_eq!(streams.enter(head(HEADERS, WHOLE, 1, 3000)), FrameDestination::Never);
    }
}
