//! Prometheus relabeling of remote-write bodies.
//!
//! Rules mean what they mean in Prometheus 3 (`model/relabel`), with the additions of vmagent: `if`, lists of regular
//! expressions, `{{label}}` in replacements, and more actions. Source:
//! <https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config>,
//! <https://docs.victoriametrics.com/victoriametrics/relabeling/>.
//!
//! [`RelabelRun`] walks a body once. It loads the labels of a series into a table, applies the rules, and notes the edits that
//! the body needs: in 1.0 single labels, in 2.0 the references of a series, with new symbols behind those of the body. The
//! labels that it writes are sorted by name, and none is empty. What rules leave as it came is not written at all. Symbols that
//! nothing refers to any more are written empty, with the bodies that came with such.
//! A series that is like one before it takes a shorter way: `recipes`.
//!
//! Differences from vmagent: `hashmod` is Prometheus' MD5; `{{label}}` inserts values as they are, without looking for `$1` in
//! them; `graphite` is refused. From both: labels without a name, which receivers refuse, are not made, nor are labels and
//! series beyond what they accept, which is a failure of the rule.

mod apply;
mod compile;
mod edits;
mod explain;
mod fields;
mod labels;
mod literals;
mod pattern;
mod recipes;
mod rule;
mod run;
mod selector;
mod symbols;
#[cfg(test)]
mod tests;
mod text;
mod used;

use crate::{ErrorMode, Problem, StepCounts};
pub use explain::{AppliedRule, explain};
pub use run::RelabelRun;

/// The actions of Prometheus.
pub const PROMETHEUS_ACTIONS: [&str; 11] = [
    "replace",
    "keep",
    "drop",
    "keepequal",
    "dropequal",
    "hashmod",
    "labelmap",
    "labeldrop",
    "labelkeep",
    "lowercase",
    "uppercase",
];

/// The actions that vmagent has besides; all but `graphite`, which is refused.
pub const VMAGENT_ACTIONS: [&str; 8] = [
    "replace_all",
    "labelmap_all",
    "keep_if_equal",
    "drop_if_equal",
    "keep_if_contains",
    "drop_if_contains",
    "keep_metrics",
    "drop_metrics",
];

/// One relabeling rule, as the configuration writes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleDefinition {
    /// The labels whose values are joined.
    pub source_labels: Vec<String>,
    /// The text between them; `;` by default.
    pub separator: Option<String>,
    /// The label that is set.
    pub target_label: Option<String>,
    /// Expression that the whole joined value has to match; several are alternatives.
    pub regex: Vec<String>,
    /// The modulus of `hashmod`.
    pub modulus: Option<u64>,
    /// The new value; `$1` by default.
    pub replacement: Option<String>,
    /// The action; `replace` by default.
    pub action: Option<String>,
    /// vmagent's condition: series selectors, of which one has to match.
    pub condition: Vec<String>,
}

/// Compiled rules: one or more steps of a pipeline, one after the other. They do not change; threads share them.
#[derive(Debug)]
pub struct Rules {
    steps: Box<[Step]>,
    /// Literals.
    constants: Box<[u8]>,
    regexes: crate::regex::Regexes,
    memos: usize,
    traits: recipes::Traits,
}

#[derive(Debug)]
struct Step {
    /// Its number in the pipeline.
    number: usize,
    rules: Box<[rule::Rule]>,
    on_error: ErrorMode,
}

/// The definition of a step of [`Rules`].
#[derive(Debug, Clone, Copy)]
pub struct StepRules<'a> {
    /// The step in its pipeline, for [`Anchor::step`](crate::Anchor::step).
    pub step: usize,
    /// The treatment of a rule that fails on a series.
    pub on_error: ErrorMode,
    /// The rules, in order.
    pub rules: &'a [RuleDefinition],
}

/// The working memory of a [`RelabelRun`]: one for each concurrent run. It never grows.
#[derive(Debug)]
pub struct RelabelWorkspace {
    /// Counts of each step since the counts were taken last. The failures are by rule.
    counts: Box<[StepCounts]>,
    /// The numbers of the steps in the pipeline.
    steps: Box<[usize]>,
    state: apply::State,
    temporary: Box<[u8]>,
    added: symbols::Added,
    recipes: recipes::Recipes,
}

impl Rules {
    /// The bytes of values that are made for a series.
    const TEMPORARY: usize = 160 << 10;

    /// Compiles `steps`. Returns the rules and what their author should know, or all errors at once.
    ///
    /// # Errors
    /// Every error, with warnings between, in the order of the rules.
    pub fn compile(steps: &[StepRules<'_>]) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
        let mut compiler = compile::Compiler::default();
        let mut compiled = Vec::new();
        for step in steps {
            let rules = step.rules.iter().enumerate();
            let rules = rules.filter_map(|(item, rule)| compiler.rule(step.step, item, rule)).collect();
            compiled.push(Step { number: step.step, rules, on_error: step.on_error });
        }
        if compiler.errors() > 0 {
            return Err(compiler.problems);
        }
        let compile::Compiler { constants, regexes, memos, problems, .. } = compiler;
        let (steps, constants) = (compiled.into_boxed_slice(), constants.into());
        let traits = recipes::Traits::new(&steps);
        Ok((Rules { steps, constants, regexes, memos, traits }, problems))
    }

    /// The most bytes that the literals and regular expressions take. The rules are not among them.
    pub(crate) fn program_bytes(&self) -> usize {
        self.constants.len() + self.regexes.program_bytes()
    }

    /// The bytes that a workspace takes at most.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        let failures = self.steps.iter().map(|step| step.rules.len() * StepCounts::OF_PART);
        size_of::<RelabelWorkspace>()
            + Self::TEMPORARY
            + apply::State::BYTES
            + symbols::Added::BYTES
            + recipes::Recipes::bytes(self.traits.filters)
            + self.regexes.cache_bytes()
            + self.memos * size_of::<pattern::Memo>()
            + self.steps.len() * (size_of::<StepCounts>() + size_of::<usize>())
            + failures.sum::<usize>()
    }

    /// The working memory of a run.
    #[must_use]
    pub fn workspace(&self) -> RelabelWorkspace {
        RelabelWorkspace {
            counts: self.steps.iter().map(|step| StepCounts::new(step.rules.len())).collect(),
            steps: self.steps.iter().map(|step| step.number).collect(),
            state: apply::State::new(self.regexes.caches(), self.memos),
            temporary: vec![0; Self::TEMPORARY].into(),
            added: symbols::Added::new(),
            recipes: recipes::Recipes::new(self.traits.filters),
        }
    }

    /// How many steps there are.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }
}

impl RelabelWorkspace {
    /// Counts of each step since the last call, by its number in the pipeline. The failures are by rule.
    pub fn take_counts(&mut self, mut each: impl FnMut(usize, &StepCounts)) {
        for (&step, counts) in self.steps.iter().zip(&mut self.counts) {
            each(step, counts);
            counts.clear();
        }
    }
}
