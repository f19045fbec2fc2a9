//! A record of plain maps, for tests of the machine and the functions.

use crate::any_value;
use crate::machine::{Fields, Machine, Spare};
use crate::memory::{Memory, Slice};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Expression, Key, Path};
use crate::table::MapTable;
use crate::value::{Failure, Value};

/// A log record with attributes, a cache and a body; its trace state stands for fields of text.
pub(crate) struct TestRecord {
    pub(crate) attributes: MapTable,
    pub(crate) cache: MapTable,
    pub(crate) body: Value,
    pub(crate) trace_state: Value,
}

impl Fields for TestRecord {
    fn get(&mut self, _: &mut Memory<'_>, _: Context, field: Field) -> Result<Value, Failure> {
        match field {
            Field::Body => Ok(self.body),
            Field::TraceState => Ok(self.trace_state),
            Field::Time => Ok(Value::Time(5)),
            _ => Err(Failure::Invalid("no such field in tests")),
        }
    }

    fn set(&mut self, _: &mut Memory<'_>, _: Context, field: Field, value: Value) -> Result<(), Failure> {
        match field {
            Field::Body => self.body = value,
            Field::TraceState => self.trace_state = value,
            _ => return Err(Failure::Invalid("no such field in tests")),
        }
        Ok(())
    }

    fn table(&mut self, _: &mut Memory<'_>, _: Context, field: Field) -> Result<&mut MapTable, Failure> {
        if field == Field::Cache { Ok(&mut self.cache) } else { Ok(&mut self.attributes) }
    }
}

/// A record without anything.
pub(crate) fn empty_record() -> TestRecord {
    TestRecord {
        attributes: MapTable::new(),
        cache: MapTable::new(),
        body: Value::Nil,
        trace_state: Value::Text(Slice::EMPTY),
    }
}

/// A value as tests write and compare it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plain {
    Nil,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Map(Vec<(String, Plain)>),
    List(Vec<Plain>),
    Other(Value),
}

impl From<&str> for Plain {
    fn from(text: &str) -> Plain {
        Plain::Text(text.into())
    }
}

impl From<i64> for Plain {
    fn from(number: i64) -> Plain {
        Plain::Int(number)
    }
}

impl From<f64> for Plain {
    fn from(number: f64) -> Plain {
        Plain::Double(number)
    }
}

impl From<bool> for Plain {
    fn from(value: bool) -> Plain {
        Plain::Bool(value)
    }
}

/// A map of plain values.
pub(crate) fn map<const N: usize>(pairs: [(&str, Plain); N]) -> Plain {
    Plain::Map(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// A list of plain values.
pub(crate) fn list<const N: usize>(elements: [Plain; N]) -> Plain {
    Plain::List(elements.into())
}

/// Stores a plain value in the memory.
pub(crate) fn store(memory: &mut Memory<'_>, plain: &Plain) -> Value {
    match plain {
        Plain::Nil => Value::Nil,
        Plain::Bool(value) => Value::Bool(*value),
        Plain::Int(number) => Value::Int(*number),
        Plain::Double(number) => Value::Double(*number),
        Plain::Text(text) => Value::Text(memory.store(text.as_bytes()).unwrap()),
        Plain::Bytes(bytes) => Value::Bytes(memory.store(bytes).unwrap()),
        Plain::Map(pairs) => {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| (memory.store(key.as_bytes()).unwrap(), store(memory, value)))
                .collect();
            let mark = memory.mark();
            pairs.iter().for_each(|(key, value)| any_value::write_pair(1, *key, *value, memory).unwrap());
            Value::Map(memory.since(mark))
        }
        Plain::List(elements) => {
            let elements: Vec<_> = elements.iter().map(|element| store(memory, element)).collect();
            let mark = memory.mark();
            elements.iter().for_each(|element| any_value::write_element(*element, memory).unwrap());
            Value::List(memory.since(mark))
        }
        Plain::Other(value) => *value,
    }
}

/// Reads a value back.
pub(crate) fn plain(memory: &Memory<'_>, value: Value) -> Plain {
    let text = |slice| String::from_utf8(memory.get(slice).to_vec()).unwrap();
    match value {
        Value::Nil => Plain::Nil,
        Value::Bool(value) => Plain::Bool(value),
        Value::Int(number) => Plain::Int(number),
        Value::Double(number) => Plain::Double(number),
        Value::Text(slice) => Plain::Text(text(slice)),
        Value::Bytes(slice) => Plain::Bytes(memory.get(slice).to_vec()),
        Value::Map(content) => {
            let mut pairs = any_value::Pairs::new(content);
            Plain::Map(
                std::iter::from_fn(|| pairs.next(memory))
                    .map(|pair| (text(pair.key), plain(memory, pair.value)))
                    .collect(),
            )
        }
        Value::List(content) => {
            let mut elements = any_value::Elements::new(content);
            Plain::List(
                std::iter::from_fn(|| elements.next(memory)).map(|element| plain(memory, element)).collect(),
            )
        }
        other => Plain::Other(other),
    }
}

/// Runs `work` on a machine whose record has these attributes. Returns its result and the attributes behind it.
pub(crate) fn with_record<R>(attributes: &Plain, work: impl FnOnce(&mut Machine<'_>) -> R) -> (R, Plain) {
    let mut temporary = vec![0; 1 << 20];
    let mut memory = Memory::new(b"", b"", &mut temporary);
    let mut record = empty_record();
    let Value::Map(content) = store(&mut memory, attributes) else { panic!("no map") };
    record.attributes.load(&memory, content, 1).unwrap();
    let mut spare = Spare::new();
    let mut regexes = caches();
    let mut machine = Machine {
        memory,
        record: &mut record,
        regexes: &mut regexes,
        spare: &mut spare,
        now_ns: 1_700_000_000_000_000_000,
        traces: None,
        measurements: None,
    };
    let result = work(&mut machine);
    let Machine { memory, record, .. } = &mut machine;
    let table = record.table(memory, Context::Log, Field::Attributes).unwrap();
    let map = table.to_map(memory).unwrap();
    let left = plain(memory, Value::Map(map));
    (result, left)
}

fn caches() -> crate::regex::Caches {
    crate::regex::Caches::default()
}

/// A path to attributes and what is in them.
pub(crate) fn path(memory: &mut Memory<'_>, field: Field, keys: &[Plain]) -> Path {
    let keys = keys
        .iter()
        .map(|key| match key {
            Plain::Int(at) => Key::Index(*at),
            Plain::Text(text) => Key::Name(memory.store(text.as_bytes()).unwrap()),
            other => Key::Dynamic(Box::new(Expression::Literal(store(memory, other)))),
        })
        .collect();
    Path { context: Context::Log, field, keys }
}
