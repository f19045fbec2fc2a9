//! A receiver's work per body, against the bare cost of its parts.
//!
//! `cargo bench -p tidegate-wire`; the bar is `decode and check` within 1.5 times `decode and bare scan`.
//! The body is a usual one: 2,000 series of nine labels and one sample, about 300 bytes each.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tidegate_load::remote_write::bare_scan;
use tidegate_wire::output::{Counter, Full, Output};
use tidegate_wire::proto::Reader;
use tidegate_wire::proto::write::{self, Encode};
use tidegate_wire::remote_write::{
    Limits, Symbols, Version, check, join, series_hash, split, translate, view,
};
use tidegate_wire::snappy;

const SERIES: u64 = 2_000;

struct Body(Vec<u8>);

impl Output for Body {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

struct Series(u64);
struct Label<'a>(&'a str, &'a str);
struct Sample(u64);

impl Encode for Series {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Self(number) = self;
        let labels = [
            ("__name__", format!("http_server_request_duration_seconds_{}", number % 40)),
            ("cluster", "production-eu-west-1".to_owned()),
            ("container", format!("checkout-{}", number % 7)),
            ("endpoint", "http-metrics".to_owned()),
            ("instance", format!("10.32.{}.{}:9100", number % 16, number % 251)),
            ("job", "kubernetes-pods".to_owned()),
            ("namespace", format!("team-{}", number % 12)),
            ("pod", format!("checkout-7d9f8b6c5d-{number:05x}")),
            ("status_code", format!("{}", 200 + number % 5)),
        ];
        for (name, value) in &labels {
            write::message(out, 1, &Label(name, value))?;
        }
        write::message(out, 2, &Sample(*number))
    }
}

impl Encode for Label<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        write::bytes(out, 1, self.0.as_bytes())?;
        write::bytes(out, 2, self.1.as_bytes())
    }
}

impl Encode for Sample {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let value = f64::from(u32::try_from(self.0).unwrap_or(0)) * 1.37;
        write::fixed64(out, 1, value.to_bits())?;
        write::varint(out, 2, 1_790_000_000_000)
    }
}

fn body() -> Vec<u8> {
    let mut body = Body(Vec::new());
    for number in 0..SERIES {
        // A full `Body` cannot be: it grows.
        let _ = write::message(&mut body, 1, &Series(number));
    }
    body.0
}

fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; snappy::max_compressed_len(raw.len()).unwrap_or(0)];
    let len = snappy::Encoder::new().compress(raw, &mut out).unwrap_or(0);
    out.truncate(len);
    out
}

/// Where every name and value is, and every sample, through the views that readers use.
fn view_scan(raw: &[u8], found: &mut Vec<(u32, u32)>) -> u64 {
    found.clear();
    let mut sum = 0;
    let mut symbols = Symbols::new();
    let Ok(request) = view(Version::V1, raw, &mut symbols) else { return 0 };
    for series in request.series() {
        for label in series.labels() {
            for text in [label.name, label.value] {
                let offset = text.as_ptr().addr() - raw.as_ptr().addr();
                found.push((u32::try_from(offset).unwrap_or(0), u32::try_from(text.len()).unwrap_or(0)));
            }
        }
        for sample in series.samples() {
            sum ^= sample.bits ^ sample.timestamp.cast_unsigned();
        }
    }
    sum
}

fn boundaries(raw: &[u8]) -> usize {
    let mut reader = Reader::new(raw);
    let mut series = 0;
    while let Ok(Some(key)) = reader.key() {
        series += reader.bytes(key).map_or(0, <[u8]>::len);
    }
    series
}

fn remote_write(criterion: &mut Criterion) {
    let raw = body();
    let v1 = compressed(&raw);
    let mut out = vec![0; raw.len()];
    let mut found = Vec::new();
    let mut symbols = Symbols::new();
    let limits = Limits::default();

    let mut group = criterion.benchmark_group("v1");
    group.throughput(Throughput::Elements(SERIES));
    group.bench_function("decode", |bench| bench.iter(|| snappy::decode(black_box(&v1), &mut out)));
    group.bench_function("view scan", |bench| bench.iter(|| view_scan(black_box(&raw), &mut found)));
    group.bench_function("bare scan", |bench| bench.iter(|| bare_scan(black_box(&raw))));
    group.bench_function("check", |bench| {
        bench.iter(|| check(Version::V1, black_box(&raw), &limits, &mut symbols));
    });
    group.bench_function("decode and view scan", |bench| {
        bench.iter(|| {
            let _ = snappy::decode(black_box(&v1), &mut out);
            view_scan(&out, &mut found)
        });
    });
    group.bench_function("decode and bare scan", |bench| {
        bench.iter(|| {
            let _ = snappy::decode(black_box(&v1), &mut out);
            bare_scan(&out)
        });
    });
    group.bench_function("decode and check", |bench| {
        bench.iter(|| {
            let _ = snappy::decode(black_box(&v1), &mut out);
            check(Version::V1, &out, &limits, &mut symbols)
        });
    });
    group.bench_function("boundaries", |bench| bench.iter(|| boundaries(black_box(&raw))));
    group.bench_function("split", |bench| {
        let limit = split::Limit { samples: 500, bytes: 1 << 20 };
        bench.iter(|| split::split(black_box(&raw), limit).count());
    });
    group.bench_function("hash", |bench| {
        bench.iter(|| match view(Version::V1, black_box(&raw), &mut symbols) {
            Ok(request) => request.series().fold(0, |sum, series| sum ^ series_hash(series.labels())),
            Err(_) => 0,
        });
    });
    let mut scratch = translate::Scratch::new(10_000, 0);
    group.bench_function("to v2", |bench| {
        bench.iter(|| translate::to_v2(black_box(&raw), &mut scratch, &mut Counter::default()));
    });
    group.finish();

    let mut v2 = Body(Vec::new());
    let _ = translate::to_v2(&raw, &mut scratch, &mut v2);
    let v2 = v2.0;
    let v2_compressed = compressed(&v2);
    let mut group = criterion.benchmark_group("v2");
    group.throughput(Throughput::Elements(SERIES));
    group
        .bench_function("decode", |bench| bench.iter(|| snappy::decode(black_box(&v2_compressed), &mut out)));
    group.bench_function("check", |bench| {
        bench.iter(|| check(Version::V2, black_box(&v2), &limits, &mut symbols));
    });
    let mut scratch = join::Scratch::new(20_000);
    group.bench_function("join two", |bench| {
        bench.iter(|| join::join(black_box(&[&v2, &v2]), &mut scratch, &mut Counter::default()));
    });
    group.finish();
}

criterion_group!(benches, remote_write);
criterion_main!(benches);
