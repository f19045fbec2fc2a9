//! Functions of large maps do work in proportion to them, not to their square.

use super::large::evaluated;
use crate::any_value::{write_element, write_named};
use crate::key_index::KeyFilter;
use crate::memory::{Memory, READS};
use crate::value::Value;

/// How often the memory is read when `text` is evaluated, with a body of a map `m` and a list `k` of its keys, in another
/// order. All keys are of one length.
fn reads(text: &str, len: u32) -> u64 {
    let write = |memory: &mut Memory<'_>| {
        let keys: Vec<_> =
            (0..len).map(|number| memory.store(format!("{number:08x}").as_bytes()).unwrap()).collect();
        let mark = memory.mark();
        for key in &keys {
            let name = memory.get(*key).to_vec();
            write_named(&name, Value::Text(*key), memory).unwrap();
        }
        let map = Value::Map(memory.since(mark));
        let mark = memory.mark();
        keys.iter().rev().for_each(|key| write_element(Value::Text(*key), memory).unwrap());
        let list = Value::List(memory.since(mark));
        let body = memory.build(|memory| {
            write_named(b"m", map, memory)?;
            write_named(b"k", list, memory)
        });
        READS.set(0);
        Value::Map(body.unwrap())
    };
    evaluated(text, write, |_, value| assert!(value.is_ok(), "{text}: {value:?}"));
    READS.get()
}

#[test]
fn editors_of_large_maps_are_not_quadratic() {
    let merge = "merge_maps(attributes, body[\"m\"], \"upsert\")";
    for editor in [
        "merge_maps(attributes, body[\"m\"], \"update\")",
        "flatten(attributes)",
        "flatten(attributes, \"p\", 5, true)",
        "replace_all_patterns(attributes, \"key\", \"^0\", \"x\")",
        "keep_keys(attributes, body[\"k\"])",
        "redact(attributes, \"*\", \"none\", allowed_keys=body[\"k\"])",
        "redact(attributes, \"*\", \"none\", ignored_keys=body[\"k\"])",
    ] {
        let text = format!("[{merge}, {editor}]");
        let (few, many) = (reads(&text, 500), reads(&text, 4_000));
        assert!(many < 12 * few, "{editor}: {few} and {many} reads");
        assert!(many < 60 * 4_000, "{editor}: {many} reads");
    }
}

/// Keys that a filter lets through, since they have the ends of another key, are not compared with all entries of a large map.
#[test]
fn merging_json_into_a_large_map_is_not_quadratic() {
    let write = |memory: &mut Memory<'_>| {
        let map = memory.build(|memory| {
            (0..3_800).try_for_each(|number| {
                write_named(format!("0000{number:04}0000").as_bytes(), Value::Int(number), memory)
            })
        });
        // No two of them are the same to the filter, so they are not read again.
        let mut filter = KeyFilter::default();
        let names = (0..).map(|number| format!("{number:04}----{number:04}"));
        let names = names.filter(|name| !filter.add(name.as_bytes())).take(200);
        let members: Vec<_> = names.map(|name| format!("\"{name}\":1")).collect();
        let json = memory.store(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        let body = memory.build(|memory| {
            write_named(b"m", Value::Map(map.unwrap()), memory)?;
            write_named(b"j", Value::Text(json), memory)
        });
        READS.set(0);
        Value::Map(body.unwrap())
    };
    let merge = |source: &str| format!("merge_maps(attributes, {source}, \"upsert\")");
    let text = format!("[{}, {}]", merge("body[\"m\"]"), merge("ParseJSON(body[\"j\"])"));
    evaluated(&text, write, |_, value| assert!(value.is_ok(), "{value:?}"));
    assert!(READS.get() < 60 * 4_000, "{} reads", READS.get());
}
