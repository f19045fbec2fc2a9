//! A trickle of spans and logs, for people who want to see something move.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::{ExportRequest, Signal, now_ns, post};
use crate::demo::DemoReport;
use crate::http::Connection;
use crate::target::Target;

/// Spans, and as many log records, that the trickle sends each time.
pub const DEMO_ITEMS: u64 = 20;

/// An answer takes at most this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends [`DEMO_ITEMS`] spans and as many log records `every` so often, until `stop` is true or its sender is
/// gone.
pub async fn trickle(target: &Target, every: Duration, mut stop: watch::Receiver<bool>) -> DemoReport {
    let mut trickled = DemoReport::default();
    let mut beat = interval(every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut connection = None;
    let mut first = 0;
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            stopped = stop.wait_for(|stop| *stop) => {
                drop(stopped);
                return trickled;
            }
        }
        for signal in [Signal::Traces, Signal::Logs] {
            let request = ExportRequest { signal, items: DEMO_ITEMS, first, time_ns: now_ns() };
            match send(target, &mut connection, signal, &request.encode()).await {
                Ok(true) => trickled.accepted += 1,
                Ok(false) | Err(_) => trickled.failed += 1,
            }
        }
        first += DEMO_ITEMS;
    }
}

async fn send(
    target: &Target,
    connection: &mut Option<Connection>,
    signal: Signal,
    body: &[u8],
) -> Result<bool, crate::http::RequestError> {
    let mut open = match connection.take().filter(Connection::is_reusable) {
        Some(open) => open,
        None => Connection::open(target, TIMEOUT).await?,
    };
    let head = post(signal, target, "identity", body.len());
    let answer = Box::pin(open.send(head.as_bytes(), body, TIMEOUT)).await?;
    *connection = Some(open);
    Ok(answer.status == 200)
}
