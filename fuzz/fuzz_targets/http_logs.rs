//! Whatever a body is, the records that are taken from it are OTLP that the check accepts, in the room that was measured;
//! what is refused is refused with a place inside the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::otlp::json::records::{Layout, Request, measure, translate};
use tidegate_wire::otlp::{Signal, check};

fuzz_target!(|body: &[u8]| {
    for layout in [Layout::Text, Layout::Lines, Layout::Objects] {
        let request = Request { layout, resource: &[], received_ns: 1 };
        match measure(&request, body) {
            Ok(needed) => {
                let mut out = vec![0; needed];
                let done = translate(&request, body, &mut out).expect("it was measured");
                check(Signal::Logs, &out[..done.len]).expect("it is OTLP");
                assert!(done.errors.iter().all(|error| error.offset() <= body.len()));
            }
            Err(error) => assert!(error.offset() <= body.len(), "{error}"),
        }
    }
});
