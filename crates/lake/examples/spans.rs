//! Writes a million spans to a lake, and says what that took.
//!
//!     cargo run --release -p tidegate-lake --example spans -- [SLICE_MIB [REQUESTS]]
//!
//! 1,954 requests of 512 spans, each from one of 60 services with 4 pods: 7 to 10 attributes, names and
//! routes that recur, ids and paths that do not, 2 % errors with a stack trace. CPU time is that of pushing
//! and committing, not of making the requests; the peak is that of the whole process.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench, which says what it measured")]

#[path = "../tests/support/body.rs"]
mod body;
#[path = "../tests/support/otlp.rs"]
mod otlp;

use body::{bytes, fixed64, varint};
use otlp::{Attr, attributes, request};
use tidegate_arena::heap::{CountingAllocator, JEMALLOC, Jemalloc};
use tidegate_lake::{BatchPosition, Writer, WriterSettings, verify};
use tidegate_wire::otlp::Signal;

#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);

const SPANS: u64 = 512;
const NOW_NS: u64 = 1_700_000_000_000_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let slice = arguments.next().unwrap_or(32) << 20;
    let requests = arguments.next().unwrap_or(1954);
    let dir = tempfile::tempdir().unwrap();
    let before = status("VmHWM:");
    let (mut writer, _) = Writer::open(WriterSettings::new(dir.path(), slice, "bench")).unwrap();
    let (mut raw_bytes, mut rows, mut pushing, mut closing) = (0, 0, 0, 0);
    let mut random = Random(42);
    for sequence in 0..requests {
        let raw = made(sequence, &mut random);
        raw_bytes += raw.len() as u64;
        let started = cpu_ns();
        let position = BatchPosition { sequence, received_at_ns: NOW_NS };
        let pushed = writer.push_otlp(&position, Signal::Traces, &raw, NOW_NS).unwrap();
        pushing += cpu_ns() - started;
        assert_eq!(pushed.dropped.items(), 0);
        rows += pushed.rows;
    }
    let started = cpu_ns();
    writer.close_files().unwrap();
    closing += cpu_ns() - started;
    let peak = status("VmHWM:");
    drop(writer);
    let report = verify(dir.path()).unwrap();
    assert!(report.is_sound() && report.rows == rows, "{report:?}");
    let seconds = (pushing + closing) as f64 / 1e9;
    println!("{rows} spans, {:.1} MB of OTLP, slice of {} MiB", raw_bytes as f64 / 1e6, slice >> 20);
    println!(
        "{seconds:.2} CPU s ({:.2} at the end): {:.0} MB/s, {:.0} spans/s",
        closing as f64 / 1e9,
        raw_bytes as f64 / 1e6 / seconds,
        rows as f64 / seconds
    );
    println!(
        "{:.1} MB in {} files, {:.1} bytes a span, {:.1} times less than OTLP",
        report.bytes as f64 / 1e6,
        report.files,
        report.bytes as f64 / rows as f64,
        raw_bytes as f64 / report.bytes as f64
    );
    println!(
        "peak {:.1} MB resident, {:.1} MB before the writer was opened",
        peak as f64 / 1e6,
        before as f64 / 1e6
    );
}

/// Nanoseconds that this thread has run.
fn cpu_ns() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|character: char| !character.is_ascii_digit()).parse::<u64>().unwrap() * 1024
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 32) % limit
    }
}

/// A request of one pod.
fn made(sequence: u64, random: &mut Random) -> Vec<u8> {
    let (service, pod) = (random.below(60), random.below(4));
    let name = format!("service-{service}");
    let pod_name = format!("{name}-7d9f8b6c5d-{:05x}", service * 4 + pod);
    let host = format!("ip-10-0-{}-{}.eu-central-1.compute.internal", service % 16, pod);
    let resource = [
        ("service.name", Attr::Text(&name)),
        ("service.namespace", Attr::Text("shop")),
        ("service.version", Attr::Text("2.14.3")),
        ("service.instance.id", Attr::Text(&pod_name)),
        ("deployment.environment.name", Attr::Text("production")),
        ("host.name", Attr::Text(&host)),
        ("k8s.namespace.name", Attr::Text("shop")),
        ("k8s.pod.name", Attr::Text(&pod_name)),
        ("process.pid", Attr::Int((1000 + service).cast_signed())),
        ("telemetry.sdk.language", Attr::Text("java")),
        ("telemetry.sdk.name", Attr::Text("opentelemetry")),
        ("telemetry.sdk.version", Attr::Text("1.44.0")),
    ];
    let mut scope = Vec::new();
    bytes(&mut scope, 1, b"io.opentelemetry.spring-webmvc-6.0");
    bytes(&mut scope, 2, b"2.10.0-alpha");
    let (mut trace, mut parent, mut left) = ([0; 16], 0, 0);
    let spans: Vec<Vec<u8>> = (0..SPANS)
        .map(|place| {
            if left == 0 {
                trace = (u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes();
                (parent, left) = (0, 1 + random.below(12));
            }
            left -= 1;
            let id = random.next();
            let span =
                span(service, NOW_NS + sequence * 10_000_000 + place * 19_000, trace, id, parent, random);
            if parent == 0 {
                parent = id;
            }
            span
        })
        .collect();
    request(&resource, &scope, &spans)
}

fn span(service: u64, start: u64, trace: [u8; 16], id: u64, parent: u64, random: &mut Random) -> Vec<u8> {
    let mut span = Vec::new();
    bytes(&mut span, 1, &trace);
    bytes(&mut span, 2, &id.to_be_bytes());
    if parent != 0 {
        bytes(&mut span, 4, &parent.to_be_bytes());
    }
    let route = random.below(12);
    let failed = random.below(50) == 0;
    let kind = random.below(3);
    let status = if failed { 500 } else { 200 + (random.below(20) / 19 * 4).cast_signed() };
    let number = random.below(1_000_000);
    let path = format!("/api/v2/resource-{route}/{number}");
    let route_name = format!("/api/v2/resource-{route}/{{id}}");
    let peer = format!("service-{}.shop.svc.cluster.local", (service * 7 + route) % 60);
    let query =
        format!("SELECT id, name, state, updated_at FROM orders_{route} WHERE customer_id = ? AND state = ?");
    let client = format!("10.{}.{}.{}", random.below(4), random.below(255), random.below(255));
    let method = format!("Get{route}");
    let request_id = format!("{:016x}", random.next());
    let (name, mut all) = match kind {
        0 => (
            format!("GET {route_name}"),
            vec![
                ("http.request.method", Attr::Text("GET")),
                ("http.route", Attr::Text(&route_name)),
                ("http.response.status_code", Attr::Int(status)),
                ("url.path", Attr::Text(&path)),
                ("url.scheme", Attr::Text("https")),
                ("client.address", Attr::Text(&client)),
                ("network.protocol.version", Attr::Text("1.1")),
                ("request.id", Attr::Text(&request_id)),
            ],
        ),
        1 => (
            format!("SELECT orders_{route}"),
            vec![
                ("db.system", Attr::Text("postgresql")),
                ("db.namespace", Attr::Text("shop")),
                ("db.query.text", Attr::Text(&query)),
                ("server.address", Attr::Text(&peer)),
                ("server.port", Attr::Int(5432)),
                ("db.operation.name", Attr::Text("SELECT")),
                ("db.response.returned_rows", Attr::Int(random.below(100).cast_signed())),
            ],
        ),
        _ => (
            format!("shop.Catalog/Get{route}"),
            vec![
                ("rpc.system", Attr::Text("grpc")),
                ("rpc.service", Attr::Text("shop.Catalog")),
                ("rpc.method", Attr::Text(&method)),
                ("rpc.grpc.status_code", Attr::Int(if failed { 13 } else { 0 })),
                ("server.address", Attr::Text(&peer)),
                ("network.peer.address", Attr::Text(&client)),
                ("request.id", Attr::Text(&request_id)),
            ],
        ),
    };
    all.push(("thread.id", Attr::Int((20 + random.below(64)).cast_signed())));
    if random.below(2) == 0 {
        all.push(("sampled.ratio", Attr::Double(0.1 * (1 + random.below(9)) as f64)));
    }
    bytes(&mut span, 5, name.as_bytes());
    varint(&mut span, 6, kind + 1);
    fixed64(&mut span, 7, start);
    fixed64(&mut span, 8, start + 200_000 + random.below(40_000_000));
    attributes(&mut span, 9, &all);
    if failed {
        exception(&mut span, start, route, number);
    }
    span
}

fn exception(span: &mut Vec<u8>, start: u64, route: u64, number: u64) {
    let stack: String = (0..24)
        .map(|frame| {
            let line = (frame * 37 + route * 11) % 900;
            format!(
                "\tat com.example.shop.orders.internal.Handler{frame}.invoke(Handler{frame}.java:{line})\n"
            )
        })
        .collect();
    let message = format!("order {number} could not be loaded");
    let (mut event, mut status) = (Vec::new(), Vec::new());
    fixed64(&mut event, 1, start + 150_000);
    bytes(&mut event, 2, b"exception");
    let all = [
        ("exception.type", Attr::Text("java.lang.IllegalStateException")),
        ("exception.message", Attr::Text(&message)),
        ("exception.stacktrace", Attr::Text(&stack)),
    ];
    attributes(&mut event, 3, &all);
    bytes(span, 11, &event);
    bytes(&mut status, 2, message.as_bytes());
    varint(&mut status, 3, 2);
    bytes(span, 15, &status);
}
