//! The cost of a sample on its way into the lake: from the view of a body to bytes in a file.
//!
//! `cargo bench -p tidegate-lake`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

#[path = "../tests/support/body.rs"]
mod body;

use body::{Body, labels};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tidegate_lake::{BatchPosition, Writer, WriterSettings, list};
use tidegate_wire::remote_write::{Symbols, Version, view};

const NOW_NS: u64 = 1_700_000_000_000_000_000;
const SERIES: u64 = 10_000;
const ROUNDS: u64 = 20;

/// Every series once, in bodies of 2,000 series with nine labels.
fn bodies(round: u64) -> Vec<Body> {
    let chunk = |from: u64| {
        (from..from + 2000).fold(Body::default(), |body, serial| {
            let labels = labels(&[
                ("__name__", &format!("http_requests_{}_total", serial % 50)),
                ("cluster", "production-eu-west-1"),
                ("container", "api"),
                ("handler", &format!("/api/v1/items/{}", serial % 31)),
                ("instance", &format!("10.0.{}.{}:9100", serial / 50 % 16, serial / 800)),
                ("job", "kubernetes-pods"),
                ("method", ["GET", "POST", "PUT"][(serial % 3) as usize]),
                ("namespace", "shop"),
                ("pod", &format!("api-7d9f8b6c5-{:05x}", serial / 50)),
            ]);
            let time = 1_700_000_000_000 + (round * 15_000 + serial % 1000) as i64;
            body.series(&labels, &[(time, ((serial * 17 + round * (serial % 90)) as f64).to_bits())])
        })
    };
    (0..SERIES).step_by(2000).map(chunk).collect()
}

fn push(criterion: &mut Criterion) {
    let bodies: Vec<Body> = (0..ROUNDS).flat_map(bodies).collect();
    let mut group = criterion.benchmark_group("lake");
    group.throughput(Throughput::Elements(SERIES * ROUNDS)).sample_size(10);
    for slice in [6_u64, 24] {
        group.bench_function(format!("push, {slice} MiB"), |bencher| {
            bencher.iter_batched(
                || tempfile::tempdir().unwrap(),
                |dir| {
                    let (mut writer, _) =
                        Writer::open(WriterSettings::new(dir.path(), slice << 20, "bench")).unwrap();
                    for (sequence, body) in bodies.iter().enumerate() {
                        let mut symbols = Symbols::new();
                        let request = view(Version::V1, &body.0, &mut symbols).unwrap();
                        let position = BatchPosition { sequence: sequence as u64, received_at_ns: NOW_NS };
                        writer.push(&position, &request, NOW_NS).unwrap();
                    }
                    writer.close_files().unwrap();
                    dir
                },
                BatchSize::PerIteration,
            );
        });
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, _) = Writer::open(WriterSettings::new(dir.path(), slice << 20, "bench")).unwrap();
        for (sequence, body) in bodies.iter().enumerate() {
            let mut symbols = Symbols::new();
            let request = view(Version::V1, &body.0, &mut symbols).unwrap();
            writer
                .push(&BatchPosition { sequence: sequence as u64, received_at_ns: NOW_NS }, &request, NOW_NS)
                .unwrap();
        }
        writer.close_files().unwrap();
        let partitions = list(dir.path()).unwrap();
        let (rows, bytes): (u64, u64) =
            (partitions.iter().map(|p| p.rows).sum(), partitions.iter().map(|p| p.bytes).sum());
        println!(
            "{slice} MiB: {:.2} bytes a row in {} files",
            bytes as f64 / rows as f64,
            partitions[0].files
        );
    }
    group.finish();
}

criterion_group!(benches, push);
criterion_main!(benches);
