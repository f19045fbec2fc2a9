//! The promise: a sink's lag in time is the age of the first record that it has not completed, whichever segment that is
//! in, before and after a restart.

use super::crashes::Driven;
use super::{arena, meta};
use crate::writer::Writer;
use crate::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_files::folder::simulated::SimulatedFiles;

const SECOND: Duration = Duration::from_secs(1);

struct Rig {
    files: SimulatedFiles,
    clock: Arc<Driven>,
    arena: Arena,
    journal: Journal,
    writer: Writer,
}

impl Rig {
    fn new() -> Rig {
        let clock = Arc::<Driven>::default();
        clock.pass(1_000_000 * SECOND);
        Rig::on(SimulatedFiles::new(1), clock)
    }

    fn on(files: SimulatedFiles, clock: Arc<Driven>) -> Rig {
        let settings = Settings {
            segment_bytes: 64 << 10,
            quota: 1 << 20,
            queue: 8,
            durability: Durability::PageCache,
            ..Settings::new("/simulated")
        };
        let assembled = Journal::assemble(settings, Arc::new(files.clone()), clock.clone());
        let (journal, writer, _) = assembled.unwrap();
        Rig { files, clock, arena: arena(), journal, writer }
    }

    /// Receives a record now.
    fn receive(&mut self) {
        let received_at_ns = crate::clock::Clock::unix_ns(&*self.clock);
        let mut window = self.arena.try_window(Share::Ingest, 100).unwrap();
        window.append(&[1; 100]).unwrap();
        let meta = Meta { received_at_ns, ..meta(1) };
        let mut appending = pin!(self.journal.append(Batch {
            meta,
            window,
            from: 0,
            len: 100,
            checkpoints: Checkpoints::default()
        }));
        self.writer.step(Some(Duration::ZERO));
        assert!(appending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    fn age(&self) -> Option<Duration> {
        self.journal.stats().sinks[0].lag_age
    }

    fn restarted(self) -> Rig {
        let Rig { files, clock, journal, writer, .. } = self;
        drop((journal, writer));
        Rig::on(files, clock)
    }
}

fn next(follower: &mut Follower) -> Record {
    match follower.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Some(Event::Record(record)))) => record,
        other => panic!("{other:?}"),
    }
}

/// A record a second, completed thirty seconds later as a lake does, or at once.
#[test]
fn the_lag_is_the_age_of_the_uncompleted_records() {
    for held in [0, 30] {
        let mut rig = Rig::new();
        let mut follower = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        follower.in_order();
        let mut taken = std::collections::VecDeque::new();
        for second in 0..900 {
            rig.receive();
            taken.push_back(next(&mut follower));
            if held == 0 || (second % held == 0 && second > 0) {
                // The last is not in the file yet.
                let last = taken.iter().rev().nth(usize::from(held > 0)).copied().unwrap();
                follower.commit_through(&last, |_| [0; CURSOR_METADATA_LEN]);
                taken.retain(|record| record.sequence > last.sequence);
            }
            let allowed = taken.front().map(|first| {
                let received = Duration::from_nanos(first.meta.received_at_ns);
                Duration::from_nanos(crate::clock::Clock::unix_ns(&*rig.clock)) - received
            });
            assert_eq!(rig.age(), allowed, "second {second}");
            rig.clock.pass(SECOND);
        }
    }
}

#[test]
fn unread_records_keep_their_age_over_a_restart() {
    let mut rig = Rig::new();
    let mut follower = rig.journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    for _ in 0..600 {
        rig.receive();
        rig.clock.pass(SECOND);
    }
    for _ in 0..560 {
        let record = next(&mut follower);
        assert!(follower.commit(record.sequence));
    }
    // Forty are left, of which none was taken.
    let near = |age: Option<Duration>| {
        let seconds = age.unwrap().as_secs_f64();
        assert!((40.0..=45.0).contains(&seconds), "{seconds}");
    };
    near(rig.age());
    drop(follower);
    near(rig.age());
    let rig = rig.restarted();
    near(rig.age());
}
