//! `tidegate top` in a real terminal: what arrived is on the screen, keys work, a gateway that is gone comes back by itself,
//! and the terminal is as it was afterwards.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/pseudo_terminal.rs"]
mod pseudo_terminal;

use pseudo_terminal::PseudoTerminal;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, SOON, free_address, tidegate, until};

/// Clears the screen, in seven and in eight bits, and turns the text around.
const NASTY: &str = "\u{1b}[2J\u{9b}2J\u{202e}";

/// A gateway with tenants, a lake, and a sink whose peer is not there.
fn settings() -> serde_json::Value {
    let away = format!("http://{}", free_address());
    json!({
        "memory": "128MiB",
        "tenants": {"header": "X-Tenant", "default": "nobody", "most": 8},
        "sinks": {
            "lake": {"type": "lake", "file_age": "1s"},
            "away": {"type": "otlp", "endpoints": [away], "backoff": {"max": "500ms"}},
        },
    })
}

/// Sends so many log records in one request.
fn send(gateway: &Gateway, tenant: &str, records: usize) {
    let record = json!({"body": {"stringValue": NASTY}, "severityText": "INFO"});
    let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": vec![record; records]}]}]}).to_string();
    let tenant = format!("X-Tenant: {tenant}");
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json", &tenant];
    assert_eq!(request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
}

fn top(gateway: &Gateway, environment: &[(&str, &str)]) -> PseudoTerminal {
    let admin = gateway.admin().to_string();
    PseudoTerminal::run(&["top", "--admin", &admin], environment, (80, 24))
}

#[test]
fn shows_what_arrived_obeys_keys_and_comes_back() {
    let mut gateway = Gateway::started(settings());
    send(&gateway, "shop", 3);
    send(&gateway, "bank", 500);
    let mut top = top(&gateway, &[]);

    // The overview: state, both sinks, the journal, the books.
    let shown = top.until("the sink that fails", |shown| shown.contains("failing  away"));
    for text in
        [&gateway.admin().to_string(), "1 Overview", "memory", "journal", "books    they close", "lake"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(top.has_colours());

    // Traffic has a rate, which is over some seconds later.
    let is_moving = |shown: &str| {
        let line = shown.lines().find(|line| line.starts_with("in ")).unwrap_or_default();
        line.split_whitespace().nth(1).is_some_and(|rate| !matches!(rate, "0" | "-"))
    };
    send(&gateway, "shop", 1_000);
    top.until("a rate", is_moving);
    top.until("no rate", |shown| !is_moving(shown));

    // The flow: of the first source that is chosen by its line, what it took.
    top.press("2");
    let shown = top.until_has("SOURCES");
    let source = shown.lines().skip_while(|line| !line.starts_with("SOURCES")).skip(1);
    let above = source.take_while(|line| !line.starts_with("otlp")).count();
    top.press(&"j".repeat(above));
    let shown = top.until_has("items: logs 1.50k");
    assert!(shown.contains("3 requests"), "{shown}");
    // The last line is a sink, whose error has the peer's words.
    top.press("\u{1b}[F");
    let shown = top.until_has("last error");
    assert!(shown.contains("(lake)") || shown.to_lowercase().contains("refused"), "{shown}");

    // The tenants, in two orders.
    top.press("\t");
    let first = |shown: &str| {
        let after = shown.lines().skip_while(|line| !line.starts_with("TENANT")).nth(1);
        after.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
    };
    let shown = top.until_has("sorted by bytes");
    assert_eq!(first(&shown), "shop", "{shown}");
    send(&gateway, "bank", 2_000);
    top.until("the other tenant to be the first", |shown| first(shown) == "bank");
    top.press("s");
    top.until_has("items*");

    // A pause keeps what was there.
    top.press("p");
    top.until_has("PAUSED");
    send(&gateway, "late", 1);
    until(SOON, "the tenant to be known", || gateway.status()["tenants"].to_string().contains("late"));
    top.press("?");
    top.until_has("any key goes back");
    top.press("x");
    let shown = top.until_has("PAUSED");
    assert!(!shown.contains("late"), "{shown}");
    top.press("p");
    top.until_has("late");

    // Sizes.
    top.press("1");
    top.resize(60, 15);
    top.until("a small screen", |shown| {
        shown.lines().count() == 15 && shown.lines().last().is_some_and(|line| line.contains("q quit"))
    });
    top.resize(30, 6);
    top.until_has("too small");
    top.resize(120, 40);
    top.until("a large screen", |shown| shown.lines().count() == 40 && shown.contains("failing  away"));

    // The gateway goes, its numbers stay, and it comes back.
    gateway.kill9();
    let shown = top.until_has("NO ANSWER for");
    assert!(shown.contains("failing  away") && shown.contains("efused"), "{shown}");
    gateway.start();
    top.until("an answer", |shown| !shown.contains("NO ANSWER"));

    let wrote = top.bytes();
    assert!(!String::from_utf8_lossy(&wrote).contains(NASTY));
    top.press("q");
    assert_eq!(top.ended().code(), Some(0));
    assert!(!top.shown().contains("Overview"), "the screen before it is back: {}", top.shown());
}

#[test]
fn gives_the_terminal_back_however_it_ends() {
    let gateway = Gateway::started(settings());
    for (keys, environment) in [("\u{3}", &[][..]), ("\u{1b}", &[("NO_COLOR", "1"), ("LANG", "C")])] {
        let mut top = top(&gateway, environment);
        top.until_has("books");
        assert_eq!(top.has_colours(), environment.is_empty());
        assert_eq!(top.shown().is_ascii(), !environment.is_empty(), "{}", top.shown());
        top.press(keys);
        assert_eq!(top.ended().code(), Some(0), "{keys:?}");
    }
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut top = top(&gateway, &[]);
        top.until_has("books");
        top.signal(signal);
        assert_eq!(top.ended().signal(), Some(signal.as_raw()), "{signal:?}");
    }
}

/// A terminal that cannot move its cursor gets lines, and nothing else.
#[test]
fn a_dumb_terminal_gets_lines() {
    let gateway = Gateway::started(settings());
    let mut top = top(&gateway, &[("TERM", "dumb")]);
    top.until("two answers", |_| {
        String::from_utf8_lossy(&top.bytes()).matches("books    they close").count() > 1
    });
    let bytes = top.bytes();
    assert!(bytes.is_ascii() && !bytes.contains(&0x1b), "{}", String::from_utf8_lossy(&bytes));
    top.press("\u{3}");
    assert_eq!(top.ended().signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn pipes_get_text_once_or_a_sentence() {
    let gateway = Gateway::started(settings());
    let admin = gateway.admin().to_string();
    send(&gateway, "shop", 3);
    until(SOON, "the sink to fail", || !gateway.sink("away")["retry_at"].is_null());

    let piped = tidegate(&["top", "--admin", &admin]);
    assert_eq!(piped.code, Some(1), "{piped:?}");
    for words in ["needs a terminal", "tidegate top --once", &format!("curl http://{admin}/status")] {
        assert!(piped.stderr.contains(words), "{piped:?}");
    }

    let once = tidegate(&["top", "--once", "--admin", &admin]).succeeded();
    for words in ["3 items", "memory   ", "journal  ", "books    they close", "sink     away (otlp) failing:"]
    {
        assert!(once.contains(words), "{words}: {once}");
    }
    let config = gateway.config();
    let by_config = tidegate(&["top", "--once", "--config", config.to_str().unwrap()]).succeeded();
    assert!(by_config.contains("sink     lake (lake)"), "{by_config}");

    let away = free_address().to_string();
    let failed = tidegate(&["top", "--once", "--admin", &away]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("is it running") && failed.stderr.contains("--config"), "{failed:?}");
    let other = tidegate(&["top", "--once", "--admin", &gateway.http().to_string()]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("no /status.json"), "{other:?}");
}
