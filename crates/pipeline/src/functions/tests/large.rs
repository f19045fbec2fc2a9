//! Values so large that a function that is quadratic in them would take minutes.

use super::super::members::{Known, Names};
use super::expression;
use crate::any_value::{Elements, Pairs, count, write_element, write_named};
use crate::machine::{Machine, Spare};
use crate::memory::Memory;
use crate::ottl::field::{Context, Field};
use crate::regex::Regexes;
use crate::testing::empty_record;
use crate::value::{Failure, Value};

const MANY: u32 = 160_000;

/// Runs `text` over the body that `write` writes, and gives `check` the result.
pub(super) fn evaluated<R>(
    text: &str,
    write: impl FnOnce(&mut Memory<'_>) -> Value,
    check: impl FnOnce(&Memory<'_>, Result<Value, Failure>) -> R,
) -> R {
    let mut regexes = Regexes::default();
    let (compiled, constants) = expression::compile(text, &mut regexes).unwrap();
    let mut temporary = vec![0; 64 << 20];
    let mut memory = Memory::new(b"", &constants, &mut temporary);
    let mut record = empty_record();
    record.body = write(&mut memory);
    let mut machine = Machine {
        memory,
        record: &mut record,
        regexes: &mut regexes.caches(),
        spare: &mut Spare::new(),
        now_ns: 0,
        traces: None,
        measurements: None,
    };
    // Editors have no value: what they leave is that of the body.
    let value = machine.value(&compiled).and_then(|value| match value {
        Value::Nil => machine.record.get(&mut machine.memory, Context::Log, Field::Body),
        value => Ok(value),
    });
    check(&machine.memory, value)
}

/// The pairs of a map whose values are texts, in their order.
fn texts(memory: &Memory<'_>, map: Result<Value, Failure>) -> Vec<(String, String)> {
    let Ok(Value::Map(map)) = map else { panic!("{map:?}") };
    let text = |slice| String::from_utf8(memory.get(slice).to_vec()).unwrap();
    let mut pairs = Pairs::new(map);
    std::iter::from_fn(|| pairs.next(memory))
        .map(|pair| {
            let Value::Text(value) = pair.value else { panic!("{:?}", pair.value) };
            (text(pair.key), text(value))
        })
        .collect()
}

fn body(text: &str) -> impl FnOnce(&mut Memory<'_>) -> Value {
    |memory| Value::Text(memory.store(text.as_bytes()).unwrap())
}

#[test]
fn a_text_of_many_pairs_becomes_a_map() {
    let text: String = (0..MANY).map(|number| format!("{:x}={number} ", number % (MANY - 1_000))).collect();
    evaluated("ParseKeyValue(body)", body(&text), |memory, map| {
        let expected: Vec<_> = (1_000..MANY)
            .map(|number| (format!("{:x}", number % (MANY - 1_000)), number.to_string()))
            .collect();
        assert!(texts(memory, map) == expected);
    });
}

#[test]
fn of_members_and_columns_with_one_name_the_last_is_kept_in_large_maps_too() {
    let members: String = (0..3_000).map(|number| format!("\"{}\":\"{number}\",", number % 2_000)).collect();
    let columns: String = (0..3_000).map(|number| format!("{},", number % 2_000)).collect();
    let values: String = (0..3_000).map(|number| format!("{number},")).collect();
    let expected: Vec<_> =
        (1_000..3_000).map(|number| ((number % 2_000).to_string(), number.to_string())).collect();
    // A name with an escape is the same name.
    let json = format!("{{{members}\"\\u0078\":\"1\",\"x\":\"2\"}}");
    evaluated("ParseJSON(body)", body(&json), |memory, map| {
        let (last, rest) = (("x".to_owned(), "2".to_owned()), texts(memory, map));
        assert_eq!(rest.split_last().unwrap(), (&last, &expected[..]));
    });
    let csv = format!("ParseCSV(body, \"{columns}x\")");
    evaluated(&csv, body(&format!("{values}2")), |memory, map| {
        let (last, rest) = (("x".to_owned(), "2".to_owned()), texts(memory, map));
        assert_eq!(rest.split_last().unwrap(), (&last, &expected[..]));
    });
}

#[test]
fn a_list_of_many_maps_becomes_a_map() {
    let write = |memory: &mut Memory<'_>| {
        let mut list = Vec::new();
        for number in 0..MANY {
            let mark = memory.mark();
            let key = memory.store(format!("{:x}", number % (MANY - 1)).as_bytes()).unwrap();
            let content = memory.build(|memory| write_named(b"k", Value::Text(key), memory)).unwrap();
            let element = memory.build(|memory| write_element(Value::Map(content), memory)).unwrap();
            list.extend_from_slice(memory.get(element));
            memory.release(mark);
        }
        Value::List(memory.store(&list).unwrap())
    };
    evaluated("SliceToMap(body, [\"k\"], [\"k\"])", write, |memory, map| {
        let map = texts(memory, map);
        assert_eq!(map.len(), MANY as usize - 1);
        assert_eq!(map.last().unwrap(), &("0".to_owned(), "0".to_owned()));
    });
}

/// Each search goes through all entries, so that the number of them is bounded.
#[test]
fn only_small_maps_are_searched_for_a_key() {
    let mut names = Names::default();
    let searches = (0..10_000_u32).filter(|key| names.add(&key.to_le_bytes()) == Known::Maybe);
    assert!(searches.count() <= 64);
}

#[test]
fn large_lists_and_maps_are_redacted() {
    for secret in [b"plain".as_slice(), b"my secret"] {
        let write = |memory: &mut Memory<'_>| {
            let texts = [b"plain".as_slice(), secret].map(|text| memory.store(text).unwrap());
            let mark = memory.mark();
            for number in 0..10_000 {
                let text = Value::Text(texts[usize::from(number == 9_000)]);
                write_element(text, memory).unwrap();
            }
            let list = Value::List(memory.since(mark));
            let mark = memory.mark();
            for number in 0..10_000 {
                let value = if number == 9_000 { list } else { Value::Int(number) };
                write_named(number.to_string().as_bytes(), value, memory).unwrap();
            }
            let map = Value::Map(memory.since(mark));
            Value::Map(memory.build(|memory| write_named(b"m", map, memory)).unwrap())
        };
        evaluated("redact(body[\"m\"], \"***\", \"secret\")", write, |memory, body| {
            let Ok(Value::Map(body)) = body else { panic!("{body:?}") };
            let Some(Value::Map(map)) = Pairs::new(body).next(memory).map(|pair| pair.value) else {
                panic!()
            };
            assert_eq!(count(memory, map), 10_000);
            let mut pairs = Pairs::new(map);
            let pair = std::iter::from_fn(|| pairs.next(memory)).nth(9_000).unwrap();
            let Value::List(list) = pair.value else { panic!("{pair:?}") };
            assert_eq!(count(memory, list), 10_000);
            let mut elements = Elements::new(list);
            let element = std::iter::from_fn(|| elements.next(memory)).nth(9_000);
            let Some(Value::Text(text)) = element else { panic!("{element:?}") };
            let expected: &[u8] = if secret == b"plain" { b"plain" } else { b"my ***" };
            assert_eq!(memory.get(text), expected);
        });
    }
}

/// Each match of the first pattern reads the rest of the text; those of the second do not.
#[test]
fn replacing_is_not_quadratic() {
    let text = "a".repeat(1 << 20);
    for editor in ["replace_pattern(body, PATTERN, \"\")", "redact(body, \"*\", PATTERN)"] {
        let replaced = |pattern: &str| {
            evaluated(&editor.replace("PATTERN", pattern), body(&text), |_, value| value.map(drop))
        };
        assert_eq!(replaced("\"a(.*z)?\""), Err(Failure::TooLarge), "{editor}");
        assert_eq!(replaced("\"a(bcd)?\""), Ok(()), "{editor}");
    }
}

/// Fields with one name leave one value for each line, so that the output bounds nothing.
#[test]
fn fields_of_an_extended_log_that_repeat_are_bounded() {
    let parsed = |fields: usize, lines: usize| {
        let text = format!("#Version: 1\n#Fields:{}\n{}", " a".repeat(fields), "x\n".repeat(lines));
        evaluated("ParseELF(body)", body(&text), |_, value| value.map(drop))
    };
    assert_eq!(parsed(4_097, 1), Err(Failure::TooLarge));
    assert_eq!(parsed(4_096, 2), Ok(()));
    assert_eq!(parsed(4_000, 40_000), Err(Failure::TooLarge));
    assert_eq!(parsed(2, 40_000), Ok(()));
}
