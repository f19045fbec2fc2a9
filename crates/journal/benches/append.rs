//! The cost of an append: 16 appenders that wait, with and without a sink that reads and completes everything.
//!
//! `cargo bench -p tidegate-journal`. The folder is made where `TMPDIR` says: the disk there is what is
//! measured.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench, which says what it measures"
)]

use rustix::time::{ClockId, clock_gettime};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Event, Journal, Meta, Protocol, Settings, Signal, StartAt,
    Tenant, WhenFull,
};

const APPENDERS: usize = 16;
const TIME: Duration = Duration::from_secs(3);

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<F: Future>(waker: &Waker, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn run(durability: Durability, size: usize, followed: bool) {
    let dir = tempfile::tempdir().unwrap();
    let arena = Arena::new(256 << 20, Floors::NONE, 1 << 20, 256, 64).unwrap();
    let settings = Settings { durability, ..Settings::new(dir.path()) };
    let (journal, _) = Journal::open(settings).unwrap();
    let meta = Meta {
        tenant: Tenant::NONE,
        signal: Signal::Metrics,
        protocol: Protocol::RemoteWrite1,
        encoding: Encoding::Snappy,
        items: 2000,
        raw_len: 600_000,
        received_at_ns: 0,
    };
    let (appended, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut sink = followed.then(|| journal.follow("sink", StartAt::Head, WhenFull::Block).unwrap());
    let (begun, cpu_begun) = (Instant::now(), cpu());
    std::thread::scope(|scope| {
        for _ in 0..APPENDERS {
            scope.spawn(|| {
                let body = vec![7; size];
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                while !stop.load(Ordering::Relaxed) {
                    let mut window = arena.try_window(Share::Ingest, size).unwrap();
                    window.append(&body).unwrap();
                    wait(
                        &waker,
                        journal.append(Batch {
                            meta,
                            window,
                            from: 0,
                            len: size,
                            checkpoints: Checkpoints::default(),
                        }),
                    )
                    .unwrap();
                    appended.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        if let Some(sink) = &mut sink {
            scope.spawn(|| {
                let mut window = arena.try_window(Share::Egress, size).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    if let Some(Event::Record(record)) =
                        sink.next_blocking(Duration::from_millis(50)).unwrap()
                    {
                        window.clear();
                        sink.read_into(&mut window).unwrap();
                        sink.commit(record.sequence);
                    }
                }
            });
        }
        std::thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
    });
    let (took, used) = (begun.elapsed(), cpu() - cpu_begun);
    let (count, stats) = (appended.into_inner(), journal.stats());
    println!(
        "{durability:?} {:>3} KiB{}: {:>7.0} appends/s, {:>6.1} us CPU each, {:>6.1} MB/s, {:>5} syncs of {:.2} ms, {:.1} appends each",
        size >> 10,
        if followed { " with a sink" } else { "" },
        count as f64 / took.as_secs_f64(),
        used.as_secs_f64() * 1e6 / count as f64,
        count as f64 * size as f64 / 1e6 / took.as_secs_f64(),
        stats.syncs,
        stats.sync_time.as_secs_f64() * 1e3 / stats.syncs.max(1) as f64,
        count as f64 / stats.syncs.max(1) as f64,
    );
}

fn main() {
    for durability in [Durability::Fsync, Durability::PageCache] {
        for size in [1 << 10, 30 << 10] {
            run(durability, size, false);
            run(durability, size, true);
        }
    }
}
