//! Transforms: what each does to the events of a way.

mod remap;

use super::Vector;
use super::components::Component;
use super::vocabulary::Vocabulary;
use super::vrl;
use crate::import::document::Map;
use crate::import::group::{FileReader, Group};
use crate::import::steps::{Step, StepKind};
use crate::yaml::{Node, Value};
use remap::{Program, Remap, program, program_of, remap};
use tidegate_pipeline as engine;

/// The most outputs of a transform: each looks at the conditions of those before it.
const MOST_ROUTES: usize = 100;

/// The effect of a transform.
pub(super) enum Action {
    Remap(Remap),
    Filter(Condition),
    Route(Routes),
    Sample(Sample),
    /// Nothing that matters here; or nothing, with a note.
    Pass,
    /// It makes something else of the events.
    End,
    /// It does what has no counterpart, and may be what removes secrets: the result is refused.
    Refuse,
}

/// A condition.
#[derive(Clone)]
pub(super) enum Condition {
    Program(Program),
    /// None that is known here, with the reason.
    Unknown(Program, &'static str),
}

/// Outputs with their conditions.
pub(super) struct Routes {
    pub(super) conditions: Vec<(String, Condition)>,
    /// Whether an event takes the first output alone.
    is_exclusive: bool,
}

/// A share of the events.
pub(super) struct Sample {
    settings: Map,
    exclude: Option<Condition>,
    key: Option<String>,
}

/// The outcome of a transform on a way.
#[derive(Debug, Clone)]
pub(super) struct Transformed {
    pub(super) steps: Vec<Step>,
    /// A condition that could stand at the sink, if nothing comes before it.
    pub(super) condition: Option<String>,
    pub(super) vocabulary: Vocabulary,
}

const PASSING: &str = "left out, so its events go on unchanged";

impl Vector<'_> {
    /// Reads a transform.
    pub(super) fn action(&mut self, index: usize, reader: &mut FileReader<'_, '_>) -> Option<Action> {
        let component = self.all.get_mut(index)?;
        let mut group = component.group.take()?;
        let action = read(component, &mut group, reader);
        match action {
            Action::End | Action::Pass | Action::Refuse => {
                group.take_all();
            }
            _ => {}
        }
        group.finish(reader);
        Some(action)
    }
}

fn read(component: &Component<'_>, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Action {
    let reason = match component.kind.as_str() {
        "remap" => return remap(component, group, reader),
        "filter" => {
            let condition = condition(group, "condition", reader);
            return match condition {
                Some(condition) => Action::Filter(condition),
                None => {
                    let message = format!("`{}` has no `condition`", component.path());
                    reader.error(&component.entry.key_at, message, "add `condition`, an expression in VRL");
                    Action::Pass
                }
            };
        }
        "route" | "swimlanes" => return route(group, reader),
        "exclusive_route" => return exclusive_route(group, reader),
        "sample" => return sample(component, group, reader),
        "lua" => {
            let message = "a Lua program has no counterpart: write it as `edit`. Until then `tidegate check` refuses the result, \
                           because the program may be what removes secrets";
            component.note(message, reader);
            return Action::Refuse;
        }
        "log_to_metric" | "metric_to_log" | "trace_to_log" => {
            component.note("left out: tidegate does not derive telemetry from other telemetry", reader);
            return Action::End;
        }
        "dedupe" => {
            "no step remembers what it has seen; documents for Elasticsearch have an `_id` that retries keep"
        }
        "throttle" => "`limits` bounds what each client and tenant may send",
        "reduce" => "records are not joined; for lines that belong together set `multiline` of the source",
        "aggregate" | "incremental_to_absolute" => {
            "points are not added up; a sink of type prometheus_remote_write can accumulate deltas (`otlp.deltas`)"
        }
        "tag_cardinality_limit" => "series are not counted; `limits` and tenants bound them",
        "aws_ec2_metadata" => "tidegate does not look up metadata; set attributes with `edit`",
        "window" => "no step keeps events back",
        _ => "there is no step for it",
    };
    component.note(format!("{PASSING}: {reason}"), reader);
    Action::Pass
}

/// A condition: an expression in VRL, or a group with its language.
fn condition(group: &mut Group<'_>, key: &str, reader: &mut FileReader<'_, '_>) -> Option<Condition> {
    let path = group.path_of(key);
    let entry = group.take(key)?;
    condition_of(&entry.node, path, reader)
}

fn condition_of(node: &Node, path: String, reader: &mut FileReader<'_, '_>) -> Option<Condition> {
    if let Value::Scalar(_) = &node.value {
        return program_of(node, path).map(Condition::Program);
    }
    let mut group = reader.group(node, &path)?;
    let kind = group.text("type", reader).map_or_else(|| "vrl".to_owned(), |kind| kind.value);
    let source = program(&mut group, "source", reader);
    group.lacks(&[("runtime", "not needed")], reader);
    group.finish(reader);
    let placed = Program { text: kind.clone(), at: node.at.clone(), path };
    Some(match (kind.as_str(), source) {
        ("vrl", Some(source)) => Condition::Program(source),
        ("datadog_search", Some(source)) => {
            Condition::Unknown(source, "queries of Datadog have no counterpart")
        }
        _ => Condition::Unknown(placed, "conditions of this type have no counterpart"),
    })
}

fn route(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Action {
    let mut conditions = Vec::new();
    for key in ["route", "lanes"] {
        let Some(mut routes) = group.group(key, reader) else { continue };
        for entry in routes.take_all() {
            let path = routes.path_of(&entry.key);
            if conditions.len() >= MOST_ROUTES || entry.key.len() > MOST_ROUTES {
                let message = format!("there are more than {MOST_ROUTES} routes, or this name is as long");
                reader.error(&entry.key_at, message, "convert a part of the configuration");
                break;
            }
            conditions.extend(
                condition_of(&entry.node, path, reader).map(|condition| (entry.key.clone(), condition)),
            );
        }
    }
    group.lacks(
        &[("reroute_unmatched", "not needed: what takes no output goes to sinks that name it")],
        reader,
    );
    Action::Route(Routes { conditions, is_exclusive: false })
}

fn exclusive_route(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Action {
    let mut conditions = Vec::new();
    let path = group.path_of("routes");
    for node in group.items("routes", reader) {
        let Some(mut item) = reader.group(node, &path) else { continue };
        let name = item.text("name", reader);
        let condition = condition(&mut item, "condition", reader);
        item.finish(reader);
        match (name, condition) {
            _ if conditions.len() >= MOST_ROUTES => {
                let message = format!("there are more than {MOST_ROUTES} routes");
                reader.error(&node.at, message, "convert a part of the configuration");
                break;
            }
            (Some(name), Some(condition)) => conditions.push((name.value, condition)),
            _ => reader.error(&node.at, "a route has a `name` and a `condition`", "add what is missing"),
        }
    }
    Action::Route(Routes { conditions, is_exclusive: true })
}

fn sample(component: &Component<'_>, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Action {
    let mut settings = Map::default();
    let rate = group.number("rate", reader).filter(|rate| *rate > 0);
    match (rate, group.text("ratio", reader)) {
        (_, Some(ratio)) => settings.set("ratio", ratio.value),
        (Some(rate), None) => settings.set("ratio", share(rate)),
        (None, None) => {
            let message = format!("`{}` has no `rate`", component.path());
            reader.error(&component.entry.key_at, message, "add `rate: 10` to keep one event of ten");
        }
    }
    let key = group.text("key_field", reader).map(|key| key.value);
    let exclude = condition(group, "exclude", reader);
    group.lacks(
        &[
            ("group_by", "left out: one ratio is for all records"),
            ("sample_rate_key", "left out: `sampling.threshold` tells the share"),
        ],
        reader,
    );
    if key.is_none() {
        let message = "tidegate decides by the trace id, so records without one are all kept: name an attribute that differs \
                       from record to record in `by`";
        component.note(message, reader);
    }
    Action::Sample(Sample { settings, exclude, key })
}

/// One of `rate`, as a share.
fn share(rate: u64) -> String {
    let share = format!("{:.9}", 1.0 / rate as f64);
    share.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Action {
    /// Its steps for events with these fields on the way to one of its outputs; none if no event takes it.
    pub(super) fn apply(
        &self,
        component: &Component<'_>,
        output: &str,
        vocabulary: &Vocabulary,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<Transformed> {
        let unchanged = |steps| Transformed { steps, condition: None, vocabulary: vocabulary.clone() };
        let name = component.name;
        match self {
            Action::Pass => Some(unchanged(Vec::new())),
            Action::End => None,
            Action::Refuse => {
                let statement = format!("{}(\"{name}\")", component.kind);
                Some(unchanged(vec![Step::new(name, StepKind::Edit(vec![statement]))]))
            }
            Action::Filter(condition) => {
                let condition = condition.render(vocabulary, reader);
                Some(unchanged(vec![Step::keep(name, condition)]))
            }
            Action::Sample(sample) => Some(unchanged(vec![sample.step(name, vocabulary, reader)])),
            Action::Remap(_) if output == "dropped" => {
                component.note("left out: records that fail have no output of their own", reader);
                None
            }
            Action::Remap(remap) => Some(remap.transformed(name, vocabulary, reader)),
            Action::Route(routes) => {
                let condition = routes.condition(output, vocabulary, reader)?;
                Some(Transformed {
                    steps: Vec::new(),
                    condition: Some(condition),
                    vocabulary: vocabulary.clone(),
                })
            }
        }
    }
}

impl Routes {
    /// The condition of an output.
    fn condition(
        &self,
        output: &str,
        vocabulary: &Vocabulary,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<String> {
        let mut nots: Vec<String> = Vec::new();
        for (name, condition) in &self.conditions {
            let condition = condition.render(vocabulary, reader);
            if name == output {
                if !self.is_exclusive || nots.is_empty() {
                    return Some(condition);
                }
                return Some(format!("({condition}) and {}", nots.join(" and ")));
            }
            nots.push(format!("not ({condition})"));
        }
        (output == "_unmatched").then(|| if nots.is_empty() { "true".to_owned() } else { nots.join(" and ") })
    }
}

impl Sample {
    fn step(&self, name: &str, vocabulary: &Vocabulary, reader: &mut FileReader<'_, '_>) -> Step {
        let mut settings = self.settings.clone();
        if let Some(key) = &self.key {
            let attribute = vrl::field(key).and_then(|path| vocabulary.place(&path).ok());
            let own = attribute.and_then(|place| match place.parent {
                Some((parent, vrl::Segment::Field(key))) if !parent.contains('[') => Some(key),
                _ => None,
            });
            settings.set("by", own.as_deref().unwrap_or(key));
        }
        let mut step = Step::new(name, StepKind::Sample(settings));
        step.when =
            self.exclude.as_ref().map(|exclude| format!("not ({})", exclude.render(vocabulary, reader)));
        step
    }
}

impl Condition {
    /// The condition in OTTL; what has none stays as it is, with a note.
    fn render(&self, vocabulary: &Vocabulary, reader: &mut FileReader<'_, '_>) -> String {
        let (program, rendered) = match self {
            Condition::Program(program) => (program, vrl::condition(&program.text, vocabulary)),
            Condition::Unknown(program, reason) => (program, Err((*reason).to_owned())),
        };
        let refusal = |text: &str| crate::import::steps::refused(text.to_owned(), engine::StepKind::Drop);
        let reason = match rendered {
            Ok(condition) => match refusal(&condition) {
                None => return condition,
                Some((_, reason)) => reason,
            },
            Err(reason) => reason,
        };
        let text: Vec<&str> = program.text.split_whitespace().collect();
        let text = crate::import::references::vector(&text.join(" ")).0;
        let message = format!("the condition stays as it is, so `tidegate check` refuses it: {reason}");
        reader.note(&program.at, &program.path, message);
        match refusal(&text.replace("${", "{")) {
            Some(_) => text,
            None => format!("VRL {text}"),
        }
    }
}
