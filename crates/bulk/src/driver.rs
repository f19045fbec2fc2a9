//! The one task that sends.

use crate::clock;
use crate::engine::{Bulk, Shared};
use crate::flight::fly;
use crate::settings::Settings;
use crate::sync::{Arc, lock};
use crate::transport::Transport;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Window};
use tokio::time::{Instant as Tick, sleep};

/// Sends what callers hand over. When it is dropped, running or not, everybody who waits gets an answer, and
/// whoever comes later is refused.
#[must_use = "dropping the driver ends the engine"]
pub struct Driver {
    shared: Arc<Shared>,
}

/// How long nothing is due when nothing is there.
const IDLE: Duration = Duration::from_secs(3600);

impl Bulk {
    /// An engine, and the driver that is to be run for it.
    pub fn new(settings: Settings, arena: Arena) -> (Bulk, Driver) {
        let bulk = Bulk::idle(settings, arena);
        let driver = Driver { shared: Arc::clone(&bulk.shared) };
        (bulk, driver)
    }
}

impl Driver {
    /// Sends over `transport` until `stop` is ready; then takes no more items, sends what there is without
    /// waiting for company, and ends when that is answered or the grace is over.
    pub async fn run<T: Transport>(self, transport: &T, stop: impl Future<Output = ()>) {
        let shared = &*self.shared;
        let mut flights = FuturesUnordered::new();
        let mut stop = pin!(stop);
        let mut timer = pin!(sleep(IDLE));
        let mut until: Option<Instant> = None;
        poll_fn(|context| {
            loop {
                if until.is_none() && stop.as_mut().poll(context).is_ready() {
                    until = Some(clock::now() + shared.settings.grace);
                    lock(&shared.state).stop();
                }
                let now = clock::now();
                let turn = Turn::take(shared, context, now, |takeoff| {
                    flights.push(fly(shared, transport, takeoff));
                });
                let mut landed = false;
                while let Poll::Ready(Some(())) = flights.poll_next_unpin(context) {
                    landed = true;
                }
                if landed {
                    continue;
                }
                if until.is_some_and(|until| turn.idle || until <= now) {
                    return Poll::Ready(());
                }
                let next = turn.next.into_iter().chain(until).min().unwrap_or(now + IDLE);
                timer.as_mut().reset(Tick::from_std(next));
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }
}

/// The result of one pass over the state.
struct Turn {
    next: Option<Instant>,
    idle: bool,
}

impl Turn {
    /// Does what is due, and hands out what is to be sent.
    fn take(
        shared: &Shared,
        context: &mut Context<'_>,
        now: Instant,
        mut launch: impl FnMut(crate::state::Takeoff),
    ) -> Turn {
        let (mut wakers, mut windows): (Vec<Waker>, Vec<Window>) = (Vec::new(), Vec::new());
        let mut state = lock(&shared.state);
        let next = state.tick(context.waker(), now, &mut wakers, &mut windows);
        while let Some(takeoff) = state.next_flight(now) {
            launch(takeoff);
        }
        let idle = state.is_idle();
        drop(state);
        drop(windows);
        wakers.into_iter().for_each(Waker::wake);
        Turn { next, idle }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let (mut wakers, mut windows): (Vec<Waker>, Vec<Window>) = (Vec::new(), Vec::new());
        lock(&self.shared.state).end(&mut wakers, &mut windows);
        drop(windows);
        wakers.into_iter().for_each(Waker::wake);
    }
}
