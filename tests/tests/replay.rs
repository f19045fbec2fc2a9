//! `tidegate replay`: what is stored reaches one sink again, all of it, once, and no other sink.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use tidegate_load::{
    Behaviour, Check, LoadProfile, SeriesModel, Timeline, VerifyingReceiver, drive_blocking,
};
use tidegate_tests::{Finished, Gateway, SOON, certificates, tidegate, until};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };

fn receiver(behaviour: Behaviour) -> VerifyingReceiver {
    VerifyingReceiver::start(behaviour, Check::Timed(TIMELINE)).unwrap()
}

fn to(receiver: &VerifyingReceiver) -> Value {
    json!({"type": "prometheus_remote_write", "url": receiver.target().to_string(), "backoff": {"max": "200ms"}})
}

/// Has the gateway accept so many requests of 100 samples: each is a record of its own.
fn send(gateway: &Gateway, requests: std::ops::Range<u64>) {
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    for first in requests {
        let profile =
            LoadProfile { first, connections: 1, series_per_request: 100, ..LoadProfile::default() };
        assert_eq!(drive_blocking(&gateway.target(), &model, &profile).unwrap().samples, 100);
    }
}

fn replay(arguments: &[&str]) -> Finished {
    let finished = tidegate(&[&["replay"], arguments].concat());
    println!("{}{}", finished.stdout, finished.stderr);
    finished
}

/// A sink's row in the books.
fn book(status: &Value, sink: &str) -> Value {
    let sinks = status["books"]["sinks"].as_array().unwrap();
    sinks.iter().find(|book| book["name"] == sink).unwrap().clone()
}

/// A gateway of which nothing answers, for `requests`: then it fails.
fn answering(requests: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        for answered in 0..=requests {
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let status = if answered < requests { "204 No Content" } else { "500 Broken" };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            (&stream).write_all(head.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn kept_records_reach_one_sink_again_and_are_counted_as_replayed() {
    let (up, other) = (receiver(Behaviour::Healthy), receiver(Behaviour::Healthy));
    let mut gateway = Gateway::started(json!({
        "memory": "96MiB",
        "journal": {"keep": "1h"},
        "sinks": {"up": to(&up), "other": to(&other)},
    }));
    send(&gateway, 0..5);
    gateway.at_rest(SOON);
    let config = gateway.config();
    let config = config.to_str().unwrap();

    let replay_to = |more: &[&str]| replay(&[&["journal", "--config", config, "--to", "up"], more].concat());
    assert!(replay_to(&["--dry-run"]).succeeded().contains("would send 500 items in 5 requests"));
    assert!(replay_to(&["--signal", "logs"]).succeeded().contains("sent 0 items"), "there are none");
    assert!(replay_to(&["--until", "2020-01-01T00:00:00Z"]).succeeded().contains("sent 0 items"));
    let unknown = replay(&["journal", "--config", config, "--to", "nobody"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("it has: other, up"), "{}", unknown.stderr);

    assert!(replay_to(&[]).succeeded().contains("sent 500 items in 5 requests"));
    assert!(up.wait_for(SOON, |arrivals| arrivals.totals.samples == 1000));
    assert_eq!(up.report().samples(), 500, "they are the same");
    let status = gateway.at_rest(SOON);
    let (book_up, book_other) = (book(&status, "up"), book(&status, "other"));
    assert_eq!((&book_up["delivered"], &book_up["replayed"]), (&json!(1000), &json!(500)), "{book_up}");
    assert_eq!((&book_other["delivered"], &book_other["passed"]), (&json!(500), &json!(500)), "{book_other}");
    assert_eq!(other.report().totals.samples, 500);
    // What was sent again is not sent again by the next one.
    assert!(replay_to(&["--dry-run"]).succeeded().contains("would send 500 items in 5 requests"));

    // Nothing is gone, though the gateway is not six hours old.
    assert!(!replay_to(&["--last", "6h", "--dry-run"]).stderr.contains("journal.keep"));
    // The counts are as they were after a restart.
    gateway.kill9();
    gateway.start();
    assert_eq!(book(&gateway.at_rest(SOON), "up")["replayed"], 500);
    gateway.books_close();
}

/// Records that all sinks have had are gone where nothing keeps them, and a replay says so.
#[test]
fn what_is_not_kept_is_said() {
    let up = receiver(Behaviour::Healthy);
    let gateway = Gateway::started(
        json!({"memory": "64MiB", "journal": {"segment": "1MiB"}, "sinks": {"up": to(&up)}}),
    );
    let config = gateway.config();
    let mut sent = 0;
    // A segment goes when every sink has had all of it.
    until(SOON * 2, "a segment to go", || {
        send(&gateway, sent..sent + 100);
        sent += 100;
        let last =
            ["journal", "--config", config.to_str().unwrap(), "--to", "up", "--last", "6h", "--dry-run"];
        let said = replay(&last).stderr;
        said.contains("read is of") && said.contains("stays as long as `journal.keep` says")
    });
}

/// Where the gateway speaks TLS, its certificate is checked: against the configuration's own, or the given authorities.
#[test]
fn a_replay_speaks_tls_and_checks_the_certificate() {
    let up = receiver(Behaviour::Healthy);
    let mut gateway = Gateway::new(json!({}));
    let (folder, listen) = (
        gateway.folder().to_owned(),
        json!({"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin()}),
    );
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let settings = |tls: Value| {
        let mut listen = listen.clone();
        listen["tls"] = tls;
        json!({"memory": "96MiB", "journal": {"keep": "1h"}, "sinks": {"up": to(&up)}, "listen": listen})
    };
    gateway.configure(settings(json!({})));
    gateway.start();
    send(&gateway, 0..2);
    gateway.at_rest(SOON);
    assert_eq!(gateway.term(), 0);
    for authority in ["ca", "other"] {
        certificates::authority(&folder, authority);
    }
    certificates::sign(&folder, "ca", "server", "/CN=server");
    gateway.configure(settings(
        json!({"http": {"cert_file": file("server.pem"), "key_file": file("server.key")}}),
    ));
    gateway.start();

    let config = gateway.config();
    let again = |more: &[&str]| {
        let fixed = ["journal", "--config", config.to_str().unwrap(), "--to", "up", "--restart"];
        replay(&[&fixed, more].concat())
    };
    assert!(again(&[]).succeeded().contains("sent 200 items in 2 requests to https://127.0.0.1:"));
    let url = format!("https://localhost:{}", gateway.http().port());
    let (ca, other) = (file("ca.pem"), file("other.pem"));
    assert!(again(&["--url", &url, "--ca-file", &ca]).succeeded().contains("sent 200 items"));
    let refused = again(&["--url", &url, "--ca-file", &other]);
    assert!(refused.code == Some(1) && refused.stderr.contains("in --ca-file"), "{}", refused.stderr);
    let refused = again(&["--url", &url.replace("https", "http")]);
    assert!(refused.code == Some(1) && refused.stderr.contains("HTTPS"), "{}", refused.stderr);

    // Another certificate than the configuration has, which the gateway does not know of yet.
    certificates::sign(&folder, "ca", "later", "/CN=later");
    let with_later = json!({"http": {"cert_file": file("later.pem"), "key_file": file("later.key")}});
    let text = serde_json::to_string(&settings(with_later)).unwrap();
    let later = file("later.yaml");
    std::fs::write(&later, text).unwrap();
    let refused = replay(&["journal", "--config", &later, "--data", &file("data"), "--to", "up"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("later.pem"), "{}", refused.stderr);
    assert_eq!(book(&gateway.at_rest(SOON), "up")["replayed"], 400);
    gateway.books_close();
}

/// A gateway that is gone leaves a folder. Another one delivers what is in it, each record once although the replay is
/// interrupted.
#[test]
fn the_journal_of_a_gateway_that_is_gone_is_delivered_by_another() {
    let silent = receiver(Behaviour::Status { code: 503, retry_after: None });
    let mut gone = Gateway::started(json!({"memory": "64MiB", "sinks": {"up": to(&silent)}}));
    send(&gone, 0..6);
    let data = gone.data();
    let data = data.to_str().unwrap();
    let url = answering(2);
    let waiting = replay(&["journal", "--data", data, "--to", "up", "--url", &url]);
    assert!(waiting.stdout.contains("sent 0 items"), "while it runs, its sink still gets them");
    assert!(
        waiting.stderr.contains("6 records were not sent: they wait in the journal for `up`"),
        "{}",
        waiting.stderr
    );
    let unsent = replay(&["journal", "--unsent", "--data", data, "--to", "up", "--url", &url]);
    assert!(unsent.code == Some(1) && unsent.stderr.contains("is running"), "{}", unsent.stderr);
    gone.kill9();

    let interrupted = replay(&["journal", "--unsent", "--data", data, "--to", "up", "--url", &url]);
    assert_eq!(interrupted.code, Some(1));
    assert!(interrupted.stderr.contains("500") && interrupted.stdout.contains("sent 200 items"));
    let another = replay(&["journal", "--data", data, "--to", "up", "--url", &url, "--signal", "metrics"]);
    assert!(another.stderr.contains("another replay was interrupted"), "{}", another.stderr);

    let (up, other) = (receiver(Behaviour::Healthy), receiver(Behaviour::Healthy));
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"up": to(&up), "other": to(&other)}}));
    let url = format!("http://{}", gateway.http());
    let rest = replay(&["journal", "--unsent", "--data", data, "--to", "up", "--url", &url]);
    assert!(rest.succeeded().contains("sent 400 items in 4 requests"));
    assert!(up.wait_for(SOON, |arrivals| arrivals.samples() == 400));
    gateway.at_rest(SOON);
    assert_eq!(other.report().samples(), 0);
    gateway.books_close();

    let anew = replay(&["journal", "--data", data, "--to", "up", "--url", &url, "--rate", "100k/s"]);
    assert!(anew.succeeded().contains("sent 600 items"), "it was finished, so it begins anew");
}

/// The values that a lake gives back are checked one by one by the receiver.
#[test]
fn rows_of_a_lake_reach_a_sink() {
    let mut gone = Gateway::started(json!({"memory": "96MiB", "sinks": {"lake": {"type": "lake"}}}));
    send(&gone, 0..5);
    // It finishes its files.
    assert_eq!(gone.term(), 0);
    let data = gone.data();
    let data = data.to_str().unwrap();

    let (up, other) = (receiver(Behaviour::Healthy), receiver(Behaviour::Healthy));
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"up": to(&up), "other": to(&other)}}));
    let url = format!("http://{}", gateway.http());
    let replay_lake =
        |more: &[&str]| replay(&[&["lake", "--data", data, "--to", "up", "--url", &url], more].concat());
    assert!(replay_lake(&["--until", "2020-01-01T00:00:00Z"]).succeeded().contains("sent 0 items"));
    assert!(replay_lake(&["--signal", "metrics"]).succeeded().contains("sent 500 items"));
    assert!(up.wait_for(SOON, |arrivals| arrivals.samples() == 500));
    gateway.at_rest(SOON);
    assert_eq!(other.report().samples(), 0);
    gateway.books_close();
}

#[test]
fn dead_letters_reach_their_sink_or_another() {
    let (picky, other) =
        (receiver(Behaviour::Status { code: 400, retry_after: None }), receiver(Behaviour::Healthy));
    let gateway =
        Gateway::started(json!({"memory": "96MiB", "sinks": {"picky": to(&picky), "other": to(&other)}}));
    for first in 0..3 {
        send(&gateway, first..first + 1);
        // Each is a request of its own, and so a letter.
        gateway.at_rest(SOON);
    }
    picky.set(Behaviour::Healthy);
    let config = gateway.config();
    let config = config.to_str().unwrap();
    let letters = |more: &[&str]| replay(&[&["dead-letters", "--config", config], more].concat());
    assert!(letters(&["--sink", "other"]).succeeded().contains("sent 0 items"));
    assert!(letters(&["--dry-run"]).succeeded().contains("would send 300 items in 3 requests"));
    assert!(letters(&[]).succeeded().contains("sent 300 items in 3 requests"));
    assert!(picky.wait_for(SOON, |arrivals| arrivals.samples() == 300));
    assert!(letters(&[]).succeeded().contains("sent 0 items"), "they are gone");
    gateway.at_rest(SOON);
    assert_eq!(other.report().samples(), 300, "as it was before");
    gateway.books_close();
}

/// A lake settles many records at once, and counts those that were sent again to it among them.
#[test]
fn a_lake_takes_a_replay_between_other_data() {
    let mut gateway = Gateway::started(json!({
        "memory": "96MiB",
        "journal": {"keep": "1h"},
        "sinks": {"lake": {"type": "lake"}},
    }));
    send(&gateway, 0..3);
    // It finishes its files, and its cursor is behind them.
    assert_eq!(gateway.term(), 0);
    gateway.start();
    send(&gateway, 3..4);
    let config = gateway.config();
    let replayed = replay(&["journal", "--config", config.to_str().unwrap(), "--to", "lake"]);
    assert!(replayed.succeeded().contains("sent 300 items in 3 requests"));
    send(&gateway, 4..5);
    assert_eq!(gateway.term(), 0);
    gateway.start();
    let lake = book(&gateway.at_rest(SOON), "lake");
    assert_eq!((&lake["delivered"], &lake["replayed"]), (&json!(800), &json!(300)), "{lake}");
    gateway.books_close();
    assert_eq!(gateway.lake_rows("metric_points").len(), 800);
}
