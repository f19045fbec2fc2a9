//! Pipelines: steps that change, drop and sample what a sink takes.

use super::pipeline_steps::Steps;
use super::sinks::Sink;
use super::{Config, ConfiguredSampling, DeriveSink, SinkSample, SourcePipeline};
use crate::declare::{choices, settings};
use crate::presets::Parse;
use crate::setting::Sequence;
use crate::values::{Condition, Modulus, Name, Ratio, Statement, Text};
use tidegate_pipeline as engine;

settings! {
    /// Steps that items pass through on their way from the journal to a sink, or from a source to the journal.
    pub struct Pipeline {
        /// The steps, in order. Each has exactly one of `drop`, `keep`, `edit`, `relabel`, `sample` and `redact`.
        steps: Steps,
    }
}

settings! {
    /// One step of a pipeline.
    pub struct Step {
        /// Drops items that meet at least one of these OTTL conditions, as the OpenTelemetry Collector's filter processor
        /// does.
        drop: Option<Sequence<Condition>> = None,
        /// Keeps items that meet at least one of these OTTL conditions, and drops others of the same context.
        keep: Option<Sequence<Condition>> = None,
        /// Runs these OTTL statements on each item, as the OpenTelemetry Collector's transform processor does.
        edit: Option<Sequence<Statement>> = None,
        /// Prometheus relabeling of the series of metrics.
        relabel: Option<Sequence<RelabelRule>> = None,
        /// Another name for `relabel`: set only one of the two.
        write_relabel_configs: Option<Sequence<RelabelRule>> = None,
        /// Keeps a part of the items.
        sample: Option<Sample> = None,
        /// Masks and removes secrets in attributes and in the bodies of log records.
        redact: Option<Redact> = None,
        /// OTTL condition. The step leaves items that do not meet it unchanged.
        when: Option<Condition> = None,
        /// Treatment of items on which a statement or condition fails. Default: `ignore`; `drop` for `redact`, and for `relabel` in the
        /// pipeline of a source.
        on_error: Option<OnError> = None,
        /// Name of the step in metrics. Default: its position, counted from 1.
        name: Option<Name> = None,
    }
}

settings! {
    /// A part of the items, as the OpenTelemetry Collector's `probabilistic_sampler` selects it.
    pub struct Sample {
        /// Share of the items to keep.
        ratio: Ratio,
        /// The value that decides: `trace_id`, so all spans of a trace share one decision, or the name of an attribute.
        by: String = "trace_id".to_owned(),
        /// How the deciding value is mapped to a decision.
        mode: SampleMode = SampleMode::HashSeed,
        /// Seed of `hash_seed`. Gateways with the same seed and ratio decide alike.
        seed: u32 = 0,
        /// Attribute that decides for items without a trace id.
        fallback: Option<String> = None,
        /// Hexadecimal digits of the threshold that sampled items carry, from 1 to 14.
        precision: u32 = 4,
        /// Whether to drop items whose decision is unknown: no trace id, or a broken trace state.
        drop_unknown: bool = false,
        /// Attribute of log records with the least percentage to keep of them.
        priority: Option<String> = None,
    }
}

settings! {
    /// Secrets to mask or remove, in nested maps and lists too. Give at least one of `presets`, `block_values`, `block_keys` and
    /// `allow_keys`.
    pub struct Redact {
        /// Common sorts of secrets: parts of values that look like one are masked.
        presets: Vec<RedactPreset> = Vec::new(),
        /// Regular expressions: parts of values that match one are masked.
        block_values: Sequence<Text> = Sequence::from(Vec::new()),
        /// Regular expressions: the values of attributes whose name matches one are masked.
        block_keys: Sequence<Text> = Sequence::from(Vec::new()),
        /// The only attributes to keep. Default: all.
        allow_keys: Option<Sequence<Text>> = None,
        /// Attributes that stay as they are.
        ignore_keys: Sequence<Text> = Sequence::from(Vec::new()),
        /// The text that replaces a secret.
        mask: Text = Text::from("****"),
    }
}

choices! {
    /// A common sort of secret.
    pub enum RedactPreset is "a sort of secret" {
        /// Email addresses.
        Email = "email",
        /// Card numbers as Visa, Mastercard, Discover and American Express have them.
        CreditCard = "credit_card",
        /// IPv4 addresses.
        Ipv4 = "ipv4",
        /// JSON web tokens.
        Jwt = "jwt",
        /// `Bearer` with a token.
        BearerToken = "bearer_token",
        /// Ids of AWS access keys.
        AwsAccessKey = "aws_access_key",
        /// Social security numbers of the USA.
        UsSsn = "us_ssn",
        /// International bank account numbers.
        Iban = "iban",
    }
}

settings! {
    /// A relabeling rule, as Prometheus and vmagent have it.
    pub struct RelabelRule {
        /// Labels whose values are joined.
        source_labels: Option<Sequence<Text>> = None,
        /// Text between the joined values. Default: `;`.
        separator: Option<Text> = None,
        /// Expression that the whole joined value must match; several are alternatives. Default: `(.*)`.
        regex: Option<Sequence<Text>> = None,
        /// Modulus of `hashmod`.
        modulus: Option<Modulus> = None,
        /// Label to set.
        target_label: Option<Text> = None,
        /// New value, with `$1` for the first group of `regex`. Default: `$1`.
        replacement: Option<Text> = None,
        /// Action of the rule: `replace`, `keep`, `drop`, `keepequal`, `dropequal`, `hashmod`, `labelmap`, `labeldrop`,
        /// `labelkeep`, `lowercase`, `uppercase`, or an action of vmagent. Default: `replace`.
        action: Option<Text> = None,
        /// Series selectors of vmagent, for example `{job="a"}`: the rule applies to series that match one of them.
        r#if: Option<Sequence<Text>> = None,
    }
}

choices! {
    /// Treatment of items on which a statement or condition fails.
    pub enum OnError is "a treatment of errors" {
        /// The item stays as it was before the statement. The failure is counted and logged.
        Ignore = "ignore",
        /// As `ignore`, without a line in the log.
        Silent = "silent",
        /// The item is dropped, so data that could not be redacted is not delivered.
        Drop = "drop",
    }
}

choices! {
    /// How sampling decides.
    pub enum SampleMode is "a mode of sampling" {
        /// 14 bits of a hash with a seed.
        HashSeed = "hash_seed",
        /// 56 bits of randomness, relative to the sampling that was done before.
        Proportional = "proportional",
        /// 56 bits of randomness, down to the same ratio whatever was done before.
        Equalizing = "equalizing",
    }
}

/// The pipeline that the items of a source or sink pass through. For a sink: its `when` or `otherwise`, its `pipeline`, and its own relabeling.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConfiguredPipeline {
    /// All steps.
    pub definition: engine::Definition,
    /// So many of the first steps select what the sink takes: what they drop was never the sink's.
    pub routing: usize,
    /// For each step the pipeline that it is in and its name, as metrics have them.
    pub labels: Vec<StepLabel>,
    /// How traces are sampled: the step behind those that select drops the others.
    pub sampling: Option<ConfiguredSampling>,
}

/// The name of a step in metrics and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLabel {
    /// The pipeline; empty for a setting of the sink itself.
    pub pipeline: String,
    /// The name of the step, its position, or the setting of the sink.
    pub step: String,
}

/// The resource attribute that names the input of records, where the input has a `parse` of its own.
pub const INPUT_ATTRIBUTE: &str = "tidegate.input";

/// A step that applies under one more condition.
fn narrowed(step: engine::StepDefinition, condition: &str) -> engine::StepDefinition {
    let when = match &step.when {
        Some(when) => format!("{condition} and ({when})"),
        None => condition.to_owned(),
    };
    engine::StepDefinition { when: Some(when), ..step }
}

impl Config {
    /// The pipeline of the sink `name`, if it has steps.
    pub fn pipeline_of(&self, name: &Name) -> Option<ConfiguredPipeline> {
        let route = self.sinks.get(name)?.route();
        let mut steps = ConfiguredPipeline::default();
        if !route.when.is_empty() {
            steps.push(selecting(engine::StepKind::Keep(texts(route.when))), "", "when".to_owned());
        }
        if route.otherwise {
            let others = self.sinks.iter().filter(|(other, _)| *other != name);
            let taken: Vec<String> = others.flat_map(|(_, sink)| texts(sink.route().when)).collect();
            if !taken.is_empty() {
                steps.push(selecting(engine::StepKind::Drop(taken)), "", "otherwise".to_owned());
            }
        }
        steps.routing = steps.labels.len();
        // What is wrong with it is reported elsewhere.
        steps.sampling = route.sample.and_then(|sample| sample.tail.configured().ok());
        if steps.sampling.is_some() {
            steps.push(selecting(engine::StepKind::SampleTraces), "", "sample".to_owned());
        }
        if let Some(pipeline) = route.pipeline {
            self.add_steps(pipeline, &mut steps);
        }
        if !route.relabel.is_empty() {
            let rules = route.relabel.iter().map(RelabelRule::definition).collect();
            steps.push(selecting(engine::StepKind::Relabel(rules)), "", "write_relabel_configs".to_owned());
        }
        if let Some(derivation) = route.derive.and_then(DeriveSink::derivation) {
            steps.push(selecting(engine::StepKind::Measure(derivation.measures)), "", "derive".to_owned());
        }
        (!steps.labels.is_empty()).then_some(steps)
    }

    /// The pipeline of the source `name`, if it has steps: those of `parse`, then those of `pipeline`. A series on which `relabel` fails is
    /// dropped there unless the step says otherwise: what it should have removed must not reach the disk.
    pub fn pipeline_of_source(&self, name: &str) -> Option<ConfiguredPipeline> {
        let (_, SourcePipeline { pipeline, parse, .. }) =
            self.sources.pipelines().into_iter().find(|(source, _)| *source == name)?;
        let mut steps = ConfiguredPipeline::default();
        for (step, definition) in self.parsing_of(name, *parse) {
            steps.push(definition, "", step);
        }
        let parsing = steps.labels.len();
        if let Some(pipeline) = pipeline {
            self.add_steps(pipeline, &mut steps);
            let written = self.pipelines.get(pipeline).into_iter().flat_map(|pipeline| pipeline.steps.iter());
            let written = written.filter(|step| !step.operations().is_empty());
            for (step, written) in steps.definition.steps.iter_mut().skip(parsing).zip(written) {
                if written.on_error.is_none() && matches!(step.kind, engine::StepKind::Relabel(_)) {
                    step.on_error = engine::ErrorMode::Drop;
                }
            }
        }
        (!steps.labels.is_empty()).then_some(steps)
    }

    /// The steps that parse the lines of the source `name`, with their labels: those of its inputs, then those of `parse` for the
    /// others.
    fn parsing_of(&self, name: &str, parse: Option<Parse>) -> Vec<(String, engine::StepDefinition)> {
        let inputs = self.sources.file.inputs.iter().filter(|_| name == "file");
        let mut steps = Vec::new();
        for (input, own) in inputs.filter_map(|(input, settings)| Some((input, settings.parse?))) {
            let is_of_input = format!("resource.attributes[\"{INPUT_ATTRIBUTE}\"] == \"{input}\"");
            for (step, definition) in own.steps() {
                steps.push((format!("inputs.{input}.parse.{step}"), narrowed(definition, &is_of_input)));
            }
        }
        let is_other =
            (!steps.is_empty()).then(|| format!("resource.attributes[\"{INPUT_ATTRIBUTE}\"] == nil"));
        for (step, definition) in parse.into_iter().flat_map(Parse::steps) {
            let definition = match &is_other {
                Some(is_other) => narrowed(definition, is_other),
                None => definition,
            };
            steps.push((format!("parse.{step}"), definition));
        }
        steps
    }

    /// The sources that name the pipeline `name`.
    pub fn sources_of(&self, name: &Name) -> impl Iterator<Item = &'static str> {
        let sources = self.sources.pipelines().into_iter();
        sources.filter(move |(_, own)| own.pipeline.as_ref() == Some(name)).map(|(source, _)| source)
    }

    /// The sinks that name the pipeline `name`.
    pub fn sinks_of(&self, name: &Name) -> impl Iterator<Item = &Name> {
        self.sinks.iter().filter(move |(_, sink)| sink.route().pipeline == Some(name)).map(|(sink, _)| sink)
    }

    /// The pipeline `name` on its own; `None` if there is none.
    pub fn pipeline(&self, name: &Name) -> Option<ConfiguredPipeline> {
        let mut steps = ConfiguredPipeline::default();
        self.pipelines.get(name)?;
        self.add_steps(name, &mut steps);
        Some(steps)
    }

    /// The steps of the pipeline `name` as they stand in the file: with comments, and with references to variables and files that
    /// are not replaced. `None` where there is no such pipeline, or its text was too long to be kept.
    pub fn steps_as_written(&self, name: &Name) -> Option<&str> {
        self.pipelines.get(name)?.steps.as_written()
    }

    fn add_steps(&self, name: &Name, steps: &mut ConfiguredPipeline) {
        for (position, step) in self.pipelines.get(name).iter().flat_map(|it| it.steps.iter().enumerate()) {
            if let Some(definition) = step.definition() {
                let label = step.name.as_ref().map_or_else(|| (position + 1).to_string(), Name::to_string);
                steps.push(definition, name.as_str(), label);
            }
        }
    }
}

impl Pipeline {
    /// A pipeline of one step, which applies these rules.
    pub(crate) fn relabeling(rules: Sequence<RelabelRule>) -> Pipeline {
        Pipeline { steps: Steps::relabeling(rules) }
    }
}

impl ConfiguredPipeline {
    fn push(&mut self, step: engine::StepDefinition, pipeline: &str, label: String) {
        self.definition.steps.push(step);
        self.labels.push(StepLabel { pipeline: pipeline.to_owned(), step: label });
    }
}

/// The part of a sink's settings that says what it takes, and in which form.
#[derive(Clone, Copy, Default)]
pub(crate) struct Route<'a> {
    pub(crate) pipeline: Option<&'a Name>,
    pub(crate) when: &'a [Condition],
    pub(crate) otherwise: bool,
    pub(crate) sample: Option<&'a SinkSample>,
    pub(crate) relabel: &'a [RelabelRule],
    pub(crate) derive: Option<&'a DeriveSink>,
}

impl Sink {
    pub(crate) fn route(&self) -> Route<'_> {
        let settings = self.settings();
        let routing = settings.routing();
        Route {
            pipeline: settings.pipeline(),
            when: routing.and_then(|routing| routing.when.as_deref()).unwrap_or_default(),
            otherwise: routing.is_some_and(|routing| routing.otherwise),
            sample: settings.sample(),
            relabel: settings.relabel(),
            derive: settings.derive(),
        }
    }
}

impl Step {
    /// The operations that are set, by their settings.
    pub(crate) fn operations(&self) -> Vec<(&'static str, engine::StepKind)> {
        let rules = |rules: &Sequence<RelabelRule>| {
            engine::StepKind::Relabel(rules.iter().map(RelabelRule::definition).collect())
        };
        let statements = |statements: &Sequence<Statement>| {
            engine::StepKind::Edit(statements.iter().map(|it| it.as_str().to_owned()).collect())
        };
        let conditions = |conditions: &Option<Sequence<Condition>>| conditions.as_deref().map(texts);
        [
            ("drop", conditions(&self.drop).map(engine::StepKind::Drop)),
            ("keep", conditions(&self.keep).map(engine::StepKind::Keep)),
            ("edit", self.edit.as_ref().map(statements)),
            ("relabel", self.relabel.as_ref().map(rules)),
            ("write_relabel_configs", self.write_relabel_configs.as_ref().map(rules)),
            ("sample", self.sample.as_ref().map(|sample| engine::StepKind::Sample(sample.definition()))),
            ("redact", self.redact.as_ref().map(|redact| engine::StepKind::Redact(redact.definition()))),
        ]
        .into_iter()
        .filter_map(|(setting, kind)| Some((setting, kind?)))
        .collect()
    }

    /// The step as the engine has it; `None` without an operation.
    pub(crate) fn definition(&self) -> Option<engine::StepDefinition> {
        let (_, kind) = self.operations().into_iter().next()?;
        Some(engine::StepDefinition {
            when: self.when.as_ref().map(|condition| condition.as_str().to_owned()),
            on_error: match (self.on_error, &kind) {
                (Some(OnError::Drop), _) | (None, engine::StepKind::Redact(_)) => engine::ErrorMode::Drop,
                (Some(OnError::Silent), _) => engine::ErrorMode::Silent,
                (Some(OnError::Ignore) | None, _) => engine::ErrorMode::Ignore,
            },
            kind,
        })
    }
}

impl Sample {
    fn definition(&self) -> engine::Sampling {
        engine::Sampling {
            ratio: self.ratio.get(),
            by: match (self.by.as_str(), &self.fallback) {
                ("trace_id", None) => engine::SampleBy::TraceId,
                ("trace_id", Some(attribute)) => engine::SampleBy::TraceIdOrAttribute(attribute.clone()),
                (attribute, _) => engine::SampleBy::Attribute(attribute.to_owned()),
            },
            mode: match self.mode {
                SampleMode::HashSeed => engine::SampleMode::HashSeed(self.seed),
                SampleMode::Proportional => engine::SampleMode::Proportional,
                SampleMode::Equalizing => engine::SampleMode::Equalizing,
            },
            precision: u8::try_from(self.precision.clamp(1, 14)).unwrap_or(4),
            drops_unknown: self.drop_unknown,
            priority: self.priority.clone(),
        }
    }
}

impl Redact {
    fn definition(&self) -> engine::Redaction {
        let texts = |texts: &Sequence<Text>| texts.iter().map(|text| text.as_str().to_owned()).collect();
        engine::Redaction {
            mask: self.mask.as_str().to_owned(),
            presets: self.presets.iter().map(|preset| preset.definition()).collect(),
            block_values: texts(&self.block_values),
            block_keys: texts(&self.block_keys),
            allow_keys: self.allow_keys.as_ref().map(texts),
            ignore_keys: texts(&self.ignore_keys),
        }
    }
}

impl RedactPreset {
    const fn definition(self) -> engine::Preset {
        match self {
            RedactPreset::Email => engine::Preset::Email,
            RedactPreset::CreditCard => engine::Preset::CreditCard,
            RedactPreset::Ipv4 => engine::Preset::Ipv4,
            RedactPreset::Jwt => engine::Preset::Jwt,
            RedactPreset::BearerToken => engine::Preset::BearerToken,
            RedactPreset::AwsAccessKey => engine::Preset::AwsAccessKey,
            RedactPreset::UsSsn => engine::Preset::UsSsn,
            RedactPreset::Iban => engine::Preset::Iban,
        }
    }
}

impl RelabelRule {
    pub(crate) fn definition(&self) -> engine::RuleDefinition {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.as_str().to_owned());
        let list = |list: &Option<Sequence<Text>>| {
            list.iter().flatten().map(|text| text.as_str().to_owned()).collect()
        };
        engine::RuleDefinition {
            source_labels: list(&self.source_labels),
            separator: text(&self.separator),
            target_label: text(&self.target_label),
            regex: list(&self.regex),
            modulus: self.modulus.map(Modulus::get),
            replacement: text(&self.replacement),
            action: text(&self.action),
            condition: list(&self.r#if),
        }
    }
}

pub(crate) fn selecting(kind: engine::StepKind) -> engine::StepDefinition {
    engine::StepDefinition { when: None, on_error: engine::ErrorMode::Ignore, kind }
}

pub(crate) fn texts(conditions: &[Condition]) -> Vec<String> {
    conditions.iter().map(|condition| condition.as_str().to_owned()).collect()
}
