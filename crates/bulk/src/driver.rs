//! The one task that sends.

use crate::clock;
use crate::engine::{Bulk, Shared};
use crate::send_batch::send_batch;
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

/// Sends submitted items. When it is dropped, running or not, every waiting caller gets an answer, and later
/// calls are refused.
#[must_use = "dropping the driver ends the engine"]
pub struct Driver {
    shared: Arc<Shared>,
}

/// How long nothing is due when nothing is there.
const IDLE: Duration = Duration::from_secs(3600);

impl Bulk {
    /// An engine, and the driver that is to be run for it.
    pub fn new(settings: Settings, arena: Arena) -> (Bulk, Driver) {
        let bulk = Bulk::without_driver(settings, arena);
        let driver = Driver { shared: Arc::clone(&bulk.shared) };
        (bulk, driver)
    }
}

impl Driver {
    /// Sends over `transport` until `stop` is ready. Then it accepts no more items, sends the remaining ones at
    /// once, and ends when all are answered or the grace period is over.
    pub async fn run<T: Transport>(self, transport: &T, stop: impl Future<Output = ()>) {
        let shared = &*self.shared;
        let mut requests = FuturesUnordered::new();
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
                let pass = DriverPass::run(shared, context, now, |request| {
                    requests.push(send_batch(shared, transport, request));
                });
                let mut finished = false;
                while let Poll::Ready(Some(())) = requests.poll_next_unpin(context) {
                    finished = true;
                }
                if finished {
                    continue;
                }
                if until.is_some_and(|until| pass.idle || until <= now) {
                    return Poll::Ready(());
                }
                let next = pass.next.into_iter().chain(until).min().unwrap_or(now + IDLE);
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
struct DriverPass {
    next: Option<Instant>,
    idle: bool,
}

impl DriverPass {
    /// Runs the timers and starts the requests that are due.
    fn run(
        shared: &Shared,
        context: &mut Context<'_>,
        now: Instant,
        mut start: impl FnMut(crate::state::BatchRequest),
    ) -> DriverPass {
        let (mut wakers, mut windows): (Vec<Waker>, Vec<Window>) = (Vec::new(), Vec::new());
        let mut state = lock(&shared.state);
        let next = state.run_timers(context.waker(), now, &mut wakers, &mut windows);
        while let Some(request) = state.next_request(now) {
            start(request);
        }
        let idle = state.is_idle();
        drop(state);
        drop(windows);
        wakers.into_iter().for_each(Waker::wake);
        DriverPass { next, idle }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let (mut wakers, mut windows): (Vec<Waker>, Vec<Window>) = (Vec::new(), Vec::new());
        lock(&self.shared.state).answer_all(&mut wakers, &mut windows);
        drop(windows);
        wakers.into_iter().for_each(Waker::wake);
    }
}
