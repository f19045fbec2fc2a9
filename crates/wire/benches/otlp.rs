//! A receiver's work per request: the check, and one pass over all of it.
//!
//! `cargo bench -p tidegate-wire --bench otlp`; a request has 200 items of about 400 bytes, each with eight
//! attributes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidegate_wire::otlp::{AnyValue, Attributes, LogsRequest, Signal, TracesRequest, check};
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write::{self, Encode};

const ITEMS: u64 = 200;

struct Body(Vec<u8>);

impl Output for Body {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A message that consists of fields already encoded.
struct Fields(Vec<u8>);

impl Encode for Fields {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        out.put(&self.0)
    }
}

fn message(write: impl FnOnce(&mut Body) -> Result<(), Full>) -> Fields {
    let mut body = Body(Vec::new());
    // It cannot be full: it grows.
    let _ = write(&mut body);
    Fields(body.0)
}

fn text(key: &str, value: &str) -> Fields {
    let value = message(|out| write::bytes(out, 1, value.as_bytes()));
    message(|out| {
        write::bytes(out, 1, key.as_bytes())?;
        write::message(out, 2, &value)
    })
}

fn int(key: &str, value: u64) -> Fields {
    let value = message(|out| write::varint(out, 3, value));
    message(|out| {
        write::bytes(out, 1, key.as_bytes())?;
        write::message(out, 2, &value)
    })
}

fn attributes(number: u64) -> [Fields; 8] {
    [
        text("http.request.method", "GET"),
        text("url.path", &format!("/api/v1/orders/{number}/positions")),
        text("server.address", "checkout.shop.svc.cluster.local"),
        int("server.port", 8443),
        int("http.response.status_code", 200 + number % 5),
        text("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64) Firefox/143.0"),
        text("network.protocol.version", "1.1"),
        text("client.address", &format!("10.32.{}.{}", number % 16, number % 251)),
    ]
}

fn id<const N: usize>(number: u64) -> [u8; N] {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::array::from_fn(|_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        state.to_be_bytes()[0]
    })
}

fn span(number: u64) -> Fields {
    message(|out| {
        write::bytes(out, 1, &id::<16>(number))?;
        write::bytes(out, 2, &id::<8>(number + 1))?;
        write::bytes(out, 4, &id::<8>(number + 2))?;
        write::bytes(out, 5, b"GET /api/v1/orders/{id}/positions")?;
        write::varint(out, 6, 2)?;
        write::fixed64(out, 7, 1_790_000_000_000_000_000 + number)?;
        write::fixed64(out, 8, 1_790_000_000_012_345_678 + number)?;
        for attribute in &attributes(number) {
            write::message(out, 9, attribute)?;
        }
        write::message(out, 15, &message(|_| Ok(())))?;
        // flags, as four bytes
        out.put(&[0x85, 0x01, 1, 1, 0, 0])
    })
}

fn record(number: u64) -> Fields {
    let body = format!("order {number} has been confirmed and handed to the warehouse for packing");
    let body = message(|out| write::bytes(out, 1, body.as_bytes()));
    message(|out| {
        write::fixed64(out, 1, 1_790_000_000_000_000_000 + number)?;
        write::varint(out, 2, 9)?;
        write::bytes(out, 3, b"INFO")?;
        write::message(out, 5, &body)?;
        for attribute in &attributes(number) {
            write::message(out, 6, attribute)?;
        }
        write::bytes(out, 9, &id::<16>(number))?;
        write::bytes(out, 10, &id::<8>(number + 1))?;
        write::fixed64(out, 11, 1_790_000_000_000_000_000 + number)
    })
}

fn point(number: u64) -> Fields {
    message(|out| {
        write::fixed64(out, 2, 1_790_000_000_000_000_000)?;
        write::fixed64(out, 3, 1_790_000_000_000_000_000 + number)?;
        write::fixed64(out, 6, number)?;
        for attribute in &attributes(number) {
            write::message(out, 7, attribute)?;
        }
        Ok(())
    })
}

fn request(items: &[Fields], field: u32) -> Vec<u8> {
    let resource = message(|out| {
        write::message(out, 1, &text("service.name", "checkout"))?;
        write::message(out, 1, &text("k8s.pod.name", "checkout-7d9f8b6c5d-x2x9p"))
    });
    let scope = message(|out| {
        write::message(out, 1, &text("opentelemetry.instrumentation.http", "1.4.0"))?;
        items.iter().try_for_each(|item| write::message(out, field, item))
    });
    let group = message(|out| {
        write::message(out, 1, &resource)?;
        write::message(out, 2, &scope)
    });
    message(|out| write::message(out, 1, &group)).0
}

fn points() -> Vec<u8> {
    let gauge = message(|out| (0..ITEMS).try_for_each(|number| write::message(out, 1, &point(number))));
    let metric = message(|out| {
        write::bytes(out, 1, b"http.server.active_requests")?;
        write::bytes(out, 3, b"{request}")?;
        write::message(out, 5, &gauge)
    });
    request(&[metric], 2)
}

fn text_bytes(attributes: Attributes<'_>) -> usize {
    attributes
        .map(|attribute| {
            attribute.key.len() + if let AnyValue::Text(text) = attribute.value { text.len() } else { 0 }
        })
        .sum()
}

fn otlp(criterion: &mut Criterion) {
    let spans: Vec<Fields> = (0..ITEMS).map(span).collect();
    let records: Vec<Fields> = (0..ITEMS).map(record).collect();
    let (traces, logs, metrics) = (request(&spans, 2), request(&records, 2), points());

    let mut group = criterion.benchmark_group("otlp");
    group.throughput(Throughput::Elements(ITEMS));
    for (name, signal, body) in [
        ("check spans", Signal::Traces, &traces),
        ("check log records", Signal::Logs, &logs),
        ("check points", Signal::Metrics, &metrics),
    ] {
        assert!(check(signal, body).is_ok_and(|counts| counts.items == ITEMS));
        group.bench_function(name, |bench| bench.iter(|| check(signal, black_box(body))));
    }
    group.bench_function("view spans", |bench| {
        bench.iter(|| {
            let resources = TracesRequest::new(black_box(&traces)).resources();
            let spans = resources.flat_map(|resource| resource.scopes()).flat_map(|scope| scope.items());
            spans.map(|span| span.name.len() + text_bytes(span.attributes())).sum::<usize>()
        });
    });
    group.bench_function("view log records", |bench| {
        bench.iter(|| {
            let resources = LogsRequest::new(black_box(&logs)).resources();
            let records = resources.flat_map(|resource| resource.scopes()).flat_map(|scope| scope.items());
            records.map(|record| text_bytes(record.attributes())).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, otlp);
criterion_main!(benches);
