//! The cost of the generator itself, per request of 2,000 series. `cargo bench -p tidegate-load`
#![allow(missing_docs, reason = "a bench")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidegate_load::remote_write::{SampleBatch, Version, compress, decode};
use tidegate_load::{
    Behaviour, Check, LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, VerifyingReceiver,
    drive_blocking,
};

const SERIES: usize = 2_000;

fn generate(c: &mut Criterion) {
    let timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };
    let model = Arc::new(SeriesModel::new(1, SERIES, timeline));
    let mut group = c.benchmark_group("per sample");
    group.throughput(Throughput::Elements(SERIES as u64));
    for version in [Version::V1, Version::V2] {
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        let batch = SampleBatch::of(&model, model.series(), 1_000, 1);
        batch.encode(version, &mut raw);
        compress(&raw, &mut body);
        group.bench_function(format!("{version:?} encode"), |b| b.iter(|| batch.encode(version, &mut raw)));
        group.bench_function(format!("{version:?} compress"), |b| b.iter(|| compress(&raw, &mut body)));
        group.bench_function(format!("{version:?} decode"), |b| {
            b.iter(|| decode(version, &body, raw.len(), &mut |arrival| _ = black_box(arrival)));
        });
    }
    group.finish();
}

/// Client, kernel and an unchecking sink together, without anything under test: the ceiling of a bench.
fn drive(c: &mut Criterion) {
    let timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };
    let model = Arc::new(SeriesModel::new(1, 32_000, timeline));
    let sink = match VerifyingReceiver::start(Behaviour::Healthy, Check::Nothing) {
        Ok(sink) => sink,
        Err(error) => panic!("no sink: {error}"),
    };
    let profile = LoadProfile {
        connections: 16,
        series_per_request: SERIES,
        limit: RunLimit::Requests(160),
        prebuilt: Some(1),
        on_refused: OnRefused::Count,
        deadline: Duration::from_secs(10),
        ..LoadProfile::default()
    };
    let mut group = c.benchmark_group("whole");
    group.throughput(Throughput::Elements(160 * SERIES as u64)).sample_size(10);
    group.bench_function("prebuilt, 16 connections, 160 requests", |b| {
        b.iter(|| drive_blocking(&sink.target(), &model, &profile).map(|report| report.accepted()));
    });
    group.finish();
}

criterion_group!(benches, generate, drive);
criterion_main!(benches);
