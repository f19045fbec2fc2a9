//! Rules over the series of a body, one after the other.

use super::SeriesCursor;
use crate::ErrorMode;
use crate::Limits;
use crate::relabel::apply::{Evaluation, Verdict};
use crate::relabel::fields::{Field, field};
use crate::relabel::labels::Text;
use crate::relabel::recipes::{End, Recipes};
use crate::relabel::{Rules, edits, symbols};
use crate::value::Failure;
use tidegate_wire::remote_write::{v1, v2};

/// The bytes of a body between two looks at the clock of others.
const STEP_BYTES: usize = 16 << 10;

/// A bounded chunk of a run, with what it borrows.
pub(super) struct Chunk<'p, 'a, 'w> {
    pub(super) rules: &'a Rules,
    pub(super) cursor: &'p mut SeriesCursor<'a>,
    pub(super) counts: &'p mut [crate::StepCounts],
    pub(super) added: &'p mut symbols::Added,
    pub(super) recipes: &'p mut Recipes,
    pub(super) limits: Limits,
    /// The items that are left.
    pub(super) items: u64,
    pub(super) on: Evaluation<'p, 'w>,
}

/// How the rules went through a series.
struct Applied {
    verdict: Verdict,
    /// The last step that it reached.
    step: usize,
    /// Whether a filter at the begin dropped it.
    filtered: bool,
    /// Whether a rule failed.
    failed: bool,
}

/// The output for a series.
pub(super) struct Made {
    pub(super) field: Field,
    pub(super) items: u64,
    /// The last step that it reached.
    pub(super) step: usize,
    pub(super) drops: bool,
    pub(super) edited: Result<(), Failure>,
    /// The edits without its own.
    pub(super) before: edits::State,
}

impl Chunk<'_, '_, '_> {
    /// Goes on for a bounded number of bytes. Whether there are more.
    pub(super) fn advance(&mut self) -> bool {
        let body = self.on.memory.body;
        let stop = self.cursor.at + STEP_BYTES;
        let two = self.cursor.index.is_some();
        let series = if two { v2::field::TIMESERIES } else { v1::field::TIMESERIES };
        while self.cursor.at < stop {
            let Some(field) = field(body, self.cursor.at, body.len()) else { return false };
            if field.number == series && field.has_length {
                self.series(field);
            } else {
                self.items += u64::from(!two && field.number == v1::field::METADATA);
                self.cursor.edits.keep(field.end - field.start);
            }
            self.cursor.at = field.end;
        }
        true
    }

    fn series(&mut self, field: Field) {
        let looks = self.rules.traits.reads.is_some() && self.recipes.are_worth_a_look();
        let usual = if looks { self.scan(field) } else { None };
        if looks {
            let served = usual.is_some_and(|usual| self.again(usual));
            self.recipes.note(served);
            if served {
                return;
            }
        }
        self.on.memory.clear();
        self.on.state.labels.clear();
        let (series, loaded) = self.load(field);
        let Applied { verdict, step, filtered, failed } = match loaded {
            Ok(()) => self.apply(series.items),
            // More labels than any receiver accepts: rules could not see all of them.
            Err(why) => self.pass_over(series.items, why),
        };
        if self.on.state.labels.has_nameless() {
            self.on.finish();
        }
        let labels = &self.on.state.labels;
        let changed = labels.is_changed();
        let drops = verdict == Verdict::Drop || (changed && labels.iter().next().is_none());
        let writes = changed && loaded.is_ok();
        let learns = usual.is_some() && !failed;
        let end = match () {
            () if filtered => End::Unknown,
            () if drops => End::Dropped,
            () if writes => End::Changed,
            () => End::Unchanged,
        };
        if !(drops || writes) {
            self.keep(field);
            self.items += series.items;
            if learns {
                self.learn(end, step);
            }
            return;
        }
        let before = self.cursor.edits.state();
        let references = match drops {
            true => self.cursor.edits.leave(field.end - field.start).map(|()| None),
            false => self.check_growth().and_then(|()| self.write(series)),
        };
        if learns && references.is_ok() {
            self.learn(end, step);
        }
        let edited = references.map(drop);
        let stands = self.settle(Made { field, items: series.items, step, drops, edited, before });
        if !stands && learns {
            // It may put in symbols that are forgotten.
            self.recipes.forget();
        }
        if let (true, Ok(Some(references))) = (stands, references) {
            self.cursor.used.mark_all(self.on.memory.get(references));
            self.cursor.used.mark_fields(self.on.memory.body, series.more, field.end, false);
        }
    }

    /// Keeps a series as it came, with all symbols that it refers to.
    fn keep(&mut self, field: Field) {
        let SeriesCursor { edits, used, index, .. } = &mut *self.cursor;
        edits.keep(field.end - field.start);
        if index.is_some() {
            used.mark_fields(self.on.memory.body, field.payload, field.end, true);
        }
    }

    /// Counts a series that was edited. One whose edits found no room stays as it came, or is dropped where the step drops
    /// what it fails on. Whether the edits stand.
    pub(super) fn settle(&mut self, made: Made) -> bool {
        let Made { field, items, step, drops, edited, before } = made;
        let edited = edited.and_then(|()| self.check_len());
        let stands = edited.is_ok();
        let counts = self.counts.get_mut(step);
        match (edited, counts) {
            (Ok(()), Some(counts)) if drops => counts.filtered += items,
            (Ok(()), _) => self.items += items,
            (Err(why), mut counts) => {
                self.cursor.edits.restore(before);
                self.added.clear();
                if let Some(counts) = &mut counts {
                    counts.fail(counts.failures.len().saturating_sub(1), why);
                }
                let drops = self.rules.steps.get(step).is_some_and(|step| step.on_error == ErrorMode::Drop);
                // To leave a series out takes less room than to write it anew.
                let left_out = drops && self.cursor.edits.leave(field.end - field.start).is_ok();
                match counts.filter(|_| left_out) {
                    Some(counts) => counts.filtered += items,
                    None => {
                        self.keep(field);
                        self.items += items;
                    }
                }
            }
        }
        stands
    }

    /// Whether the labels that rules have set are within the limits, spelled out. Series that are served by a recipe have set the same
    /// ones as the series before.
    fn check_growth(&self) -> Result<(), Failure> {
        // Tags and lengths.
        const AROUND: usize = 16;
        let len = |text: Text| text.slice.len as usize;
        let set = self.on.state.labels.iter().filter(|label| !label.came());
        let grown: usize = set.map(|label| len(label.name) + len(label.value) + AROUND).sum();
        if grown > self.limits.growth { Err(Failure::TooLarge) } else { Ok(()) }
    }

    /// Whether the output is within the limits.
    fn check_len(&self) -> Result<(), Failure> {
        let (added, left) = self.cursor.edits.balance();
        let most = self.limits.body.max(self.on.memory.body.len());
        let len = (self.on.memory.body.len() + added).saturating_sub(left);
        if len > most { Err(Failure::TooLarge) } else { Ok(()) }
    }

    /// Applies all rules to the labels.
    fn apply(&mut self, items: u64) -> Applied {
        let mut applied = Applied { verdict: Verdict::Keep, step: 0, filtered: false, failed: false };
        let mut filters = self.rules.traits.filters;
        for (number, (step, counts)) in self.rules.steps.iter().zip(&mut *self.counts).enumerate() {
            applied.step = number;
            counts.items += items;
            for (place, rule) in step.rules.iter().enumerate() {
                applied.verdict = self.on.apply(rule).unwrap_or_else(|why| {
                    counts.fail(place, why);
                    applied.failed = true;
                    if step.on_error == ErrorMode::Drop { Verdict::Drop } else { Verdict::Keep }
                });
                if applied.verdict == Verdict::Drop {
                    applied.filtered = filters > 0;
                    return applied;
                }
                filters = filters.saturating_sub(1);
            }
        }
        applied
    }

    /// Counts a series that no rule was applied to.
    fn pass_over(&mut self, items: u64, why: Failure) -> Applied {
        let mut applied = Applied { verdict: Verdict::Keep, step: 0, filtered: false, failed: true };
        for (number, (step, counts)) in self.rules.steps.iter().zip(&mut *self.counts).enumerate() {
            applied.step = number;
            counts.items += items;
            counts.fail(0, why);
            if step.on_error == ErrorMode::Drop {
                applied.verdict = Verdict::Drop;
                return applied;
            }
        }
        applied
    }
}
