//! Appends and deliveries with real files: how much members take that are all gone, and how fast they get it back.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where it fails")]
#![allow(clippy::print_stdout, reason = "its report")]

use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_handoff::{Durability, Handoffs, MemberLog, Meta, Note, Settings, WhenFull};
use tokio::task::JoinSet;

/// How long each row appends.
const TIME: Duration = Duration::from_secs(2);
/// Tasks that append, each one record after the other.
const TASKS: usize = 64;

struct Row {
    durability: Durability,
    members: usize,
    size: usize,
}

async fn append(logs: &[MemberLog], size: usize) -> (u64, Duration) {
    let (mut tasks, begun) = (JoinSet::new(), Instant::now());
    for task in 0..TASKS {
        let log = logs.get(task % logs.len()).unwrap().clone();
        let body = Arc::new(vec![7u8; size]);
        tasks.spawn(async move {
            let meta = Meta { items: 500, received_at_ns: 1, note: Note::new(b"tenant").unwrap() };
            let mut appended = 0;
            while begun.elapsed() < TIME {
                log.append(meta, body.clone()).await.unwrap();
                appended += 1;
            }
            appended
        });
    }
    let mut appended = 0;
    while let Some(done) = tasks.join_next().await {
        appended += done.unwrap();
    }
    (appended, begun.elapsed())
}

async fn deliver(logs: &[MemberLog], arena: &Arena) -> Duration {
    let (mut tasks, begun) = (JoinSet::new(), Instant::now());
    for log in logs {
        let (log, arena) = (log.clone(), arena.clone());
        tasks.spawn(async move {
            while let Some(record) = log.next().await.unwrap() {
                let window = arena.window(Share::Egress, record.body_len as usize).await.unwrap();
                drop(log.read(&record, window).await.unwrap());
                log.complete(&record);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    begun.elapsed()
}

fn run(row: &Row) {
    let Row { durability, members, size } = *row;
    let dir = tempfile::tempdir().unwrap();
    let arena = Arena::new(256 << 20, Floors::NONE, 1 << 20, 256, 128).unwrap();
    let settings = Settings {
        durability,
        members,
        when_full: WhenFull::DropOldest,
        total_quota: 4 << 30,
        ..Settings::new(dir.path())
    };
    let (handoffs, _) = Handoffs::open(settings).unwrap();
    let logs: Vec<MemberLog> =
        (0..members).map(|member| handoffs.member(&format!("member-{member}:1")).unwrap()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (appended, took) = runtime.block_on(append(&logs, size));
    let backlog: u64 = logs.iter().map(|log| log.backlog().bytes).sum();
    let delivered = runtime.block_on(deliver(&logs, &arena));
    println!(
        "{durability:?} {members:>3} members, {:>4} KiB: {:>6.0} appends/s, {:>6.1} MB/s; delivered at {:>6.1} MB/s",
        size >> 10,
        appended as f64 / took.as_secs_f64(),
        appended as f64 * size as f64 / 1e6 / took.as_secs_f64(),
        backlog as f64 / 1e6 / delivered.as_secs_f64(),
    );
}

fn main() {
    for durability in [Durability::Fsync, Durability::PageCache] {
        for members in [1, 10, 100] {
            for size in [30 << 10, 300 << 10] {
                run(&Row { durability, members, size });
            }
        }
    }
}
