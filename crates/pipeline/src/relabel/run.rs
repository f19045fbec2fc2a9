//! A run of rules over a remote-write body.

mod alike;
mod chunk;
mod series;

use super::apply::Evaluation;
use super::edits::{Edits, Replay};
use super::symbols::{self, Index, Indexing};
use super::used::Used;
use super::{RelabelWorkspace, Rules};
use crate::memory::Memory;
use crate::{Limits, Outcome, Progress};
use chunk::Chunk;
use tidegate_wire::remote_write::Version;

/// One pass of [`Rules`] over one decoded remote-write body that was checked.
#[derive(Debug)]
pub struct RelabelRun<'a> {
    rules: &'a Rules,
    workspace: &'a mut RelabelWorkspace,
    body: &'a [u8],
    phase: Phase<'a>,
    /// The items that are left.
    items: u64,
    limits: Limits,
    replay: Replay,
}

#[derive(Debug)]
enum Phase<'a> {
    Indexing(Indexing<'a>),
    Series(SeriesCursor<'a>),
}

/// The way through the series: the edits so far, and the place in the body.
#[derive(Debug)]
struct SeriesCursor<'a> {
    edits: Edits<'a>,
    /// In 2.0.
    index: Option<Index<'a>>,
    /// The symbols that the series so far refer to, in 2.0.
    used: Used<'a>,
    at: usize,
}

impl<'a> SeriesCursor<'a> {
    fn new(index: Option<Index<'a>>, used: Used<'a>, space: &'a mut [u8]) -> SeriesCursor<'a> {
        SeriesCursor { edits: Edits::new(space), index, used, at: 0 }
    }
}

impl<'a> RelabelRun<'a> {
    /// Begins a run over `body`, which is smaller than 4 GiB, with `scratch` as long as
    /// [`Pipeline::scratch_bytes`](crate::Pipeline::scratch_bytes) says.
    #[must_use]
    pub fn new(
        rules: &'a Rules,
        workspace: &'a mut RelabelWorkspace,
        version: Version,
        body: &'a [u8],
        scratch: &'a mut [u8],
    ) -> RelabelRun<'a> {
        workspace.recipes.clear();
        let phase = match version {
            Version::V1 => Phase::Series(SeriesCursor::new(None, Used::default(), scratch)),
            Version::V2 => {
                workspace.added.clear();
                Phase::Indexing(Indexing::new(scratch))
            }
        };
        RelabelRun {
            rules,
            workspace,
            body,
            phase,
            items: 0,
            limits: Limits::NONE,
            replay: Replay::default(),
        }
    }

    /// Bounds the output.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Does a bounded amount of work.
    pub fn advance(&mut self) -> Progress {
        if u32::try_from(self.body.len()).is_err() {
            return Progress::Done(Outcome::Unchanged);
        }
        match &mut self.phase {
            Phase::Indexing(indexing) => {
                if let Some((index, used, rest)) = indexing.advance(self.body) {
                    self.phase = Phase::Series(SeriesCursor::new(Some(index), used, rest));
                }
                Progress::More
            }
            Phase::Series(cursor) => {
                let RelabelWorkspace { counts, state, temporary, added, recipes, .. } = &mut *self.workspace;
                let memory = Memory::new(self.body, &self.rules.constants, temporary);
                let mut chunk = Chunk {
                    rules: self.rules,
                    cursor,
                    counts,
                    added,
                    recipes,
                    limits: self.limits,
                    items: 0,
                    on: Evaluation { memory, state },
                };
                let more = chunk.advance();
                self.items += chunk.items;
                if more || cursor.used.measure(self.body) {
                    Progress::More
                } else {
                    Progress::Done(self.outcome())
                }
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let Phase::Series(cursor) = &self.phase else { return Outcome::Unchanged };
        let saved = cursor.used.saved();
        if cursor.edits.is_empty() && saved == 0 {
            return Outcome::Unchanged;
        }
        if self.items == 0 {
            return Outcome::Empty;
        }
        let (added, left) = cursor.edits.balance();
        Outcome::Changed { len: (self.body.len() + added).saturating_sub(left + saved), items: self.items }
    }

    /// Writes the next part of the new body to its place in `out`, which is as long as [`Outcome::Changed`] says: as much as
    /// takes little time. Returns whether that was all.
    pub fn write_part(&mut self, out: &mut [u8]) -> bool {
        const MOST: usize = 256 << 10;
        let Phase::Series(cursor) = &mut self.phase else { return true };
        let symbols_at = cursor.index.as_ref().map_or(0, |index| index.end);
        let SeriesCursor { edits, used, .. } = cursor;
        edits.write(&mut self.replay, self.body, (symbols::TAG, symbols_at), used, out, MOST)
    }
}
