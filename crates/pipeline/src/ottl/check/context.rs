//! Infers the context of a list: the lowest that occurs, or one below it that has the enums and functions of the list.

use super::super::components;
use super::super::diagnostic::Fault;
use super::super::enums;
use super::super::field::Context;
use super::super::visit::Part;
use super::Scope;
use crate::functions;
use std::collections::BTreeSet;
use std::ops::Range;

pub(super) const NONE: &str = "no path says whether this is for logs, spans or metrics";
pub(super) const NONE_HELP: &str =
    "begin a path with a context: `resource`, `scope`, `log`, `span`, `spanevent`, `metric` or `datapoint`";

/// Properties of a context that the texts of a list need.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The contexts that paths name, each with the first path that does.
    contexts: Vec<(Context, usize, Range<usize>)>,
    enums: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Hints {
    pub(super) fn add(&mut self, item: usize, part: Part<'_>) {
        match part {
            Part::Path(path) => {
                let named = match path.fields.as_slice() {
                    [first, _, ..] if first.keys.is_empty() => Context::named(&first.name.text),
                    _ => None,
                };
                if let Some(context) = named
                    && !self.contexts.iter().any(|(known, ..)| *known == context)
                {
                    self.contexts.push((context, item, path.range.clone()));
                }
            }
            Part::Call(call) => {
                self.functions.insert(call.name.text.clone());
            }
            Part::Function(name) => {
                self.functions.insert(name.to_owned());
            }
            // A function is found by its name in every context where an enum would be missing.
            Part::Enum { name, argument: true, .. } if functions::find(name).is_some() => {}
            Part::Enum { name, .. } => {
                self.enums.insert(name.to_owned());
            }
        }
    }

    /// The context of the list.
    ///
    /// # Errors
    /// The paths that cannot be in it; none when no path names a context.
    pub(super) fn infer(self, scope: Scope<'_>) -> Result<Context, Vec<(usize, Fault)>> {
        let mut faults: Vec<(usize, Fault)> = Vec::new();
        for (context, item, range) in &self.contexts {
            if !scope.contexts.contains(context) {
                let message = format!("there is no context `{}` here", context.name());
                let names: Vec<_> =
                    scope.contexts.iter().map(|context| format!("`{}`", context.name())).collect();
                let help = format!("the contexts are {}", names.join(", "));
                faults.push((*item, Fault::new(range.clone(), message).help(help)));
            }
        }
        let occurs = |context: &Context| self.contexts.iter().any(|(named, ..)| named == context);
        let lowest = scope.given.or_else(|| Context::ALL.into_iter().find(occurs));
        let lowest = lowest.or_else(|| self.only(scope)).ok_or(Vec::new())?;
        for (context, item, range) in &self.contexts {
            if !lowest.reaches(*context) {
                let (low, other) = (lowest.name(), context.name());
                let message = format!("`{other}` cannot be used together with `{low}`");
                let help = match context.reaches(lowest) {
                    true => format!("this list is for `{low}`, which has no `{other}`"),
                    false => {
                        "statements run in one context, the lowest of their list: make two lists".to_owned()
                    }
                };
                faults.push((*item, Fault::new(range.clone(), message).help(help)));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        if scope.given.is_some() || self.supported(lowest) {
            return Ok(lowest);
        }
        // As in the Collector: `resource.attributes["a"] == SPAN_KIND_SERVER` is for span events.
        let lower = Context::ALL.into_iter().filter(|context| *context != lowest && context.reaches(lowest));
        let mut lower = lower.filter(|context| scope.contexts.contains(context));
        Ok(lower.find(|context| self.supported(*context)).unwrap_or(lowest))
    }

    /// The context that alone has all functions, where no path names one: `convert_sum_to_gauge()` is for metrics.
    fn only(&self, scope: Scope<'_>) -> Option<Context> {
        let is_special = self.functions.iter().any(|name| components::contexts(name).is_some());
        let mut contexts = scope.contexts.iter().copied().filter(|context| self.supported(*context));
        contexts.next().filter(|_| is_special && contexts.next().is_none())
    }

    fn supported(&self, context: Context) -> bool {
        self.enums.iter().all(|name| enums::find(context, name).is_some())
            && self.functions.iter().all(|name| super::call::exists_in(context, name))
    }
}
