//! The whole configuration as a commented file.

use crate::effective::line;
use crate::model::Config;
use crate::setting::{Field, Kind, PlainValue, Section, Shape};

/// The longest line of a comment.
const WIDEST: usize = 100;

/// A file with every setting, its documentation as a comment and its default as its value. Settings that
/// have no default, and sinks that there are none of by default, are there but commented out: `#name:`,
/// with no blank after the `#`.
pub fn example() -> String {
    let mut out = String::new();
    let config = Config::default();
    group(&Config::fields(), &config.plain_entries(), &CommentState { indent: 0, live: true }, &mut out);
    out
}

struct CommentState {
    indent: usize,
    /// Whether the lines count, or are commented out.
    live: bool,
}

impl CommentState {
    fn deeper(&self, live: bool) -> CommentState {
        CommentState { indent: self.indent + 2, live: self.live && live }
    }
}

fn group(fields: &[Field], values: &[(String, PlainValue)], place: &CommentState, out: &mut String) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 && place.indent == 0 {
            out.push('\n');
        }
        comment(&described(field), place, out);
        let value =
            values.iter().find(|(name, _)| name == field.name).map_or(&PlainValue::Unset, |(_, value)| value);
        match within(field) {
            Some(sample) if matches!(value, PlainValue::Unset) => {
                emit(&format!("{}: {sample}", field.name), &CommentState { live: false, ..*place }, out);
            }
            _ => setting(field.name, &field.shape, value, place, out),
        }
    }
}

/// The highest number of a setting, where the usual example is above it.
fn within(field: &Field) -> Option<u64> {
    let (Shape::Scalar(scalar), Some((_, high))) = (&field.shape, &field.range) else { return None };
    let (usual, high) = (scalar.example.parse::<u64>().ok()?, high.parse().ok()?);
    (usual > high).then_some(high)
}

fn setting(name: &str, shape: &Shape, value: &PlainValue, place: &CommentState, out: &mut String) {
    let sample = match (value, shape) {
        (PlainValue::Unset, Shape::Scalar(scalar)) => Some(scalar.example.to_owned()),
        (PlainValue::Unset, Shape::List(scalar)) => Some(format!("[{}]", scalar.example)),
        (PlainValue::Unset, Shape::Sequence(entry)) => Some(match &**entry {
            Shape::Scalar(scalar) => format!("[{}]", scalar.example),
            _ => "[]".to_owned(),
        }),
        _ => None,
    };
    if let Some(sample) = sample {
        emit(&format!("{name}: {sample}"), &CommentState { live: false, ..*place }, out);
        return;
    }
    if let (PlainValue::Unset, Shape::Section(fields)) = (value, shape) {
        let away = CommentState { live: false, ..*place };
        emit(&format!("{name}:"), &away, out);
        return group(fields, &defaults(fields), &away.deeper(false), out);
    }
    emit(&line(name, value).unwrap_or_else(|| format!("{name}:")), place, out);
    let entries: &[(String, PlainValue)] = if let PlainValue::Map(entries) = value { entries } else { &[] };
    match shape {
        Shape::Section(fields) => group(fields, entries, &place.deeper(true), out),
        Shape::Map { value: inner, .. } => map(inner, entries, &place.deeper(true), out),
        Shape::Scalar(_) | Shape::List(_) | Shape::Sequence(_) | Shape::Kinds(_) => {}
    }
}

/// The entries that a map of kinds has, and one commented out for every kind that is not among them.
fn map(shape: &Shape, entries: &[(String, PlainValue)], place: &CommentState, out: &mut String) {
    let Shape::Kinds(kinds) = shape else { return };
    for kind in kinds {
        let written = entries.iter().find_map(|(name, value)| match value {
            PlainValue::Map(values) if type_of(values) == Some(kind.name) => {
                Some((name.as_str(), values.as_slice()))
            }
            _ => None,
        });
        comment(&kind.doc, place, out);
        match written {
            Some((name, values)) => entry(name, kind, values, place, out),
            None => {
                let away = CommentState { live: false, ..*place };
                entry(kind.name, kind, &defaults(&kind.fields), &away, out);
            }
        }
    }
}

fn defaults(fields: &[Field]) -> Vec<(String, PlainValue)> {
    let default = |field: &Field| field.default.clone().unwrap_or(PlainValue::Unset);
    fields.iter().map(|field| (field.name.to_owned(), default(field))).collect()
}

fn entry(name: &str, kind: &Kind, values: &[(String, PlainValue)], place: &CommentState, out: &mut String) {
    emit(&format!("{name}:"), place, out);
    emit(&format!("type: {}", kind.name), &place.deeper(true), out);
    group(&kind.fields, values, &place.deeper(true), out);
}

fn type_of(values: &[(String, PlainValue)]) -> Option<&str> {
    values.iter().find_map(|(name, value)| match value {
        PlainValue::Text(kind) if name == "type" => Some(kind.as_str()),
        _ => None,
    })
}

fn described(field: &Field) -> String {
    let mut doc = field.doc.clone();
    if let Some((low, high)) = &field.range {
        doc.push_str(&format!(" From {low} to {high}."));
    }
    if let Shape::Scalar(scalar) | Shape::List(scalar) = &field.shape {
        for (word, meaning) in &scalar.choices {
            doc.push_str(&format!("\n`{word}`: {}", meaning.replace('\n', " ")));
        }
    }
    doc
}

fn emit(text: &str, place: &CommentState, out: &mut String) {
    let hash = if place.live { "" } else { "#" };
    out.push_str(&format!("{:indent$}{hash}{text}\n", "", indent = place.indent));
}

fn comment(doc: &str, place: &CommentState, out: &mut String) {
    let indent = place.indent;
    let mut line = String::new();
    // A line that starts with a word to choose starts anew; the others flow.
    let words = doc.replace("\n`", " \n`");
    for word in words.split(' ').flat_map(|part| part.split_inclusive('\n')) {
        let fresh = word.ends_with('\n') && word.trim().is_empty();
        let word = word.trim();
        if fresh || line.chars().count() + word.chars().count() + indent + 3 > WIDEST {
            push_comment(&line, indent, out);
            line.clear();
        }
        if !word.is_empty() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    push_comment(&line, indent, out);
}

fn push_comment(line: &str, indent: usize, out: &mut String) {
    if !line.is_empty() {
        out.push_str(&format!("{:indent$}# {line}\n", ""));
    }
}
