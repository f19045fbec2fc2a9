//! The target of a call: a document, or an index to search.

use crate::lane::Lane;
use crate::outcome::{BulkSubmitError, Revision};

/// When a write is seen by searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Refresh {
    /// When the index is refreshed next.
    #[default]
    No,
    /// At once: the request refreshes the shards that it wrote to.
    Now,
    /// Before it is answered: the request waits for the next refresh.
    Wait,
}

impl Refresh {
    pub(crate) fn lane(self) -> Lane {
        match self {
            Refresh::No => Lane::Write,
            Refresh::Now => Lane::WriteRefresh,
            Refresh::Wait => Lane::WriteWait,
        }
    }
}

/// A document, and how to write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target<'a> {
    /// The index, alias or data stream.
    pub index: &'a str,
    /// The document's id; the server chooses one where there is none.
    pub id: Option<&'a str>,
    /// The routing value that selects the shard instead of the id.
    pub routing: Option<&'a str>,
    /// Only if the document is in this state still.
    pub if_unchanged: Option<Revision>,
    /// How often the server tries an update again that met another one.
    pub retry_on_conflict: u8,
    /// When it is seen by searches.
    pub refresh: Refresh,
}

/// The most bytes of an index's name and of a document's id that servers take. They refuse whole requests with
/// longer ones.
pub(crate) const MAX_INDEX_BYTES: usize = 255;
pub(crate) const MAX_ID_BYTES: usize = 512;

impl<'a> Target<'a> {
    /// The document `id` in `index`.
    pub fn new(index: &'a str, id: &'a str) -> Target<'a> {
        Target { index, id: Some(id), ..Target::default() }
    }

    /// A new document in `index`, whose id the server chooses.
    pub fn with_auto_id(index: &'a str) -> Target<'a> {
        Target { index, ..Target::default() }
    }

    /// The same, on the shard of `routing`.
    #[must_use]
    pub fn routing(self, routing: &'a str) -> Target<'a> {
        Target { routing: Some(routing), ..self }
    }

    /// The same, only if the document is in this state still.
    #[must_use]
    pub fn if_unchanged(self, revision: Revision) -> Target<'a> {
        Target { if_unchanged: Some(revision), ..self }
    }

    /// The same, tried again by the server when another update came in between.
    #[must_use]
    pub fn retry_on_conflict(self, times: u8) -> Target<'a> {
        Target { retry_on_conflict: times, ..self }
    }

    /// The same, seen by searches as `refresh` says.
    #[must_use]
    pub fn refresh(self, refresh: Refresh) -> Target<'a> {
        Target { refresh, ..self }
    }

    /// Refuses what would make the server refuse the whole request.
    pub(crate) fn check(&self) -> Result<(), BulkSubmitError> {
        check_index(self.index)?;
        for name in [self.id, self.routing].into_iter().flatten() {
            if name.is_empty() || name.len() > MAX_ID_BYTES {
                return Err(BulkSubmitError::Invalid("a document's id and routing have 1 to 512 bytes"));
            }
        }
        Ok(())
    }
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search<'a> {
    /// The indices, as the server reads them (`logs-*,-logs-old`).
    pub index: &'a str,
    /// The body of the search: a JSON object.
    pub query: &'a [u8],
}

pub(crate) fn check_index(index: &str) -> Result<(), BulkSubmitError> {
    if index.is_empty() || index.len() > MAX_INDEX_BYTES {
        return Err(BulkSubmitError::Invalid("an index's name has 1 to 255 bytes"));
    }
    Ok(())
}
