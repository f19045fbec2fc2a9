//! Random interleavings: the books close at every moment that anybody looks, and at rest.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;

use super::{ledger, metrics};
use crate::{Dropped, JournalItems, Refusal, Settlement, SinkAccount, SinkLedger, Source};

/// The totals of one request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Accepted(u64),
    Refused,
    Abandoned,
    /// Handed over, and the journal failed.
    Failed(u64),
    /// Handed over, written, and nobody waited for the verdict.
    Forgotten(u64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        (1u64..500).prop_map(Fate::Accepted),
        Just(Fate::Refused),
        Just(Fate::Abandoned),
        (1u64..500).prop_map(Fate::Failed),
        (1u64..500).prop_map(Fate::Forgotten),
    ]
}

/// The journal's writer: one at a time, and the head moves before anybody is told.
fn append(journal: &Mutex<u64>, head: &JournalItems, items: u64) {
    let mut total = journal.lock().unwrap();
    *total += items;
    head.advance_to(*total);
}

fn request(source: &Source, journal: &Mutex<u64>, head: &JournalItems, fate: Fate) {
    let open = source.open();
    match fate {
        Fate::Refused => open.refuse(Refusal::Memory),
        Fate::Abandoned => drop(open),
        Fate::Failed(items) => open.submit(metrics(items)).refuse(Refusal::Disk),
        Fate::Accepted(items) => {
            let handed_over = open.submit(metrics(items));
            append(journal, head, items);
            handed_over.accept();
        }
        Fate::Forgotten(items) => {
            let handed_over = open.submit(metrics(items));
            append(journal, head, items);
            drop(handed_over);
        }
    }
}

/// Settles what is queued in chunks, dropping some, until `done` and the queue is empty.
fn follow(sink: &SinkAccount, head: &JournalItems, chunk: u64, done: &AtomicBool) {
    let mut position = 0;
    loop {
        let last = done.load(Ordering::Acquire);
        let queued = head.items() - position;
        let taken = queued.min(chunk);
        let dropped = taken / 3;
        position += taken;
        let reasons = [(Dropped::Rejected, dropped)];
        sink.settle(Settlement {
            delivered: taken - dropped,
            dropped: &reasons,
            position,
            ..Settlement::default()
        });
        if last && queued == 0 {
            return;
        }
        thread::yield_now();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever threads do at once, a balance taken meanwhile has no difference, and at rest nothing is open.
    #[test]
    fn books_close_at_every_moment(fates in proptest::collection::vec(fate(), 1..200), chunk in 1u64..2_000) {
        let books = ledger(0);
        let (head, journal) = (books.head(), Mutex::new(0));
        let sources = ["a", "b"].map(|name| books.source(name).unwrap());
        let sinks = ["fast", "slow"].map(|name| books.attach(name, SinkLedger::new(0), 0, 0).unwrap());
        let (sent, done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|threads| {
            let watcher = threads.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let balance = books.balance();
                    assert_eq!(balance.difference(), 0, "{balance}");
                    thread::yield_now();
                }
            });
            let followers = sinks.each_ref().map(|sink| threads.spawn(|| follow(sink, &head, chunk, &sent)));
            let senders: Vec<_> = (0..4usize)
                .map(|n| {
                    let (source, journal, head, fates) = (&sources[n % 2], &journal, &head, &fates);
                    threads.spawn(move || fates.iter().for_each(|fate| request(source, journal, head, *fate)))
                })
                .collect();
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            sent.store(true, Ordering::Release);
            followers.into_iter().for_each(|follower| follower.join().unwrap());
            done.store(true, Ordering::Release);
            watcher.join().unwrap();
        });
        let balance = books.balance();
        prop_assert!(balance.difference() == 0 && balance.at_rest(), "{}", balance);
        prop_assert_eq!(balance.journal.appended, balance.journal.accepted);
        prop_assert_eq!(balance.sources.iter().map(|s| s.received).sum::<u64>(), 4 * fates.len() as u64);
    }
}
