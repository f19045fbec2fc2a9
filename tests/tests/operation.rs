//! Operation: starting, stopping, reloading, inspecting, and mistakes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::remote_write::Version;
use tidegate_load::{
    Behaviour, Check, LoadProfile, LoadReport, OnRefused, RunLimit, SeriesModel, Timeline, VerifyingReceiver,
    compare, drive_blocking,
};
use tidegate_tests::http::{Client, request};
use tidegate_tests::{Finished, Gateway, SOON, tidegate, until};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };
const MIB: u64 = 1 << 20;

fn checking() -> VerifyingReceiver {
    VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap()
}

fn to(sink: &VerifyingReceiver) -> Value {
    let url = sink.target().to_string();
    json!({"type": "prometheus_remote_write", "url": url, "backoff": {"max": "200ms"}})
}

fn settings(sinks: Value) -> Value {
    json!({"memory": "96MiB", "sinks": sinks})
}

/// Sends in the background, for as long as said.
fn driving(
    gateway: &Gateway,
    model: &Arc<SeriesModel>,
    first: u64,
    time: Duration,
) -> std::thread::JoinHandle<LoadReport> {
    let (target, model) = (gateway.target(), Arc::clone(model));
    let limit = RunLimit::Time(time);
    let on_refused = OnRefused::Retry { at_most: Duration::from_millis(50) };
    let profile = LoadProfile { first, limit, on_refused, series_per_request: 50, ..LoadProfile::default() };
    std::thread::spawn(move || drive_blocking(&target, &model, &profile).unwrap())
}

#[track_caller]
fn assert_fails_with(finished: &Finished, words: &[&str]) {
    let Finished { code, stderr, .. } = finished;
    println!("{}", stderr.trim_end());
    assert_eq!(*code, Some(1), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "it should say {word:?}: {stderr}");
    }
    assert!(!stderr.contains("panicked") && !stderr.contains("Os {"), "{stderr}");
}

/// One process per data folder: the second says so, names the folder, and leaves the first alone.
#[test]
fn a_second_one_on_the_same_folder_is_refused() {
    let first = Gateway::started(settings(json!({"nowhere": {"type": "blackhole"}})));
    let mut second = Gateway::new(json!({"data": first.data(), "sinks": {"nowhere": {"type": "blackhole"}}}));
    assert_fails_with(&second.refuses_to_start(), &[first.data().to_str().unwrap(), "another"]);
    assert_eq!(first.page("/ready").status, 200);
}

#[test]
fn a_port_in_use_is_named() {
    let mut gateway = Gateway::new(settings(json!({})));
    for (setting, address) in [("listen.http", gateway.http()), ("listen.admin", gateway.admin())] {
        let _occupied = TcpListener::bind(address).unwrap();
        assert_fails_with(&gateway.refuses_to_start(), &[setting, &address.to_string(), "in use"]);
    }
}

/// Where few files may be open there are fewer connections, and the start says so: whoever opens all that there are, the
/// admin port answers, one too many is told, and the sinks deliver.
#[test]
fn few_open_files_are_fewer_connections() {
    for files in [64, 256] {
        let sink = checking();
        let mut settings = settings(json!({"out": to(&sink)}));
        // So that whoever runs this without being root can list its files.
        settings["core_dumps"] = json!(true);
        let mut gateway = Gateway::new(settings);
        gateway.limit_files(files);
        gateway.start();
        let process = gateway.process().pid();
        let open = || std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        println!("{files} files: {} are open without a connection", open());
        let clients: Vec<_> = (0..400).map(|_| TcpStream::connect(gateway.http()).unwrap()).collect();
        let limit = gateway.status()["connections_limit"].as_u64();
        println!("{limit:?} connections, {} files open", open());
        for _ in 0..20 {
            assert_eq!(gateway.page("/status").status, 200);
        }
        assert!(open() <= files as usize);
        drop(clients);
        until(SOON, "a request to be taken", || {
            let answer =
                request(gateway.http(), &["POST /v1/logs HTTP/1.1", "Content-Type: application/json"], b"{}");
            answer.is_ok_and(|answer| answer.status == 200)
        });
        let log = gateway.log();
        assert!(log.contains("limit on open files") && log.contains("limits.connections"), "{log}");
        assert!(log.matches("cannot be accepted").count() <= 1, "{log}");
    }
    let mut gateway = Gateway::new(settings(json!({"out": {"type": "blackhole"}})));
    gateway.limit_files(32);
    assert_fails_with(&gateway.refuses_to_start(), &["limit on open files is 32", "ulimit -n"]);
}

/// All mistakes at once, each with its place and what to write instead; `run` and `check` say the same.
#[test]
fn an_invalid_configuration_is_refused_with_every_mistake() {
    let mut gateway = Gateway::new(json!({}));
    let file = gateway.config();
    gateway.configure_text(
        "memory: 64MiB\njournal:\n  durabilty: fsync\n  quota: 20 parsecs\nmemory: 32MiB\nsinks:\n  up:\n    \
         type: prometheus_remote_write\n    url: ftp://x\n",
    );
    let places =
        ["tidegate.yaml:3:3", "durability", "tidegate.yaml:4:10", "tidegate.yaml:5:1", "tidegate.yaml:9:10"];
    assert_fails_with(&gateway.refuses_to_start(), &places);
    assert_fails_with(&tidegate(&["check", file.to_str().unwrap()]), &places);

    // For pipelines: one object, with the places as numbers.
    let report = tidegate(&["check", "--format", "json", file.to_str().unwrap()]);
    assert_eq!(report.code, Some(1));
    let report: Value = serde_json::from_str(&report.stdout).expect(&report.stdout);
    assert_eq!((&report["valid"], report["errors"].as_array().unwrap().len()), (&json!(false), 4));
    assert_eq!((&report["errors"][0]["line"], &report["errors"][0]["column"]), (&json!(3), &json!(3)));
    assert!(report["errors"][0]["help"].as_str().unwrap().contains("durability"), "{report}");

    std::fs::remove_file(&file).unwrap();
    assert_fails_with(&gateway.refuses_to_start(), &["tidegate.yaml"]);
}

/// Certificates, keys and credentials that are not there are mistakes of the configuration, named with their place.
#[test]
fn check_names_files_that_are_missing() {
    let gateway = Gateway::new(json!({}));
    let file = gateway.config();
    gateway.configure_text(
        "listen:\n  tls:\n    cert_file: /nonexistent/cert.pem\n    key_file: /nonexistent/key.pem\naccess:\n  \
         credentials_file: /nonexistent/who\n",
    );
    let places = ["tidegate.yaml:3:16", "/nonexistent/cert.pem", "key.pem", "`access.credentials_file`"];
    assert_fails_with(&tidegate(&["check", file.to_str().unwrap()]), &places);
    let report = tidegate(&["check", "--format", "json", file.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&report.stdout).expect(&report.stdout);
    assert_eq!(report["errors"].as_array().unwrap().len(), 3, "{report}");
    gateway.configure_text("memory: 64MiB\n");
    let report = tidegate(&["check", "--format", "json", file.to_str().unwrap()]).succeeded();
    let report: Value = serde_json::from_str(&report).expect(&report);
    assert_eq!(report["valid"], true);
}

/// A configuration that does not fit does not start, and the message names lines to change.
#[test]
fn a_configuration_that_does_not_fit_names_the_lines_to_change() {
    let mut gateway = Gateway::new(json!({"memory": "16MiB", "limits": {"connections": 10_000}}));
    assert_fails_with(
        &gateway.refuses_to_start(),
        &["Raise `memory` to at least", "or lower `limits.connections`", "10000"],
    );
    let file = gateway.config();
    assert_fails_with(&tidegate(&["check", file.to_str().unwrap()]), &["Raise `memory`"]);
    assert_fails_with(&tidegate(&["plan", "--config", file.to_str().unwrap()]), &["Raise `memory`"]);
    assert!(!gateway.data().exists(), "nothing is made before it fits");
}

/// A folder that cannot be made is an error of the configuration; and a plan that does not fit says nothing about the bodies
/// that it has room for.
#[test]
fn check_finds_impossible_folders_and_reports_no_limits_without_a_plan() {
    let gateway = Gateway::new(json!({}));
    let file = gateway.config();
    let check = || {
        let report = tidegate(&["check", "--format", "json", file.to_str().unwrap()]);
        serde_json::from_str::<Value>(&report.stdout).expect(&report.stdout)
    };
    for data in [file.to_str().unwrap(), "/proc/nope"] {
        gateway.configure_text(&format!("data: {data}\nsinks:\n  l:\n    type: lake\n    path: /proc/x\n"));
        let report = check();
        let errors = report["errors"].to_string();
        assert!(errors.contains("`data` is ") && errors.contains("`sinks.l.path` is /proc/x"), "{report}");
        assert_fails_with(&tidegate(&["check", file.to_str().unwrap()]), &["`data` is", data]);
    }
    gateway.configure_text("memory: 1MiB\n");
    let report = check();
    assert_eq!(report["valid"], false, "{report}");
    assert!(!report.to_string().contains("0 B"), "{report}");
}

/// The smallest budget that is promised: 32 MiB with the lake as the only sink, under load.
#[test]
fn it_runs_in_32_mib() {
    const MEMORY: u64 = 32 * MIB;
    let lake = json!({"lake": {"type": "lake", "file_age": "1s"}});
    let mut gateway = Gateway::new(json!({"memory": MEMORY, "sinks": lake}));
    // Beside its memory the kernel wants room for sockets and for the page cache.
    gateway.limit_memory(MEMORY + 16 * MIB);
    gateway.start();
    let model = Arc::new(SeriesModel::new(6, 2_000, TIMELINE));
    let report = driving(&gateway, &model, 0, Duration::from_secs(3)).join().unwrap();
    assert!(report.samples > 0, "{report}");
    gateway.at_rest(SOON);
    gateway.books_close();
    let hwm = gateway.hwm();
    println!("{} samples, at most {hwm} bytes resident of {MEMORY}", report.samples);
    assert!(hwm <= MEMORY, "{hwm} bytes were resident");
    assert_eq!(gateway.cgroup().map_or(0, tidegate_tests::Cgroup::killed), 0);
    assert_eq!(gateway.term(), 0);
    // Requests whose answer came after the end of the run are in the lake too.
    assert!(gateway.lake_rows("metric_points").len() as u64 >= report.samples);
}

/// SIGHUP under load: a sink that is added gets what comes from then on, and one that stays misses nothing.
#[test]
fn reloading_adds_a_sink() {
    let (stays, added) = (checking(), checking());
    let mut gateway = Gateway::started(settings(json!({"stays": to(&stays)})));
    let model = Arc::new(SeriesModel::new(8, 400, TIMELINE));
    let first = driving(&gateway, &model, 0, Duration::from_secs(3));
    until(SOON, "samples to flow", || stays.report().samples() > 0);
    gateway.configure(settings(json!({"stays": to(&stays), "added": to(&added)})));
    gateway.hangup();
    let configured = |gateway: &Gateway| gateway.status()["sinks"].as_array().unwrap().len() == 2;
    until(Duration::from_secs(10), "the sink to be there", || configured(&gateway));
    let first = first.join().unwrap();
    let second = driving(&gateway, &model, 100_000, Duration::from_secs(1)).join().unwrap();
    gateway.at_rest(SOON);
    gateway.books_close();

    let verdict = compare(&model, &second.acked, &added.stop());
    assert!(verdict.acked > 1000 && verdict.nothing_lost(), "the added one: {verdict:?}");
    let mut all = first.acked;
    all.merge(0, &second.acked);
    let verdict = compare(&model, &all, &stays.stop());
    assert!(verdict.nothing_lost() && verdict.duplicates == 0, "the one that stays: {verdict:?}");
}

/// SIGHUP under load: a sink that is taken away gets nothing more, the others miss nothing; when it comes back
/// it gets what it has missed. One whose settings change goes on where it was.
#[test]
fn reloading_removes_a_sink_and_brings_it_back() {
    let (stays, leaves, elsewhere) = (checking(), checking(), checking());
    let both = settings(json!({"stays": to(&stays), "leaves": to(&leaves)}));
    let mut gateway = Gateway::started(both.clone());
    let sinks = |gateway: &Gateway| gateway.status()["sinks"].as_array().unwrap().len();
    let model = Arc::new(SeriesModel::new(8, 400, TIMELINE));
    let load = driving(&gateway, &model, 0, Duration::from_secs(6));
    until(SOON, "samples to flow to both", || stays.report().samples() > 0 && leaves.report().samples() > 0);
    gateway.configure(settings(json!({"stays": to(&stays)})));
    gateway.hangup();
    until(SOON, "the sink to be gone", || sinks(&gateway) == 1);
    let pass = |what| {
        let passed = stays.report().samples();
        until(SOON, what, || stays.report().samples() > passed + 2000);
    };
    pass("what was on its way to arrive");
    let left_with = leaves.report().samples();
    pass("more to pass");
    assert_eq!(leaves.report().samples(), left_with, "it got something after it was taken away");
    gateway.configure(both);
    gateway.hangup();
    until(SOON, "the sink to be back", || sinks(&gateway) == 2);

    // The same sink, at another address.
    gateway.configure(settings(json!({"stays": to(&elsewhere), "leaves": to(&leaves)})));
    gateway.hangup();
    assert!(elsewhere.wait_for(SOON, |arrivals| arrivals.samples() > 0), "nothing came to the new address");
    let report = load.join().unwrap();
    gateway.at_rest(SOON);
    gateway.books_close();
    let verdict = compare(&model, &report.acked, &leaves.stop());
    assert!(verdict.acked > 1000 && verdict.nothing_lost(), "the one that left: {verdict:?}");
    let (before, after) = (stays.stop(), elsewhere.stop());
    assert!(
        before.samples() + after.samples() >= verdict.acked,
        "{} and {}",
        before.samples(),
        after.samples()
    );
}

/// A receiver that does not know the gateway loses nothing: the data waits and the page says why, also over `kill -9`, until a reload brings
/// the right address.
#[test]
fn data_waits_for_credentials_that_are_mended() {
    let (stranger, friend) = (checking(), checking());
    stranger.set(Behaviour::Status { code: 401, retry_after: None });
    let mut gateway = Gateway::started(settings(json!({"upstream": to(&stranger)})));
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    let profile = LoadProfile { connections: 1, series_per_request: 100, ..LoadProfile::default() };
    let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
    let waits = |gateway: &Gateway| {
        until(SOON, "the refusal to be shown", || {
            gateway.sink("upstream")["last_error"]["message"].to_string().contains("401")
        });
        let sink = gateway.sink("upstream");
        assert_eq!((&sink["lag"]["items"], &sink["delivered"]), (&json!(100), &json!(0)), "{sink}");
        assert_eq!(sink["dropped"], json!({}), "{sink}");
    };
    waits(&gateway);
    gateway.kill9();
    gateway.start();
    waits(&gateway);
    gateway.configure(settings(json!({"upstream": to(&friend)})));
    gateway.hangup();
    gateway.at_rest(SOON);
    gateway.books_close();
    let verdict = compare(&model, &report.acked, &friend.stop());
    assert!(verdict.nothing_lost(), "{verdict:?}");
}

/// SIGHUP with something that cannot be taken over changes nothing, and the log says why.
#[test]
fn reloading_something_invalid_changes_nothing() {
    let sink = checking();
    let mut gateway = Gateway::started(settings(json!({"up": to(&sink)})));
    let refusals = [("sinks: [", "tidegate.yaml:"), ("limits: { connections: 0 }", "tidegate.yaml:")];
    for (text, reason) in refusals {
        let before = gateway.log().len();
        gateway.configure_text(text);
        gateway.hangup();
        until(SOON, "the log to say why nothing changed", || {
            let log = gateway.log();
            log[before..].contains("the configuration was not changed") && log[before..].contains(reason)
        });
    }
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    let report = drive_blocking(&gateway.target(), &model, &LoadProfile::default()).unwrap();
    gateway.at_rest(SOON);
    let verdict = compare(&model, &report.acked, &sink.stop());
    assert!(verdict.acked == 100 && verdict.nothing_lost(), "{verdict:?}");
}

/// Settings that cannot change while running are named and stay in effect; the sinks still change, and the pages show
/// the new plan.
#[test]
fn reloading_names_what_needs_a_restart() {
    let (stays, added) = (checking(), checking());
    let mut gateway = Gateway::started(settings(json!({"stays": to(&stays)})));
    let planned = |gateway: &Gateway| {
        let declared = gateway.status()["memory"]["declared"].clone();
        declared.as_array().unwrap().iter().filter(|line| line["owner"] == "sink").count()
    };
    assert_eq!(planned(&gateway), 1);
    let sinks = json!({"stays": to(&stays), "added": to(&added)});
    gateway.configure(json!({"memory": "80MiB", "limits": {"connections": 77}, "sinks": sinks}));
    gateway.hangup();
    until(SOON, "the log to name the settings", || {
        let log = gateway.log();
        log.contains("only `sinks`") && log.contains("memory, limits.connections")
    });
    until(SOON, "the plan to have the new sink", || planned(&gateway) == 2);
    assert_eq!(gateway.status()["memory"]["limit"], 96 * MIB);
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    let report = drive_blocking(&gateway.target(), &model, &LoadProfile::default()).unwrap();
    gateway.at_rest(SOON);
    gateway.books_close();
    for sink in [stays, added] {
        assert!(compare(&model, &report.acked, &sink.stop()).nothing_lost());
    }
}

/// A new sink that cannot start is reported, and the sinks of before go on, as the message says.
#[test]
fn reloading_a_sink_that_cannot_start_changes_nothing() {
    let (stays, leaves) = (checking(), checking());
    let lake = |path: &str| json!({"type": "lake", "file_age": "1s", "path": path});
    let mut gateway = Gateway::new(json!({}));
    let folder = gateway.folder().join("lake").display().to_string();
    let before = json!({"stays": to(&stays), "leaves": to(&leaves), "lake": lake(&folder)});
    gateway.configure(settings(before));
    gateway.start();
    gateway.configure(settings(json!({"stays": to(&stays), "lake": lake("/dev/null/lake")})));
    gateway.hangup();
    until(SOON, "the log to say why nothing changed", || {
        gateway.log().contains("the configuration was not changed")
    });
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    let report = drive_blocking(&gateway.target(), &model, &LoadProfile::default()).unwrap();
    let status = gateway.at_rest(SOON);
    let names: Vec<&Value> = status["sinks"].as_array().unwrap().iter().map(|sink| &sink["name"]).collect();
    assert_eq!(names, ["lake", "leaves", "stays"], "nothing has changed");
    for sink in [stays, leaves] {
        assert!(compare(&model, &report.acked, &sink.stop()).nothing_lost());
    }
}

/// P2 and P3: asked to stop under load it refuses what is new, answers what it has taken, ends with 0, and
/// what it acknowledged arrives after the next start.
#[test]
fn stopping_under_load_loses_nothing() {
    let sink = checking();
    // Stalled, so that everything is still queued when it stops.
    sink.set(Behaviour::Stall);
    let mut gateway = Gateway::started(settings(json!({"check": to(&sink)})));
    let model = Arc::new(SeriesModel::new(9, 400, TIMELINE));
    let mut acked = tidegate_load::AcknowledgedSamples::none(model.len());
    for round in 0..3 {
        let load = driving(&gateway, &model, round * 100_000, Duration::from_secs(2));
        until(SOON, "samples to be taken", || {
            gateway.metrics()["tidegate_requests_accepted_total{source=\"prometheus_remote_write\"}"] > 50.0
        });
        assert_eq!(gateway.term(), 0);
        let report = load.join().unwrap();
        assert!(report.answers.keys().all(|status| [204, 503].contains(status)), "{report}");
        acked.merge(0, &report.acked);
        gateway.start();
    }
    sink.set(Behaviour::Healthy);
    gateway.at_rest(SOON);
    gateway.books_close();
    let verdict = compare(&model, &acked, &sink.stop());
    println!("{verdict:?}");
    assert!(verdict.acked > 1000 && verdict.nothing_lost(), "{verdict:?}");
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
}

/// Commands that need no gateway: references for people and editors, and the plan.
#[test]
fn reference_commands_print_their_documents() {
    let schema: Value = serde_json::from_str(&tidegate(&["schema"]).succeeded()).unwrap();
    assert!(schema["properties"]["sinks"].is_object() && schema["properties"]["memory"].is_object());
    let example = tidegate(&["example"]).succeeded();
    let gateway = Gateway::new(json!({}));
    gateway.configure_text(&example);
    let file = gateway.config();
    let checked = tidegate(&["check", file.to_str().unwrap()]).succeeded();
    assert!(checked.contains("is valid") && checked.contains("max_body: 32MiB"), "{checked}");
    let plan = tidegate(&["plan", "--config", file.to_str().unwrap()]).succeeded();
    for line in ["connections", "journal", "all overhead", "all payload", "largest requests"] {
        assert!(plan.contains(line), "{plan}");
    }
    assert!(tidegate(&["completions", "bash"]).succeeded().contains("complete -F _tidegate"));
    for shell in ["zsh", "fish"] {
        assert!(tidegate(&["completions", shell]).succeeded().contains("tidegate"));
    }
    let man = tidegate(&["man"]).succeeded();
    assert!(man.contains(".TH tidegate") && man.contains("journal"), "{man}");
    let help = tidegate(&["--help"]).succeeded();
    for command in ["run", "check", "plan", "demo", "lake", "journal", "completions", "man"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in the help:\n{help}");
    }
    let moved = tidegate(&["bench", "--seconds", "5", "idle"]);
    assert!(moved.code == Some(1) && moved.stderr.contains("tidegate-bench"), "{moved:?}");
    // Secrets stay secret.
    let sink = json!({"type": "prometheus_remote_write", "url": "http://127.0.0.1:1/",
        "headers": {"authorization": "Bearer hunter3"}});
    gateway.configure(settings(json!({"up": sink})));
    let shown = tidegate(&["check", file.to_str().unwrap()]);
    assert!(shown.stdout.contains("authorization") && !shown.stdout.contains("hunter"), "{shown:?}");
}

/// The journal from outside: segments, cursors, and a check of every record, while the gateway runs and after.
#[test]
fn journal_commands_show_segments_and_cursors() {
    let sink = checking();
    sink.set(Behaviour::Refuse);
    let mut gateway = Gateway::started(settings(json!({"far-away": to(&sink)})));
    let model = Arc::new(SeriesModel::new(10, 100, TIMELINE));
    let profile = LoadProfile { limit: RunLimit::Passes(3), version: Version::V2, ..LoadProfile::default() };
    assert_eq!(drive_blocking(&gateway.target(), &model, &profile).unwrap().samples, 300);
    let data = gateway.data();
    let journal = |verb: &str| tidegate(&["journal", verb, "--data", data.to_str().unwrap()]);
    let look = || {
        let listed = journal("ls").succeeded();
        assert!(listed.contains("far-away") && listed.contains("300"), "{listed}");
        let verified = journal("verify").succeeded();
        println!("{listed}\n{verified}");
    };
    look();
    assert_eq!(gateway.term(), 0);
    look();
    let elsewhere = tidegate(&["journal", "ls", "--data", "/nonexistent"]);
    assert_fails_with(&elsewhere, &["/nonexistent"]);
}

/// Answers requests with these statuses, one after the other.
fn answering(statuses: &'static [u16]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut answer = || -> Option<()> {
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).ok()? > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().ok()?;
                    }
                    line.clear();
                }
                let mut body = vec![0; Some(length).filter(|length| *length > 0)?];
                reader.read_exact(&mut body).ok()?;
                let head = format!("HTTP/1.1 {} As told\r\nContent-Length: 0\r\n\r\n", statuses.next()?);
                (&stream).write_all(head.as_bytes()).ok()
            };
            while answer().is_some() {}
        }
    });
    address
}

/// A letter that is refused for good does not keep back those after it; it is named, and the exit code tells.
#[test]
fn dead_letters_are_resent_past_a_refused_one() {
    let sink = checking();
    sink.set(Behaviour::Status { code: 400, retry_after: None });
    let mut gateway = Gateway::started(settings(json!({"picky": to(&sink)})));
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    for first in 0..3 {
        let profile =
            LoadProfile { first, connections: 1, series_per_request: 100, ..LoadProfile::default() };
        assert_eq!(drive_blocking(&gateway.target(), &model, &profile).unwrap().samples, 100);
        // Each is a request of its own, and so a letter.
        gateway.at_rest(SOON);
    }
    assert_eq!(gateway.sink("picky")["dropped"]["rejected"], 300);
    assert_eq!(gateway.term(), 0);
    let data = gateway.data();
    let resend = |statuses| {
        let url = format!("http://{}/", answering(statuses));
        tidegate(&["journal", "resend", "--data", data.to_str().unwrap(), "--url", &url])
    };
    let finished = resend(&[400, 204, 204]);
    assert_fails_with(&finished, &["`picky`", "400", "1 dead letters were rejected permanently"]);
    assert!(finished.stdout.contains("sent 2 letters with 200 items"), "{}", finished.stdout);
    assert!(resend(&[204]).succeeded().contains("sent 1 letters with 100 items"));
}

/// `/status` as a page, as text and as JSON, by what the client asks for; and what else the admin port has.
#[test]
fn the_admin_port_answers_people_and_programs() {
    let sink = checking();
    let gateway = Gateway::started(settings(json!({"upstream": to(&sink)})));
    let accept = |accept: &str, path: &str| {
        request(gateway.admin(), &[&format!("GET {path} HTTP/1.1"), &format!("Accept: {accept}")], b"")
            .unwrap()
    };
    let browser = accept("text/html,application/xhtml+xml,*/*;q=0.8", "/status");
    assert!(browser.header("content-type").unwrap().starts_with("text/html"));
    assert!(browser.text().contains("<html") && browser.text().contains("upstream"));
    let text = accept("*/*", "/status");
    assert!(text.header("content-type").unwrap().starts_with("text/plain"));
    assert!(text.text().contains("The books close.") && text.text().contains("upstream"), "{}", text.text());
    for json in [
        accept("application/json", "/status"),
        accept("*/*", "/status?format=json"),
        gateway.page("/status.json"),
    ] {
        assert!(json.header("content-type").unwrap().starts_with("application/json"));
        let status = json.json();
        assert_eq!(
            (&status["state"], &status["memory"]["limit"]),
            (&json!("flowing"), &json!(96 * MIB)),
            "{status}"
        );
        assert!(status["memory"]["resident"]["peak"].as_u64() > Some(0));
    }
    for (path, status) in [("/health", 200), ("/ready", 200), ("/", 200), ("/secrets", 404)] {
        assert_eq!(gateway.page(path).status, status, "{path}");
    }
    let posted = request(gateway.admin(), &["POST /status HTTP/1.1"], b"x").unwrap();
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
    let metrics = gateway.page("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(metrics.text().ends_with("# EOF\n"));
    assert_eq!(gateway.metrics()["tidegate_books_difference"], 0.0);
}

/// Whoever has connections to the admin port and does nothing with them keeps out no probe; and a page in a browser
/// learns nothing there, by whatever name it comes.
#[test]
fn the_admin_port_is_there_for_probes_and_not_for_pages() {
    let sink = checking();
    let gateway = Gateway::started(settings(json!({"upstream": to(&sink)})));
    // More than there are places.
    let idle: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(gateway.admin()).unwrap()).collect();
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(gateway.page(path).status, 200, "{path}");
    }
    drop(idle);
    for path in ["/status", "/tap", "/health", "/metrics"] {
        let get = format!("GET {path} HTTP/1.1");
        let mut client = Client::connect(gateway.admin()).unwrap();
        client.send(format!("{get}\r\nHost: rebound.example:4319\r\n\r\n").as_bytes()).unwrap();
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 421, "{path}");
        assert!(answer.text().contains("listen.admin_hosts"), "{}", answer.text());
        let page =
            request(gateway.admin(), &[&get, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"], b"");
        assert_eq!(page.unwrap().status, 403, "{path}");
    }
}

/// `tidegate demo`: within five seconds there are rows to look at; on a busy machine, that and the time for which it had to
/// wait for a processor.
#[test]
fn the_demo_shows_rows_within_seconds() {
    let gateway = Gateway::new(json!({}));
    let config = gateway.config();
    let demo = ["demo", "--log-format", "text", "--config", config.to_str().unwrap()];
    let mut command = tidegate_tests::command(&demo);
    command.current_dir(gateway.folder());
    let started = std::time::Instant::now();
    let demo = tidegate_tests::Program::start("demo", command, gateway.folder());
    let data = gateway.data();
    until(SOON, "rows to look at", || {
        let cat = ["lake", "cat", "metric_points", "--last", "1m", "--format", "ndjson", "--data"];
        let printed = tidegate(&[&cat[..], &[data.to_str().unwrap()]].concat());
        printed.code == Some(0) && printed.stdout.lines().count() >= tidegate_load::DEMO_SERIES
    });
    let (elapsed, hindered) = (started.elapsed(), demo.hindered());
    println!("after {elapsed:?}, in which its threads waited {hindered:?} for a processor");
    assert!(elapsed <= Duration::from_secs(5) + hindered, "{elapsed:?}, {hindered:?}");
    let greeting = demo.stdout();
    for line in ["memory", "data", "remote write", "status", "sink", "tidegate lake cat"] {
        assert!(greeting.contains(line), "{greeting}");
    }
    assert_eq!(demo.term(), 0);
}
