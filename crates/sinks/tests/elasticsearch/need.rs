//! The declared memory suffices for the worst items: the largest document of one, and its intermediate forms, stay
//! within the factor.

use crate::oversize::{attribute, request};
use tidegate_elastic::documents::{
    DocumentBuffer, DocumentPosition, DocumentSettings, WriteResult, from_intake, from_otlp,
};
use tidegate_journal::{Protocol, Signal};
use tidegate_load::protobuf::field;
use tidegate_sinks::{Elasticsearch, Mapping, Product};
use tidegate_wire::otlp;
use tidegate_wire::output::Full;

/// About how long each item is.
const LEN: usize = 8 << 10;
/// The parts of a document besides its item's.
const FRAME: usize = 2 << 10;
/// The points that share a document, beside the last.
const SHARED: usize = 130 << 10;

/// The longest pair of lines that comes of a body.
fn longest(write: impl Fn(DocumentPosition, &mut DocumentBuffer<'_>) -> Result<WriteResult, Full>) -> usize {
    let (mut place, mut longest) = (DocumentPosition::START, 0);
    let mut space = vec![0; 256 * LEN];
    loop {
        let mut page = DocumentBuffer::new(&mut space);
        let written = write(place, &mut page).expect("there is room for much more than the factor");
        let mut lines = page.written().split_inclusive(|byte| *byte == b'\n');
        while let (Some(action), Some(document)) = (lines.next(), lines.next()) {
            longest = longest.max(action.len() + document.len());
        }
        match written.next {
            Some(next) => place = next,
            None => return longest,
        }
    }
}

/// `beside` is what there may be beside the item, which is less than what is declared: windows are charged in whole
/// steps, and remote write is said in OTLP first.
fn assert_suffices(
    (protocol, signal): (Protocol, Signal),
    item: usize,
    longest: usize,
    beside: usize,
    what: &str,
) {
    let need = Elasticsearch::need(protocol, signal).unwrap();
    assert!(beside + (256 << 10) <= need.working && need.working <= 512 << 10);
    let room = need.factor * item + beside;
    assert!(longest <= room, "{what}: {longest} bytes of {item}, which is {} times", longest / item);
}

/// Values that take more as JSON than they have.
fn values() -> Vec<(&'static str, Vec<u8>)> {
    let repeated = |payload: &[u8]| payload.repeat(LEN / payload.len());
    vec![
        ("controls", field(1, &vec![1; LEN])),
        ("quotes", field(1, &vec![b'"'; LEN])),
        ("bytes", field(7, &vec![0xff; LEN])),
        ("nothings", field(5, &repeated(&field(1, &[])))),
        ("truths", field(5, &repeated(&field(1, &[0x10, 0])))),
        ("numbers", field(5, &repeated(&field(1, &[0x18, 0x7f])))),
        ("mixed", field(5, &[field(1, &[]), repeated(&field(1, &[0x10, 0]))].concat())),
        ("texts", field(5, &repeated(&field(1, &field(1, b"\x01"))))),
        ("maps", field(6, &repeated(&field(1, &[field(1, b"\x01"), field(2, &[])].concat())))),
        ("lists", field(5, &repeated(&field(1, &field(5, &field(1, &field(1, b"\x01"))))))),
        ("map of controls", field(6, &field(1, &attribute("k", &vec![1; LEN])))),
    ]
}

/// Names that have fields of their own, some of them several.
const NAMES: [&str; 22] = [
    "plain",
    "service.name",
    "host.name",
    "url.full",
    "http.url",
    "http.target",
    "client.address",
    "net.peer.name",
    "exception.type",
    "exception.message",
    "exception.stacktrace",
    "db.system",
    "db.statement",
    "db.name",
    "messaging.system",
    "messaging.destination.name",
    "rpc.system",
    "telemetry.sdk.name",
    "telemetry.distro.name",
    "telemetry.sdk.language",
    "data_stream.dataset",
    "peer.service",
];

#[test]
fn logs_and_spans_stay_within_the_factor() {
    for (kind, value) in values() {
        for name in NAMES {
            let one = [field(1, name.as_bytes()), field(2, &value)].concat();
            let named = |number: u8| field(number, &one);
            let log = |body: bool| if body { field(5, &value) } else { named(6) };
            let span = [field(5, b"s"), named(9)].concat();
            let event = field(11, &[field(2, b"exception"), named(3)].concat());
            let bodies = [
                (Signal::Logs, otlp::Signal::Logs, request(&[], [log(true)].into_iter())),
                (Signal::Logs, otlp::Signal::Logs, request(&[], [log(false)].into_iter())),
                (Signal::Logs, otlp::Signal::Logs, request(&field(1, &one), [log(false)].into_iter())),
                (Signal::Traces, otlp::Signal::Traces, request(&field(1, &one), [span.clone()].into_iter())),
                (Signal::Traces, otlp::Signal::Traces, request(&[], [[span, event].concat()].into_iter())),
                (
                    Signal::Metrics,
                    otlp::Signal::Metrics,
                    request(&field(1, &one), [gauge(&named(7))].into_iter()),
                ),
            ];
            for (signal, of_wire, body) in bodies {
                for mapping in [Mapping::Otel, Mapping::Ecs] {
                    let settings = DocumentSettings {
                        mapping,
                        flavour: Product::Elasticsearch,
                        ..DocumentSettings::default()
                    };
                    let len = longest(|place, page| from_otlp(of_wire, &body, place, "id", &settings, page));
                    assert_suffices(
                        (Protocol::Otlp, signal),
                        body.len(),
                        len,
                        FRAME,
                        &format!("{kind} {name} {mapping:?} {signal:?}"),
                    );
                }
            }
        }
    }
}

fn gauge(attributes: &[u8]) -> Vec<u8> {
    let point = [attributes, &[0x21], &1f64.to_le_bytes()[..]].concat();
    [field(1, b"m"), field(5, &field(1, &point))].concat()
}

#[test]
fn histograms_stay_within_the_factor() {
    let counts = |number: usize| field(2, &vec![1; number]);
    let exponential = |buckets: Vec<u8>| {
        // A scale of 10, of deltas.
        let point =
            [&[0x21][..], &5u64.to_le_bytes(), &[0x29], &1f64.to_le_bytes(), &[0x30, 20], &buckets].concat();
        [field(1, b"m"), field(10, &[field(1, &point), vec![0x10, 1]].concat())].concat()
    };
    let explicit = |number: usize| {
        let bounds: Vec<u8> = (0..number).flat_map(|at| (1.0 + at as f64 / 3e7).to_le_bytes()).collect();
        let point = [
            &[0x21][..],
            &5u64.to_le_bytes(),
            &[0x29],
            &1f64.to_le_bytes(),
            &field(6, &u64::MAX.to_le_bytes().repeat(number + 1)),
            &field(7, &bounds),
        ]
        .concat();
        [field(1, b"m"), field(9, &[field(1, &point), vec![0x10, 1]].concat())].concat()
    };
    let metrics = [
        ("exponential", vec![exponential(field(8, &counts(LEN)))]),
        ("explicit", vec![explicit(8 * LEN / 16)]),
        // Which share one document.
        ("many", (0..200).map(|_| exponential(field(8, &counts(2000)))).collect::<Vec<_>>()),
        ("gauges", (0..2000).map(|_| gauge(&[])).collect()),
    ];
    for (kind, metrics) in metrics {
        let item = metrics.iter().map(Vec::len).max().unwrap() + 64;
        let named = metrics.into_iter().enumerate().map(|(at, metric)| {
            // Each under a name of its own.
            let name = format!("m{at}");
            [field(1, name.as_bytes()), metric[3..].to_vec()].concat()
        });
        let body = request(&[], named);
        for mapping in [Mapping::Otel, Mapping::Ecs] {
            let settings = DocumentSettings { mapping, ..DocumentSettings::default() };
            let len =
                longest(|place, page| from_otlp(otlp::Signal::Metrics, &body, place, "id", &settings, page));
            assert!(len > 0);
            assert_suffices(
                (Protocol::Otlp, Signal::Metrics),
                item,
                len,
                SHARED,
                &format!("{kind} {mapping:?}"),
            );
        }
    }
}

#[test]
fn events_of_agents_stay_within_the_factor() {
    let texts = ["x".repeat(LEN), "\\u0001".repeat(LEN / 6), "\\\"".repeat(LEN / 2), "ü".repeat(LEN / 2)];
    for text in texts {
        for (place, event) in [
            "{\"metadata\":{\"service\":{\"name\":\"#\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\"}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}},\"system\":{\"detected_hostname\":\"#\"}}}\n{\"error\":{\"id\":\"1\"}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"culprit\":\"#\"}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"log\":{\"message\":\"#\"}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"exception\":{\"message\":\"#\"}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"exception\":{\"type\":\"#\"}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"context\":{\"tags\":{\"#\":\"1\"}}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"context\":{\"custom\":{\"a\":\"#\"}}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"error\":{\"id\":\"1\",\"context\":{\"request\":{\"method\":\"GET\",\"headers\":{\"user-agent\":\"#\"},\"url\":{\"full\":\"a\"}}}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"log\":{\"message\":\"a\",\"other\":{\"a\":\"#\"}}}\n",
            "{\"metadata\":{\"service\":{\"name\":\"s\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n{\"transaction\":{\"id\":\"1\",\"trace_id\":\"1\",\"type\":\"#\",\"span_count\":{\"started\":0},\"duration\":1,\"context\":{\"request\":{\"method\":\"GET\",\"url\":{\"full\":\"#\",\"raw\":\"#\",\"pathname\":\"#\"}}}}}\n",
        ]
        .into_iter()
        .enumerate()
        {
            let body = event.replace('#', &text);
            let settings = DocumentSettings::default();
            let len = longest(|place, page| from_intake(body.as_bytes(), place, "id", &settings, page));
            assert_suffices((Protocol::Intake, Signal::Events), body.len(), len, FRAME, &format!("event {place}"));
        }
    }
}
