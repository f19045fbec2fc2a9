//! Decides about a message that its changes make too long.

use super::Walk;
use super::open::Container;
use super::rope::{Full, Gap};
use crate::access::Access;
use crate::ottl::field::Context;
use crate::ottl::program::Statement;
use crate::step::{Step, Work};
use crate::value::Failure;
use std::ops::Range;

/// Outcome of a message at its end.
pub(super) enum Rest {
    Written,
    /// It is too long: it stays as it was.
    AsItWas,
    /// It is too long, and this step drops it.
    Dropped(usize),
}

/// The steps to which a change that is too large is due.
pub(super) struct TooLarge {
    /// The last one that makes such changes.
    pub(super) writer: usize,
    /// The one whose failures drop.
    pub(super) dropping: Option<usize>,
}

impl TooLarge {
    /// The step that drops what cannot stay as it was.
    pub(super) fn step(&self) -> usize {
        self.dropping.unwrap_or(self.writer)
    }
}

impl Walk<'_> {
    /// Writes what changed of a message behind its members. A span with its events is one item, and may be too long then.
    pub(super) fn write_rest(
        &mut self,
        kind: Container,
        whole: &Range<usize>,
        gap: &Gap,
    ) -> Result<Rest, Full> {
        if let Some(step) = self.write_back()? {
            return Ok(Rest::Dropped(step));
        }
        let around = self.depth.checked_sub(1).and_then(|depth| self.stack.get(depth));
        let most = self.growth.saturating_sub(around.map_or(0, |around| around.grown));
        if kind != Container::Span || self.rope.len_of(gap) <= whole.len().saturating_add(most) {
            return Ok(Rest::Written);
        }
        let dropping = self.too_large_of(|access| access.writes_level(2) || access.writes_level(3));
        Ok(dropping.map_or(Rest::AsItWas, Rest::Dropped))
    }

    /// Counts that the changes of a message's own fields were too large.
    pub(super) fn too_large(&mut self, kind: Container) -> Option<usize> {
        self.too_large_of(|access| match kind.level() {
            Some(level) => access.writes_level(level),
            None => access.writes_data,
        })
    }

    /// Counts that changes were too large to be written, with the last statement that makes such, on whatever level it runs.
    /// Returns the step whose failures drop.
    pub(super) fn too_large_of(&mut self, writes: impl Fn(&Access) -> bool) -> Option<usize> {
        self.count_too_large(writes)?.dropping
    }

    /// As [`too_large_of`](Self::too_large_of), for what cannot stay as it was.
    pub(super) fn count_too_large(&mut self, writes: impl Fn(&Access) -> bool) -> Option<TooLarge> {
        let (steps, signal) = (self.steps, self.signal);
        let mut writers = self.pass.steps.iter().rev().filter_map(|number| {
            let step = steps.get(*number).filter(|step| writes(&step.access(signal)))?;
            let Work::Edit(statements) = &step.work else { return None };
            Some((*number, step, statements))
        });
        let (number, step, statements) = writers.next()?;
        let is_writing = |(context, statement): &(Context, Statement)| {
            let mut access = Access::default();
            access.statement(statement);
            context.is_in(signal) && writes(&access)
        };
        if let Some(counts) = self.tools.counts.get_mut(number)
            && let Some(last) = statements.iter().rposition(is_writing)
        {
            counts.fail(step.part(last), Failure::TooLarge);
        }
        let drops = |step: &Step| step.on_error == crate::ErrorMode::Drop;
        let dropping = match drops(step) {
            true => Some(number),
            false => writers.find(|(_, step, _)| drops(step)).map(|(number, ..)| number),
        };
        Some(TooLarge { writer: number, dropping })
    }
}
