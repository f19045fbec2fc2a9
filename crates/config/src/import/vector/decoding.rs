//! The decoding of a source: what makes fields of its lines before any transform sees them.

use super::components::Component;
use super::vocabulary::{Origin, Vocabulary};
use super::vrl;
use crate::import::group::FileReader;
use crate::import::steps::{Step, StepKind};
use crate::yaml::Value;

/// The part of an event that a line becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Codec {
    /// The message of an event.
    Line,
    /// All of its fields.
    Json,
    Syslog,
    /// Something that has no counterpart.
    Other(String),
}

/// The fields of a source's events, and the step that makes them.
pub(super) fn decoded(
    component: &Component<'_>,
    origin: Origin,
    reader: &mut FileReader<'_, '_>,
) -> (Vocabulary, Option<Step>) {
    let plain = Vocabulary::new(origin);
    match codec(component) {
        Codec::Line => (plain, None),
        Codec::Syslog => (Vocabulary::new(Origin::Syslog), None),
        Codec::Json => {
            let message = "a first step makes attributes of the lines and drops lines that are no JSON object: send one object a line, \
                           no list of them";
            component.note(message, reader);
            let program = ". = parse_json!(.message)";
            let translated = vrl::translate(program, &vrl::parse(program), &plain);
            let lines = translated.lines.into_iter().map(|line| line.text).collect();
            let mut step = Step::new(component.name, StepKind::Edit(lines));
            step.on_error = Some("drop");
            (translated.vocabulary, Some(step))
        }
        Codec::Other(name) => {
            let message = format!(
                "the codec `{name}` has no counterpart, so transforms would not find the fields that they remove: until you \
                 write a step for it, `tidegate check` refuses the result"
            );
            component.note(message, reader);
            let statement = format!("decoding({})", crate::import::ottl::literal(&name));
            (plain, Some(Step::new(component.name, StepKind::Edit(vec![statement]))))
        }
    }
}

fn codec(component: &Component<'_>) -> Codec {
    if !matches!(component.kind.as_str(), "http_server" | "http" | "socket") {
        return Codec::Line;
    }
    let settings = &component.entry.node.value;
    let decoding = member(settings, "decoding").and_then(|decoding| member(decoding, "codec"));
    let name = match decoding.or_else(|| member(settings, "encoding")) {
        Some(Value::Scalar(name)) => name.as_str(),
        _ => return Codec::Line,
    };
    match name {
        "bytes" | "text" | "binary" => Codec::Line,
        "json" | "ndjson" => Codec::Json,
        // The listener for it takes the lines of both.
        "syslog" if component.kind == "socket" => Codec::Syslog,
        other => Codec::Other(other.to_owned()),
    }
}

fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Mapping(entries) => {
            entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node.value)
        }
        _ => None,
    }
}
