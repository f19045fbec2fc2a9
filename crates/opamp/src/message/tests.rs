//! What is read is what was written, and bytes by chance are refused or read, and never panic.

use super::*;
use proptest::prelude::*;

fn field(number: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::bytes(&mut out, number, value);
    out
}

fn number(field: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::varint(&mut out, field, value);
    out
}

fn pair(key: &str, value: &str) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat()
}

#[test]
fn a_message_is_read_with_its_parts() {
    let status = [field(1, &[7; 16]), number(2, 3), field(3, b"why")].concat();
    let health = [number(1, 1), field(4, b"fine")].concat();
    let bytes = [
        field(1, &[9; 16]),
        number(2, 41),
        field(3, &field(1, &pair("service.name", "a"))),
        number(4, 4099),
        field(5, &health),
        field(7, &status),
        field(9, &[]),
        field(14, b"skipped"),
    ]
    .concat();
    let message = AgentToServer::read(&bytes).unwrap();
    assert_eq!((message.instance_uid, message.sequence, message.capabilities), (&[9; 16][..], 41, 4099));
    let health = message.health.unwrap();
    assert_eq!((health.is_healthy, health.status), (true, "fine"));
    let status = message.remote_config_status.unwrap();
    assert_eq!((status.hash, status.status, status.error), (&[7; 16][..], ConfigStatus::Failed, "why"));
    assert!(message.is_disconnect);
}

/// Identifying attributes have the room first, the room is bounded, and scalars are texts.
#[test]
fn attributes_are_bounded() {
    let long = "x".repeat(3000);
    let int = [field(1, b"n"), field(2, &number(3, 12))].concat();
    let description = [
        field(2, &pair("other", &long)),
        field(1, &pair("first", &long)),
        field(2, &pair("small", "s")),
        field(2, &int),
    ]
    .concat();
    let attributes = Attributes::read(&description).unwrap();
    let keys: Vec<&str> = attributes.0.keys().map(String::as_str).collect();
    assert_eq!(keys, ["first", "n", "small"]);
    assert_eq!(attributes.0["n"], "12");
}

/// The field that is written once for all agents is a field of the message: its files are read again.
#[test]
fn an_encoded_configuration_is_read_again() {
    let encoded = EncodedConfig::new(b"receivers: {}", [5; 16]);
    let mut reader = tidegate_wire::proto::Reader::new(encoded.field());
    let key = reader.key().unwrap().unwrap();
    assert_eq!(key.field, 3);
    let mut files = Vec::new();
    config_files(reader.bytes(key).unwrap(), |name, body| files.push((name, body))).unwrap();
    assert_eq!(files, [("", &b"receivers: {}"[..])]);
}

proptest! {
    #[test]
    fn bytes_by_chance_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = AgentToServer::read(&bytes);
        let _ = config_files(&bytes, |_, _| ());
        if let Ok(attributes) = Attributes::read(&bytes) {
            prop_assert!(attributes.0.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= 4 << 10);
        }
    }
}
