//! Thirty thousand callers with 16 KiB each against a server that stands still. A process of its own, since what it
//! measures is the process.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::ops::ControlFlow;
use std::time::Duration;
use tidegate_arena::heap::{self, CountingAllocator, JEMALLOC, Jemalloc};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::{
    Bulk, BulkSubmitError, FailureKind, Settings, Target, Transport, TransportError, TransportRequest,
    TransportResponse,
};
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);

const MEMORY: u64 = 64 << 20;
const CALLERS: usize = 30_000;
const BODY: usize = 16 << 10;

/// Never answers.
struct Stalled;

impl Transport for Stalled {
    async fn send(
        &self,
        _request: TransportRequest,
        _answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        std::future::pending().await
    }
}

/// The process's resident memory now, and the most it ever was, in bytes.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// Memory stays inside the budget, whoever has no room is told so at once, everybody is answered, and afterwards
/// the process is as small as before.
#[test]
fn thirty_thousand_callers_and_a_stalled_server() {
    // The program itself, 30,000 tasks and the declared slots are overhead, as in the gateway's plan.
    let settings = Settings::new(Share::Forward, 40 << 20);
    let settings = Settings {
        batches: 64,
        linger: Duration::from_millis(5),
        timeout: Duration::from_millis(500),
        deadline: Duration::from_millis(1000),
        ..settings
    };
    let payload = 44 << 20;
    let arena = Arena::new(payload, Floors::NONE, 8 << 20, 256, 16).unwrap();
    let (bulk, driver) = Bulk::new(settings, arena.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let body = format!("{{\"a\":\"{}\"}}", "x".repeat(BODY - 8)).leak().as_bytes();
    let (idle, idle_heap) = (resident().0, heap::heap().live);
    let (mut refused, mut failed) = (0, 0);
    runtime.block_on(async {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let run = driver.run(&Stalled, async move { drop(stopped.await) });
        let callers = async {
            let mut callers = JoinSet::new();
            for number in 0..CALLERS {
                let bulk = bulk.clone();
                callers.spawn(async move {
                    let id = number.to_string();
                    match bulk.index(Target::new("agents", &id), body) {
                        Ok(ticket) => Ok(ticket.await.unwrap_err().kind),
                        Err(refused) => Err(refused),
                    }
                });
            }
            while let Some(answer) = callers.join_next().await {
                match answer.unwrap() {
                    Ok(kind) => {
                        assert!(matches!(kind, FailureKind::Unanswered | FailureKind::Timeout), "{kind}");
                        failed += 1;
                    }
                    Err(BulkSubmitError::Full { retry_after }) => {
                        assert!(retry_after >= Duration::from_millis(100));
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
                assert!(arena.usage().shares.iter().map(|share| share.used).sum::<u64>() <= payload);
            }
            drop(stop);
        };
        futures_util::future::join(callers, run).await;
    });
    let (_, peak) = resident();
    println!("{failed} waited, {refused} refused at once, peak {} KiB", peak >> 10);
    assert_eq!(failed + refused, CALLERS);
    assert!(failed > 2000, "the budget is made use of: {failed}");
    assert!(peak <= MEMORY, "the peak was {} MiB", peak >> 20);
    assert_eq!((bulk.depth(), arena.usage().shares.iter().map(|share| share.used).sum::<u64>()), (0, 0));
    // As the upkeep does; the allocator gives pages back after 10 ms.
    (0..3).for_each(|_| arena.tick());
    assert_eq!(arena.usage().idle, 0);
    drop(runtime);
    let live = heap::heap().live;
    assert!(live <= idle_heap + (4 << 20), "{} KiB of heap are left", (live - idle_heap) >> 10);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while resident().0 > idle + (8 << 20) {
        assert!(
            std::time::Instant::now() < deadline,
            "{} KiB after, {} KiB before",
            resident().0 >> 10,
            idle >> 10
        );
        std::thread::yield_now();
    }
    println!("{} KiB before, {} KiB after", idle >> 10, resident().0 >> 10);
}
