//! The engine against a server in memory, with time that the tests drive.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod defects;
mod failures;
mod forward;
mod leaving;
mod order;
mod server;

use server::Server;
use std::future::Future;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::{Bulk, Settings};

const MS: Duration = Duration::from_millis(1);
const TOTAL: u64 = 8 << 20;

fn arena() -> Arena {
    Arena::new(TOTAL, Floors::NONE, 2 << 20, 256, 16).unwrap()
}

fn settings() -> Settings {
    let settings = Settings::new(Share::Forward, TOTAL);
    Settings {
        slots: 1000,
        batch_items: 100,
        batch_bytes: 64 << 10,
        linger: 10 * MS,
        max_in_flight: 2,
        ..settings
    }
}

/// Everything that `arena` has charged.
fn charged(arena: &Arena) -> u64 {
    arena.usage().shares.iter().map(|share| share.used).sum()
}

/// Runs `test` while the engine is driven against `server`, then stops it; nothing may be left then.
async fn driven<T>(settings: Settings, server: &Server, test: impl AsyncFnOnce(&Bulk, &Arena) -> T) -> T {
    let arena = arena();
    let (bulk, driver) = Bulk::new(settings, arena.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let test = async {
        let result = test(&bulk, &arena).await;
        drop(stop);
        result
    };
    let run = driver.run(server, async move { drop(stopped.await) });
    let (result, ()) = futures_util::future::join(test, run).await;
    assert_eq!((bulk.depth(), charged(&arena)), (0, 0), "something is left");
    result
}

/// Lets everything that can go on go on.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Polls `future` once.
async fn once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    futures_util::future::poll_immediate(future).await
}
