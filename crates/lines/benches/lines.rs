//! The cost of a line: `cargo bench -p tidegate-lines`. To count instructions, which do not depend on the machine's load, run
//! one case many times and subtract two counts: `perf stat -e instructions:u <this program> --run 'plain, 256 B' 1000`.
#![allow(missing_docs, clippy::expect_used, reason = "a bench")]

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use std::sync::Arc;
use tidegate_lines::{
    Boundary, Checkpoint, Encoding, Lines, Multiline, Output, Record, Settings, Taken, Workspace,
};
use tidegate_pipeline::LinePattern;

/// Adds up what it takes.
struct Sink(usize);

impl Output for Sink {
    fn record(&mut self, record: &Record<'_>) -> Taken {
        self.0 += black_box(record).text.len();
        Taken::Yes
    }
}

/// About 256 KiB of lines.
fn file(line: &str) -> Vec<u8> {
    line.repeat((256 << 10) / line.len()).into_bytes()
}

/// Measures a step that reads so many bytes, by name.
type Measure<'m> = dyn FnMut(&str, usize, &mut dyn FnMut()) + 'm;

/// Every measured file, by name.
fn each(measure: &mut Measure<'_>) {
    let message = "x".repeat(255);
    let escaped = "he said \\\"x\\\" \\t".repeat(18);
    let docker = |log: &str| {
        format!(
            "{{\"log\":\"{log}\\n\",\"stream\":\"stdout\",\"time\":\"2016-10-06T00:17:09.669794202Z\"}}\n"
        )
    };
    let cri = |tag: &str| format!("2016-10-06T00:17:09.669794202Z stdout {tag} {message}\n");
    let utf16: Vec<u8> =
        format!("{message}\n").repeat(1_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let stack = format!("2016-10-06 error\n{}", "  at some.java.Class.method(Class.java:123)\n".repeat(10));
    let multiline = Settings {
        multiline: Some(Multiline {
            boundary: Boundary::Start(LinePattern::compile(r"^\d{4}-").expect("it is a pattern")),
            timeout_ns: 1,
            longest: 1 << 20,
        }),
        ..Settings::default()
    };
    let utf16_settings = Settings { encoding: Encoding::Utf16Le, ..Settings::default() };
    let cases: [(&str, Vec<u8>, Settings); 8] = [
        ("plain, 256 B", file(&format!("{message}\n")), Settings::default()),
        ("plain, 64 B", file(&format!("{}\n", "x".repeat(63))), Settings::default()),
        ("cri, 256 B", file(&cri("F")), Settings::default()),
        ("cri, two parts", file(&format!("{}{}", cri("P"), cri("F"))), Settings::default()),
        ("docker, 256 B", file(&docker(&message)), Settings::default()),
        ("docker, escapes", file(&docker(&escaped)), Settings::default()),
        ("stack traces", file(&stack), multiline),
        ("utf-16", utf16, utf16_settings),
    ];
    for (name, file, settings) in cases {
        let settings = Arc::new(settings);
        let (mut workspace, mut sink) = (Workspace::default(), Sink(0));
        measure(name, file.len(), &mut || {
            let mut lines = Lines::resume(settings.clone(), &Checkpoint::at(0));
            let fed = lines.feed(&mut workspace, black_box(&file), 0, &mut sink);
            assert_eq!(fed.consumed, file.len());
        });
        black_box(sink.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, wanted, times, ..] = arguments.as_slice()
        && run == "--run"
    {
        let times: u64 = times.parse().unwrap_or(0);
        each(&mut |name, _, step| {
            if name == wanted {
                (0..times).for_each(|_| step());
            }
        });
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("lines");
    each(&mut |name, bytes, step| {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(name, |bench| bench.iter(&mut *step));
    });
    group.finish();
    criterion.final_summary();
}
