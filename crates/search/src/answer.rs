//! The answer: one object of JSON, no longer than it may be.

use crate::walk::Walk;
use serde::Serialize;

/// Reserved for how an answer ends, in bytes.
const END: usize = 8 << 10;
/// The longest query for DuckDB that is given, in bytes of JSON.
const LONGEST_SQL: usize = 4 << 10;

/// An answer that is being written.
pub(crate) struct Answer {
    json: Vec<u8>,
    most: usize,
    is_cut: bool,
}

/// How an answer ends: what was read, and what is missing.
#[derive(Serialize)]
struct End<'a> {
    answer_cut: bool,
    has_more: bool,
    incomplete: Vec<String>,
    milliseconds: u64,
    from_lake: u64,
    from_journal: u64,
    lake: Option<LakeRead>,
    journal: JournalRead,
    sql: Option<&'a str>,
}

#[derive(Serialize)]
struct LakeRead {
    files_read: u64,
    files_skipped: u64,
    rows_read: u64,
}

#[derive(Serialize)]
struct JournalRead {
    since: Option<String>,
    records_read: u64,
    rows_read: u64,
}

/// Counts and remarks about all rows of an answer.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// There is more than the limit allows.
    pub(crate) has_more: bool,
    pub(crate) from_lake: u64,
    pub(crate) from_journal: u64,
    /// Why the answer may not be all, beside what the walk knows.
    pub(crate) incomplete: Vec<String>,
}

impl Answer {
    pub(crate) fn new(most: usize) -> Answer {
        Answer { json: b"{".to_vec(), most: most.saturating_sub(END), is_cut: false }
    }

    /// Adds a member.
    pub(crate) fn member(&mut self, name: &str, value: &impl Serialize) {
        self.name(name);
        // Numbers, texts and lists of them.
        let written = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
        self.json.extend_from_slice(&written);
    }

    /// Adds a member that is JSON already, if there is room for it; `null` otherwise.
    pub(crate) fn raw_member(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        let has_room = self.json.len() + json.len() < self.most;
        self.is_cut |= !has_room;
        self.json.extend_from_slice(if has_room { json } else { b"null" });
    }

    /// Adds a member that is a list; of elements that are JSON already, as many as there is room for.
    pub(crate) fn list<'j>(&mut self, name: &str, elements: impl Iterator<Item = &'j [u8]>) {
        self.name(name);
        self.json.push(b'[');
        for (place, element) in elements.enumerate() {
            if self.json.len() + element.len() + 2 > self.most {
                self.is_cut = true;
                break;
            }
            if place > 0 {
                self.json.push(b',');
            }
            self.json.extend_from_slice(element);
        }
        self.json.push(b']');
    }

    fn name(&mut self, name: &str) {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        self.json.push(b'"');
        self.json.extend_from_slice(name.as_bytes());
        self.json.extend_from_slice(b"\":");
    }

    /// The whole answer.
    pub(crate) fn end(mut self, walk: &Walk<'_>, totals: Totals, sql: Option<&str>) -> Vec<u8> {
        let read = &walk.read;
        let since = read.oldest_ns.and_then(|ns| jiff::Timestamp::from_nanosecond(i128::from(ns)).ok());
        let end = End {
            answer_cut: self.is_cut,
            has_more: totals.has_more,
            incomplete: incomplete(walk, totals.incomplete),
            milliseconds: u64::try_from(walk.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            from_lake: totals.from_lake,
            from_journal: totals.from_journal,
            lake: walk.stores.lake.is_some().then_some(LakeRead {
                files_read: read.lake.files_read,
                files_skipped: read.lake.files_skipped,
                rows_read: read.lake.rows_read,
            }),
            journal: JournalRead {
                since: since.map(|since| since.to_string()),
                records_read: read.records,
                rows_read: read.record_rows,
            },
            sql: sql.filter(|sql| serde_json::to_string(sql).is_ok_and(|json| json.len() <= LONGEST_SQL)),
        };
        let end = serde_json::to_vec(&end).unwrap_or_default();
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        self.json.extend_from_slice(end.get(1..).unwrap_or(b"}"));
        self.json
    }
}

/// Why rows may be missing, a sentence each.
fn incomplete(walk: &Walk<'_>, mut sentences: Vec<String>) -> Vec<String> {
    let read = &walk.read;
    let mut say = |is: bool, sentence: &dyn Fn() -> String| {
        if is {
            sentences.push(sentence());
        }
    };
    let seconds = walk.started.elapsed().as_secs_f32();
    say(read.is_late, &|| {
        format!("the time was over after {seconds:.0} seconds: a shorter range of time takes less")
    });
    say(read.is_unsearched, &|| {
        "the journal is kept in memory, where nothing is searched: rows appear when a lake has them"
            .to_owned()
    });
    say(read.is_torn, &|| "the lake took records while they were read: search again".to_owned());
    say(read.too_long > 0, &|| {
        let count = read.too_long;
        format!(
            "records of the journal that are too long for the memory of a search: {count}; they are found once the lake has them"
        )
    });
    say(read.dropped > 0, &|| {
        let count = read.dropped;
        format!(
            "items of the journal that are too long for the memory of a search or cannot be stored: {count}"
        )
    });
    say(read.damaged > 0, &|| format!("records of the journal that cannot be read: {}", read.damaged));
    say(read.lake.missing > 0, &|| {
        format!(
            "files of the lake that were deleted meanwhile, most likely for their age: {}",
            read.lake.missing
        )
    });
    say(read.lake.unreadable > 0, &|| {
        format!(
            "files of the lake that cannot be read: {}; `tidegate lake verify` names them",
            read.lake.unreadable
        )
    });
    sentences
}
