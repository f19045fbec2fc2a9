//! Asks for a status once a second, on a thread of its own: a gateway that does not answer holds up no key.

use crate::frame::Frame;
use crate::run::Event;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// How far two questions are apart.
const INTERVAL: Duration = Duration::from_secs(1);

/// Asks until nobody listens any more.
pub(crate) fn ask(mut fetch: impl FnMut() -> Result<Frame, String>, to: &SyncSender<Event>) {
    let mut due = Instant::now() + INTERVAL;
    loop {
        // The first answer is there already.
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let answer = fetch().map(Box::new);
        if to.send(Event::Answer(answer)).is_err() {
            return;
        }
        // Evenly where it can be, and never in a burst after a slow one.
        due = (due + INTERVAL).max(Instant::now());
    }
}
