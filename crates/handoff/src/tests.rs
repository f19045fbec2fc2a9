//! The logs as a whole. Those with `Rig` run on a simulated disk and drive the I/O thread's work themselves.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use crate::clock::Clock;
use crate::worker::Worker;
use crate::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_files::folder::simulated::SimulatedFiles;

mod basics;
mod crashes;
mod damage;
mod full;
mod memory;
mod threads;
mod versions;

/// A clock that stands until it is told.
#[derive(Clone, Default)]
struct Driven(Arc<AtomicU64>);

impl Clock for Driven {
    fn monotonic_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Logs on a simulated disk, whose worker runs when a request waits for it.
struct Rig {
    files: SimulatedFiles,
    clock: Driven,
    arena: Arena,
    settings: Settings,
    open: Option<(Handoffs, Worker)>,
}

fn arena() -> Arena {
    Arena::new(64 << 20, Floors::NONE, 1 << 20, 256, 16).unwrap()
}

fn meta(items: u32) -> Meta {
    Meta {
        items,
        received_at_ns: 1_700_000_000_000_000_000 + u64::from(items),
        note: Note::new(b"acme").unwrap(),
    }
}

fn body(bytes: impl Into<Vec<u8>>) -> Body {
    Arc::new(bytes.into())
}

fn small() -> Settings {
    Settings {
        segment_bytes: 4096,
        quota: 1 << 20,
        total_quota: 4 << 20,
        queue: 16,
        members: 4,
        ..Settings::new("/simulated")
    }
}

impl Rig {
    fn new(settings: Settings) -> Rig {
        Rig::with(settings, SimulatedFiles::new(1))
    }

    fn with(settings: Settings, files: SimulatedFiles) -> Rig {
        let mut rig = Rig { files, clock: Driven::default(), arena: arena(), settings, open: None };
        rig.reopen();
        rig
    }

    /// Opens the folder, after whatever happened to the one before.
    fn reopen(&mut self) -> Recovery {
        self.open = None;
        let (handoffs, worker, recovery) = self.try_open().unwrap();
        self.open = Some((handoffs, worker));
        recovery
    }

    fn try_open(&self) -> Result<(Handoffs, Worker, Recovery), OpenError> {
        Handoffs::assemble(self.settings.clone(), Arc::new(self.files.clone()), Box::new(self.clock.clone()))
    }

    fn handoffs(&self) -> &Handoffs {
        &self.open.as_ref().unwrap().0
    }

    fn log(&self, address: &str) -> MemberLog {
        self.handoffs().member(address).unwrap()
    }

    /// Lets the worker do what there is to do.
    fn turn(&mut self) {
        self.open.as_mut().unwrap().1.turn(Some(Duration::ZERO));
    }

    /// Closes as the owner does.
    fn close(&mut self) {
        let (handoffs, mut worker) = self.open.take().unwrap();
        handoffs.close();
        while worker.turn(Some(Duration::ZERO)) {}
    }

    fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The outcomes of futures that begin together: appends among them are synced together.
    fn all<T>(&mut self, mut futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
        let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
        for _ in 0..1000 {
            for (future, done) in futures.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    *done = Some(output);
                }
            }
            if done.iter().all(Option::is_some) {
                return done.into_iter().flatten().collect();
            }
            self.turn();
        }
        panic!("the worker does not answer");
    }

    fn wait<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        for _ in 0..1000 {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return output;
            }
            self.turn();
        }
        panic!("the worker does not answer");
    }

    fn append(&mut self, address: &str, items: u32, bytes: impl Into<Vec<u8>>) -> Result<(), AppendError> {
        let log = self.log(address);
        self.wait(log.append(meta(items), body(bytes)))
    }

    fn next(&mut self, address: &str) -> Option<Record> {
        let log = self.log(address);
        self.wait(log.next()).unwrap()
    }

    fn read(&mut self, address: &str, record: &Record) -> Result<Vec<u8>, ReadError> {
        let log = self.log(address);
        let window = self.arena.try_window(Share::Egress, record.body_len as usize).unwrap();
        self.wait(log.read(record, window)).map(|window| window.to_vec())
    }

    /// The next body that can be read, completed; nothing when the log is empty.
    fn take(&mut self, address: &str) -> Option<Vec<u8>> {
        loop {
            let record = self.next(address)?;
            match self.read(address, &record) {
                Ok(bytes) => {
                    assert_eq!(self.log(address).complete(&record).records, 1);
                    return Some(bytes);
                }
                Err(ReadError::Damaged) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take_all(&mut self, address: &str) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.take(address)).collect()
    }

    fn stats(&self, address: &str) -> Stats {
        let stats = self.log(address).stats();
        assert_balanced(&stats);
        stats
    }

    fn segments(&self) -> Vec<String> {
        self.files.contents().into_keys().filter(|name| name.ends_with(".seg")).collect()
    }
}

/// Every record is counted once.
fn assert_balanced(stats: &Stats) {
    let gone = stats.completed.plus(stats.dropped).plus(stats.damaged).plus(stats.forgotten);
    assert_eq!(stats.found.plus(stats.appended), gone.plus(stats.backlog), "{stats:?}");
}
