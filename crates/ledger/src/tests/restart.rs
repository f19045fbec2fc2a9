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
                    sink.settle(Settlement { delivered: items.min(queued), passed: 0, dropped: &[], position, ahead: 0 });
                }
                Step::Drop(items) => {
                    position += items.min(queued);
                    let dropped = [(Dropped::Quota, items.min(queued))];
                    sink.settle(Settlement { delivered: 0, passed: 0, dropped: &dropped, position, ahead: 0 });
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
    fn books_survive_their_bytes(numbers in proptest::array::uniform20(any::<u64>())) {
        let mut bytes = [0u8; SinkLedger::LEN];
        bytes[0] = 2;
        for (to, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let book = SinkLedger::from_bytes(&bytes).unwrap();
        prop_assert_eq!(book.to_bytes(), bytes);
        prop_assert_eq!(book.dropped(Dropped::Rejected), numbers[4]);
    }
}

/// Bytes of another version, or zeroes, are not taken for an empty book.
#[test]
fn unknown_books_are_refused() {
    assert_eq!(SinkLedger::from_bytes(&[0; SinkLedger::LEN]), Err(UnknownVersion { version: 0 }));
}
