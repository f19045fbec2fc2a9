//! The bodies of a connection's streams: how each is to be given to its call, and how long it may take.

use crate::grpc::PREFIX;
use std::task::Waker;
use tidegate_arena::Window;
use tidegate_http1::BodyDeadlines;
use tokio::time::Instant;

/// The bodies of the streams that are open: no more than there may be streams.
#[derive(Default)]
pub(super) struct DirectBodies(Vec<Body>);

struct Body {
    stream: u32,
    way: BodyPath,
    pace: BodyDeadlines,
    /// When its call is to be woken, and by what.
    alarm: Option<(Instant, Waker)>,
}

enum BodyPath {
    /// Through the codec.
    Codec,
    /// Through the codec up to the end of the prefix, of which so many bytes have gone.
    Prefix(usize),
    /// Into a window, up to so many bytes.
    Window(Window, usize),
}

/// The destination of a stream's next bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// No call waits for them.
    Unknown,
    Codec,
    /// So many go to the codec, and then the call has to say how it goes on.
    Prefix(usize),
    /// So many go into the window.
    Window(usize),
}

/// Where bytes are taken from.
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    /// From the window of this stream, from this place on.
    Window(u32, usize),
}

impl DirectBodies {
    /// Takes a stream in, of which the prefix alone goes through the codec if it is the body of a call.
    pub(super) fn add(&mut self, stream: u32, call: bool) {
        let way = if call { BodyPath::Prefix(0) } else { BodyPath::Codec };
        self.0.push(Body { stream, way, pace: BodyDeadlines::new(), alarm: None });
    }

    /// The body of a stream may pause.
    pub(super) fn be_patient(&mut self, stream: u32) {
        if let Some(body) = self.get(stream) {
            body.pace = BodyDeadlines::with_timeouts();
        }
    }

    /// Forgets a stream. It may leave a window that was being filled.
    pub(super) fn remove(&mut self, stream: u32) -> Option<Window> {
        let at = self.0.iter().position(|body| body.stream == stream)?;
        match self.0.swap_remove(at).way {
            BodyPath::Window(window, _) => Some(window),
            BodyPath::Codec | BodyPath::Prefix(_) => None,
        }
    }

    /// From now on the body goes into `window`, until `whole` bytes are in it.
    pub(super) fn open(&mut self, stream: u32, window: Window, whole: usize) {
        if let Some(body) = self.get(stream) {
            body.way = BodyPath::Window(window, whole);
        }
    }

    /// Takes the window of a body back.
    pub(super) fn close(&mut self, stream: u32) -> Option<Window> {
        match std::mem::replace(&mut self.get(stream)?.way, BodyPath::Codec) {
            BodyPath::Window(window, _) => Some(window),
            BodyPath::Codec | BodyPath::Prefix(_) => None,
        }
    }

    pub(super) fn place(&mut self, stream: u32) -> Destination {
        match self.get(stream).map(|body| &body.way) {
            None => Destination::Unknown,
            Some(BodyPath::Codec) => Destination::Codec,
            Some(BodyPath::Prefix(known)) => Destination::Prefix(PREFIX.saturating_sub(*known)),
            Some(BodyPath::Window(window, whole)) => Destination::Window(whole.saturating_sub(window.len())),
        }
    }

    /// How many bytes its window lacks, if it has one.
    pub(super) fn missing(&mut self, stream: u32) -> usize {
        if let Destination::Window(missing) = self.place(stream) { missing } else { 0 }
    }

    pub(super) fn window(&mut self, stream: u32) -> Option<&mut Window> {
        match &mut self.get(stream)?.way {
            BodyPath::Window(window, _) => Some(window),
            BodyPath::Codec | BodyPath::Prefix(_) => None,
        }
    }

    /// Notes that some bytes of a prefix went to the codec.
    pub(super) fn prefix(&mut self, stream: u32, some: usize) {
        if let Some(Body { way: BodyPath::Prefix(known), .. }) = self.get(stream) {
            *known += some;
        }
    }

    /// Puts the first `some` bytes of `source` into the window of `stream`, which has room for them.
    pub(super) fn fill(&mut self, stream: u32, source: &Source<'_>, some: usize) {
        match *source {
            Source::Bytes(bytes) => {
                let Some(window) = self.window(stream) else { return };
                put(window, bytes.get(..some).unwrap_or_default());
            }
            Source::Window(holder, from) if holder == stream => {
                let Some(window) = self.window(stream) else { return };
                let at = from - window.len();
                if at > 0 {
                    window.spare_mut().copy_within(at..at + some, 0);
                }
                window.advance(some);
            }
            Source::Window(holder, from) => {
                let of = |stream| self.0.iter().position(|body| body.stream == stream);
                let (Some(holder), Some(stream)) = (of(holder), of(stream)) else { return };
                let Ok([holder, body]) = self.0.get_disjoint_mut([holder, stream]) else { return };
                let (BodyPath::Window(holder, _), BodyPath::Window(window, _)) =
                    (&mut holder.way, &mut body.way)
                else {
                    return;
                };
                put(window, behind(holder, from).get(..some).unwrap_or_default());
            }
        }
        self.hear(stream, some);
    }

    /// Notes that bytes of a body arrived.
    pub(super) fn hear(&mut self, stream: u32, bytes: usize) {
        // An empty frame is no progress.
        if bytes > 0
            && let Some(body) = self.get(stream)
        {
            body.pace.extend(bytes);
        }
    }

    /// How slowly a body arrives.
    pub(super) fn pace(&mut self, stream: u32) -> Option<BodyDeadlines> {
        self.get(stream).map(|body| body.pace)
    }

    /// Has the call of a stream woken by `at`.
    pub(super) fn alarm(&mut self, stream: u32, at: Instant, waker: &Waker) {
        let Some(body) = self.get(stream) else { return };
        match &mut body.alarm {
            Some((known, by)) if by.will_wake(waker) => *known = at.min(*known),
            alarm => *alarm = Some((at, waker.clone())),
        }
    }

    /// When the next call is to be woken.
    pub(super) fn next_alarm(&self) -> Option<Instant> {
        self.0.iter().filter_map(|body| body.alarm.as_ref()).map(|(at, _)| *at).min()
    }

    /// Wakes the calls whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        for body in &mut self.0 {
            if let Some((_, waker)) = body.alarm.take_if(|(at, _)| *at <= now) {
                waker.wake();
            }
        }
    }

    /// Whether a call has this stream.
    pub(super) fn has(&self, stream: u32) -> bool {
        self.0.iter().any(|body| body.stream == stream)
    }

    /// Gives back what is not needed while there are none.
    pub(super) fn rest(&mut self) {
        self.0.shrink_to(4);
    }

    fn get(&mut self, stream: u32) -> Option<&mut Body> {
        self.0.iter_mut().find(|body| body.stream == stream)
    }
}

fn put(window: &mut Window, bytes: &[u8]) {
    if let Some(room) = window.spare_mut().get_mut(..bytes.len()) {
        room.copy_from_slice(bytes);
        window.advance(bytes.len());
    }
}

/// The bytes of a window from `from` on, after the filled part.
pub(super) fn behind(window: &mut Window, from: usize) -> &[u8] {
    let at = from.saturating_sub(window.len());
    window.spare_mut().get(at..).unwrap_or_default()
}
