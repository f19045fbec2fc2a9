//! A translated body is JSON, and becomes protobuf that passes the check, within the computed size; a refusal has a
//! position inside the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use tidegate_wire::otlp::{OtlpErrorKind, Signal, check, json};

fuzz_target!(|body: &[u8]| {
    let mut out = vec![0; json::max_len(body)];
    for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
        match json::translate(signal, body, &mut out) {
            Ok(done) => {
                assert!(done.refused > 0 || serde_json::from_slice::<Box<RawValue>>(body).is_ok());
                if let Err(error) = check(signal, &out[..done.len]) {
                    let allowed = matches!(error.kind(), OtlpErrorKind::Depth);
                    assert!(allowed, "{error}");
                }
            }
            Err(error) => {
                assert!(error.offset() <= body.len(), "{error}");
                assert!(*error.kind() != json::OtlpJsonErrorKind::Full, "{error}");
            }
        }
    }
});
