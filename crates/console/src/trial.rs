//! Trials of pipelines: what is asked for, what came of it, and how that is shown.
//!
//! A trial runs in a process of its own, which ends with it. The gateway's process neither reads what was pasted nor runs it: it
//! hands over a [`TrialRequest`] with the form as it came, and what comes back is a part of its page, or JSON.

mod answer;
mod diff;
mod form;
mod markup;

pub use answer::TrialAnswer;
pub(crate) use form::form_texts;
pub use form::{FormError, LONGEST_ITEMS, LONGEST_STEPS, TrialForm};
pub(crate) use markup::{Fragment, NOT_SHOWN, form_markup, write_form};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Request to a trial's process: a line of JSON on its standard input, before the form and the items that were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialRequest {
    /// The `Content-Type` of the form.
    pub content_type: String,
    /// The length of the form, in bytes.
    pub form_bytes: usize,
    /// Steps of a configured pipeline, which take the place of those in the form.
    pub load: Option<LoadedSteps>,
    /// Bytes of received items that were taken, in the place of the items in the form: as long as what follows the form.
    pub taken: Option<Taken>,
    /// The names of the configured pipelines.
    pub pipelines: Vec<String>,
    /// The most bytes of the answer.
    pub most: usize,
}

/// The steps of a configured pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedSteps {
    /// The pipeline's name.
    pub name: String,
    /// Its steps, as they are written in the configuration; `None` where they are not known.
    pub steps: Option<String>,
}

/// Received items that were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// In words: how many items, or why none.
    pub words: String,
}

/// Result of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrialReport {
    /// Notes about the whole: items that were taken, limits that were met.
    pub notes: Vec<String>,
    /// Errors of the steps.
    pub steps_problems: Vec<TextProblem>,
    /// Warnings: steps that compile, but seldom do what is meant.
    pub warnings: Vec<String>,
    /// Errors of the items.
    pub items_problems: Vec<TextProblem>,
    /// Outcome of each statement, rule or other step.
    pub statements: Vec<StatementReport>,
    /// Outcome for each item.
    pub items: Vec<ItemReport>,
    /// Items that the steps made.
    pub made: Vec<Json>,
    /// Items of which there is no report, since the answer would be too long.
    pub items_not_shown: usize,
}

/// Something wrong in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextProblem {
    /// The line, counted from 1; 0 for the whole.
    pub line: usize,
    /// The column, counted from 1; 0 for the whole line.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// The line itself.
    pub excerpt: String,
    /// The error.
    pub message: String,
    /// The remedy; empty if none is known.
    pub help: String,
}

/// Outcome of a statement, rule or other step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementReport {
    /// The name of the step, or its position.
    pub step: String,
    /// The statement.
    pub what: String,
    /// Items that it changed.
    pub changed: usize,
    /// Items that it dropped.
    pub dropped: usize,
    /// Items that it failed on.
    pub failed: u64,
    /// Whether it was explained: not if the time was over.
    pub explained: bool,
}

/// Outcome for an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemReport {
    /// Its line.
    pub line: usize,
    /// `log record`, `span`, `metric point` or `series`.
    pub kind: &'static str,
    /// As it was; a text for a series.
    pub before: Json,
    /// As it is then; `None` if it was dropped.
    pub after: Option<Json>,
    /// The statement that dropped it, counted from 0.
    pub dropped_by: Option<usize>,
    /// Its changes, in order.
    pub changes: Vec<ChangeReport>,
}

/// A change of a member of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeReport {
    /// The statement, counted from 0.
    pub statement: usize,
    /// The member, such as `attributes.env`; empty for all of it.
    pub path: String,
    /// Its value before.
    pub was: Option<Json>,
    /// Its value then.
    pub now: Option<Json>,
}
