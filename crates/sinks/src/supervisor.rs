//! Keeps a sink running: an unexpected end is a failure, and the sink is restarted.
//!
//! A sink that panics gives back what it holds as it unwinds: its memory, its turn to borrow, and its place at
//! the cursor. What it had not settled is in the journal, so the next start goes on there, and costs what was
//! in flight a second time at most, as a restart of the process does.

use crate::backoff::Backoff;
use crate::health::Health;
use crate::stop::StopSignal;
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

/// The shortest and the longest wait before a sink is started again.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Runs one sink until it is told to stop.
pub struct Supervisor {
    name: String,
    health: Health,
    stop: StopSignal,
    backoff: Backoff,
    /// Successes of the sink when it was started last.
    successes: u64,
}

impl Supervisor {
    /// Of the sink `name`, whose failures are shown with `health`.
    pub fn new(name: &str, health: Health, stop: StopSignal) -> Supervisor {
        let successes = health.activity().requests;
        Supervisor { name: name.to_owned(), health, stop, backoff: Backoff::new(WAITS.0, WAITS.1), successes }
    }

    /// With these waits, from the shortest to the longest.
    #[must_use]
    pub fn waiting(self, min: Duration, max: Duration) -> Supervisor {
        Supervisor { backoff: Backoff::new(min, max), ..self }
    }

    /// Runs `first`, and what `start` gives after each end of it, until the order to stop. Without a `first`
    /// the sink cannot start yet, and why it cannot is for `start` to say.
    pub async fn run<F, E>(mut self, first: Option<F>, start: impl Fn() -> Result<F, E>)
    where
        F: Future<Output = ()>,
        E: Display,
    {
        let mut next = first;
        loop {
            let ended = match next.take().map_or_else(|| self.started(&start), Ok) {
                Ok(sink) => unwound(sink).await,
                Err(error) => Err(error),
            };
            let Some(wait) = self.wait_after(ended) else { return };
            if self.stop.or(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
        }
    }

    /// As [`run`](Self::run), on a thread of its own, which waits on `runtime`.
    pub fn run_blocking<F, E>(mut self, runtime: &Handle, first: Option<F>, start: impl Fn() -> Result<F, E>)
    where
        F: FnOnce(),
        E: Display,
    {
        let mut next = first;
        loop {
            let ended = match next.take().map_or_else(|| self.started(&start), Ok) {
                Ok(sink) => catch_unwind(AssertUnwindSafe(sink)).map_err(|panic| said(&*panic)),
                Err(error) => Err(error),
            };
            let Some(wait) = self.wait_after(ended) else { return };
            if runtime.block_on(self.stop.or(async { tokio::time::sleep(wait).await })).is_none() {
                return;
            }
        }
    }

    fn started<F, E: Display>(&mut self, start: &impl Fn() -> Result<F, E>) -> Result<F, String> {
        self.successes = self.health.activity().requests;
        match catch_unwind(AssertUnwindSafe(start)) {
            Ok(Ok(sink)) => Ok(sink),
            Ok(Err(error)) => Err(error.to_string()),
            Err(panic) => Err(said(&*panic)),
        }
    }

    /// How long to wait before the next start; nothing when the sink was told to stop.
    fn wait_after(&mut self, ended: Result<(), String>) -> Option<Duration> {
        let stopped = self.stop.is_given();
        let error = match ended {
            Ok(()) if stopped => return None,
            Ok(()) => "it ended unexpectedly".to_owned(),
            Err(error) => error,
        };
        if stopped {
            tracing::error!(sink = self.name, error, "the sink failed while it was stopping");
            return None;
        }
        if self.health.activity().requests > self.successes {
            self.backoff.reset();
        }
        let wait = self.backoff.wait(None);
        tracing::error!(
            sink = self.name,
            error,
            again_in = ?wait,
            "the sink failed and is restarted; its unsent items are in the journal"
        );
        self.health.broken(&error, SystemTime::now().checked_add(wait));
        Some(wait)
    }
}

/// Runs `future`, which is dropped before this returns; what it panicked with, if it did.
async fn unwound(future: impl Future<Output = ()>) -> Result<(), String> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    })
    .await
}

/// The panic's message.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without words"))
}
