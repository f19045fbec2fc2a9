//! Rules over the series of a body, one after the other.

use super::Walk;
use crate::ErrorMode;
use crate::relabel::apply::{Evaluation, Verdict};
use crate::relabel::fields::{Field, field};
use crate::relabel::{Rules, symbols};
use tidegate_wire::remote_write::{v1, v2};

/// The bytes of a body between two looks at the clock of others.
const STEP_BYTES: usize = 16 << 10;

/// A stretch of a run.
pub(super) struct Pass<'p, 'a, 'w> {
    pub(super) rules: &'a Rules,
    pub(super) walk: &'p mut Walk<'a>,
    pub(super) counts: &'p mut [crate::StepCounts],
    pub(super) added: &'p mut symbols::Added,
    /// The items that are left.
    pub(super) items: u64,
    pub(super) on: Evaluation<'p, 'w>,
}

impl Pass<'_, '_, '_> {
    /// Goes on for a bounded number of bytes. Whether there are more.
    pub(super) fn advance(&mut self) -> bool {
        let body = self.on.memory.body;
        let stop = self.walk.at + STEP_BYTES;
        let two = self.walk.index.is_some();
        let series = if two { v2::field::TIMESERIES } else { v1::field::TIMESERIES };
        while self.walk.at < stop {
            let Some(field) = field(body, self.walk.at, body.len()) else { return false };
            if field.number == series && field.has_length {
                self.series(field);
            } else {
                self.items += u64::from(!two && field.number == v1::field::METADATA);
                self.walk.edits.keep(field.end - field.start);
            }
            self.walk.at = field.end;
        }
        true
    }

    fn series(&mut self, field: Field) {
        self.on.memory.clear();
        self.on.state.labels.clear();
        let (series, loaded) = self.load(field);
        let (verdict, step) = match loaded {
            Ok(()) => self.apply(series.items),
            // More labels than any receiver accepts: rules could not see all of them.
            Err(_) => self.pass_over(series.items),
        };
        if self.on.state.labels.has_nameless() {
            self.on.finish();
        }
        let labels = &self.on.state.labels;
        let changed = labels.is_changed();
        let drops = verdict == Verdict::Drop || (changed && labels.iter().next().is_none());
        let writes = changed && loaded.is_ok();
        if !(drops || writes) {
            self.walk.edits.keep(field.end - field.start);
            self.items += series.items;
            return;
        }
        let before = self.walk.edits.state();
        let edited = match drops {
            true => self.walk.edits.leave(field.end - field.start),
            false => self.write(series),
        };
        let counts = self.counts.get_mut(step);
        match (edited, counts) {
            (Ok(()), Some(counts)) if drops => counts.filtered += series.items,
            (Ok(()), _) => self.items += series.items,
            (Err(_), counts) => {
                self.walk.edits.restore(before);
                self.walk.edits.keep(field.end - field.start);
                self.added.clear();
                self.items += series.items;
                if let Some(failures) = counts.and_then(|counts| counts.failures.last_mut()) {
                    *failures += 1;
                }
            }
        }
    }

    /// Applies all rules to the labels. Returns the last step that the series reached, too.
    fn apply(&mut self, items: u64) -> (Verdict, usize) {
        let mut reached = 0;
        for (number, (step, counts)) in self.rules.steps.iter().zip(&mut *self.counts).enumerate() {
            reached = number;
            counts.items += items;
            for (rule, failures) in step.rules.iter().zip(&mut counts.failures) {
                let verdict = self.on.apply(rule).unwrap_or_else(|_| {
                    *failures += 1;
                    if step.on_error == ErrorMode::Drop { Verdict::Drop } else { Verdict::Keep }
                });
                if verdict == Verdict::Drop {
                    return (Verdict::Drop, reached);
                }
            }
        }
        (Verdict::Keep, reached)
    }

    /// Counts a series that no rule was applied to.
    fn pass_over(&mut self, items: u64) -> (Verdict, usize) {
        for (step, counts) in self.rules.steps.iter().zip(&mut *self.counts) {
            counts.items += items;
            if let Some(failures) = counts.failures.first_mut() {
                *failures += 1;
            }
            if step.on_error == ErrorMode::Drop {
                return (Verdict::Drop, 0);
            }
        }
        (Verdict::Keep, 0)
    }
}
