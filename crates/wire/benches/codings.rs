//! The cost of OTLP/JSON and of the content codings, for requests of 200 spans with eight attributes each.
//!
//! `cargo bench -p tidegate-wire --bench codings`; the bar for JSON is 1.5 µs a span.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidegate_wire::coding::Decode;
use tidegate_wire::otlp::{Signal, json};
use tidegate_wire::{gzip, zstd};

const SPANS: u64 = 200;

/// A request as SDKs for JavaScript write it.
fn request() -> String {
    let mut spans = String::new();
    for number in 0..SPANS {
        let comma = if number == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(
            spans,
            r#"{comma}{{"traceId":"{:032x}","spanId":"{:016x}","parentSpanId":"{:016x}","name":"GET /api/cart/{{id}}","kind":2,"startTimeUnixNano":"17900000000{number:08}","endTimeUnixNano":"17900000001{number:08}","attributes":[{}],"droppedAttributesCount":0,"events":[],"droppedEventsCount":0,"status":{{"code":0}},"links":[],"droppedLinksCount":0}}"#,
            u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834),
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            number.wrapping_mul(0xc2b2_ae3d_27d4_eb4f),
            [
                r#"{"key":"http.request.method","value":{"stringValue":"GET"}}"#.to_owned(),
                r#"{"key":"http.route","value":{"stringValue":"/api/cart/{id}"}}"#.to_owned(),
                r#"{"key":"http.response.status_code","value":{"intValue":200}}"#.to_owned(),
                format!(r#"{{"key":"user.id","value":{{"stringValue":"user-{number}"}}}}"#),
                r#"{"key":"server.address","value":{"stringValue":"checkout.internal"}}"#.to_owned(),
                r#"{"key":"network.protocol.version","value":{"stringValue":"1.1"}}"#.to_owned(),
                format!(r#"{{"key":"retry","value":{{"boolValue":{}}}}}"#, number % 3 == 0),
                format!(r#"{{"key":"cart.total","value":{{"doubleValue":{}.25}}}}"#, number % 90),
            ]
            .join(","),
        );
    }
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"checkout"}}}}]}},"scopeSpans":[{{"scope":{{"name":"http"}},"spans":[{spans}]}}]}}]}}"#
    )
}

fn codings(criterion: &mut Criterion) {
    let body = request();
    let body = body.as_bytes();
    let mut raw = vec![0; json::max_len(body)];
    let mut group = criterion.benchmark_group("otlp");
    group.throughput(Throughput::Elements(SPANS));
    group.bench_function("json to protobuf", |bench| {
        bench.iter(|| json::translate(Signal::Traces, black_box(body), &mut raw));
    });
    group.bench_function("json's bound", |bench| bench.iter(|| json::max_len(black_box(body))));
    let len = json::translate(Signal::Traces, body, &mut raw).map_or(0, |done| done.len);
    raw.truncate(len);

    let mut out = vec![0; raw.len() * 2];
    for level in [1, 6] {
        let Ok(mut encoder) = gzip::Encoder::new(level) else { return };
        group.bench_function(format!("gzip {level}"), |bench| {
            bench.iter(|| {
                let (_, written) = encoder.step(black_box(&raw), &mut out);
                encoder.finish(out.get_mut(written..).unwrap_or_default())
            });
        });
        let (_, written) = encoder.step(&raw, &mut out);
        let (rest, _) = encoder.finish(out.get_mut(written..).unwrap_or_default());
        let packed = out.get(..written + rest).unwrap_or_default().to_vec();
        let mut decoder = gzip::Decoder::new();
        let mut plain = vec![0; raw.len()];
        group.bench_function(format!("gzip {level} undone"), |bench| {
            bench.iter(|| {
                decoder.reset();
                decoder.step(black_box(&packed), &mut plain).map(|progress| progress.written)
            });
        });
    }
    for level in [1, 3] {
        let Ok(mut encoder) = zstd::Encoder::new(level) else { return };
        group.bench_function(format!("zstd {level} in one go"), |bench| {
            bench.iter(|| encoder.whole(black_box(&raw), &mut out));
        });
        group.bench_function(format!("zstd {level} in steps"), |bench| {
            bench.iter(|| {
                let _ = encoder.begin(Some(raw.len() as u64));
                let (_, written) = encoder.step(black_box(&raw), &mut out).unwrap_or((0, 0));
                encoder.finish(out.get_mut(written..).unwrap_or_default())
            });
        });
        let written = encoder.whole(&raw, &mut out).unwrap_or(0);
        let packed = out.get(..written).unwrap_or_default().to_vec();
        let mut decoder = zstd::Decoder::new(zstd::Decoder::WINDOW);
        let mut plain = vec![0; raw.len()];
        group.bench_function(format!("zstd {level} undone"), |bench| {
            bench.iter(|| {
                decoder.reset();
                decoder.step(black_box(&packed), &mut plain).map(|progress| progress.written)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, codings);
criterion_main!(benches);
