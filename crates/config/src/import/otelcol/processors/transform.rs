//! The transform processor: edits with statements.

use super::{Processed, error_mode, values};
use crate::import::group::{FileReader, Group, Text};
use crate::import::otelcol::Collector;
use crate::import::ottl;
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;
use crate::yaml::Value;

impl Collector<'_> {
    /// The steps of a transform processor.
    pub(super) fn transform(
        &self,
        name: &str,
        group: &mut Group<'_>,
        reader: &mut FileReader<'_, '_>,
    ) -> Processed {
        let mut processed = Processed::default();
        let mode = error_mode(group, reader);
        for (signal, key) in [
            (Signal::Traces, "trace_statements"),
            (Signal::Metrics, "metric_statements"),
            (Signal::Logs, "log_statements"),
        ] {
            let path = group.path_of(key);
            let Some(entry) = group.take(key) else { continue };
            let mut flat = Vec::new();
            for item in reader.items(&entry.node, &path) {
                if !matches!(item.value, Value::Mapping(_)) {
                    flat.extend(reader.text(item, &path));
                    continue;
                }
                let Some(mut inner) = reader.group(item, &path) else { continue };
                let own = error_mode(&mut inner, reader).or(mode);
                if let Some(mut step) = self.statements(name, &mut inner, reader) {
                    step.on_error = own;
                    processed.push(signal, step);
                }
                inner.finish(reader);
            }
            if !flat.is_empty() {
                let statements = values(&flat);
                let statements = self.guarded(statements, &flat, &path, reader);
                let mut step = Step::new(name, StepKind::Edit(statements));
                step.on_error = mode;
                processed.push(signal, step);
            }
        }
        group.lacks(
            &[
                ("profile_statements", "left out: pipelines do not look at profiles"),
                ("flatten_data", "left out: statements on resources run for the resource"),
            ],
            reader,
        );
        processed
    }

    /// A group of statements, which may have a context and conditions of its own.
    fn statements(&self, name: &str, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<Step> {
        let context = group.text("context", reader).map(|text| text.value);
        let conditions = group.texts("conditions", reader);
        let texts = group.texts("statements", reader);
        group.lacks(&[("shared_cache", "left out: `cache` belongs to one item")], reader);
        let said = |texts: &[Text]| match &context {
            Some(context) => texts.iter().map(|text| ottl::qualified(&text.value, context)).collect(),
            None => values(texts),
        };
        if texts.is_empty() {
            return None;
        }
        let statements = self.guarded(said(&texts), &texts, &group.path_of("statements"), reader);
        let mut step = Step::new(name, StepKind::Edit(statements));
        let conditions = said(&conditions);
        step.when = match conditions.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => {
                let several: Vec<String> = several.iter().map(|one| format!("({one})")).collect();
                Some(several.join(" or "))
            }
        };
        Some(step)
    }

    /// Adds or advises guards where `set` may copy what is absent.
    fn guarded(
        &self,
        statements: Vec<String>,
        texts: &[Text],
        path: &str,
        reader: &mut FileReader<'_, '_>,
    ) -> Vec<String> {
        let each = statements.into_iter().zip(texts).map(|(statement, text)| {
            let Some(source) = ottl::unguarded(&statement) else { return statement };
            if self.guards_set {
                return ottl::guarded(&statement, &source);
            }
            let message = format!(
                "stores an empty value where `{source}` is absent, as the Collector does since 0.163; add `where {source} \
                 != nil`, or import with `--collector-version` if yours is older"
            );
            reader.note(&text.at, path, message);
            statement
        });
        each.collect()
    }
}
