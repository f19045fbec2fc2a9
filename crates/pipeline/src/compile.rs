//! Compiles a definition to a pipeline.

use crate::definition::{
    Anchor, Definition, Problem, Redaction, SampleBy, Sampling, Severity, StepDefinition, StepKind,
};
use crate::measure_step::{CompiledCount, CompiledValue, MeasureStep};
use crate::measures::{AttributeValue, KeyAttributes, Measure, MeasureCount, MeasureValue};
use crate::ottl::check::{self, Checked, Scope, Use};
use crate::ottl::diagnostic::{Diagnostic, Fault};
use crate::ottl::field::Context;
use crate::ottl::literals::Literals;
use crate::ottl::near_keys::NearKeys;
use crate::ottl::program::{Condition, Expression};
use crate::pipeline::{Pipeline, TextSize};
use crate::redaction;
use crate::regex::Regexes;
use crate::relabel::{Rules, StepRules};
use crate::sample_step::SampleStep;
use crate::step::{Step, Work};
use crate::traces::SpanTest;
use crate::watch_step::WatchStep;

impl Pipeline {
    /// Compiles `definition`. Returns the pipeline and what its author should know, or all errors at once.
    ///
    /// # Errors
    /// Every error, with warnings between, in the order of the text.
    pub fn compile(definition: &Definition) -> Result<(Pipeline, Vec<Problem>), Vec<Problem>> {
        let mut compiler =
            Compiler { literals: Literals::default(), problems: Vec::new(), keys: NearKeys::new(), step: 0 };
        let mut steps = Vec::new();
        for (number, step) in definition.steps.iter().enumerate() {
            compiler.step = number;
            steps.extend(compiler.step(step));
        }
        let Compiler { literals, mut problems, keys, .. } = compiler;
        let rules = relabeling(definition, &mut problems);
        problems.extend(keys.warnings().map(|(at, Fault { range, message, help })| Problem {
            at: Anchor { range, ..at.clone() },
            severity: Severity::Warning,
            message,
            help,
        }));
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(problems);
        }
        let constants = literals.bytes().into();
        let (size, fingerprint) = (text_size(definition), definition.fingerprint());
        Ok((Pipeline::new(steps, constants, literals.regexes, rules, size, fingerprint), problems))
    }
}

/// How much text `definition` has.
fn text_size(definition: &Definition) -> TextSize {
    let mut size = TextSize::default();
    let mut add = |text: &str| {
        size.texts += 1;
        size.bytes += text.len();
    };
    for step in &definition.steps {
        step.when.as_deref().into_iter().for_each(&mut add);
        match &step.kind {
            StepKind::Drop(texts) | StepKind::Keep(texts) | StepKind::Edit(texts) => {
                texts.iter().for_each(|text| add(text))
            }
            StepKind::Redact(redaction) => {
                redaction::statements(redaction).iter().for_each(|(_, text)| add(text))
            }
            StepKind::Sample(sampling) => {
                if let SampleBy::Attribute(name) | SampleBy::TraceIdOrAttribute(name) = &sampling.by {
                    add(name);
                }
                sampling.priority.as_deref().into_iter().for_each(&mut add);
            }
            StepKind::WatchTraces(tests) => {
                tests.iter().flat_map(SpanTest::texts).for_each(&mut add);
                // Each has an entry of its own.
                tests.iter().for_each(|_| add(""));
            }
            StepKind::SampleTraces => {}
            StepKind::Measure(measures) => measures.iter().for_each(|measure| {
                measure.texts().for_each(|text| add(text));
                attribute_texts(measure).for_each(&mut add);
                // Each has an entry of its own.
                add("");
            }),
            StepKind::Relabel(rules) => {
                for rule in rules {
                    let lists = [&rule.source_labels, &rule.regex, &rule.condition];
                    lists.into_iter().flatten().for_each(|text| add(text));
                    let texts = [&rule.separator, &rule.target_label, &rule.replacement, &rule.action];
                    texts.into_iter().flatten().for_each(|text| add(text));
                    // A rule has defaults for what it does not say.
                    add("");
                }
            }
        }
    }
    size
}

/// The texts of a measure that are keys of attributes, and their defaults.
fn attribute_texts(measure: &Measure) -> impl Iterator<Item = &str> {
    let listed =
        [&measure.resource, &measure.attributes].into_iter().flat_map(|attributes| match attributes {
            KeyAttributes::All => [].iter(),
            KeyAttributes::Listed(listed) => listed.iter(),
        });
    listed.flat_map(|attribute| {
        let default = match &attribute.default {
            Some(AttributeValue::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        [attribute.key.as_str()].into_iter().chain(default)
    })
}

/// Compiles the rules of all steps that relabel; `None` when there are none, or they have errors.
fn relabeling(definition: &Definition, problems: &mut Vec<Problem>) -> Option<Rules> {
    let mut steps = Vec::new();
    for (step, own) in definition.steps.iter().enumerate() {
        let StepKind::Relabel(rules) = &own.kind else { continue };
        steps.push(StepRules { step, on_error: own.on_error, rules });
        if own.when.is_some() {
            problems.push(Problem {
                at: Anchor { step, setting: "when", item: None, field: "", range: 0..0 },
                severity: Severity::Error,
                message: "`when` is an OTTL condition, and relabeling works on the series of remote write"
                    .into(),
                help: Some("use `if` with a series selector in the rules".into()),
            });
        }
    }
    if steps.is_empty() {
        return None;
    }
    let (rules, found) = match Rules::compile(&steps) {
        Ok((rules, warnings)) => (Some(rules), warnings),
        Err(found) => (None, found),
    };
    problems.extend(found);
    // In the order of the text, as the others.
    problems.sort_by_key(|problem| problem.at.step);
    rules
}

struct Compiler {
    literals: Literals,
    problems: Vec<Problem>,
    /// The attribute keys of all steps.
    keys: NearKeys<Anchor>,
    /// The number of the current step.
    step: usize,
}

/// The compiled condition of a step, with its context.
type When = Option<(Context, Condition)>;

impl Compiler {
    fn step(&mut self, definition: &StepDefinition) -> Option<Step> {
        let when = match &definition.when {
            None => Some(None),
            Some(text) => self.condition(text, "when", None, Scope::ALL).map(Some),
        };
        let work = match &definition.kind {
            StepKind::Drop(texts) => self.filter(texts, "drop", when.as_ref(), false),
            StepKind::Keep(texts) => self.filter(texts, "keep", when.as_ref(), true),
            StepKind::Edit(texts) => self.edit(texts, when.as_ref()),
            StepKind::Redact(redaction) => self.redact(redaction, when.as_ref()),
            StepKind::Sample(sampling) => self.sample(sampling, when.as_ref()),
            StepKind::WatchTraces(tests) => self.watch(tests),
            StepKind::SampleTraces => Some(Work::SampleTraces),
            StepKind::Measure(measures) => self.measure(measures),
            StepKind::Relabel(rules) => Some(Work::Relabel { rules: rules.len() }),
        };
        let is_one = matches!(definition.kind, StepKind::Redact(_));
        let when = when?.map(|(_, condition)| condition);
        Some(Step { work: work?, when, on_error: definition.on_error, is_one })
    }

    /// Conditions of which each has its own context.
    fn filter(
        &mut self,
        texts: &[String],
        setting: &'static str,
        when: Option<&When>,
        keeps: bool,
    ) -> Option<Work> {
        let mut conditions = Vec::new();
        for (item, text) in texts.iter().enumerate() {
            let compiled = self.condition(text, setting, Some(item), Scope::ALL);
            let compiled = compiled.and_then(|(context, condition)| match self.lower(context, when) {
                Ok(None) => Some((context, condition)),
                Ok(Some(given)) => {
                    let scope = Scope { given: Some(given), ..Scope::ALL };
                    self.condition(text, setting, Some(item), scope)
                }
                Err(()) => None,
            });
            conditions.extend(compiled);
        }
        if keeps {
            self.refuse_levels(&conditions, setting);
        }
        (conditions.len() == texts.len()).then_some(Work::Filter { conditions, keeps })
    }

    /// Conditions of `keep` on a thing and on what encloses it would both have to hold, where one of them should suffice.
    fn refuse_levels(&mut self, conditions: &[(Context, Condition)], setting: &'static str) {
        let encloses = |outer: Context, inner: Context| outer != inner && outer.encloses(inner);
        for (item, (context, _)) in conditions.iter().enumerate() {
            if let Some((outer, _)) = conditions.iter().find(|(outer, _)| encloses(*outer, *context)) {
                let (outer, inner) = (outer.name(), context.name());
                self.problems.push(Problem {
                    at: Anchor { step: self.step, setting, item: Some(item), field: "", range: 0..0 },
                    severity: Severity::Error,
                    message: format!("one condition looks at a {outer}, and this one at a {inner} in it"),
                    help: Some(format!(
                        "join the two with `or`: conditions on the {outer} can be asked of each {inner}"
                    )),
                });
                return;
            }
        }
    }

    /// Spans and log records, as far as the step's condition is about them.
    fn sample(&mut self, sampling: &Sampling, when: Option<&When>) -> Option<Work> {
        let reaches = |item: Context| match when {
            Some(Some((condition, _))) => condition.encloses(item),
            _ => true,
        };
        let contexts: Vec<Context> =
            [Context::Span, Context::Log].into_iter().filter(|it| reaches(*it)).collect();
        if let (true, Some(Some((condition, _)))) = (contexts.is_empty(), when) {
            let at = Anchor { step: self.step, setting: "when", item: None, field: "", range: 0..0 };
            self.problems.push(Problem {
                at,
                severity: Severity::Error,
                message: format!(
                    "`when` looks at a {}, but spans and log records are sampled",
                    condition.name()
                ),
                help: Some("look at `span`, `log`, `scope` or `resource`".to_owned()),
            });
            return None;
        }
        Some(Work::Sample(Box::new(SampleStep::new(sampling, &mut self.literals)), contexts))
    }

    /// Tests of spans. A condition is compiled for spans or for their events, whatever it looks at.
    fn watch(&mut self, tests: &[SpanTest]) -> Option<Work> {
        let mut watch = WatchStep::default();
        // Patterns and conditions are counted over all tests.
        let mut item = 0;
        let mut is_right = true;
        for (number, test) in tests.iter().enumerate() {
            if let Err((pattern, error)) = watch.add(number, test, &mut self.literals) {
                let (item, range) = (Some(item + pattern), error.range);
                let at = Anchor { step: self.step, setting: "values", item, field: "", range };
                self.problems.push(Problem {
                    at,
                    severity: Severity::Error,
                    message: error.message,
                    help: None,
                });
                is_right = false;
            }
            if let SpanTest::StringAttribute { values, are_patterns: true, .. } = test {
                item += values.len();
            }
            let SpanTest::Condition { span, span_event } = test else { continue };
            for (texts, context) in [(span, Context::Span), (span_event, Context::SpanEvent)] {
                for text in texts {
                    let scope = Scope { given: Some(context), ..Scope::ALL };
                    match self.condition(text, "condition", Some(item), scope) {
                        Some((_, condition)) => watch.add_condition(number, context, condition),
                        None => is_right = false,
                    }
                    item += 1;
                }
            }
        }
        is_right.then(|| Work::WatchTraces(Box::new(watch)))
    }

    /// Conditions and expressions on items of each measure, whatever they look at.
    fn measure(&mut self, measures: &[Measure]) -> Option<Work> {
        let mut step = MeasureStep::default();
        // Texts are counted over all measures.
        let mut item = 0;
        let mut is_right = true;
        for measure in measures {
            let scope = Scope { given: Some(measure.of.context()), ..Scope::ALL };
            let mut conditions = Vec::new();
            for text in &measure.conditions {
                conditions.extend(self.condition(text, "conditions", Some(item), scope).map(|it| it.1));
                item += 1;
            }
            is_right &= conditions.len() == measure.conditions.len();
            let mut expression = |text: &str| {
                let compiled = self.expression(text, item, scope);
                item += 1;
                is_right &= compiled.is_some();
                compiled
            };
            let value = match &measure.value {
                MeasureValue::One => Some(CompiledValue::One),
                MeasureValue::Duration => Some(CompiledValue::Duration),
                MeasureValue::Expression(text) => expression(text).map(CompiledValue::Expression),
            };
            let count = match &measure.count {
                MeasureCount::One => Some(CompiledCount::One),
                MeasureCount::Adjusted => Some(CompiledCount::Adjusted),
                MeasureCount::Expression(text) => expression(text).map(CompiledCount::Expression),
            };
            if let (Some(value), Some(count)) = (value, count) {
                step.add(measure, conditions, (value, count), &mut self.literals);
            }
        }
        is_right.then(|| Work::Measure(Box::new(step)))
    }

    fn expression(&mut self, text: &str, item: usize, scope: Scope<'_>) -> Option<Expression> {
        match check::expressions(&[text], scope, &mut self.literals) {
            Ok(checked) => {
                checked.uses.iter().for_each(|uses| self.note_keys(uses, "value", Some(item)));
                self.report(checked.warnings, "value", Some(Some(item)));
                checked.programs.into_iter().next()
            }
            Err(found) => {
                self.report(found, "value", Some(Some(item)));
                None
            }
        }
    }

    /// Statements that share one context.
    fn edit(&mut self, texts: &[String], when: Option<&When>) -> Option<Work> {
        let mut scope = Scope::ALL;
        for _ in 0..2 {
            let Checked { context, programs, uses, warnings } =
                match check::statements(texts, scope, &mut self.literals) {
                    Ok(checked) => checked,
                    Err(found) => {
                        self.report(found, "edit", None);
                        return None;
                    }
                };
            match self.lower(context, when) {
                Ok(None) => {
                    for (item, uses) in uses.iter().enumerate() {
                        self.note_keys(uses, "edit", Some(item));
                    }
                    self.report(warnings, "edit", None);
                    return Some(Work::Edit(
                        programs.into_iter().map(|program| (context, program)).collect(),
                    ));
                }
                Ok(Some(given)) => scope = Scope { given: Some(given), ..Scope::ALL },
                Err(()) => return None,
            }
        }
        None
    }

    /// A statement for each place that may hold secrets.
    fn redact(&mut self, redaction: &Redaction, when: Option<&When>) -> Option<Work> {
        let mut is_right = true;
        for (field, patterns) in
            [("block_values", &redaction.block_values), ("block_keys", &redaction.block_keys)]
        {
            for (item, pattern) in patterns.iter().enumerate() {
                // Alone, since its place is that in the pattern.
                if let Err(error) = Regexes::default().compile(pattern) {
                    let range = error.range;
                    let at = Anchor { step: self.step, setting: "redact", item: Some(item), field, range };
                    let message = error.message;
                    self.problems.push(Problem { at, severity: Severity::Error, message, help: None });
                    is_right = false;
                }
            }
        }
        if !is_right {
            return None;
        }
        let mut statements = Vec::new();
        for (context, text) in redaction::statements(redaction) {
            if let Some(Some((condition, _))) = when
                && !(condition.encloses(context) || context.encloses(*condition))
            {
                // The condition is about another kind of item, which this place is not in.
                continue;
            }
            let given = self.lower(context, when).ok()?.unwrap_or(context);
            let scope = Scope { given: Some(given), ..Scope::ALL };
            match check::statements(&[text], scope, &mut self.literals) {
                Ok(checked) => {
                    statements.extend(checked.programs.into_iter().map(|program| (given, program)))
                }
                Err(found) => {
                    self.report(found, "redact", Some(None));
                    return None;
                }
            }
        }
        Some(Work::Edit(statements))
    }

    /// The context that the step's condition gives instead of `context`, because it is below that.
    fn lower(&mut self, context: Context, when: Option<&When>) -> Result<Option<Context>, ()> {
        let Some(Some((condition, _))) = when else { return Ok(None) };
        if condition.encloses(context) {
            return Ok(None);
        }
        if context.encloses(*condition) {
            return Ok(Some(*condition));
        }
        let (condition, context) = (condition.name(), context.name());
        self.problems.push(Problem {
            at: Anchor { step: self.step, setting: "when", item: None, field: "", range: 0..0 },
            severity: Severity::Error,
            message: format!("`when` looks at a {condition}, but the step works on a {context}"),
            help: Some("split the step, so that each step works on one kind of item".to_owned()),
        });
        Err(())
    }

    fn condition(
        &mut self,
        text: &str,
        setting: &'static str,
        item: Option<usize>,
        scope: Scope<'_>,
    ) -> Option<(Context, Condition)> {
        match check::conditions(&[text], scope, &mut self.literals) {
            Ok(checked) => {
                checked.uses.iter().for_each(|uses| self.note_keys(uses, setting, item));
                self.report(checked.warnings, setting, Some(item));
                checked.programs.into_iter().next().map(|condition| (checked.context, condition))
            }
            Err(found) => {
                self.report(found, setting, Some(item));
                None
            }
        }
    }

    /// Notes the attribute keys of a text.
    fn note_keys(&mut self, uses: &[Use], setting: &'static str, item: Option<usize>) {
        let at = Anchor { step: self.step, setting, item, field: "", range: 0..0 };
        self.keys.add(uses, &self.literals, &at);
    }

    /// Notes what was found in texts: in all of a setting, or in the one with this number.
    fn report(&mut self, found: Vec<Diagnostic>, setting: &'static str, item: Option<Option<usize>>) {
        for Diagnostic { item: number, severity, fault } in found {
            let item = item.unwrap_or(Some(number));
            self.problems.push(Problem {
                at: Anchor { step: self.step, setting, item, field: "", range: fault.range },
                severity,
                message: fault.message,
                help: fault.help,
            });
        }
    }
}
