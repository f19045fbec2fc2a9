//! A look at what passes, of a whole gateway: it shows what a source receives and what a sink takes, it is told
//! what it does not show, and nobody notices it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use rustix::process::Signal as Unix;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_load::otlp::{self, OtlpSink, Signal, Transport};
use tidegate_load::{
    Behaviour, Check, LoadProfile, RunLimit, SampleKind, SeriesModel, Timeline, VerifyingReceiver,
    drive_blocking,
};
use tidegate_tests::http::Answer;
use tidegate_tests::{Gateway, Program, SOON, command, finish, tidegate, until, until_some};

const MIB: u64 = 1 << 20;
const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1_000 };

/// A gateway before receivers that check, one for each protocol, and a sink that reads nothing.
struct Rig {
    gateway: Gateway,
    collector: OtlpSink,
    _upstream: VerifyingReceiver,
}

impl Rig {
    fn start() -> Rig {
        let collector = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        let upstream = VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap();
        let gateway = Gateway::started(json!({"memory": "64MiB", "limits": {"connections": 1000}, "sinks": {
            "collector": {
                "type": "otlp", "endpoints": [format!("http://{}", collector.address())], "compression": "gzip",
                "signals": ["traces", "logs"],
            },
            "upstream": {"type": "prometheus_remote_write", "url": upstream.target().to_string()},
            "lake": {"type": "lake", "file_age": "1s"},
            "nowhere": {"type": "blackhole"},
        }}));
        Rig { gateway, collector, _upstream: upstream }
    }

    fn otlp(&self, profile: &otlp::OtlpProfile) -> otlp::OtlpReport {
        let target = self.gateway.otlp_target();
        otlp::drive_blocking(&target, profile).unwrap()
    }

    fn spans(&self, first: u64) {
        let profile = otlp::OtlpProfile {
            transport: Transport::Grpc,
            coding: otlp::ContentCoding::Gzip,
            connections: 1,
            requests: 1,
            items: 20,
            first,
            ..otlp::OtlpProfile::default()
        };
        assert_eq!(self.otlp(&profile).accepted, 1);
    }

    fn samples(&self) {
        let model = Arc::new(SeriesModel::new(3, 20, TIMELINE));
        let profile = LoadProfile {
            connections: 1,
            series_per_request: 20,
            limit: RunLimit::Passes(1),
            ..LoadProfile::default()
        };
        let report = drive_blocking(&self.gateway.target(), &model, &profile).unwrap();
        assert_eq!(report.accepted(), 1, "{:?}", report.reasons);
        assert!(model.series().iter().all(|series| series.kind != SampleKind::Histogram));
    }

    /// Items caught by a tap since the last poll, and the line about the others.
    fn look(&self, query: &str) -> (Vec<Value>, Value) {
        lines(&self.gateway.page(&format!("/tap?{query}")))
    }

    fn memory_in_use(&self) -> u64 {
        let status = self.gateway.status();
        let shares = status["memory"]["payload"]["shares"].as_array().cloned().unwrap_or_default();
        let receiving = shares.iter().filter(|share| share["name"] != "lake");
        receiving.map(|share| share["used"].as_u64().unwrap_or(u64::MAX)).sum()
    }
}

fn lines(answer: &Answer) -> (Vec<Value>, Value) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let last = lines.pop().unwrap();
    assert!(last["missed_records"].is_u64(), "{last}");
    (lines, last)
}

/// Items of a source and of each kind of sink, as they were sent.
#[test]
fn the_tap_shows_passing_items() {
    let rig = Rig::start();
    let number = format!("/attributes/{}", otlp::NUMBER);
    let mut first = 0;
    for at in ["source:otlp", "sink:collector", "sink:lake"] {
        let query = at.replace(':', "=") + "&signal=traces";
        assert_eq!(rig.look(&query).0, Vec::<Value>::new(), "nothing was caught before anybody looked");
        rig.spans(first);
        let items = until_some(SOON, at, || {
            Some(rig.look(&format!("{query}&wait=1s")).0).filter(|it| !it.is_empty())
        });
        assert_eq!(items.len(), 20, "{at}");
        assert!(items.iter().all(|item| item["at"] == at && item["signal"] == "traces"), "{}", items[0]);
        let numbers: Vec<_> = items.iter().filter_map(|item| item.pointer(&number)?.as_u64()).collect();
        assert_eq!(numbers, (first..first + 20).collect::<Vec<_>>());
        first += 20;
    }
    for at in ["source:prometheus_remote_write", "sink:upstream", "sink:lake"] {
        let query = at.replace(':', "=") + "&signal=metrics";
        rig.look(&query);
        rig.samples();
        let items = until_some(SOON, at, || {
            Some(rig.look(&format!("{query}&wait=1s")).0).filter(|it| !it.is_empty())
        });
        let samples: Vec<_> = items.iter().filter(|item| item.get("value").is_some()).collect();
        assert_eq!(samples.len(), 20, "{at}");
        assert!(samples.iter().all(|item| item["at"] == at && item["labels"].is_object()), "{}", samples[0]);
    }
    // A sink that reads no bodies is seen to take records.
    rig.look("sink=nowhere");
    rig.spans(first);
    let items =
        until_some(SOON, "nowhere", || Some(rig.look("sink=nowhere&wait=1s").0).filter(|it| !it.is_empty()));
    assert_eq!((&items[0]["items"], &items[0]["not_shown"]), (&json!(20), &json!(20)));
}

#[test]
fn invalid_filters_are_reported() {
    let rig = Rig::start();
    let answer = rig.gateway.page("/tap?sink=colector");
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("there are: collector, lake, nowhere, upstream"), "{}", answer.text());
    assert_eq!(rig.gateway.page("/tap?every=never").status, 400);
    ["id=1", "id=2", "id=3", "id=4"].iter().for_each(|id| drop(rig.look(id)));
    let taken = rig.gateway.page("/tap?id=5");
    assert_eq!((taken.status, taken.header("retry-after")), (409, Some("1")));
    let metrics = rig.gateway.metrics();
    assert!(!metrics.is_empty(), "the other pages are there meanwhile");

    let admin = rig.gateway.admin().to_string();
    for (args, words) in [
        (vec!["--admin", &admin, "--sink", "colector"], "there is no sink `colector`"),
        (
            vec!["--admin", &admin, "--source", "kafka"],
            "the sources are elastic_apm, elasticsearch, file, fluent_forward, http, journald, kubernetes_logs, loki, otlp",
        ),
        (vec!["--admin", "127.0.0.1:1"], "is it running"),
        (vec!["--admin", "nonsense"], "write an address and a port"),
        (vec!["--admin", &admin, "--for", "soon"], "--for soon"),
        (vec!["--admin", &rig.gateway.http().to_string()], "is that its `listen.admin`"),
    ] {
        until(SOON, "the first look to end", || {
            let finished = tidegate(&[&["tap"], &args[..]].concat());
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{args:?}");
            finished.stderr.contains(words)
        });
    }
}

/// The command prints items until there were enough, or the time is over.
#[test]
fn the_command_prints_and_ends() {
    let rig = Rig::start();
    let config = rig.gateway.config();
    let printed = tidegate(&["tap", "--config", config.to_str().unwrap(), "--for", "500ms"]).succeeded();
    assert_eq!(printed, "");
    let admin = rig.gateway.admin().to_string();
    let mut seeing =
        command(&["tap", "--admin", &admin, "--count", "30", "--contains", "\"trace_id\"", "--for", "60s"]);
    let seeing: JoinHandle<_> = std::thread::spawn(move || finish(seeing.stdin(Stdio::null())));
    let mut first = 0;
    until(SOON, "thirty lines to be seen", || {
        rig.spans(first);
        first += 20;
        seeing.is_finished()
    });
    let printed = seeing.join().unwrap().succeeded();
    assert_eq!(printed.lines().count(), 30);
    for line in printed.lines() {
        let item: Value = serde_json::from_str(line).expect(line);
        assert!(item["trace_id"].is_string(), "{line}");
    }
}

/// Several look at a time, and each is let go at once, whether it is interrupted or killed.
#[test]
fn several_readers_watch_and_leave_at_once() {
    let rig = Rig::start();
    let admin = rig.gateway.admin().to_string();
    let look = |name: &str| Program::start(name, command(&["tap", "--admin", &admin]), rig.gateway.folder());
    let first = look("first");
    let one = until_some(SOON, "the first to look", || Some(rig.memory_in_use()).filter(|used| *used > 0));
    let second = look("second");
    until(SOON, "both to look", || rig.memory_in_use() >= 2 * one);
    let mut number = 0;
    until(SOON, "both to see something", || {
        rig.spans(number);
        number += 20;
        [&first, &second].iter().all(|look| look.stdout().contains("trace_id"))
    });
    // A look goes on for five seconds when nobody reads it: this is sooner.
    const AT_ONCE: Duration = Duration::from_millis(3_500);
    first.signal(Unix::INT);
    until(AT_ONCE, "the first to be let go", || rig.memory_in_use() <= one);
    second.kill9();
    until(AT_ONCE, "the second to be let go", || rig.memory_in_use() == 0);
}

/// Under a flood: whoever looks and never reads again costs a bounded piece of memory for a few seconds, and so does
/// whoever reads all the time; all that is acknowledged arrives, and the budget holds.
#[test]
fn tap_readers_do_not_delay_the_gateway() {
    let rig = Rig::start();
    let profile = otlp::OtlpProfile {
        transport: Transport::Grpc,
        connections: 16,
        requests: 100,
        items: 200,
        ..otlp::OtlpProfile::default()
    };
    rig.look("sink=collector");
    let report = rig.otlp(&profile);
    assert_eq!((report.accepted, report.failed), (1_600, 0), "{:?}", report.reasons);
    until(SOON, "the look to end", || rig.memory_in_use() == 0);

    let second = otlp::OtlpProfile { first: profile.end(), ..profile.clone() };
    rig.look("source=otlp&contains=nothing+has+this");
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| rig.otlp(&second));
        let (mut missed, mut answers) = (0, 0);
        let begun = Instant::now();
        while !driving.is_finished() {
            let (items, last) = rig.look("source=otlp&contains=nothing+has+this&wait=1s");
            assert!(items.iter().all(|item| item["why"].is_string()), "{items:?}");
            missed += last["missed_records"].as_u64().unwrap();
            answers += 1;
        }
        println!("{answers} answers in {:?}, {missed} records missed", begun.elapsed());
        let report = driving.join().unwrap();
        assert_eq!((report.accepted, report.failed), (1_600, 0), "{:?}", report.reasons);
    });
    rig.gateway.at_rest(Duration::from_secs(120));
    until(SOON, "the look to end", || rig.memory_in_use() == 0);
    let arrived = rig.collector.report();
    assert_eq!((arrived.malformed, arrived.unnumbered), (0, 0));
    assert_eq!(report.acked.missing_from(arrived.of(Signal::Traces)), None);
    rig.gateway.books_close();
    let hwm = rig.gateway.hwm();
    assert!(hwm <= 64 * MIB, "{hwm} bytes were resident");
}
