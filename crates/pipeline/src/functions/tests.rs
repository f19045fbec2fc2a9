//! Every function against values that Go printed.
//!
//! A line of `cases/*.tsv` is an expression, a tab, and what `pkg/ottl` v1.3.1 makes of it: a value, `error` when it fails on
//! the record, `refused` when it does not compile. `!` before it marks a difference that is meant; the comment above says why.

mod deep;
pub(super) mod expression;
mod large;
mod work;

use crate::any_value::{Elements, Pairs};
use crate::machine::{Machine, Spare};
use crate::memory::{Memory, Slice};
use crate::regex::Regexes;
use crate::table::MapTable;
use crate::testing::TestRecord;
use crate::value::Value;
use std::fmt::Write as _;
use tidegate_wire::json;

/// Evaluates `text`; `refused` or `error` where it does not compile or fails.
fn evaluate(text: &str) -> String {
    let mut regexes = Regexes::default();
    let (expression, constants) = match expression::compile(text, &mut regexes) {
        Ok(compiled) => compiled,
        Err(message) => {
            assert!(!message.contains("no such function"), "{text}: {message}");
            return "refused".into();
        }
    };
    let mut temporary = vec![0; 1 << 16];
    let mut record = TestRecord {
        attributes: MapTable::new(),
        cache: MapTable::new(),
        body: Value::Nil,
        trace_state: Value::Text(Slice::EMPTY),
    };
    let mut machine = Machine {
        memory: Memory::new(b"", &constants, &mut temporary),
        record: &mut record,
        regexes: &mut regexes.caches(),
        spare: &mut Spare::new(),
        now_ns: 1_700_000_000_000_000_000,
        traces: None,
        measurements: None,
    };
    match machine.value(&expression) {
        Ok(value) => {
            let mut out = String::new();
            render(&machine.memory, value, &mut out);
            out
        }
        Err(_) => "error".into(),
    }
}

/// The notation of the cases: JSON with sorted keys, and words for what JSON does not have.
pub(super) fn render(memory: &Memory<'_>, value: Value, out: &mut String) {
    let hex = |slice: Slice, out: &mut String| {
        memory.get(slice).iter().for_each(|byte| write!(out, "{byte:02x}").unwrap());
    };
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(value) => write!(out, "{value}").unwrap(),
        Value::Int(value) => write!(out, "{value}").unwrap(),
        Value::Double(value) => write!(out, "{value:?}").unwrap(),
        Value::Text(text) => quote(memory.get(text), out),
        Value::Bytes(bytes) => {
            out.push_str("bytes ");
            hex(bytes, out);
        }
        Value::Id(bytes) => {
            out.push_str("id ");
            hex(bytes, out);
        }
        Value::Time(time) => write!(out, "time {time}").unwrap(),
        Value::Duration(duration) => write!(out, "duration {duration}").unwrap(),
        Value::List(list) => {
            let mut elements = Elements::new(list);
            out.push('[');
            while let Some(element) = elements.next(memory) {
                if !out.ends_with('[') {
                    out.push_str(", ");
                }
                render(memory, element, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            let mut pairs = Pairs::new(map);
            let mut entries: Vec<_> = std::iter::from_fn(|| pairs.next(memory))
                .map(|pair| {
                    let (mut key, mut value) = (String::new(), String::new());
                    quote(memory.get(pair.key), &mut key);
                    render(memory, pair.value, &mut value);
                    format!("{key}: {value}")
                })
                .collect();
            entries.sort();
            write!(out, "{{{}}}", entries.join(", ")).unwrap();
        }
    }
}

fn quote(text: &[u8], out: &mut String) {
    str::from_utf8(text).expect("texts are UTF-8");
    let Ok(()) = json::string(text, |piece| {
        out.push_str(&String::from_utf8_lossy(piece));
        Ok::<_, std::convert::Infallible>(())
    });
}

/// Runs the cases of a file, and shows all that differ.
fn check(cases: &str) {
    let mut wrong = String::new();
    let mut count = 0;
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').expect("a tab before the result");
        let expected = expected.strip_prefix('!').unwrap_or(expected);
        count += 1;
        let found = evaluate(text);
        // The checker evaluates what has only literals; here it fails when it runs.
        if found != expected && (found.as_str(), expected) != ("error", "refused") {
            writeln!(wrong, "{text}\n  expected {expected}\n  found    {found}").unwrap();
        }
    }
    assert!(count > 0);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn texts() {
    check(include_str!("cases/text.tsv"));
}

#[test]
fn hashes() {
    check(include_str!("cases/hash.tsv"));
}

#[test]
fn numbers() {
    check(include_str!("cases/number.tsv"));
}

#[test]
fn json_and_patterns() {
    check(include_str!("cases/json.tsv"));
}

#[test]
fn times() {
    check(include_str!("cases/time.tsv"));
}

#[test]
fn encodings() {
    check(include_str!("cases/encoding.tsv"));
}

#[test]
fn collections() {
    check(include_str!("cases/collection.tsv"));
}

#[test]
fn pairs_as_texts() {
    check(include_str!("cases/key_value.tsv"));
}

#[test]
fn orders() {
    check(include_str!("cases/order.tsv"));
}

#[test]
fn layouts_of_times() {
    check(include_str!("cases/layout.tsv"));
}

#[test]
fn formats() {
    check(include_str!("cases/format.tsv"));
}

#[test]
fn rows_of_csv() {
    check(include_str!("cases/csv.tsv"));
}

#[test]
fn networks() {
    check(include_str!("cases/network.tsv"));
}

#[test]
fn severities() {
    check(include_str!("cases/severity.tsv"));
}

#[test]
fn grok() {
    check(include_str!("cases/grok.tsv"));
}

#[test]
fn urls() {
    check(include_str!("cases/url.tsv"));
}

#[test]
fn log_formats() {
    check(include_str!("cases/log_formats.tsv"));
}
