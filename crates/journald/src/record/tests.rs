use super::*;
use crate::export::{Decoder, EntryLimits};
use crate::fields::FieldSet;
use std::convert::Infallible;

const LIMITS: EntryLimits =
    EntryLimits { message_bytes: 1000, field_bytes: 200, fields_bytes: 4000, fields: 50 };

fn decoded(text: &str) -> Decoder {
    let mut decoder = Decoder::new(LIMITS, Fields { set: FieldSet::All, names: Vec::new() });
    assert!(decoder.feed(format!("{text}\n\n").as_bytes()).unwrap().is_complete);
    decoder
}

fn attributes(decoder: &Decoder, fields: &Fields) -> Vec<String> {
    let mut out = Vec::new();
    let put = |Attribute { prefix, key, value }: Attribute<'_>| {
        out.push(match value {
            Value::Bytes(bytes) => format!("{prefix}{key}={}", String::from_utf8_lossy(bytes)),
            Value::Int(number) => format!("{prefix}{key}:{number}"),
        });
        Ok::<_, Infallible>(())
    };
    let Ok(_) = record_of(decoder.entry(), fields, put);
    out
}

fn record(decoder: &Decoder) -> Record<'_> {
    let Ok(record) = record_of(decoder.entry(), &Fields::default(), |_| Ok::<_, Infallible>(()));
    record
}

#[test]
fn known_fields_are_sorted() {
    assert!(MAPPED.is_sorted_by_key(|(name, _)| name));
}

#[test]
fn an_entry_becomes_a_record() {
    let decoded = decoded(
        "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1767000000000001\n_SOURCE_REALTIME_TIMESTAMP=1767000000000000\n\
         _HOSTNAME=web-1\n_MACHINE_ID=0a\nPRIORITY=4\nMESSAGE=hello",
    );
    let expected = Record {
        time_ns: 1_767_000_000_000_000_000,
        observed_ns: 1_767_000_000_000_001_000,
        severity: 13,
        severity_text: "warning",
        body: b"hello",
        is_cut: false,
    };
    assert_eq!(record(&decoded), expected);
    assert_eq!(resource_of(decoded.entry()), Resource { host: b"web-1", machine: b"0a" });
}

#[test]
fn fields_become_attributes() {
    let decoded = decoded(
        "_PID=7\n_COMM=sshd\n_EXE=/usr/sbin/sshd\n_SYSTEMD_UNIT=ssh.service\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=sshd\n\
         CODE_LINE=unknown\nORDER_ID=12\n_GID=0\n_PID=8\n__CURSOR=x\nMESSAGE=m\nSYSLOG_RAW=raw",
    );
    let mapped = [
        "process.pid:7",
        "process.executable.name=sshd",
        "process.executable.path=/usr/sbin/sshd",
        "systemd.unit=ssh.service",
        "syslog.facility.code:3",
        "syslog.identifier=sshd",
        "journald.CODE_LINE=unknown",
    ];
    let set = |set| Fields { set, names: Vec::new() };
    assert_eq!(attributes(&decoded, &set(FieldSet::Mapped)), mapped);
    assert_eq!(attributes(&decoded, &set(FieldSet::User))[7..], ["journald.ORDER_ID=12"]);
    assert_eq!(attributes(&decoded, &set(FieldSet::All))[7..], ["journald.ORDER_ID=12", "journald._GID=0"]);
}

#[test]
fn odd_values_do_no_harm() {
    for priority in ["8", "-1", "x", ""] {
        let decoded = decoded(&format!("PRIORITY={priority}\nMESSAGE=m\n__REALTIME_TIMESTAMP={}", u64::MAX));
        let found = record(&decoded);
        assert_eq!((found.severity, found.severity_text, found.time_ns), (0, "", 0), "{priority}");
    }
}
