//! 50 spans of 8 attributes to a batch, to a peer in another process, gzip: what each library spends and
//! allocates for it. `crates/sender-bench/run` adds the Go agent.

#[path = "../../sender/benches/bars/measure.rs"]
mod measure;
#[path = "../../sender/tests/memory/sink.rs"]
#[allow(dead_code, reason = "others use the rest of it")]
mod sink;

use measure::{cpu, peer_in_a_process, span};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanKind, Tracer as _, TracerProvider as _};
use opentelemetry_otlp::{Compression as TheirCompression, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::Duration;
use tidegate_sender::opentelemetry::Exporter;
use tidegate_sender::{Compression, Sender};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const BATCHES: u64 = 2_000;
const LONG: Duration = Duration::from_secs(60);

fn main() {
    if measure::is_peer() {
        return;
    }
    let peer = peer_in_a_process();
    let sender = || {
        let builder = Sender::builder().endpoint(&peer.url).compression(Compression::Gzip);
        builder.flush_interval(LONG).start().unwrap()
    };
    for size in [5, 20, 50] {
        let own = sender();
        measured("tidegate-sender", size, |batch| {
            (0..batch).for_each(|number| own.span(&span(number)).unwrap());
            assert!(own.flush(LONG).is_nothing());
        });

        let own = sender();
        let provider = SdkTracerProvider::builder().with_simple_exporter(Exporter::new(own.clone())).build();
        measured("OpenTelemetry SDK + tidegate-sender", size, |batch| {
            spans(&provider, batch);
            assert!(own.flush(LONG).is_nothing());
        });

        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", peer.url))
            .with_compression(TheirCompression::Gzip)
            .build()
            .unwrap();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .build();
        measured("OpenTelemetry SDK + OTLP exporter", size, |batch| {
            spans(&provider, batch);
            provider.force_flush().unwrap();
        });
    }
}

fn measured(name: &str, size: u64, send: impl Fn(u64)) {
    (0..100).for_each(|_| send(size));
    let (before, region) = (cpu(), Region::new(GLOBAL));
    (0..BATCHES).for_each(|_| send(size));
    let (spent, stats) = (cpu() - before, region.change());
    println!(
        "{name:36} {size:2} spans: {:6.1} µs CPU, {:6} bytes in {:3} allocations",
        spent.as_secs_f64() * 1e6 / BATCHES as f64,
        stats.bytes_allocated as u64 / BATCHES,
        stats.allocations as u64 / BATCHES,
    );
}

/// The same spans as [`span`] makes.
fn spans(provider: &SdkTracerProvider, batch: u64) {
    let tracer = provider.tracer("bench");
    for _ in 0..batch {
        let mut span = tracer
            .span_builder("SELECT things")
            .with_kind(SpanKind::Client)
            .with_attributes([
                KeyValue::new("db.system.name", "postgresql"),
                KeyValue::new("db.query.text", "SELECT * FROM things WHERE id = $1"),
                KeyValue::new("db.namespace", "shop"),
                KeyValue::new("server.address", "db-1.internal"),
                KeyValue::new("server.port", 5432),
                KeyValue::new("db.response.returned_rows", 17),
                KeyValue::new("cached", false),
                KeyValue::new("ratio", 0.75),
            ])
            .start(&tracer);
        span.end();
    }
}
