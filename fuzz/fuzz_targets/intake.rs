//! An accepted body is JSON in UTF-8, passes a second check with the same result, and converts to OTLP; no input
//! panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use tidegate_elastic::intake::to_otlp;
use tidegate_wire::intake::{Counts, LONGEST_LINE, check, events, lines, retain_valid};
use tidegate_wire::otlp::{self, Signal};

fuzz_target!(|body: &[u8]| {
    let mut refused = Vec::new();
    let Ok(counts) = check(body, LONGEST_LINE, |range, _| refused.push(range)) else { return };
    for (range, line) in lines(body).filter(|(range, _)| !refused.contains(range)) {
        assert!(serde_json::from_slice::<Box<RawValue>>(line).is_ok(), "line at {range:?}");
    }
    let mut kept = body.to_vec();
    let len = retain_valid(&mut kept, LONGEST_LINE);
    kept.truncate(len);
    let again = check(&kept, LONGEST_LINE, |range, error| panic!("{range:?}: {error}"));
    assert_eq!(again.ok(), Some(Counts { refused: 0, ..counts }));
    assert_eq!(events(&kept).count() as u64, counts.events + u64::from(!kept.is_empty()));
    let mut out = vec![0; 64 * kept.len() + 1024];
    let mut said = 0;
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        let done = to_otlp(&kept, 1, signal, &mut out).unwrap();
        otlp::check(signal, &out[..done.bytes]).unwrap();
        said += done.events;
    }
    assert_eq!(said, counts.events);
});
