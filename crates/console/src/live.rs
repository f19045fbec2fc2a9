//! `GET /console/events`: the status once a second, as server-sent events (HTML standard, section 9.2), for pages that stay
//! open.
//!
//! However many pages are open, a frame is made once: by the first viewer that is due, and shared. Frames live in
//! [`FRAMES`] windows of the console's memory. A viewer takes the newest frame when its socket has taken the last one, so
//! a slow one misses frames and has no queue; one that takes nothing for the codec's write timeout is dropped. While
//! slow viewers hold all windows there is no new frame: that ends with that timeout.

use crate::gateway::Gateway;
use crate::page_buffer::{PageBuffer, PageError};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_arena::{Arena, Window};
use tidegate_http1::{ContentPiece, ContentStream, Reply};
use tokio::time::Instant;

/// The most pages that are open at a time.
pub(crate) const MOST_VIEWERS: usize = 16;
/// The most frames in memory: the newest, the one being made, and one that slow viewers still send.
pub(crate) const FRAMES: usize = 3;
/// The longest frame, in bytes.
pub(crate) const LONGEST_FRAME: usize = 128 << 10;
/// The heap of a viewer: its stream and the future of the next piece.
pub(crate) const VIEWER: usize = 1 << 10;

const INTERVAL: Duration = Duration::from_secs(1);
const HEADERS: [(&str, &str); 2] = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];
const FULL: &str = "16 pages of the console are open, which is the most; close one, or use /status\n";
/// In place of a status that is too long for a frame: the page asks for `/status.json` then.
const TOO_LONG: &[u8] = b"data: {\"too_long\":true}\n\n";

/// The frames of open pages.
pub(crate) struct LiveStatus {
    gateway: Arc<dyn Gateway>,
    arena: Arena,
    /// Held while a snapshot is made, by whoever makes one.
    making: Arc<Mutex<()>>,
    state: Mutex<LiveState>,
}

#[derive(Default)]
struct LiveState {
    viewers: usize,
    /// The number of the newest frame.
    number: u64,
    /// When a frame was last made, or found no window.
    made_at: Option<Instant>,
    newest: Option<Arc<Window>>,
    /// Those before, while viewers send them.
    older: Vec<Arc<Window>>,
}

impl LiveStatus {
    pub(crate) fn new(gateway: Arc<dyn Gateway>, arena: Arena, making: Arc<Mutex<()>>) -> LiveStatus {
        LiveStatus { gateway, arena, making, state: Mutex::default() }
    }

    /// The stream for one more page.
    pub(crate) fn answer(self: &Arc<Self>) -> Reply {
        let mut state = self.state();
        if state.viewers >= MOST_VIEWERS {
            return Reply::new(503).retry_after(10).headers(&HEADERS).text(FULL);
        }
        state.viewers += 1;
        drop(state);
        let stream: Box<dyn ContentStream> =
            Box::new(Viewer { live: Arc::clone(self), seen: 0, frame: None });
        Reply::new(200).content_type("text/event-stream").headers(&HEADERS).content(stream)
    }

    /// The newest frame and its number. A frame that is due is made first.
    fn newest(&self) -> (u64, Option<Arc<Window>>) {
        let mut state = self.state();
        if state.made_at.is_none_or(|made| made.elapsed() >= INTERVAL) {
            state.made_at = Some(Instant::now());
            // While all windows are held there is no other frame.
            if let Some(frame) = state.has_window().then(|| self.make().ok()).flatten() {
                let before = state.newest.replace(Arc::new(frame));
                state.older.extend(before);
                state.number += 1;
            }
        }
        (state.number, state.newest.clone())
    }

    /// When the next frame is due.
    fn due(&self) -> Instant {
        self.state().made_at.map_or_else(Instant::now, |made| made + INTERVAL)
    }

    fn make(&self) -> Result<Window, PageError> {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = PageBuffer::of(&self.arena, LONGEST_FRAME)?;
        let written = buffer
            .write_all(b"data: ")
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
    /// Whether there may be one more frame, beside those that are held.
    fn has_window(&mut self) -> bool {
        self.older.retain(|frame| Arc::strong_count(frame) > 1);
        self.older.len() + usize::from(self.newest.is_some()) < FRAMES
    }
}

/// An open page.
struct Viewer {
    live: Arc<LiveStatus>,
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
            let frame = loop {
                match self.live.newest() {
                    (number, Some(frame)) if number > self.seen => {
                        self.seen = number;
                        break self.frame.insert(frame);
                    }
                    _ => tokio::time::sleep_until(self.live.due()).await,
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
            let number = state.number;
            *state = LiveState { number, ..LiveState::default() };
        }
    }
}

#[cfg(test)]
mod tests;
