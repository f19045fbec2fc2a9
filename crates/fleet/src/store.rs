//! The state of the fleet behind a small interface: tables of keys and values, written in atomic batches.

mod embedded;
mod postgres;
#[cfg(test)]
mod tests;

pub use embedded::{CACHE_BYTES, EmbeddedStore, STACK_BYTES};
pub use postgres::{CONNECTION_BYTES, CONNECTIONS, PostgresSettings, PostgresStore};

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tidegate_arena::Charge;

/// A table of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Agents, by id.
    Agents,
    /// Their metadata, by id and part: large, and seldom changed.
    Metadata,
    /// When they were seen last, by id.
    Seen,
    /// The agents of enrolments that named an id of their own, by that.
    Enrollments,
    /// The newest revisions of policies, by id.
    Policies,
    /// Tokens of enrolment, by id.
    Tokens,
    /// Actions, by id.
    Actions,
    /// Queued actions, by agent and number.
    Queue,
    /// Agents' answers to actions, by action and agent.
    Results,
    /// Counters, by name.
    Counters,
    /// Secrets of the fleet as a whole, by name.
    Secrets,
    /// Files, by kind and id.
    Files,
    /// Agents that speak OpAMP, by instance uid.
    OpampAgents,
    /// Their effective configurations, by the same.
    OpampEffective,
    /// Configurations assigned by labels, by name.
    OpampConfigs,
    /// Tokens of agents that speak OpAMP, by id.
    OpampTokens,
}

/// A value, and the version that a write may expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Changes with each write of the key.
    pub version: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// A write's expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// None: the write always succeeds.
    Anything,
    /// The key has no value.
    Absent,
    /// The value has this version.
    Version(u64),
}

/// A write of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// The condition of this write; the whole batch fails with it.
    pub expected: Expected,
    /// The new value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// Writes of one transaction.
#[derive(Default)]
pub struct Batch {
    /// The writes.
    pub writes: Vec<Write>,
    /// The charge for their bytes, held until they are written, even if the caller no longer waits.
    pub memory: Option<Arc<Charge>>,
}

impl From<Vec<Write>> for Batch {
    fn from(writes: Vec<Write>) -> Batch {
        Batch { writes, memory: None }
    }
}

/// A part of a table, in the order of keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyRange<'a> {
    /// What keys begin with.
    pub prefix: &'a [u8],
    /// Only keys behind this one.
    pub after: Option<&'a [u8]>,
    /// So many at most.
    pub limit: usize,
}

/// A page of the changes of keys, in the order of their commits. A key that has changed several times is in it once, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// All up to here is known with this page; the next begins behind it.
    pub position: u64,
    /// Whether the changes in between are all here. Where they are not, the reader reads the tables again, and goes on from
    /// [`position`](Self::position).
    pub is_complete: bool,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A key that was written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// What it has now.
    pub value: ChangedValue,
}

/// What a changed key has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedValue {
    /// Nothing.
    Removed,
    /// This.
    Stored(Stored),
    /// A long value, which is read by itself.
    Long,
}

/// Why the state was not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// An expectation of a write failed: somebody else has written. Nothing of the batch was written.
    #[error("the state was changed meanwhile")]
    Conflict,
    /// It may work later.
    #[error("the state of the fleet is not available: {0}")]
    Unavailable(String),
    /// There is no memory for what was read. There may be later.
    #[error("there is not the memory for the {0} of the fleet; raise `memory`")]
    NoMemory(&'static str),
    /// It cannot be used by this version.
    #[error("{0}")]
    Unusable(String),
}

/// A result of the store that is waited for.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The state. What a commit has acknowledged is durable.
pub trait Store: Send + Sync + 'static {
    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> StoreFuture<'_, Option<Stored>>;

    /// Keys and values of a range, in the order of keys.
    fn list(&self, table: Table, range: KeyRange<'_>) -> StoreFuture<'_, Vec<(Vec<u8>, Stored)>>;

    /// Writes all of a batch, or nothing where an expectation fails. Durable when this returns; the version that its values have.
    /// Later commits have higher ones.
    fn commit(&self, batch: Batch) -> StoreFuture<'_, u64>;

    /// The changes behind a position in these tables, by this process and by others; waits until there are some. Without a position
    /// it says the present one at once.
    fn watch(&self, tables: &'static [Table], after: Option<u64>) -> StoreFuture<'_, Changes>;

    /// Whether others write to it: then what is not in memory may be here.
    fn is_shared(&self) -> bool;

    /// Writes what was given to it, and takes no more; says whether it was done by the deadline. What is not done was not acknowledged.
    fn close(&self, deadline: Instant) -> bool;

    /// Whether its thread has ended although it must not.
    fn has_ended(&self) -> bool;
}

impl Write {
    /// Writes a value, whatever there was.
    pub fn put(table: Table, key: impl Into<Vec<u8>>, value: Vec<u8>) -> Write {
        Write { table, key: key.into(), expected: Expected::Anything, value: Some(value) }
    }

    /// Removes a key, if it is there.
    pub fn remove(table: Table, key: impl Into<Vec<u8>>) -> Write {
        Write { table, key: key.into(), expected: Expected::Anything, value: None }
    }

    /// The same with an expectation.
    #[must_use]
    pub fn expecting(self, expected: Expected) -> Write {
        Write { expected, ..self }
    }
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 16] = [
        Table::Agents,
        Table::Metadata,
        Table::Seen,
        Table::Enrollments,
        Table::Policies,
        Table::Tokens,
        Table::Actions,
        Table::Queue,
        Table::Results,
        Table::Counters,
        Table::Secrets,
        Table::Files,
        Table::OpampAgents,
        Table::OpampEffective,
        Table::OpampConfigs,
        Table::OpampTokens,
    ];

    /// Its name on disk.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Table::Agents => "agents",
            Table::Metadata => "metadata",
            Table::Seen => "seen",
            Table::Enrollments => "enrollments",
            Table::Policies => "policies",
            Table::Tokens => "tokens",
            Table::Actions => "actions",
            Table::Queue => "queue",
            Table::Results => "results",
            Table::Counters => "counters",
            Table::Secrets => "secrets",
            Table::Files => "files",
            Table::OpampAgents => "opamp_agents",
            Table::OpampEffective => "opamp_effective",
            Table::OpampConfigs => "opamp_configs",
            Table::OpampTokens => "opamp_tokens",
        }
    }

    /// The table of this name, if this version has it.
    pub(crate) fn named(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }
}
