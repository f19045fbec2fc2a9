//! The reference for users, as Markdown.

use crate::example::example;
use crate::model::Config;
use crate::setting::{Field, PlainValue, ScalarShape, Section, Shape};

const INTRODUCTION: &str = include_str!("markdown/introduction.md");

/// The reference of all settings: an introduction, a table for each group, the notations of values, and
/// the commented example.
pub fn markdown() -> String {
    let fields = Config::fields();
    let mut out = String::from(INTRODUCTION);
    out.push_str("\n## Settings\n\n");
    let (groups, singles): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| !matches!(field.shape, Shape::Scalar(_) | Shape::List(_)));
    table(&rows("", singles.into_iter()), &mut out);
    for field in groups {
        out.push_str(&format!("\n### `{}`\n\n{}\n", field.name, flow(&field.doc)));
        group(&field.shape, &mut out);
    }
    out.push_str("\n## Values\n\n");
    let mut notations = Vec::new();
    collect_notations(&fields, &mut notations);
    for scalar in notations {
        out.push_str(&format!("- **{}**: {}\n", capital(kind_of(scalar)), scalar.notation));
    }
    out.push_str("\n## Everything\n\nEvery setting with its default. ");
    out.push_str("Settings in comments have no default, or are absent by default.\n\n```yaml\n");
    out.push_str(&example());
    out.push_str("```\n");
    out
}

fn group(shape: &Shape, out: &mut String) {
    match shape {
        Shape::Section(fields) => {
            out.push('\n');
            table(&rows("", fields.iter()), out);
        }
        Shape::Map { value, .. } => group(value, out),
        Shape::Kinds(kinds) => {
            for kind in kinds {
                out.push_str(&format!("\n#### `type: {}`\n\n{}\n", kind.name, flow(&kind.doc)));
                if !kind.fields.is_empty() {
                    out.push('\n');
                    table(&rows("", kind.fields.iter()), out);
                }
            }
        }
        Shape::Scalar(_) | Shape::List(_) | Shape::Sequence(_) => {}
    }
}

/// One row for each setting; those of groups inside under their dotted names.
fn rows<'f>(prefix: &str, fields: impl Iterator<Item = &'f Field>) -> Vec<[String; 4]> {
    let mut all = Vec::new();
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        match &field.shape {
            Shape::Section(inner) => all.extend(rows(&format!("{name}."), inner.iter())),
            Shape::Sequence(entry) => {
                all.push([format!("`{name}`"), notation(&field.shape), default(field), explained(field)]);
                if let Shape::Section(inner) = &**entry {
                    all.extend(rows(&format!("{name}[]."), inner.iter()));
                }
            }
            shape => all.push([format!("`{name}`"), notation(shape), default(field), explained(field)]),
        }
    }
    all
}

fn table(rows: &[[String; 4]], out: &mut String) {
    out.push_str("| setting | value | default | |\n|---|---|---|---|\n");
    for [name, notation, default, doc] in rows {
        out.push_str(&format!("| {name} | {notation} | {default} | {doc} |\n"));
    }
}

fn notation(shape: &Shape) -> String {
    match shape {
        Shape::Scalar(scalar) => words(scalar),
        Shape::List(each) => format!("list of {}", words(each)),
        Shape::Sequence(entry) => format!("list of {}", notation(entry)),
        Shape::Map { key, value } => format!("{}: {}", kind_of(key), notation(value)),
        Shape::Section(_) | Shape::Kinds(_) => "settings".to_owned(),
    }
}

fn words(scalar: &ScalarShape) -> String {
    if scalar.choices.is_empty() {
        return kind_of(scalar).to_owned();
    }
    let words: Vec<String> = scalar.choices.iter().map(|(word, _)| format!("`{word}`")).collect();
    words.join(", ")
}

fn default(field: &Field) -> String {
    match &field.default {
        None => "**required**".to_owned(),
        Some(PlainValue::Text(text)) => format!("`{text}`"),
        Some(PlainValue::List(items)) => format!("`[{}]`", items.join(", ")),
        Some(PlainValue::Unset | PlainValue::Map(_) | PlainValue::Sequence(_)) => String::new(),
    }
}

fn explained(field: &Field) -> String {
    let mut text = flow(&field.doc);
    if let Some((low, high)) = &field.range {
        text.push_str(&format!(" From `{low}` to `{high}`."));
    }
    if let Shape::Scalar(scalar) | Shape::List(scalar) = &field.shape {
        for (word, meaning) in &scalar.choices {
            text.push_str(&format!("<br>`{word}`: {}", flow(meaning)));
        }
    }
    text.replace('|', "\\|")
}

fn collect_notations<'f>(fields: &'f [Field], found: &mut Vec<&'f ScalarShape>) {
    fn of<'f>(shape: &'f Shape, found: &mut Vec<&'f ScalarShape>) {
        match shape {
            Shape::Scalar(scalar) | Shape::List(scalar) => one(scalar, found),
            Shape::Section(fields) => collect_notations(fields, found),
            Shape::Sequence(entry) => of(entry, found),
            Shape::Map { key, value } => {
                one(key, found);
                of(value, found);
            }
            Shape::Kinds(kinds) => kinds.iter().for_each(|kind| collect_notations(&kind.fields, found)),
        }
    }
    fn one<'f>(scalar: &'f ScalarShape, found: &mut Vec<&'f ScalarShape>) {
        if !scalar.notation.is_empty() && !found.iter().any(|known| known.what == scalar.what) {
            found.push(scalar);
        }
    }
    fields.iter().for_each(|field| of(&field.shape, found));
}

/// "a size" without its article.
fn kind_of(scalar: &ScalarShape) -> &'static str {
    match scalar.what.split_once(' ') {
        Some(("a" | "an", kind)) => kind,
        _ => scalar.what,
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn flow(doc: &str) -> String {
    doc.replace('\n', " ")
}
