//! Dead letters: what peers rejected for good, the newest first.

use crate::SearchError;
use crate::answer::{Answer, Totals};
use crate::query::LettersQuery;
use crate::walk::Walk;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use tidegate_journal::dead_letters::{StoredDeadLetter, read};

/// A letter as the answer has it.
#[derive(Serialize)]
struct ShownLetter<'l> {
    id: u64,
    time: String,
    sink: &'l str,
    tenant: &'l str,
    signal: &'static str,
    protocol: &'static str,
    items: u32,
    bytes: u32,
    reason: &'l str,
}

/// The letters of a sink.
#[derive(Default, Serialize)]
struct SinkLetters {
    letters: u64,
    items: u64,
    /// The number of the newest.
    through: u64,
}

#[derive(Serialize)]
struct NamedLetters<'l> {
    sink: &'l str,
    #[serde(flatten)]
    letters: &'l SinkLetters,
}

/// At most so many sinks are told of: those that can be configured at a time, and as many that were.
const MOST_SINKS: usize = 128;

/// Answers with the letters that were not sent again or discarded.
pub(crate) fn letters(query: &LettersQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let dir = &walk.stores.dead_letters;
    let failed = |source| SearchError::DeadLetters { dir: dir.clone(), source };
    let mut newest: VecDeque<StoredDeadLetter> = VecDeque::new();
    let (mut letters, mut items) = (0_u64, 0_u64);
    let mut by_sink: BTreeMap<String, SinkLetters> = BTreeMap::new();
    for letter in read(dir, false).map_err(failed)? {
        if walk.bounds.is_over() {
            walk.read.is_late = true;
            break;
        }
        if query.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
            continue;
        }
        (letters, items) = (letters + 1, items + u64::from(letter.meta.items));
        if by_sink.len() < MOST_SINKS || by_sink.contains_key(&letter.sink) {
            let of_sink = by_sink.entry(letter.sink.clone()).or_default();
            of_sink.letters += 1;
            of_sink.items += u64::from(letter.meta.items);
            of_sink.through = letter.id;
        }
        if newest.len() >= query.limit.0 {
            newest.pop_front();
        }
        newest.push_back(letter);
    }
    let mut answer = Answer::new(walk.bounds.answer);
    answer.member("total", &letters);
    answer.member("items", &items);
    let sinks: Vec<_> = by_sink.iter().map(|(sink, letters)| NamedLetters { sink, letters }).collect();
    answer.member("sinks", &sinks);
    let shown: Vec<Vec<u8>> = newest.iter().rev().filter_map(json).collect();
    answer.list("letters", shown.iter().map(Vec::as_slice));
    let totals = Totals { has_more: letters > newest.len() as u64, ..Totals::default() };
    Ok(answer.end(walk, totals, None))
}

/// A letter as answers have it.
pub(crate) fn json(letter: &StoredDeadLetter) -> Option<Vec<u8>> {
    let time = Timestamp::from_nanosecond(i128::from(letter.at_ns));
    let shown = ShownLetter {
        id: letter.id,
        time: time.map_or_else(|_| String::new(), |time| time.to_string()),
        sink: &letter.sink,
        tenant: letter.meta.tenant.as_str(),
        signal: letter.meta.signal.name(),
        protocol: letter.meta.protocol.name(),
        items: letter.meta.items,
        bytes: letter.body_len,
        reason: &letter.reason,
    };
    serde_json::to_vec(&shown).ok()
}
