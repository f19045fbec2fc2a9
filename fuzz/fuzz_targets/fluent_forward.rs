//! Whatever a client sends, its records become OTLP that the check accepts, or are refused; and the end of a message is found
//! at the same place however it arrives. A handshake never ends well without the key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fluent_forward::msgpack::{Cursor, Scan};
use tidegate_fluent_forward::records::{RecordEncoder, SCOPE};
use tidegate_fluent_forward::{Authentication, Entries, Handshake, Message, Nonces, Packing};
use tidegate_wire::otlp::logs::LogsEncoder;
use tidegate_wire::otlp::{Signal, check};

fuzz_target!(|bytes: &[u8]| {
    let whole = Cursor::new(bytes).value().map(<[u8]>::len);
    let mut scan = Scan::default();
    let mut found = Ok(None);
    for end in 0..=bytes.len() {
        found = scan.advance(&bytes[..end]);
        if !matches!(found, Ok(None)) {
            break;
        }
    }
    assert_eq!(found.ok().flatten(), whole.ok());
    if let Ok(Some(message)) = Message::read(bytes) {
        records(message.tag, message.entries, message.packing);
    }
    records(b"tag", bytes, Packing::Entries);
    let authentication = Authentication { shared_key: "key".into(), users: vec![], hostname: "a".into() };
    let nonces = Nonces { nonce: [1; 16], salt: [2; 16] };
    let (pong, outcome) = Handshake::new(&authentication, nonces).pong(bytes);
    assert!(outcome.is_err() && Cursor::new(&pong).value().is_ok_and(|value| value.len() == pong.len()));
});

fn records(tag: &[u8], bytes: &[u8], packing: Packing) {
    let mut out = vec![0; 16 * bytes.len() + 512];
    let mut batch = LogsEncoder::new(&mut out);
    batch.resource(&[], SCOPE).expect("there is space");
    let mut encoder = RecordEncoder::new(vec!["log".into(), "message".into()], 1 << 16);
    let mut entries = Entries::new(bytes, packing);
    while let Ok(Some(entry)) = entries.read_next() {
        assert!(entry.len > 0);
        let _refused = encoder.encode(tag, &entry, 1, &mut batch);
    }
    let len = batch.finish().len;
    check(Signal::Logs, &out[..len]).expect("it is OTLP");
}
