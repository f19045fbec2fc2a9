//! A body that passes the check for traces is one that prost decodes, with as many spans, events and links;
//! its pieces pass as well, and no span is lost between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tidegate_wire::otlp::{Signal, TracesRequest, check, retain_valid, split};
use tidegate_wire::output::SliceOutput;

fuzz_target!(|raw: &[u8]| {
    let shown = TracesRequest::new(raw).resources().flat_map(|group| group.scopes());
    let shown = shown.flat_map(|group| group.items());
    let [spans, events, links] = shown.fold([0; 3], |[spans, events, links], span| {
        let _ = format!("{:?}", span.attributes().last());
        [spans + 1, events + span.events().count() as u64, links + span.links().count() as u64]
    });
    let Ok(counts) = check(Signal::Traces, raw) else {
        let mut raw = raw.to_vec();
        if let Ok(retained) = retain_valid(Signal::Traces, &mut raw) {
            assert_eq!(check(Signal::Traces, &raw[..retained.len]), Ok(retained.counts));
        }
        return;
    };
    assert_eq!((counts.items, counts.events, counts.links), (spans, events, links));
    let decoded = match ExportTraceServiceRequest::decode(raw) {
        Ok(decoded) => decoded,
        // It stops at a hundred messages in each other, and here is room for a thousand arrays and maps.
        Err(error) if error.to_string().contains("recursion limit") => return,
        Err(error) => panic!("what is accepted is a valid message: {error}"),
    };
    let groups = decoded.resource_spans.iter().flat_map(|group| &group.scope_spans);
    assert_eq!(spans, groups.map(|group| group.spans.len() as u64).sum::<u64>());

    let mut pieces = 0;
    for piece in split(Signal::Traces, raw, raw.len() / 3) {
        let mut space = vec![0; piece.len()];
        let mut out = SliceOutput::new(&mut space);
        piece.write(&mut out).expect("a piece has the length it says");
        pieces += check(Signal::Traces, &space).expect("pieces are valid").items;
    }
    assert_eq!(pieces, spans);
});
