//! Functions of large maps do work in proportion to them, not to their square.

use super::large::evaluated;
use crate::any_value::{write_element, write_named};
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
