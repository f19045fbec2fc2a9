//! Converts the fields of an entry into a log record.
//!
//! Sources: `systemd.journal-fields(7)`; the semantic conventions of OpenTelemetry for `process`, `code`, `thread`,
//! `host` and `container`; the severities of `syslog(3)` as the log data model of OpenTelemetry maps them.

use crate::export::Entry;
use crate::fields::Fields;

/// The name of the field that becomes the body.
pub(crate) const MESSAGE: &str = "MESSAGE";

/// The place of a field in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A part of the record or resource itself, or of the position in the journal.
    Part,
    /// An attribute with this key.
    Text(&'static str),
    /// The same, with a number for a value.
    Int(&'static str),
}

/// The meanings of known fields, in the order of their names.
const MAPPED: [(&str, Use); 32] = [
    ("CODE_FILE", Use::Text("code.file.path")),
    ("CODE_FUNC", Use::Text("code.function.name")),
    ("CODE_LINE", Use::Int("code.line.number")),
    ("CONTAINER_ID_FULL", Use::Text("container.id")),
    ("CONTAINER_NAME", Use::Text("container.name")),
    ("IMAGE_NAME", Use::Text("container.image.name")),
    ("MESSAGE", Use::Part),
    ("PRIORITY", Use::Int("syslog.severity.code")),
    ("SYSLOG_FACILITY", Use::Int("syslog.facility.code")),
    ("SYSLOG_IDENTIFIER", Use::Text("syslog.identifier")),
    ("SYSLOG_PID", Use::Text("syslog.procid")),
    // The text as it was received, which the message is a part of.
    ("SYSLOG_RAW", Use::Part),
    ("SYSLOG_TIMESTAMP", Use::Part),
    ("TID", Use::Int("thread.id")),
    ("UNIT", Use::Text("systemd.object_unit")),
    ("_CMDLINE", Use::Text("process.command_line")),
    ("_COMM", Use::Text("process.executable.name")),
    ("_EXE", Use::Text("process.executable.path")),
    ("_HOSTNAME", Use::Part),
    ("_MACHINE_ID", Use::Part),
    ("_PID", Use::Int("process.pid")),
    ("_SOURCE_REALTIME_TIMESTAMP", Use::Part),
    ("_SYSTEMD_SLICE", Use::Text("systemd.slice")),
    ("_SYSTEMD_UNIT", Use::Text("systemd.unit")),
    ("_SYSTEMD_USER_UNIT", Use::Text("systemd.user_unit")),
    ("_TRANSPORT", Use::Text("journald.transport")),
    ("_UID", Use::Int("process.user.id")),
    ("__CURSOR", Use::Part),
    ("__MONOTONIC_TIMESTAMP", Use::Part),
    ("__REALTIME_TIMESTAMP", Use::Part),
    ("__SEQNUM", Use::Part),
    ("__SEQNUM_ID", Use::Part),
];

/// The severities of `syslog(3)` by their codes: their names, and OpenTelemetry's numbers.
const SEVERITIES: [(&str, u8); 8] = [
    ("emerg", 21),
    ("alert", 19),
    ("crit", 18),
    ("err", 17),
    ("warning", 13),
    ("notice", 10),
    ("info", 9),
    ("debug", 5),
];

/// A log record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it happened, by the program that logged it if it says so, in nanoseconds since 1970; 0 if unknown.
    pub time_ns: u64,
    /// When journald received it.
    pub observed_ns: u64,
    /// OpenTelemetry's number for the priority; 0 if there is none.
    pub severity: u8,
    /// The name of the priority.
    pub severity_text: &'static str,
    /// The text; any bytes.
    pub body: &'a [u8],
    /// Whether more of it was there.
    pub is_cut: bool,
}

/// Where an entry was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resource<'a> {
    /// The name of the host.
    pub host: &'a [u8],
    /// Its `machine-id`.
    pub machine: &'a [u8],
}

/// An attribute of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The first part of its key.
    pub prefix: &'static str,
    /// The other part.
    pub key: &'a str,
    /// Its value.
    pub value: Value<'a>,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Any bytes: text, most of the time.
    Bytes(&'a [u8]),
    /// A number.
    Int(i64),
}

/// Whether a field is needed for the record whatever is wanted beside.
pub(crate) fn is_mapped(name: &str) -> bool {
    use_of(name).is_some()
}

fn use_of(name: &str) -> Option<Use> {
    let at = MAPPED.binary_search_by_key(&name, |(known, _)| known).ok()?;
    MAPPED.get(at).map(|(_, found)| *found)
}

/// The host that an entry is from.
#[must_use]
pub fn resource_of(entry: &Entry) -> Resource<'_> {
    Resource {
        host: entry.get("_HOSTNAME").unwrap_or_default(),
        machine: entry.get("_MACHINE_ID").unwrap_or_default(),
    }
}

/// The record of an entry; its attributes go to `put`. Of fields that an entry has several times the first counts, as a
/// record has each key once.
///
/// # Errors
/// The first of `put`.
pub fn record_of<'e, E>(
    entry: &'e Entry,
    fields: &Fields,
    mut put: impl FnMut(Attribute<'e>) -> Result<(), E>,
) -> Result<Record<'e>, E> {
    let received = received_ns(entry);
    let happened = entry.get("_SOURCE_REALTIME_TIMESTAMP").and_then(microseconds);
    let mut record = Record {
        time_ns: happened.unwrap_or(received),
        observed_ns: received,
        severity: 0,
        severity_text: "",
        body: &[],
        is_cut: false,
    };
    for (at, field) in entry.fields().enumerate() {
        if entry.fields().take(at).any(|before| before.name == field.name) {
            continue;
        }
        let (prefix, key, value) = match (use_of(field.name), number(field.value)) {
            (Some(Use::Part), _) => {
                if field.name == MESSAGE {
                    (record.body, record.is_cut) = (field.value, field.is_cut);
                }
                continue;
            }
            (Some(Use::Text(key)), _) => ("", key, Value::Bytes(field.value)),
            (Some(Use::Int(key)), Some(number)) => {
                if field.name == "PRIORITY"
                    && let Some((name, severity)) =
                        usize::try_from(number).ok().and_then(|code| SEVERITIES.get(code))
                {
                    (record.severity, record.severity_text) = (*severity, name);
                }
                ("", key, Value::Int(number))
            }
            (Some(Use::Int(_)), None) => ("journald.", field.name, Value::Bytes(field.value)),
            (None, _) if fields.is_kept(field.name) => ("journald.", field.name, Value::Bytes(field.value)),
            (None, _) => continue,
        };
        put(Attribute { prefix, key, value })?;
    }
    Ok(record)
}

/// When journald received the entry, in nanoseconds since 1970.
pub(crate) fn received_ns(entry: &Entry) -> u64 {
    entry.get("__REALTIME_TIMESTAMP").and_then(microseconds).unwrap_or_default()
}

fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Microseconds since 1970 as nanoseconds.
fn microseconds(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests;
