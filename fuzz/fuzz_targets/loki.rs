//! Whatever a push request of Loki is, what becomes of it is OTLP that the check accepts, in the room that was measured; and
//! it becomes a push request again, of the length that was said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::loki::push::{Encoder, LabelRules};
use tidegate_wire::loki::{Format, Request, measure, translate};
use tidegate_wire::otlp::{Signal, check};
use tidegate_wire::output::SliceOutput;

fuzz_target!(|body: &[u8]| {
    for format in [Format::Protobuf, Format::Json] {
        let request = Request { format, received_ns: 1 };
        let Ok(needed) = measure(request, body) else { continue };
        let mut out = vec![0; needed];
        let len = translate(request, body, &mut out).expect("it was measured");
        let counts = check(Signal::Logs, &out[..len]).expect("it is OTLP");
        push(&out[..len], counts.items);
    }
    if let Ok(counts) = check(Signal::Logs, body) {
        push(body, counts.items);
    }
});

fn push(raw: &[u8], items: u64) {
    let rules = LabelRules::default();
    let mut encoder = Encoder::new(raw, &rules, 1);
    let mut entries = 0;
    while let Some(len) = encoder.next().expect("it fits in 64 bits") {
        let mut out = vec![0; len as usize];
        let mut out = SliceOutput::new(&mut out);
        encoder.write(&mut out).expect("it was measured");
        assert_eq!(out.len() as u64, len);
        entries += encoder.entries() as u64;
    }
    assert_eq!(entries, items);
}
