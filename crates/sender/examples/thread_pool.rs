//! A pool of threads that report their jobs through one sender, and what came of it in counters.
//!
//!     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 cargo run --example thread_pool
#![allow(clippy::print_stdout, reason = "an example")]

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_sender::{Builder, Metric, Number, NumberPoint, Points, Scope, Sender, Span, SpanKind};

const THREADS: u64 = 4;
const JOBS: u64 = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sender = Builder::from_env().service("pool").start()?;
    let (jobs, queue) = mpsc::sync_channel::<u64>(16);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    work(&sender, thread, job);
                }
            });
        }
        (0..JOBS).try_for_each(|job| jobs.send(job))?;
        drop(jobs);
        Ok::<_, mpsc::SendError<u64>>(())
    })?;

    let points = [NumberPoint { time: now(), value: Number::Int(JOBS as i64), ..NumberPoint::default() }];
    let points = Points::Gauge(&points);
    sender.metric(&Metric {
        name: "pool.jobs",
        description: "",
        unit: "{job}",
        points,
        scope: Scope::default(),
    })?;

    let left = sender.shutdown(Duration::from_secs(10));
    let stats = sender.stats();
    println!("{} sent, {} dropped, {} left", stats.sent_total(), stats.dropped_total(), left.events);
    Ok(())
}

fn work(sender: &Sender, thread: u64, job: u64) {
    let start = now();
    let sum: u64 = (0..job * 100).sum();
    let span = Span {
        context: Sender::new_span_context(None),
        name: "job",
        kind: SpanKind::Consumer,
        start,
        end: now(),
        attributes: &[
            ("thread", (thread as i64).into()),
            ("job", (job as i64).into()),
            ("sum", (sum as i64).into()),
        ],
        ..Span::default()
    };
    // Refusals are counted; a job does not fail for its report.
    let _ = sender.span(&span);
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
