//! A crash loses what was not written; the books close all the same.

use proptest::prelude::*;

use super::{ledger, metrics};
use crate::{Dropped, Settlement, SinkLedger, UnknownVersion};

#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    Deliver(u64),
    Drop(u64),
    /// The cursor and the book are saved together.
    Save,
    /// The process dies; the journal keeps all that was appended, the cursor falls back to the last save.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u64..100).prop_map(Step::Append),
        4 => (1u64..100).prop_map(Step::Deliver),
        2 => (1u64..10).prop_map(Step::Drop),
        2 => Just(Step::Save),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    /// Whenever the process dies, the books opened from the journal's head and the saved cursor close.
    #[test]
    fn books_close_over_crashes(before in 0u64..1_000_000, steps in steps()) {
        let mut head = before;
        let mut position = before;
        let mut saved = (SinkLedger::new(before).to_bytes(), before);
        let mut books = ledger(head);
        let mut sink = books.attach("sink", SinkLedger::new(before), position, 0).unwrap();
        for step in steps {
            let queued = head - position;
            match step {
                Step::Append(items) => {
                    let handed_over = books.source("source").unwrap().open().submit(metrics(items));
                    head += items;
                    books.head().advance_to(head);
                    handed_over.accept();
                }
                Step::Deliver(items) => {
                    position += items.min(queued);
                    sink.settle(Settlement { delivered: items.min(queued), position, ..Settlement::default() });
                }
                Step::Drop(items) => {
                    position += items.min(queued);
                    let dropped = [(Dropped::Quota, items.min(queued))];
                    sink.settle(Settlement { dropped: &dropped, position, ..Settlement::default() });
                }
                Step::Save => saved = (sink.book().to_bytes(), position),
                Step::Crash => {
                    books = ledger(head);
                    position = saved.1;
                    let book = SinkLedger::from_bytes(&saved.0).unwrap();
                    sink = books.attach("sink", book, position, 0).unwrap();
                }
            }
            let balance = books.balance();
            prop_assert_eq!(balance.difference(), 0, "{}", balance);
            prop_assert_eq!(balance.sinks[0].queued, head - position);
            prop_assert_eq!(balance.sinks[0].accepted, head - before);
        }
    }

    /// A book is read back as it was written.
    #[test]
    fn books_survive_their_bytes(numbers in proptest::array::uniform21(any::<u64>())) {
        let mut bytes = [0u8; SinkLedger::LEN];
        bytes[0] = 3;
        for (to, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let book = SinkLedger::from_bytes(&bytes).unwrap();
        prop_assert_eq!(book.to_bytes(), bytes);
        prop_assert_eq!((book.handed_off, book.dropped(Dropped::Rejected)), (numbers[4], numbers[5]));
    }
}

/// Bytes of another version, or zeroes, are not taken for an empty book.
#[test]
fn unknown_books_are_refused() {
    assert_eq!(SinkLedger::from_bytes(&[0; SinkLedger::LEN]), Err(UnknownVersion { version: 0 }));
}

/// Items that are handed off stay queued until it is known what became of them, also after a crash.
#[test]
fn handed_off_items_are_queued_until_they_are_settled() {
    let ledger = crate::Ledger::new(&tidegate_meters::Registry::new(1), 0);
    let sink = ledger.attach("ring", SinkLedger::new(0), 0, 0).unwrap();
    ledger.head().advance_to(100);
    sink.settle(Settlement { delivered: 40, handed_off: 60, position: 100, ..Settlement::default() });
    let queued = |expected: u64| {
        let balance = ledger.balance().sinks.remove(0);
        assert_eq!((balance.queued, balance.difference), (expected, 0), "{balance:?}");
    };
    queued(60);
    sink.settle_handed_off(10, &[(Dropped::Rejected, 5)]);
    queued(45);
    assert_eq!(SinkLedger::from_bytes(&sink.book().to_bytes()).unwrap(), sink.book());
    // Before a crash 15 more were delivered, which the book does not know.
    sink.restore_handed_off(30);
    queued(30);
    assert_eq!((sink.book().delivered, sink.book().dropped(Dropped::Rejected)), (65, 5));
    // What was handed off twice around a crash is settled once.
    sink.settle_handed_off(50, &[(Dropped::Rejected, 5)]);
    queued(0);
    assert_eq!((sink.book().delivered, sink.book().dropped(Dropped::Rejected)), (95, 5));
}

/// A book that was written before items could be handed off.
#[test]
fn the_version_before_is_read() {
    let mut book = SinkLedger::new(5);
    (book.delivered, book.passed) = (7, 3);
    let mut words: Vec<u64> =
        book.to_bytes().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let handed_off = words.remove(5);
    assert_eq!(handed_off, 0);
    words.push(0);
    *words.first_mut().unwrap() = 2;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(SinkLedger::from_bytes(bytes.first_chunk().unwrap()).unwrap(), book);
}
