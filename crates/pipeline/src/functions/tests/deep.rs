//! Values that nest more than a stack takes: a program's threads have small ones.

use super::expression;
use crate::machine::{Machine, Spare};
use crate::memory::{Memory, Slice, Space};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::Comparison;
use crate::regex::Regexes;
use crate::testing::empty_record;
use crate::value::{Failure, Value};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::proto::write;

/// The nesting that requests may have, and that of what statements store.
const ACCEPTED: usize = 1_000;
const STORED: usize = crate::any_value::DEEPEST;

/// The stack of the threads that programs run on.
const STACK: usize = 256 << 10;

/// The content of `levels` maps or lists in each other, around an integer that differs from others in nothing else.
fn nested(levels: usize, is_map: bool, number: u8) -> Vec<u8> {
    let mut any = vec![0x18, number];
    let mut content = Vec::new();
    for _ in 0..levels {
        content = if is_map { field(1, &[field(1, b"k"), field(2, &any)].concat()) } else { field(1, &any) };
        any = field(if is_map { 6 } else { 5 }, &content);
    }
    content
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut room = vec![0; content.len() + 16];
    let mut out = SliceOutput::new(&mut room);
    write::bytes(&mut out, number, content).unwrap();
    let len = out.len();
    room.truncate(len);
    room
}

/// Runs `text` on a record whose attributes and body are `content`.
fn run(text: &str, content: &[u8], is_map: bool) -> Result<(), Failure> {
    let mut regexes = Regexes::default();
    let (compiled, constants) = expression::compile(text, &mut regexes).unwrap();
    let mut temporary = vec![0; 1 << 20];
    let mut record = empty_record();
    let whole = Slice { start: 0, len: content.len() as u32, space: Space::Body };
    let value = if is_map { Value::Map(whole) } else { Value::List(whole) };
    record.body = value;
    let mut machine = Machine {
        memory: Memory::new(content, &constants, &mut temporary),
        record: &mut record,
        regexes: &mut regexes.caches(),
        spare: &mut Spare::new(),
        now_ns: 0,
        traces: None,
        measurements: None,
    };
    let table = machine.record.table(&mut machine.memory, Context::Log, Field::Attributes).unwrap();
    let key = Slice { len: 1, ..Slice::EMPTY };
    table.set(&machine.memory, key, value).unwrap();
    machine.value(&compiled).map(drop)
}

fn on_a_small_stack(check: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(check).unwrap().join().unwrap();
}

#[test]
fn what_goes_into_a_value_fails_where_that_nests_too_deeply() {
    on_a_small_stack(|| {
        for is_map in [true, false] {
            for text in ["String(body)", "flatten(attributes)", "redact(body, \"*\", \"x\")"] {
                let at = |levels| run(text, &nested(levels, is_map, 1), is_map);
                assert!(at(40).is_ok(), "{text}");
                assert!(matches!(at(ACCEPTED), Err(Failure::Invalid(_))), "{text}");
            }
        }
    });
}

#[test]
fn what_statements_store_they_can_write() {
    on_a_small_stack(|| {
        for is_map in [true, false] {
            for text in [
                "String(body)",
                "redact(body, \"*\", \"1\")",
                "redact(body, \"*\", \"2\")",
                "set(attributes[\"a\"], body)",
            ] {
                assert_eq!(run(text, &nested(STORED - 1, is_map, 1), is_map), Ok(()), "{text}");
            }
        }
    });
}

#[test]
fn comparisons_end_at_any_nesting() {
    on_a_small_stack(|| {
        for is_map in [true, false] {
            let [one, two] = [1, 2].map(|number| nested(ACCEPTED, is_map, number));
            let body = [&one[..], &one, &two].concat();
            let len = one.len();
            let at = |number| Slice { start: (number * len) as u32, len: len as u32, space: Space::Body };
            let machine = Machine {
                memory: Memory::new(&body, b"", &mut []),
                record: &mut empty_record(),
                regexes: &mut Regexes::default().caches(),
                spare: &mut Spare::new(),
                now_ns: 0,
                traces: None,
                measurements: None,
            };
            let is_equal = |left, right| {
                let value = |number| if is_map { Value::Map(at(number)) } else { Value::List(at(number)) };
                let (left, right) = (value(left), value(right));
                machine.compare(Comparison::Equal, left, right)
            };
            assert!(is_equal(0, 1));
            assert!(!is_equal(0, 2));
        }
    });
}
