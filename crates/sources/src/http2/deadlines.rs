//! Deadlines for every wait of a connection.

use super::flow::{Flow, WaitReason};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_http1::{Certificate, Settings};
use tokio::time::{Instant, Sleep};

/// How often an idle connection that has grown looks whether others lack what it is charged. Longer than clients wait that
/// are told to come back in a second or two, for want of that memory: their connection is not to end meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// The deadlines of a connection, and of the calls on it, with one timer.
pub(super) struct Deadlines<'a> {
    settings: &'a Settings,
    flow: &'a Flow,
    timer: Pin<&'a mut Sleep>,
    /// When there was a stream last.
    active: Instant,
    /// When the goodbye must have been heard, once it is said.
    leaving: Option<Instant>,
    /// When the peer's certificate expires.
    expires: Option<Instant>,
    /// When to look next whether others lack memory.
    look: Option<Instant>,
}

/// The missed deadline.
pub(super) enum MissedDeadline {
    /// A request; or memory is short, and the connection holds more of it than it needs to wait; or a new certificate.
    Idle,
    /// The rest of a frame, or the peer taking what is written.
    Lost,
}

impl<'a> Deadlines<'a> {
    pub(super) fn new(settings: &'a Settings, flow: &'a Flow, timer: Pin<&'a mut Sleep>) -> Deadlines<'a> {
        Deadlines { settings, flow, timer, active: Instant::now(), leaving: None, expires: None, look: None }
    }

    /// The same, of a connection that ends with this certificate.
    pub(super) fn until(self, certificate: Option<&Certificate>) -> Deadlines<'a> {
        let left = certificate.and_then(Certificate::time_left);
        // So late that it cannot be said is never.
        Deadlines { expires: left.and_then(|left| self.active.checked_add(left)), ..self }
    }

    /// Whether the connection is to end.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// The connection ends gracefully from now on.
    pub(super) fn leave(&mut self) {
        self.leaving = Some(Instant::now() + self.settings.write);
    }

    /// Ready when something did not happen in time. A connection that has `grown` is charged for that.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        quiet: WaitReason,
        has_streams: bool,
        grown: Option<&Arena>,
    ) -> Poll<MissedDeadline> {
        if has_streams {
            self.active = Instant::now();
        }
        if let (Some(expires), None) = (self.expires, self.leaving)
            && self.poll_late(context, expires).is_ready()
        {
            // Requests in flight are answered.
            self.leave();
            return Poll::Ready(MissedDeadline::Idle);
        }
        let is_idle = quiet == WaitReason::Idle && !has_streams && self.leaving.is_none();
        let grown = grown.filter(|_| is_idle);
        if grown.is_none() {
            self.look = None;
        }
        while let Some(arena) = grown {
            let look = *self.look.get_or_insert_with(|| Instant::now() + LOOK);
            if self.poll_late(context, look.min(self.active + self.settings.idle)).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= self.active + self.settings.idle || is_short(arena) {
                self.leave();
                return Poll::Ready(MissedDeadline::Idle);
            }
            self.look = None;
        }
        let own = match quiet {
            WaitReason::Blocked(since) => Some(since + self.settings.write),
            WaitReason::Memory => None,
            // A stream has deadlines of its own.
            _ if has_streams => None,
            WaitReason::HalfFrame(since) => Some(since + self.settings.body_stall),
            WaitReason::Idle => Some(self.leaving.unwrap_or(self.active + self.settings.idle)),
        };
        let alarm = self.flow.next_alarm();
        let Some(deadline) = own.into_iter().chain(alarm).min() else { return Poll::Pending };
        ready!(self.poll_late(context, deadline));
        if own != Some(deadline) {
            // The call, and with it this task.
            self.flow.wake(deadline);
            return Poll::Pending;
        }
        if quiet == WaitReason::Idle && self.leaving.is_none() {
            self.leave();
            return Poll::Ready(MissedDeadline::Idle);
        }
        Poll::Ready(MissedDeadline::Lost)
    }

    /// Ready once `deadline` has passed. The timer is left alone while it is set to an earlier time: waking
    /// once in vain costs less than setting it for every request.
    fn poll_late(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            if self.timer.deadline() > deadline || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(context));
            if self.timer.deadline() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}

/// Whether less than half is free of what requests can have.
fn is_short(arena: &Arena) -> bool {
    arena.free(Share::Ingest) < arena.ceiling(Share::Ingest) / 2
}
