//! Requests of every protocol, encoding and shape, of any length.

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::io::Write;
use tidegate_tests::messages::{Label, Sample, TimeSeries, WriteRequest, message as snappy};

const NOW_NS: u64 = 1_790_000_000_000_000_000;
/// About how long a small item is, in bytes.
const SMALL: usize = 200;

/// How a body is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Small items.
    Many,
    /// One item with a long text that compresses to nothing.
    One,
    /// One item with a long text that does not compress.
    Noise,
    /// One item with a text of control characters, which JSON writes as six bytes each.
    Control,
    /// Fifty small items in a large envelope.
    Envelope,
    /// One metric point of small buckets.
    Buckets,
    /// One metric with many points.
    Points,
}

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Logs,
    Traces,
    Metrics,
    LogsJson,
    RemoteWrite1,
    RemoteWrite2,
    Intake,
    Bulk,
    LokiProtobuf,
    LokiJson,
}

/// A kind of request, and one of them.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    content: Content,
    gzip: bool,
    pub(crate) shape: Shape,
    size: usize,
    /// The head without its end; the length is added when it is sent.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// One of each kind, without a body.
pub(crate) fn requests() -> Vec<Request> {
    use Content::{
        Bulk, Intake, Logs, LogsJson, LokiJson, LokiProtobuf, Metrics, RemoteWrite1, RemoteWrite2, Traces,
    };
    use Shape::{Buckets, Control, Envelope, Many, Noise, One, Points};
    let kinds: [(Content, bool, &[Shape]); 16] = [
        (Logs, false, &[Many, One, Control, Envelope]),
        (Logs, true, &[Many, One, Noise, Control, Envelope]),
        (Traces, false, &[Many, Noise]),
        (Traces, true, &[Many, One, Envelope]),
        (Metrics, false, &[Many, Buckets]),
        (Metrics, true, &[Many, One, Envelope, Buckets, Points]),
        (LogsJson, false, &[Many, One, Control]),
        (LogsJson, true, &[Many, One]),
        (RemoteWrite1, false, &[Many, One]),
        (RemoteWrite2, false, &[Many]),
        (Intake, false, &[Many, One]),
        (Intake, true, &[Many, Envelope]),
        (Bulk, false, &[Many, One, Control]),
        (LokiProtobuf, false, &[Many, One, Noise, Control, Envelope]),
        (LokiJson, false, &[Many, Control]),
        (LokiJson, true, &[Many, One, Noise]),
    ];
    let all =
        kinds.iter().flat_map(|(content, gzip, shapes)| shapes.iter().map(|shape| (*content, *gzip, *shape)));
    let bulk = [Many, One, Noise].map(|shape| (Bulk, true, shape));
    all.chain(bulk)
        .map(|(content, gzip, shape)| Request { content, gzip, shape, size: 0, head: vec![], body: vec![] })
        .collect()
}

impl Request {
    pub(crate) fn name(&self) -> String {
        let gzip = if self.gzip { " gzip" } else { "" };
        format!("{:?}{gzip} {:?} of {}", self.content, self.shape, self.size)
    }

    pub(crate) fn is_remote_write_1(&self) -> bool {
        self.content == Content::RemoteWrite1
    }

    /// The same as Thanos Receive takes it, where it does.
    pub(crate) fn for_thanos(mut self) -> Option<Request> {
        let path = match self.content {
            Content::RemoteWrite1 | Content::RemoteWrite2 => "/api/v1/receive",
            Content::Metrics => "/api/v1/otlp",
            _ => return None,
        };
        *self.head.first_mut()? = format!("POST {path} HTTP/1.1");
        if self.content == Content::RemoteWrite2 {
            self.head.push("X-Prometheus-Remote-Write-Version: 2.0.0".to_owned());
        }
        Some(self)
    }

    /// One of about `size` bytes before compression.
    pub(crate) fn of(&self, size: usize) -> Request {
        let raw = match self.content {
            Content::Logs => otlp(self.shape, size, log),
            Content::Traces => otlp(self.shape, size, span),
            Content::Metrics => metrics(self.shape, size),
            Content::LogsJson => logs_json(self.shape, size),
            Content::RemoteWrite1 => remote_write_1(self.shape, size),
            Content::RemoteWrite2 => remote_write_2(size),
            Content::Intake => intake(self.shape, size),
            Content::Bulk => bulk(self.shape, size),
            Content::LokiProtobuf => loki_protobuf(self.shape, size),
            Content::LokiJson => loki_json(self.shape, size),
        };
        let (path, kind) = match self.content {
            Content::Logs => ("/v1/logs", "application/x-protobuf"),
            Content::Traces => ("/v1/traces", "application/x-protobuf"),
            Content::Metrics => ("/v1/metrics", "application/x-protobuf"),
            Content::LogsJson => ("/v1/logs", "application/json"),
            Content::RemoteWrite1 => ("/api/v1/write", "application/x-protobuf"),
            Content::RemoteWrite2 => {
                ("/api/v1/write", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
            }
            Content::Intake => ("/intake/v2/events", "application/x-ndjson"),
            Content::Bulk => ("/elasticsearch/_bulk", "application/x-ndjson"),
            Content::LokiProtobuf => ("/loki/api/v1/push", "application/x-protobuf"),
            Content::LokiJson => ("/loki/api/v1/push", "application/json"),
        };
        let mut head = vec![
            format!("POST {path} HTTP/1.1"),
            format!("Content-Type: {kind}"),
            "Connection: close".to_owned(),
        ];
        let is_snappy =
            matches!(self.content, Content::RemoteWrite1 | Content::RemoteWrite2 | Content::LokiProtobuf);
        let body = match (is_snappy, self.gzip) {
            (true, _) => {
                head.push("Content-Encoding: snappy".to_owned());
                snap::raw::Encoder::new().compress_vec(&raw).unwrap()
            }
            (false, true) => {
                head.push("Content-Encoding: gzip".to_owned());
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&raw).unwrap();
                encoder.finish().unwrap()
            }
            (false, false) => raw,
        };
        Request { size, head, body, ..self.clone() }
    }
}

/// A text of `len` bytes for this shape.
fn text(shape: Shape, len: usize) -> String {
    match shape {
        Shape::Control => "\u{1}".repeat(len),
        Shape::Noise => {
            // A linear congruential generator: the same text in every run.
            let mut state = 12_345_u64;
            let letters = (0..len).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'0' + u8::try_from(state >> 58).unwrap())
            });
            letters.collect::<String>().replace('\\', "-")
        }
        _ => "a long text ".repeat(len / 12 + 1).get(..len).unwrap().to_owned(),
    }
}

/// The small items of a body: their number.
fn count(size: usize) -> usize {
    (size / SMALL).max(1)
}

/// A field of protobuf with these bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend_from_slice(bytes);
    field
}

/// A field of eight bytes.
fn fixed(number: u8, value: u64) -> Vec<u8> {
    let mut field = vec![number << 3 | 1];
    field.extend_from_slice(&value.to_le_bytes());
    field
}

/// An attribute.
fn attribute(key: &str, value: &str) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat()
}

/// A log record with this text.
fn log(number: usize, text: &str) -> Vec<u8> {
    let number = attribute("number", &number.to_string());
    [fixed(1, NOW_NS), field(5, &field(1, text.as_bytes())), field(6, &number)].concat()
}

/// A span with this text.
fn span(number: usize, text: &str) -> Vec<u8> {
    let id = (number as u64 + 1).to_be_bytes();
    let trace = [id, id].concat();
    let head =
        [field(1, &trace), field(2, &id), field(5, b"GET /"), fixed(7, NOW_NS), fixed(8, NOW_NS + 1000)];
    [head.concat(), field(9, &attribute("text", text))].concat()
}

/// A gauge of one point with this text.
fn gauge(number: usize, text: &str) -> Vec<u8> {
    gauge_of(&point(number, text))
}

/// A gauge of these points.
fn gauge_of(points: &[u8]) -> Vec<u8> {
    [field(1, b"requests"), field(5, points)].concat()
}

/// A point of a gauge.
fn point(number: usize, text: &str) -> Vec<u8> {
    let number = field(7, &attribute("number", &number.to_string()));
    let text = field(7, &attribute("text", text));
    field(1, &[number, text, fixed(3, NOW_NS), fixed(4, 1.5_f64.to_bits())].concat())
}

/// An exponential histogram of one point with `buckets` buckets.
fn histogram(buckets: usize) -> Vec<u8> {
    let positive = field(2, &vec![1; buckets]);
    let point = [
        fixed(3, NOW_NS),
        fixed(4, buckets as u64),
        fixed(5, 1.0_f64.to_bits()),
        // The scale: zero.
        vec![6 << 3, 0],
        field(8, &positive),
    ];
    let histogram = [field(1, &point.concat()), vec![2 << 3, 2]].concat();
    [field(1, b"sizes"), field(10, &histogram)].concat()
}

/// A request of OTLP with these items.
fn otlp_of(resource_text: &str, items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut service = field(1, &attribute("service.name", "shop"));
    if !resource_text.is_empty() {
        service.extend(field(1, &attribute("text", resource_text)));
    }
    let mut scope = Vec::new();
    items.for_each(|item| scope.extend(field(2, &item)));
    field(1, &[field(1, &service), field(2, &scope)].concat())
}

fn otlp(shape: Shape, size: usize, item: fn(usize, &str) -> Vec<u8>) -> Vec<u8> {
    match shape {
        Shape::Many => {
            let small = text(shape, SMALL / 2);
            otlp_of("", (0..count(size)).map(|number| item(number, &small)))
        }
        Shape::Envelope => otlp_of(&text(shape, size), (0..50).map(|number| item(number, "small"))),
        _ => otlp_of("", std::iter::once(item(0, &text(shape, size)))),
    }
}

fn metrics(shape: Shape, size: usize) -> Vec<u8> {
    match shape {
        Shape::Buckets => otlp_of("", std::iter::once(histogram(size))),
        Shape::Points => {
            let small = text(shape, SMALL / 2);
            let points = (0..count(size)).flat_map(|number| point(number, &small)).collect::<Vec<_>>();
            otlp_of("", std::iter::once(gauge_of(&points)))
        }
        _ => otlp(shape, size, gauge),
    }
}

fn logs_json(shape: Shape, size: usize) -> Vec<u8> {
    let record =
        |text: &str| serde_json::json!({"timeUnixNano": NOW_NS.to_string(), "body": {"stringValue": text}});
    let records: Vec<_> = match shape {
        Shape::Many => vec![record(&text(shape, SMALL / 2)); count(size)],
        // Each becomes six bytes in JSON.
        Shape::Control => vec![record(&text(shape, size / 6 + 1))],
        _ => vec![record(&text(shape, size))],
    };
    let body = serde_json::json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    serde_json::to_vec(&body).unwrap()
}

fn remote_write_1(shape: Shape, size: usize) -> Vec<u8> {
    let sample = |number: usize| Sample {
        bits: 1.5_f64.to_bits(),
        timestamp: i64::try_from(NOW_NS / 1_000_000).unwrap() + i64::try_from(number).unwrap(),
    };
    let series = |number: usize, samples: Vec<Sample>| TimeSeries {
        labels: Label::all(&[
            ("__name__", "http_requests_total"),
            ("instance", &format!("host-{number}.example.com:9100")),
            ("job", "node"),
            ("path", "/api/v1/orders/by/customer/and/by/time/of/day"),
        ]),
        samples,
        ..TimeSeries::default()
    };
    let timeseries = match shape {
        Shape::Many => (0..count(size)).map(|number| series(number, vec![sample(0)])).collect(),
        // Twenty bytes a sample.
        _ => vec![series(0, (0..(size / 20).max(1)).map(sample).collect())],
    };
    WriteRequest { timeseries, metadata: vec![] }.encode_to_vec()
}

fn remote_write_2(size: usize) -> Vec<u8> {
    let count = count(size);
    let mut body = Vec::new();
    let names = ["", "__name__", "http_requests_total", "instance", "path", "/api/v1/orders/by/customer"];
    names.iter().for_each(|name| body.extend(field(4, name.as_bytes())));
    for number in 0..count {
        // As long as what the other version says for each series.
        let instance = format!("host-{number}.{}", text(Shape::Many, SMALL / 2));
        body.extend(field(4, instance.as_bytes()));
    }
    for number in 0..count {
        let mut references = Vec::new();
        for reference in [1, 2, 3, names.len() + number, 4, 5] {
            prost::encoding::encode_varint(reference as u64, &mut references);
        }
        let mut time = vec![2 << 3];
        prost::encoding::encode_varint(NOW_NS / 1_000_000, &mut time);
        let sample = [fixed(1, 1.5_f64.to_bits()), time].concat();
        body.extend(field(5, &[field(1, &references), field(2, &sample)].concat()));
    }
    body
}

fn intake(shape: Shape, size: usize) -> Vec<u8> {
    let note = if shape == Shape::Envelope { text(shape, size) } else { String::new() };
    let metadata = serde_json::json!({"metadata": {
        "service": {"name": "shop", "agent": {"name": "python", "version": "6.0"}},
        "labels": {"note": note.get(..note.len().min(1000)).unwrap()},
    }});
    let transaction = |number: usize, text: &str| {
        serde_json::json!({"transaction": {
            "id": format!("{number:016x}"), "trace_id": format!("{number:032x}"), "name": "GET /", "type": "request",
            "duration": 1.5, "timestamp": NOW_NS / 1000, "span_count": {"started": 0},
            "context": {"custom": {"text": text}},
        }})
    };
    let mut lines = vec![metadata.to_string()];
    match shape {
        Shape::Many => lines.extend((0..count(size)).map(|number| transaction(number, "").to_string())),
        Shape::Envelope => lines.extend((0..50).map(|number| transaction(number, "small").to_string())),
        _ => lines.push(transaction(0, &text(shape, size)).to_string()),
    }
    (lines.join("\n") + "\n").into_bytes()
}

fn bulk(shape: Shape, size: usize) -> Vec<u8> {
    let document = |text: &str| {
        let document = serde_json::json!({"@timestamp": "2026-09-21T00:00:00Z", "message": text});
        format!("{{\"create\":{{\"_index\":\"logs-app-default\"}}}}\n{document}\n")
    };
    match shape {
        Shape::Many => document(&text(shape, SMALL / 2)).repeat(count(size)).into_bytes(),
        Shape::Control => document(&text(shape, size / 6 + 1)).into_bytes(),
        _ => document(&text(shape, size)).into_bytes(),
    }
}

/// The lines of a push request: small ones in a stream with a long label, or one.
fn lines(shape: Shape, size: usize) -> (String, Vec<String>) {
    match shape {
        Shape::Many => (String::new(), vec![text(shape, SMALL / 2); count(size)]),
        Shape::Envelope => (text(shape, size), vec!["small".to_owned(); 50]),
        _ => (String::new(), vec![text(shape, size)]),
    }
}

fn loki_protobuf(shape: Shape, size: usize) -> Vec<u8> {
    let (label, lines) = lines(shape, size);
    let mut stream = field(1, format!("{{service_name=\"shop\", text=\"{label}\"}}").as_bytes());
    for line in lines {
        let mut time = vec![1 << 3];
        prost::encoding::encode_varint(NOW_NS / 1_000_000_000, &mut time);
        stream.extend(field(2, &[field(1, &time), field(2, line.as_bytes())].concat()));
    }
    field(1, &stream)
}

fn loki_json(shape: Shape, size: usize) -> Vec<u8> {
    // A control character takes six bytes.
    let (_, lines) = lines(shape, if shape == Shape::Control { size / 6 + 1 } else { size });
    let values: Vec<_> = lines.iter().map(|line| serde_json::json!([NOW_NS.to_string(), line])).collect();
    let body = serde_json::json!({"streams": [{"stream": {"service_name": "shop"}, "values": values}]});
    serde_json::to_vec(&body).unwrap()
}

/// The helper of other tests is the second opinion on how a request of 1.0 is written.
#[test]
fn remote_write_is_read_back() {
    let request = requests().into_iter().find(Request::is_remote_write_1).unwrap().of(10_000);
    let message: WriteRequest = snappy(&request.body);
    assert_eq!(message.timeseries.len(), count(10_000));
}
