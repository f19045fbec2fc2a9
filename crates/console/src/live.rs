//! `GET /console/events`: the status once a second, as server-sent events (HTML standard, section 9.2), for pages that stay
//! open.
//!
//! However many pages are open, a frame is made once: by the first viewer that is due, and shared. Frames live in
//! [`FRAMES`] windows of the console's memory for answers. A viewer takes the newest frame when its socket has taken the last one, so
//! a slow one misses frames and has no queue; one that takes nothing for the codec's write timeout is dropped. While
//! slow viewers hold all windows there is no new frame.
//!
//! Whoever makes a frame holds no lock that others wait for, and waits for none.

use crate::gateway::Gateway;
use crate::page_buffer::{PageBuffer, PageError};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use tidegate_arena::{Arena, Window};
use tidegate_http1::{ContentPiece, ContentStream, Reply};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The most pages that are open at a time.
pub(crate) const MOST_VIEWERS: usize = 16;
/// The most frames in memory: the newest, the one being made, and one that slow viewers still send.
pub(crate) const FRAMES: usize = 3;
/// The longest frame, in bytes.
pub(crate) const LONGEST_FRAME: usize = 64 << 10;
/// The heap of a viewer: its stream and the future of the next piece.
pub(crate) const VIEWER: usize = 1 << 10;

const INTERVAL: Duration = Duration::from_secs(1);
const HEADERS: [(&str, &str); 2] = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];
const FULL: &str =
    "as many pages of the console are open as can be (16 at most); close one, or use /status\n";
/// In place of a status that is too long for a frame: the page asks for `/status.json` then.
const TOO_LONG: &[u8] = b"retry: 1000\ndata: {\"too_long\":true}\n\n";
/// What comes before the status in a frame: how long a page waits before it connects again, in milliseconds.
const BEFORE: &[u8] = b"retry: 1000\ndata: ";
/// How long a stream lasts. Its page connects again then, which checks its credentials again.
const LONGEST_VIEW: Duration = Duration::from_secs(600);

/// The frames of open pages.
pub(crate) struct LiveStatus {
    gateway: Arc<dyn Gateway>,
    arena: Arena,
    /// Held while a snapshot is made, by whoever makes one.
    making: Arc<Mutex<()>>,
    state: Mutex<LiveState>,
    /// Tells of each new frame.
    made: Notify,
}

struct LiveState {
    most_viewers: usize,
    viewers: usize,
    /// The number of the newest frame.
    number: u64,
    /// When a frame was last begun, or found no window.
    begun_at: Option<Instant>,
    newest: Option<Arc<Window>>,
    /// Those before, while viewers send them.
    older: Vec<Arc<Window>>,
}

impl LiveStatus {
    pub(crate) fn new(gateway: Arc<dyn Gateway>, arena: Arena, making: Arc<Mutex<()>>) -> LiveStatus {
        let state = LiveState {
            most_viewers: MOST_VIEWERS,
            viewers: 0,
            number: 0,
            begun_at: None,
            newest: None,
            older: Vec::with_capacity(FRAMES),
        };
        LiveStatus { gateway, arena, making, state: Mutex::new(state), made: Notify::new() }
    }

    /// No more than `most` pages are open at a time.
    pub(crate) fn limit_viewers(&self, most: usize) {
        let mut state = self.state();
        state.most_viewers = state.most_viewers.min(most);
    }

    /// The stream for one more page.
    pub(crate) fn answer(self: &Arc<Self>) -> Reply {
        let mut state = self.state();
        if state.viewers >= state.most_viewers {
            return Reply::new(503).retry_after(10).headers(&HEADERS).text(FULL);
        }
        state.viewers += 1;
        drop(state);
        let (live, opened_at) = (Arc::clone(self), Instant::now());
        let stream: Box<dyn ContentStream> = Box::new(Viewer { live, opened_at, seen: 0, frame: None });
        Reply::new(200).content_type("text/event-stream").headers(&HEADERS).content(stream)
    }

    /// The newest frame and its number. One that is due is made first, unless somebody is at it.
    fn newest(&self) -> (u64, Option<Arc<Window>>) {
        if self.state().begins()
            && let Ok(frame) = self.make()
        {
            let mut state = self.state();
            let before = state.newest.replace(Arc::new(frame));
            state.older.extend(before);
            state.number += 1;
            self.made.notify_waiters();
        }
        let state = self.state();
        (state.number, state.newest.clone())
    }

    /// When the next frame is due.
    fn due(&self) -> Instant {
        self.state().begun_at.map_or_else(Instant::now, |begun| begun + INTERVAL)
    }

    fn make(&self) -> Result<Window, PageError> {
        // Whoever makes an answer has this for a moment: then there is no frame this second, and nobody waits.
        let _one_at_a_time = match self.making.try_lock() {
            Ok(making) => making,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(PageError::Busy),
        };
        let mut buffer = PageBuffer::of(&self.arena, LONGEST_FRAME)?;
        let written = buffer
            .write_all(BEFORE)
            .map_err(serde_json::Error::io)
            .and_then(|()| self.gateway.status().write_json(&mut buffer));
        match buffer.is_too_long() {
            true => {
                buffer.truncate(0);
                buffer.ending(TOO_LONG)
            }
            false => buffer.whole(written).and_then(|mut frame| match frame.append(b"\n\n") {
                Ok(()) => Ok(frame),
                Err(_) => Err(PageError::Busy),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveState {
    /// Whether a frame is due and there is a window for it: then the caller makes it.
    fn begins(&mut self) -> bool {
        if self.begun_at.is_some_and(|begun| begun.elapsed() < INTERVAL) {
            return false;
        }
        self.begun_at = Some(Instant::now());
        let is_held = |frame: &Arc<Window>| Arc::strong_count(frame) > 1;
        self.older.retain(is_held);
        if self.older.len() + 1 == FRAMES {
            // Its window is the last one that may be free; whoever has not taken it gets the one that is made.
            self.newest = self.newest.take().filter(is_held);
        }
        self.older.len() + usize::from(self.newest.is_some()) < FRAMES
    }
}

/// An open page.
struct Viewer {
    live: Arc<LiveStatus>,
    opened_at: Instant,
    /// The number of the frame that it had last.
    seen: u64,
    frame: Option<Arc<Window>>,
}

impl ContentStream for Viewer {
    fn total_bytes(&self) -> Option<u64> {
        None
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        Box::pin(async move {
            self.frame = None;
            if self.opened_at.elapsed() >= LONGEST_VIEW {
                return Ok(&[][..]);
            }
            let frame = loop {
                // Before the look, so that no frame is missed in between.
                let made = self.live.made.notified();
                match self.live.newest() {
                    (number, Some(frame)) if number > self.seen => {
                        self.seen = number;
                        break self.frame.insert(frame);
                    }
                    _ => drop(tokio::time::timeout_at(self.live.due(), made).await),
                }
            };
            Ok(&***frame)
        })
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.frame = None;
        let mut state = self.live.state();
        state.viewers -= 1;
        if state.viewers == 0 {
            // Nobody looks: no frame is kept.
            (state.newest, state.begun_at) = (None, None);
            state.older.clear();
        }
    }
}

#[cfg(test)]
mod tests;
