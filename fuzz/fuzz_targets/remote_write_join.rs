//! Two bodies that pass the 2.0 check are joined to one that passes, with the items of both in order.
//! The first byte says where the second body begins.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::join::{Scratch, join};
use tidegate_wire::remote_write::{Limits, Series, Symbols, Version, check, view};

fuzz_target!(|input: &[u8]| {
    let Some((&cut, rest)) = input.split_first() else { return };
    let (first, second) = rest.split_at(rest.len() * usize::from(cut) / 256);
    let bodies = [first, second];
    let mut space = vec![0; 8 * input.len() + 64];
    let mut out = SliceOutput::new(&mut space);
    let mut scratch = Scratch::new(bodies.iter().map(|body| Symbols::count(body)).sum());
    let joined = join(&bodies, &mut scratch, &mut out);
    let len = out.len();
    let limits = Limits::default();
    if bodies.iter().any(|body| check(Version::V2, body, &limits, &mut Symbols::new()).is_err()) {
        return;
    }
    joined.expect("valid bodies are joined");
    let out = &space[..len];
    check(Version::V2, out, &limits, &mut Symbols::new()).expect("a join is valid");
    let expected = [describe(first), describe(second)].concat();
    assert_eq!(describe(out), expected);
});

/// Everything that a reader can see of each series.
fn describe(raw: &[u8]) -> Vec<String> {
    let mut symbols = Symbols::new();
    let request = view(Version::V2, raw, &mut symbols).expect("it was checked");
    request.series().map(describe_series).collect()
}

fn describe_series(series: Series<'_>) -> String {
    let exemplars: Vec<_> = (series.exemplars())
        .map(|exemplar| (exemplar.bits, exemplar.timestamp, exemplar.labels.collect::<Vec<_>>()))
        .collect();
    let histograms: Vec<_> = series.histograms().map(|h| (h.message(), h.start_timestamp)).collect();
    let samples: Vec<_> = series.samples().collect();
    let labels: Vec<_> = series.labels().collect();
    format!("{labels:?} {samples:?} {histograms:?} {exemplars:?} {:?}", series.metadata())
}
