//! The tables are the specification's schema: name by name, number by number, type by type.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::DESCRIPTORS;

use super::super::schema::{self, Kind, Message, Rule};
use crate::proto::{Key, Reader};

/// A field as a descriptor has it.
#[derive(Debug, PartialEq, Eq)]
struct Described {
    number: u64,
    type_number: u64,
    type_name: String,
    is_repeated: bool,
    has_presence: bool,
    choice: Option<u64>,
}

type Messages = BTreeMap<String, BTreeMap<String, Described>>;

/// Fields that only profiles use.
const OF_PROFILES: [&str; 2] = ["keyStrindex", "stringValueStrindex"];

#[test]
fn the_tables_are_the_schema() {
    let mut messages = Messages::new();
    each(DESCRIPTORS, |key, file| {
        if key.field == 1 {
            let mut package = String::new();
            each(file, |key, value| match key.field {
                2 => package = text(value),
                4 => message(&package, value, &mut messages),
                _ => {}
            });
        }
    });
    let mut seen = BTreeSet::new();
    compare("trace.v1.ExportTraceServiceRequest", &schema::TRACES, &messages, &mut seen);
    compare("logs.v1.ExportLogsServiceRequest", &schema::LOGS, &messages, &mut seen);
    compare("metrics.v1.ExportMetricsServiceRequest", &schema::METRICS, &messages, &mut seen);
    assert!(seen.len() > 25, "{seen:?}");
}

fn compare(name: &str, table: &'static Message, messages: &Messages, seen: &mut BTreeSet<String>) {
    if !seen.insert(name.to_owned()) {
        return;
    }
    let (_, described) = messages.iter().find(|(full, _)| full.ends_with(&format!(".{name}"))).unwrap();
    let names: BTreeSet<_> = table.fields.iter().map(|field| field.name).collect();
    let expected: BTreeSet<_> =
        described.keys().map(String::as_str).filter(|name| !OF_PROFILES.contains(name)).collect();
    assert_eq!(names, expected, "{name}");
    for field in table.fields {
        let it = &described[field.name];
        let place = format!("{name}.{}: {it:?}", field.name);
        assert_eq!(u64::from(field.number), it.number, "{place}");
        assert_eq!(field.rule == Rule::Repeated, it.is_repeated, "{place}");
        let type_number = match field.kind {
            Kind::Double => 1,
            Kind::Int64 => 3,
            Kind::Uint64 => 4,
            Kind::Fixed64 => 6,
            Kind::Fixed32 => 7,
            Kind::Bool => 8,
            Kind::String => 9,
            Kind::Message(_) => 11,
            Kind::Bytes | Kind::Id(_) => 12,
            Kind::Uint32 => 13,
            Kind::Enum => 14,
            Kind::SignedFixed64 => 16,
            Kind::Zigzag32 => 17,
        };
        assert_eq!(type_number, it.type_number, "{place}");
        if let Kind::Id(len) = field.kind {
            assert_eq!(len, if field.name == "traceId" { 16 } else { 8 }, "{place}");
        }
        if field.rule != Rule::Repeated {
            let has_presence = it.has_presence || it.choice.is_some() || it.type_number == 11;
            assert_eq!(field.rule == Rule::Present, has_presence, "{place}");
        }
        let rivals = table.fields.iter().filter(|other| described[other.name].choice == it.choice);
        if it.choice.is_some() && !it.has_presence {
            assert!(rivals.into_iter().all(|other| other.choice == field.choice), "{place}");
        } else {
            assert_eq!(field.choice, field.number, "{place}");
        }
        if let Kind::Message(inner) = field.kind {
            compare(
                it.type_name.trim_start_matches('.').trim_start_matches("opentelemetry.proto."),
                inner,
                messages,
                seen,
            );
        }
    }
}

fn message(around: &str, descriptor: &[u8], messages: &mut Messages) {
    let (mut name, mut fields) = (String::new(), BTreeMap::new());
    each(descriptor, |key, value| {
        if key.field == 1 {
            name = format!("{around}.{}", text(value));
        }
    });
    each(descriptor, |key, value| match key.field {
        2 => {
            let (json_name, field) = field(value);
            fields.insert(json_name, field);
        }
        3 => message(&name, value, messages),
        _ => {}
    });
    messages.insert(name, fields);
}

fn field(descriptor: &[u8]) -> (String, Described) {
    let mut name = String::new();
    let mut field = Described {
        number: 0,
        type_number: 0,
        type_name: String::new(),
        is_repeated: false,
        has_presence: false,
        choice: None,
    };
    let mut reader = Reader::new(descriptor);
    while let Some(key) = reader.key().unwrap() {
        match key.field {
            3 => field.number = reader.varint(key).unwrap(),
            4 => field.is_repeated = reader.varint(key).unwrap() == 3,
            5 => field.type_number = reader.varint(key).unwrap(),
            6 => field.type_name = text(reader.bytes(key).unwrap()),
            9 => field.choice = Some(reader.varint(key).unwrap()),
            10 => name = text(reader.bytes(key).unwrap()),
            17 => field.has_presence = reader.varint(key).unwrap() == 1,
            _ => reader.skip(key).unwrap(),
        }
    }
    if field.has_presence {
        field.choice = None;
    }
    (name, field)
}

/// Calls `visit` with each length-delimited field.
fn each(message: &[u8], mut visit: impl FnMut(Key, &[u8])) {
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().unwrap() {
        match reader.bytes(key) {
            Ok(bytes) => visit(key, bytes),
            Err(_) => reader.skip(key).unwrap(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
