//! Searches in a process of their own.

use crate::{Bounds, Kind, Query, SearchError, StoredLake, Stores, search};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// An order to search, for a process of its own: a line of JSON, with the query behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The kind of search.
    pub kind: String,
    /// The journal's folder; `None` where it is kept in memory.
    pub journal: Option<PathBuf>,
    /// The lake's folder.
    pub lake: Option<PathBuf>,
    /// The name under which the journal is written to the lake.
    pub node: String,
    /// The sink that writes to the lake; empty without one.
    pub lake_sink: String,
    /// The folder of dead letters.
    pub dead_letters: PathBuf,
    /// The longest answer, in bytes.
    pub answer: usize,
    /// How long it may take.
    pub milliseconds: u64,
    /// So much processor time it may take beside other programs, in milliseconds; what is beyond runs where a processor would be idle.
    pub prompt_milliseconds: u64,
}

impl Order {
    /// An order and the query behind it. `None` if `input` is something else.
    #[must_use]
    pub fn read(input: &[u8]) -> Option<(Order, &[u8])> {
        let end = input.iter().position(|byte| *byte == b'\n')?;
        Some((serde_json::from_slice(input.get(..end)?).ok()?, input.get(end + 1..)?))
    }

    /// Answers `query` with `memory` bytes: a status of HTTP, and an answer in JSON, or what is wrong in words. Calls `at_steps`
    /// [between steps](Bounds::at_steps). `None` if there is no such kind of search.
    #[must_use]
    pub fn answer(self, query: &[u8], memory: u64, at_steps: fn()) -> Option<(u16, Vec<u8>)> {
        let kind = Kind::of_name(&self.kind)?;
        let stores = Stores {
            journal: self.journal,
            lake: self.lake.map(|dir| StoredLake { dir, node: self.node, sink: self.lake_sink }),
            dead_letters: self.dead_letters,
        };
        let bounds = Bounds {
            at_steps,
            ..Bounds::within(memory, Duration::from_millis(self.milliseconds), self.answer)
        };
        let found = Query::parse(kind, query).and_then(|query| search(&query, &stores, &bounds));
        Some(match found {
            Ok(answer) => (200, answer),
            Err(error @ SearchError::Query(_)) => (400, format!("{error}\n").into_bytes()),
            Err(error) => (500, format!("{error}\n").into_bytes()),
        })
    }
}
