//! Explains the changes of each rule to the labels of one series.

use super::apply::{Evaluation, Verdict};
use super::fields::field;
use super::{RelabelWorkspace, Rules};
use crate::memory::Memory;

/// A rule that was applied to the labels of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedRule {
    /// The step, counted from 0 among those of the [`Rules`].
    pub step: usize,
    /// The rule within it, counted from 0.
    pub rule: usize,
    /// The labels behind it, sorted by name; `None` when it dropped the series.
    pub labels: Option<Vec<(String, String)>>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Applies `rules` to a series with these labels, and tells what each did, up to the one that dropped it. For people: it
/// allocates.
#[must_use]
pub fn explain(rules: &Rules, labels: &[(String, String)]) -> Vec<AppliedRule> {
    let body = series(labels);
    let mut workspace = rules.workspace();
    let RelabelWorkspace { state, temporary, .. } = &mut workspace;
    let memory = Memory::new(&body, &rules.constants, temporary);
    let mut on = Evaluation { memory, state };
    let mut at = 0;
    while let Some(label) = field(&body, at, body.len()) {
        // More than a series can have are not shown.
        if on.load_label(label).is_err() {
            break;
        }
        at = label.end;
    }
    let mut applied = Vec::new();
    for (step, own) in rules.steps.iter().enumerate() {
        for (rule, compiled) in own.rules.iter().enumerate() {
            let result = on.apply(compiled);
            let drops = match result {
                Ok(verdict) => verdict == Verdict::Drop,
                Err(_) => own.on_error == crate::ErrorMode::Drop,
            };
            let labels = (!drops).then(|| left(&mut on));
            applied.push(AppliedRule {
                step,
                rule,
                labels,
                failure: result.err().map(|failure| failure.to_string()),
            });
            if drops {
                return applied;
            }
        }
    }
    applied
}

/// The labels that are left, sorted by name.
fn left(on: &mut Evaluation<'_, '_>) -> Vec<(String, String)> {
    let Evaluation { memory, state } = on;
    let text = |slice| String::from_utf8_lossy(memory.get(slice)).into_owned();
    // A label without a name is visible to later rules, and is removed behind the last.
    let named = state.labels.sorted(memory).filter(|label| !label.name.is_empty());
    named.map(|label| (text(label.name.slice), text(label.value.slice))).collect()
}

/// The labels as a series of remote write 1.0.
fn series(labels: &[(String, String)]) -> Vec<u8> {
    use tidegate_wire::proto::write::Varint;
    let put = |out: &mut Vec<u8>, tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(Varint::new(bytes.len() as u64).as_bytes());
        out.extend_from_slice(bytes);
    };
    let mut body = Vec::new();
    for (name, value) in labels {
        let mut label = Vec::new();
        put(&mut label, 0x0a, name.as_bytes());
        put(&mut label, 0x12, value.as_bytes());
        put(&mut body, 0x0a, &label);
    }
    body
}
