//! The cost of an item: CPU time and allocations of the whole process, callers and server included.
//!
//! `cargo bench -p tidegate-bulk`, or with a name (`success_64`, `success_1024`, `large`, `leave_waiting`,
//! `leave_sent`) one of them, for `perf stat -e instructions:u` and the like.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its figures, and ends where it fails"
)]

use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use tidegate_arena::heap::{self, CountingAllocator, JEMALLOC, Jemalloc};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::{
    Bulk, Driver, Settings, Target, Transport, TransportError, TransportRequest, TransportResponse,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);

/// One element of what servers answer to what the engine asks for.
const ITEM: &str = "{\"update\":{\"_id\":\"0123456789abcdef0123\",\"_version\":1234,\"result\":\"updated\",\
                    \"status\":200,\"_seq_no\":123456,\"_primary_term\":1}}";
/// How much of an answer comes at a time.
const PIECE: usize = 16 << 10;
const RUNS: usize = 5;

fn main() {
    let wanted = std::env::args().skip(1).find(|name| !name.starts_with('-'));
    let all: [Bench; 6] = [
        ("success_64", || success(64, 114, 400_000)),
        ("success_1024", || success(1024, 114, 400_000)),
        ("success_1024_documents", || success_of(1024, 114, 400_000, true)),
        ("large", || success(1024, 16 << 10, 40_000)),
        ("leave_waiting", || leave_waiting(400_000)),
        ("leave_sent", || leave_sent(400_000)),
    ];
    println!("{:<24} {:>10} {:>12} {:>10}", "", "CPU ns", "(least-most)", "allocs");
    for (name, bench) in all {
        if wanted.as_deref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let mut costs: Vec<Cost> = (0..RUNS).map(|_| bench()).collect();
        costs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
        let (Some(least), Some(median), Some(most)) = (costs.first(), costs.get(RUNS / 2), costs.last())
        else {
            continue;
        };
        let range = format!("{:.0}-{:.0}", least.cpu, most.cpu);
        println!("{name:<24} {:>10.0} {range:>12} {:>10.3}", median.cpu, median.allocations);
    }
}

/// A name, and what to measure.
type Bench = (&'static str, fn() -> Cost);

/// Of one item.
struct Cost {
    cpu: f64,
    allocations: f64,
}

fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn cost(items: usize, deed: impl FnOnce()) -> Cost {
    let (cpu, allocations) = (cpu_ns(), heap::heap().allocations);
    deed();
    let allocations = heap::heap().allocations - allocations;
    Cost { cpu: (cpu_ns() - cpu) / items as f64, allocations: allocations as f64 / items as f64 }
}

/// Answers each item alike, or never.
struct Canned {
    answers: String,
    stalled: bool,
}

impl Canned {
    fn new(most: usize, stalled: bool) -> Canned {
        Canned { answers: format!("{{\"took\":1,\"items\":[{}", format!("{ITEM},").repeat(most)), stalled }
    }
}

impl Transport for Canned {
    async fn send(
        &self,
        request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        if self.stalled {
            std::future::pending::<()>().await;
        }
        let head = self.answers.len() - self.answers.len() / (ITEM.len() + 1) * (ITEM.len() + 1);
        let end = head + request.items as usize * (ITEM.len() + 1) - 1;
        for piece in self.answers.as_bytes()[..end].chunks(PIECE).chain([&b"]}"[..]]) {
            if answer(piece).is_break() {
                break;
            }
        }
        Ok(TransportResponse { status: 200, ..TransportResponse::default() })
    }
}

fn engine(items: usize) -> (Bulk, Driver) {
    let arena = Arena::new(128 << 20, Floors::NONE, 8 << 20, 64, 16).unwrap();
    Bulk::new(Settings { batch_items: items as u32, ..Settings::new(Share::Forward, 64 << 20) }, arena)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn body(len: usize) -> Vec<u8> {
    format!("{{\"doc\":{{\"a\":\"{}\"}}}}", "x".repeat(len - 16)).into_bytes()
}

/// As many tasks as `callers`, each updating its document again and again; as many items in a request.
fn success(callers: usize, len: usize, items: usize) -> Cost {
    success_of(callers, len, items, false)
}

/// The same; with `all`, each update is of a document of its own.
fn success_of(callers: usize, len: usize, items: usize, all: bool) -> Cost {
    let (bulk, driver) = engine(callers);
    let server = Canned::new(callers, false);
    let body = body(len).leak();
    let body = &*body;
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let rounds = items / callers;
        let local = tokio::task::LocalSet::new();
        for caller in 0..callers {
            let bulk = bulk.clone();
            tasks.spawn_local_on(
                async move {
                    let mut id = format!("{caller:020}");
                    for round in 0..rounds {
                        if all {
                            id.clear();
                            write!(id, "{round:08}{caller:012}").unwrap();
                        }
                        let target = Target::new("agents-index", &id).retry_on_conflict(3);
                        bulk.update(target, body).unwrap().await.unwrap();
                    }
                },
                &local,
            );
        }
        let run = driver.run(&server, async move { drop(stopped.await) });
        let mut run = pin!(run);
        let mut local = pin!(local);
        let (cpu, allocations) = (cpu_ns(), heap::heap().allocations);
        poll_fn(|context| {
            let _ = run.as_mut().poll(context);
            local.as_mut().poll(context)
        })
        .await;
        let allocations = heap::heap().allocations - allocations;
        let items = (rounds * callers) as f64;
        let cost = Cost { cpu: (cpu_ns() - cpu) / items, allocations: allocations as f64 / items };
        drop(stop);
        run.await;
        cost
    })
}

/// Tickets that were looked at once, dropped before anything is sent: only the drop is counted.
fn leave_waiting(items: usize) -> Cost {
    let (bulk, _driver) = engine(8192);
    leave(&bulk, items, || {})
}

/// Tickets that were looked at once, dropped while their request is under way.
fn leave_sent(items: usize) -> Cost {
    let server = Canned::new(1, true);
    let mut total = Cost { cpu: 0.0, allocations: 0.0 };
    let rounds = items / 4096;
    for _ in 0..rounds {
        let (bulk, driver) = engine(4096);
        runtime().block_on(async {
            let mut run = pin!(driver.run(&server, std::future::pending()));
            let mut context = Context::from_waker(Waker::noop());
            let cost = leave(&bulk, 4096, || assert!(run.as_mut().poll(&mut context).is_pending()));
            total.cpu += cost.cpu / rounds as f64;
            total.allocations += cost.allocations / rounds as f64;
        });
    }
    total
}

fn leave(bulk: &Bulk, items: usize, mut between: impl FnMut()) -> Cost {
    let body = body(114);
    let mut total = Cost { cpu: 0.0, allocations: 0.0 };
    let rounds = items / 4096;
    let ids: Vec<String> = (0..4096).map(|id| format!("{id:020}")).collect();
    let waker = Waker::noop();
    for _ in 0..rounds {
        let mut tickets: Vec<_> =
            ids.iter().map(|id| bulk.update(Target::new("agents-index", id), &body).unwrap()).collect();
        for ticket in &mut tickets {
            assert!(Pin::new(ticket).poll(&mut Context::from_waker(waker)).is_pending());
        }
        between();
        let cost = cost(4096, || tickets.drain(..).for_each(drop));
        total.cpu += cost.cpu / rounds as f64;
        total.allocations += cost.allocations / rounds as f64;
    }
    total
}
