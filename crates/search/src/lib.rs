//! Searches for logs, traces and metrics, in the lake and in what the journal has beyond it.
//!
//! A search is a [`Query`] over [`Stores`], and gives an object of JSON. It promises:
//! - what was acknowledged is found, a second later as well as a week later, once: the lake says up to which record of the journal its
//!   rows go, and records behind that become rows as the lake's writer makes them;
//! - the newest rows come first, without sorting everything: files are read from the newest on, and only as much of them as rows are
//!   wanted;
//! - it ends within its [`Bounds`], with what was found by then, and says why that may not be all.
//!
//! It leaves to others: whether there is memory for it and who may look (the console), and starting and ending the process that it runs
//! in. It changes nothing.
//!
//! The argument is in `design/console.md`.

mod answer;
mod attributes;
mod histogram;
mod letter;
mod letters;
mod literals;
mod names;
mod newest;
mod order;
mod plot;
mod query;
mod records;
mod sql;
mod summaries;
#[cfg(test)]
mod tests;
mod traces;
mod walk;

pub use order::Order;
pub use query::{Kind, Query};

use std::path::PathBuf;
use std::time::{Duration, Instant};
use tidegate_lake::Uncommitted;

/// Where the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stores {
    /// The journal's folder; `None` where the journal is kept in memory.
    pub journal: Option<PathBuf>,
    /// The lake, where there is one.
    pub lake: Option<StoredLake>,
    /// The folder of dead letters; it need not be there.
    pub dead_letters: PathBuf,
}

/// A lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLake {
    /// Its folder.
    pub dir: PathBuf,
    /// The name under which the journal is written to it.
    pub node: String,
    /// The sink that writes to it.
    pub sink: String,
}

/// How much a search may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// When it ends, whatever is left.
    pub until: Instant,
    /// The longest answer, in bytes.
    pub answer: usize,
    /// The longest body of a record that is read, compressed and decompressed together, in bytes.
    pub body: usize,
    /// Called between the steps of a search, some of which take a millisecond.
    pub at_steps: fn(),
}

impl Bounds {
    /// Memory of a search in bytes, in addition to [`body`](Bounds::body) and the [rows](Uncommitted::BYTES) that are made of it: pages of the
    /// columns that are read, the rows found, and the answer.
    pub const BESIDE: u64 = 4 << 20;

    /// How a process divides `memory` bytes of its own for a search that takes at most `time` and has an answer of at most `answer` bytes.
    #[must_use]
    pub fn within(memory: u64, time: Duration, answer: usize) -> Bounds {
        let body = memory.saturating_sub(Uncommitted::BYTES + Self::BESIDE);
        let body = usize::try_from(body).unwrap_or(usize::MAX);
        Bounds { until: Instant::now() + time, answer, body, at_steps: || {} }
    }

    fn is_over(&self) -> bool {
        (self.at_steps)();
        Instant::now() >= self.until
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query cannot be read.
    #[error("the query cannot be read: {0}")]
    Query(String),
    /// The lake cannot be read.
    #[error(transparent)]
    Lake(#[from] tidegate_lake::Error),
    /// The journal cannot be read.
    #[error("reading the journal `{}`: {source}", dir.display())]
    Journal {
        /// Its folder.
        dir: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The dead letters cannot be read.
    #[error("reading the dead letters in `{}`: {source}", dir.display())]
    DeadLetters {
        /// Their folder.
        dir: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Searches. The answer is an object of JSON.
///
/// # Errors
/// [`SearchError`].
pub fn search(query: &Query, stores: &Stores, bounds: &Bounds) -> Result<Vec<u8>, SearchError> {
    let mut walk = walk::Walk::new(stores, bounds);
    match query {
        Query::Logs(query) => newest::logs(query, &mut walk),
        Query::Traces(query) => traces::list(query, &mut walk),
        Query::Trace(query) => newest::trace(query, &mut walk),
        Query::Services(query) => names::services(query, &mut walk),
        Query::Metrics(query) => names::metrics(query, &mut walk),
        Query::Plot(query) => plot::plot(query, &mut walk),
        Query::DeadLetters(query) => letters::letters(query, &mut walk),
        Query::DeadLetter(query) => letter::letter(query, &mut walk),
    }
}
