//! The client against the checking sink, in every mood of the sink.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{TIMELINE, model};
use crate::hostile::exchange;
use crate::remote_write::{RequestExtras, Version, compress};
use crate::{
    Behaviour, Check, Connection, DEMO_BYTES, DEMO_SERIES, LoadProfile, LoadReport, OnRefused, RunLimit,
    SeriesModel, Target, VerifyingReceiver, compare, drive_blocking, trickle,
};

/// Longer than anything takes that comes about at all, on a busy machine too.
const SOON: Duration = Duration::from_secs(60);

fn sink(behaviour: Behaviour) -> VerifyingReceiver {
    VerifyingReceiver::start(behaviour, Check::Timed(TIMELINE)).unwrap()
}

fn profile() -> LoadProfile {
    LoadProfile {
        series_per_request: 20,
        limit: RunLimit::Passes(3),
        deadline: SOON,
        ..LoadProfile::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Drives in the background while the test changes the sink's mood.
fn driving(
    target: &Target,
    model: &Arc<SeriesModel>,
    profile: LoadProfile,
) -> thread::JoinHandle<LoadReport> {
    let (target, model) = (target.clone(), Arc::clone(model));
    thread::spawn(move || drive_blocking(&target, &model, &profile).unwrap())
}

/// Everything acknowledged arrives once, in order, in both versions, with all extras.
#[test]
fn a_healthy_sink_gets_everything() {
    for version in [Version::V1, Version::V2] {
        let (sink, model) = (sink(Behaviour::Healthy), Arc::new(model(150)));
        let extras = RequestExtras { exemplars: true, metadata: true, stale: true };
        let profile = LoadProfile { version, extras, samples_per_series: 2, ..profile() };
        let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
        let arrived = sink.stop();
        let verdict = compare(&model, &report.acked, &arrived);
        assert_eq!((report.samples, verdict.acked, arrived.samples()), (900, 900, 900));
        assert!(verdict.nothing_lost() && verdict.duplicates == 0 && verdict.unknown_series == 0);
        assert_eq!(arrived.requests[&204], report.accepted());
        assert_eq!((report.connections, report.failed, arrived.malformed), (4, 0, 0));
        assert!(arrived.totals.exemplars > 0 && arrived.totals.metadata > 0);
        assert_eq!(arrived.series.values().map(|series| series.stale).sum::<u64>(), 3 * 120);
        assert_eq!(report.latency.count(), report.accepted());
    }
}

/// A 503 with `Retry-After` is tried again until it is accepted; nothing is lost or doubled.
#[test]
fn refusals_are_tried_again() {
    let sink = sink(Behaviour::Status { code: 503, retry_after: Some(1) });
    let model = Arc::new(model(50));
    let at_most = Duration::from_millis(5);
    let profile = LoadProfile { on_refused: OnRefused::Retry { at_most }, ..profile() };
    let driving = driving(&sink.target(), &model, profile);
    assert!(sink.wait_for(SOON, |arrivals| arrivals.requests.get(&503).is_some_and(|refused| *refused > 8)));
    sink.set(Behaviour::Healthy);
    let report = driving.join().unwrap();
    let verdict = compare(&model, &report.acked, &sink.stop());
    assert!(report.answers[&503] > 8 && report.with_retry_after == report.answers[&503]);
    assert_eq!((verdict.acked, verdict.missing, verdict.duplicates), (150, 0, 0));
    assert!(verdict.nothing_lost());
}

/// Told to count, the client goes on after a refusal, and what was refused is not acknowledged.
#[test]
fn refusals_are_counted() {
    let sink = sink(Behaviour::Status { code: 429, retry_after: None });
    let model = Arc::new(model(50));
    let profile = LoadProfile { on_refused: OnRefused::Count, ..profile() };
    let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
    assert_eq!((report.refused(), report.accepted(), report.acked.samples()), (12, 0, 0));
}

/// A final refusal is not tried again.
#[test]
fn a_final_refusal_is_final() {
    let (sink, model) = (sink(Behaviour::OnlyV1), Arc::new(model(40)));
    let profile = LoadProfile { version: Version::V2, limit: RunLimit::Requests(5), ..profile() };
    let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
    assert_eq!((report.answers[&415], report.accepted()), (5, 0));
}

/// A sink that does not answer costs a request its time, not its samples.
#[test]
fn a_stalled_sink_loses_nothing() {
    let (sink, model) = (sink(Behaviour::Stall), Arc::new(model(50)));
    let profile = LoadProfile { answer_within: Duration::from_millis(500), ..profile() };
    let driving = driving(&sink.target(), &model, profile);
    assert!(sink.wait_for(SOON, |arrivals| arrivals.stalled >= 8));
    assert_eq!(sink.report().samples(), 0);
    sink.set(Behaviour::Healthy);
    let report = driving.join().unwrap();
    let verdict = compare(&model, &report.acked, &sink.stop());
    assert!(report.failed >= 4, "{}", report.failed);
    assert_eq!((verdict.acked, verdict.missing, verdict.out_of_order), (150, 0, 0));
}

/// A sink that is gone and comes back on the same port gets everything.
#[test]
fn a_sink_that_refuses_connections_comes_back() {
    let (sink, model) = (sink(Behaviour::Refuse), Arc::new(model(50)));
    assert!(std::net::TcpStream::connect(sink.address()).is_err());
    let driving = driving(&sink.target(), &model, profile());
    sink.set(Behaviour::Healthy);
    let report = driving.join().unwrap();
    let verdict = compare(&model, &report.acked, &sink.stop());
    assert!(verdict.nothing_lost() && verdict.acked == 150);
}

/// A run ends at its deadline, whatever the sink does.
#[test]
fn a_run_always_ends() {
    let (sink, model) = (sink(Behaviour::Stall), Arc::new(model(50)));
    let profile = LoadProfile { deadline: Duration::from_millis(100), ..profile() };
    let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
    assert!(report.elapsed < SOON && report.accepted() == 0);
    sink.set(Behaviour::Healthy);
    let limited = LoadProfile { limit: RunLimit::Time(Duration::from_secs(1)), deadline: SOON, ..profile };
    let report = drive_blocking(&sink.target(), &model, &limited).unwrap();
    assert!(report.elapsed < SOON && report.accepted() > 0);
}

/// A slow sink is slow, and gets everything.
#[test]
fn a_slow_sink_gets_everything() {
    let (sink, model) = (sink(Behaviour::Slow { bytes_per_second: 100_000 }), Arc::new(model(100)));
    let profile =
        LoadProfile { series_per_request: 100, limit: RunLimit::Passes(1), connections: 1, ..profile() };
    let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
    assert!(compare(&model, &report.acked, &sink.stop()).nothing_lost());
    assert!(report.elapsed > Duration::from_millis(50), "{:?}", report.elapsed);
}

/// A receiver that knows only version 1 and does not look drops version 2 silently: no `Written` header.
#[test]
fn a_version_1_receiver_drops_version_2_silently() {
    let (sink, model) = (sink(Behaviour::Oblivious), model(3));
    let answers = [Version::V1, Version::V2].map(|version| {
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        crate::remote_write::SampleBatch::of(&model, model.series(), 0, 1).encode(version, &mut raw);
        compress(&raw, &mut body);
        runtime().block_on(async {
            let mut connection = Connection::open(&sink.target(), SOON).await.unwrap();
            connection.write(&sink.target(), version, &body, SOON).await.unwrap()
        })
    });
    assert!(answers.iter().all(|answer| answer.status == 204 && answer.written == [None; 3]));
    assert_eq!(sink.stop().samples(), 3);
}

/// Prebuilt bodies are replayed for as long as asked, and the pace is kept.
#[test]
fn prebuilt_bodies_are_replayed() {
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Nothing).unwrap();
    let model = Arc::new(SeriesModel::new(1, 40, TIMELINE));
    let profile = LoadProfile { prebuilt: Some(2), limit: RunLimit::Requests(101), ..profile() };
    let report = drive_blocking(&sink.target(), &model, &profile).unwrap();
    assert_eq!((report.accepted(), report.acked.samples()), (101, 0));
    assert_eq!(sink.report().versions, [101, 0]);
    let paced = LoadProfile { rate: Some(200.0), limit: RunLimit::Requests(21), connections: 1, ..profile };
    let report = drive_blocking(&sink.target(), &model, &paced).unwrap();
    assert!(report.elapsed >= Duration::from_millis(100), "{:?}", report.elapsed);
}

/// A refusal that comes before the body is sent is read, and that connection is not used again.
#[test]
fn an_early_refusal_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::remote_write(listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 64];
        stream.read_exact(&mut head).unwrap();
        let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 No\r\nContent-Length: 9\r\n\r\ntoo large";
        stream.write_all(answer).unwrap();
        // Open, and not reading, until the client has gone.
        stream
    });
    let body = vec![0; 64 << 20];
    let (response, reusable) = runtime().block_on(async {
        let mut connection = Connection::open(&target, SOON).await.unwrap();
        let response = connection.write(&target, Version::V1, &body, SOON).await.unwrap();
        (response, connection.is_reusable())
    });
    assert_eq!((response.status, &*response.body, reusable), (413, "too large", false));
    drop(server.join().unwrap());
}

/// Bodies in chunks are bodies, and what is no body is answered 400.
#[test]
fn chunked_bodies_are_read() {
    let (sink, model) = (sink(Behaviour::Healthy), model(2));
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    crate::remote_write::SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
    compress(&raw, &mut body);
    let head = "POST / HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nConnection: close\r\n";
    let mut chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for chunk in body.chunks(100) {
        chunked.extend_from_slice(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let garbage = format!("{head}Content-Length: 3\r\n\r\nabc");
    let [taken, refused] = [&chunked[..], garbage.as_bytes()]
        .map(|bytes| runtime().block_on(exchange(sink.address(), bytes, SOON)).unwrap());
    assert!(taken.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&taken));
    assert!(refused.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&refused));
    let arrived = sink.stop();
    assert_eq!((arrived.samples(), arrived.malformed, arrived.faults.len()), (2, 1, 1));
}

/// The trickle has as many series as it says, keeps within its memory, and stops when told.
#[test]
fn the_trickle_flows_until_stopped() {
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Everything).unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let target = sink.target();
    let trickling = thread::spawn(move || {
        let (runtime, mut trickled) = (runtime(), None);
        let flow = async { trickled = Some(trickle(&target, Duration::from_millis(10), stopped).await) };
        let memory = allocation_counter::measure(|| runtime.block_on(flow));
        (trickled.unwrap(), memory.bytes_max)
    });
    assert!(sink.wait_for(SOON, |arrivals| arrivals.versions[0] >= 5));
    stop.send(true).unwrap();
    let (trickled, bytes) = trickling.join().unwrap();
    assert!(bytes < DEMO_BYTES as u64, "{bytes}");
    let arrived = sink.stop();
    assert!(trickled.accepted >= 5 && trickled.failed == 0);
    assert_eq!((arrived.series.len(), arrived.malformed, arrived.unnumbered), (DEMO_SERIES, 0, 0));
    assert_eq!(DEMO_SERIES, 200);
}

/// Only what can be a target is one.
#[test]
fn targets_are_parsed() {
    let target: Target = "http://localhost/a/b?c".parse().unwrap();
    assert_eq!(
        (&*target.authority, &*target.path, target.address()),
        ("localhost", "/a/b?c", "localhost:80".into())
    );
    assert_eq!("http://[::1]:9".parse::<Target>().unwrap().address(), "[::1]:9");
    assert_eq!("http://[::1]".parse::<Target>().unwrap().address(), "[::1]:80");
    for bad in ["", "https://a/", "http://", "http:///x", "http://a\r\nb/", "http://u@a/", "http://a/ b"] {
        assert!(bad.parse::<Target>().is_err(), "{bad}");
    }
}
