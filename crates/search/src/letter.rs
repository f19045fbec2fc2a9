//! One dead letter: its items, as rows.

use crate::answer::{Answer, Totals};
use crate::letters::json;
use crate::newest::{HISTOGRAMS, LOGS, Newest, POINTS, RowShape, SPANS};
use crate::query::LetterQuery;
use crate::records::{BodyBuffers, Unread, items, may_have};
use crate::walk::Walk;
use crate::{Bounds, SearchError};
use tidegate_journal::dead_letters::{StoredDeadLetter, StoredDeadLetters, read};
use tidegate_journal::{Meta, Signal};
use tidegate_lake::{BatchPosition, Query as LakeQuery, Search, Table, Uncommitted};

/// The kinds of items, each with its member of the answer.
const KINDS: [(&str, Signal, Table, &RowShape); 4] = [
    ("logs", Signal::Logs, Table::Logs, &LOGS),
    ("spans", Signal::Traces, Table::Spans, &SPANS),
    ("points", Signal::Metrics, Table::MetricPoints, &POINTS),
    ("histograms", Signal::Metrics, Table::MetricHistograms, &HISTOGRAMS),
];

/// Answers with a letter and its items; with `null` where it is not there any more, or never was.
pub(crate) fn letter(query: &LetterQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let dir = &walk.stores.dead_letters;
    let mut letters =
        read(dir, false).map_err(|source| SearchError::DeadLetters { dir: dir.clone(), source })?;
    let mut missing = Missing::default();
    let mut answer = Answer::new(walk.bounds.answer);
    let mut has_more = false;
    let found = find(&mut letters, query.id, walk.bounds, &mut missing);
    answer.raw_member("letter", found.as_ref().and_then(json).as_deref().unwrap_or(b"null"));
    if let Some(letter) = found {
        let (mut buffers, most) = (BodyBuffers::default(), walk.bounds.body);
        let fill = |body: &mut [u8]| letters.body_into(body).map(|()| true);
        match buffers.read(letter.body_len as usize, &letter.meta, most, fill) {
            Ok(raw) => {
                has_more = rows(raw, &letter.meta, query.limit.0, walk.bounds, &mut answer, &mut missing)?;
            }
            Err(Unread::TooLong) => missing.say("the letter is too long for the memory of a search"),
            Err(unread) => missing.unread(unread)?,
        }
    }
    Ok(answer.end(walk, Totals { has_more, incomplete: missing.0, ..Totals::default() }, None))
}

fn find(
    letters: &mut StoredDeadLetters,
    id: u64,
    bounds: &Bounds,
    missing: &mut Missing,
) -> Option<StoredDeadLetter> {
    for letter in letters {
        if bounds.is_over() {
            missing.say("the time was over before the letter was found");
            return None;
        }
        if letter.id == id {
            return Some(letter);
        }
    }
    None
}

/// Adds the items of a decompressed body to the answer. Returns whether there are more.
fn rows(
    raw: &[u8],
    meta: &Meta,
    limit: usize,
    bounds: &Bounds,
    answer: &mut Answer,
    missing: &mut Missing,
) -> Result<bool, SearchError> {
    let mut has_more = false;
    // Times of items without one are when they were received.
    let position = BatchPosition { sequence: 0, received_at_ns: meta.received_at_ns };
    let of_letter = || KINDS.iter().filter(|(_, signal, ..)| may_have(meta, *signal));
    if of_letter().next().is_none() {
        missing.say(&format!("{} in {} cannot be shown", meta.signal.name(), meta.protocol.name()));
    }
    for &(name, signal, table, shape) in of_letter() {
        if bounds.is_over() {
            missing.say("the time was over");
            break;
        }
        let mut newest = Newest::of_letter(shape, limit, bounds);
        let mut found = Uncommitted::new(Search::new(&LakeQuery::new(table), &mut newest)?)?;
        if let Err(unread) = items(raw, meta, &position, signal, &mut found) {
            missing.unread(unread)?;
        }
        found.flush()?;
        if found.dropped() > 0 {
            missing
                .say("items that are too long for the memory of a search or cannot be stored are left out");
        }
        let all = found.into_search().counts().rows_read;
        let shown = newest.into_sorted();
        has_more |= all > shown.len() as u64;
        answer.list(name, shown.iter().map(|row| &*row.json));
    }
    Ok(has_more)
}

/// Why items may be missing, a sentence each.
#[derive(Default)]
struct Missing(Vec<String>);

impl Missing {
    /// Says it, once.
    fn say(&mut self, sentence: &str) {
        if !self.0.iter().any(|said| said == sentence) {
            self.0.push(sentence.to_owned());
        }
    }

    fn unread(&mut self, unread: Unread) -> Result<(), SearchError> {
        match unread {
            Unread::TooLong => self.say(
                "an item is too long for the memory of a search: it is left out, and so are those behind it",
            ),
            Unread::Damaged => self.say("the letter cannot be read: it is damaged"),
            Unread::Lake(error) => return Err(error.into()),
        }
        Ok(())
    }
}
