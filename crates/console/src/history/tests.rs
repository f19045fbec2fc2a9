//! Promise: sums over five seconds each, for the last 15 minutes, in memory of a fixed size.

use super::*;
use crate::Console;
use crate::tests::sample::healthy;

fn shown(history: &History) -> serde_json::Value {
    let arena = Console::reserve().unwrap();
    let mut buffer = PageBuffer::take(&arena).unwrap();
    history.write_json(&mut buffer).unwrap();
    serde_json::from_slice(&buffer.whole(Ok::<_, ()>(())).unwrap()).unwrap()
}

/// The books of a process after so many seconds of 100 items, a refusal, and 90 delivered items each.
fn books(seconds: u64) -> Balance {
    let mut books = healthy().books;
    let source = &mut books.sources[0];
    source.items = vec![(tidegate_ledger::Signal::Logs, 100 * seconds)];
    source.refused = vec![(Refusal::Memory, seconds)];
    books.sources.truncate(1);
    books.sinks.truncate(1);
    books.sinks[0].delivered = 90 * seconds;
    books
}

#[test]
fn steps_are_sums_of_five_seconds() {
    let history = History::new();
    assert_eq!(shown(&history), serde_json::json!({"step_seconds": 5, "at": null, "points": []}));
    for second in 0..=12 {
        let levels = Levels { journal: second, resident: 7, payload: 8 };
        history.note(Duration::from_secs(second), &books(second), levels);
    }
    let shown = shown(&history);
    assert_eq!(shown["step_seconds"], 5);
    let step = |journal: u64| {
        serde_json::json!({
            "received": 500, "delivered": 450, "refused": {"memory": 5},
            "journal_bytes": journal, "resident": 7, "payload": 8,
        })
    };
    assert_eq!(shown["points"], serde_json::json!([step(5), step(10)]));
}

/// A day later there are 15 minutes of it, in the memory of the first moment, and one answer has room for them with the
/// largest numbers.
#[test]
fn old_steps_make_room_for_new_ones() {
    let history = History::new();
    let capacity = history.steps().steps.capacity();
    let mut all = books(0);
    for second in (0..86_400_u64).step_by(5) {
        all.sources[0].refused = Refusal::ALL.iter().map(|reason| (*reason, (second + 1) << 40)).collect();
        all.sources[0].items[0].1 = (second + 1) << 40;
        let levels = Levels { journal: u64::MAX, resident: u64::MAX, payload: u64::MAX };
        history.note(Duration::from_secs(second), &all, levels);
    }
    assert_eq!(history.steps().steps.len(), MOST_STEPS_OF_HISTORY);
    assert_eq!(history.steps().steps.capacity(), capacity);
    assert!(capacity * size_of::<HistoryStep>() <= History::BYTES);
    assert_eq!(shown(&history)["points"].as_array().unwrap().len(), MOST_STEPS_OF_HISTORY);
}

/// Sinks come and go with a reload, with all that they have ever delivered: only what the others deliver meanwhile is traffic.
#[test]
fn sinks_that_come_and_go_are_no_traffic() {
    let history = History::new();
    let two = |seconds| {
        let mut books = books(seconds);
        let sink = tidegate_ledger::SinkBalance { name: "other".to_owned(), ..books.sinks[0].clone() };
        books.sinks.push(sink);
        books
    };
    for (second, books) in [(0, two(1000)), (5, books(1001)), (10, two(1002)), (15, two(1003))] {
        history.note(Duration::from_secs(second), &books, Levels::default());
    }
    let shown = shown(&history);
    let delivered: Vec<_> =
        shown["points"].as_array().unwrap().iter().map(|step| &step["delivered"]).collect();
    assert_eq!(delivered, [90, 90, 180]);
}
