//! The pages for browsers, as clients see them.

use super::sample::healthy;
use super::served::{Answer, FakeGateway, Served, gateway_with};
use tidegate_ledger::{MOST_RECENT_REFUSALS, RecentRefusal, Refusal, ShortText};

fn served() -> Served {
    Served::new(gateway_with(healthy()))
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next().unwrap_or_default()
}

/// Files come plain or compressed, under a policy that lets nothing in from elsewhere, and not again to who has them.
#[test]
fn files_come_in_the_form_asked_for() {
    let served = served();
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/console/app.js", "text/javascript; charset=utf-8"),
        ("/console/app.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let plain = served.ask(&format!("GET {path}"));
        assert_eq!((plain.status, header(&plain, "Content-Type")), (200, content_type), "{path}");
        assert!(
            header(&plain, "Content-Security-Policy").starts_with("default-src 'self'; "),
            "{}",
            plain.head
        );
        assert_eq!(header(&plain, "Content-Encoding"), "");
        let zipped = served.bytes(&format!("GET {path}"), "Accept-Encoding: gzip, deflate, br");
        let end = zipped.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let head = str::from_utf8(&zipped[..end]).unwrap();
        assert!(head.contains("\r\nContent-Encoding: gzip\r\n"), "{head}");
        let mut unzipped = Vec::new();
        std::io::copy(&mut flate2::read::GzDecoder::new(&zipped[end..]), &mut unzipped).unwrap();
        let unzipped = String::from_utf8(unzipped).unwrap();
        assert_eq!(unzipped, plain.body, "{path}");
        let tag = header(&plain, "ETag");
        let again = served.ask_with(&format!("GET {path}"), &format!("If-None-Match: {tag}"));
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
    }
    assert_eq!(served.ask("POST /").status, 405);
    assert_eq!(served.ask("GET /console/app.js.gz").status, 404);
}

#[test]
fn events_are_a_stream_without_length() {
    let served = served();
    let head = served.ask("HEAD /console/events");
    assert_eq!((head.status, header(&head, "Content-Type")), (200, "text/event-stream"));
    assert_eq!(header(&head, "Content-Length"), "");
    let mut stream = served.open("GET /console/events");
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while seen.windows(2).filter(|end| end == b"\n\n").count() < 2 {
        let read = std::io::Read::read(&mut stream, &mut piece).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
}

/// A change needs the token of the session, which a page of another origin cannot read.
#[test]
fn changes_need_the_token_of_the_session() {
    let served = served();
    let session: serde_json::Value = serde_json::from_str(&served.ask("GET /console/session").body).unwrap();
    assert_eq!(session["operator"], true);
    let token = session["token"].as_str().unwrap();
    assert_eq!(token.len(), 32);
    for path in ["/console/check", "/console/reload"] {
        let request = format!("POST {path}");
        for shown in ["X-None: 1".to_owned(), format!("X-Tidegate-Token: {}", "0".repeat(32))] {
            assert_eq!(served.ask_with(&request, &shown).status, 403, "{path} {shown}");
        }
        let twice = format!("X-Tidegate-Token: {token}\r\nX-Tidegate-Token: {token}");
        assert_eq!(served.ask_with(&request, &twice).status, 403);
        let right = format!("X-Tidegate-Token: {token}");
        let answer = served.ask_with(&request, &right);
        let report: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, &report["ok"]), (200, &true.into()), "{}", answer.body);
        assert_eq!(served.ask_with(&format!("GET {path}"), &right).status, 405);
    }
    let running: serde_json::Value =
        serde_json::from_str(&served.ask("GET /console/configuration").body).unwrap();
    assert_eq!(running, serde_json::json!({"file": "tidegate.yaml", "text": "memory: 64MiB\n"}));
    assert_eq!(served.ask("DELETE /console/history").status, 405);
    assert!(served.ask("GET /console/history").body.starts_with("{\"step_seconds\":5,"));
}

/// Only the page with the token sends dead letters again or discards them, of one sink, and up to a number.
#[test]
fn dead_letters_are_resent_and_discarded_with_the_token_of_the_session() {
    let served = served();
    let session: serde_json::Value = serde_json::from_str(&served.ask("GET /console/session").body).unwrap();
    let right = format!("X-Tidegate-Token: {}", session["token"].as_str().unwrap());
    let post = |target: &str| served.ask_with(&format!("POST /console/dead-letters/{target}"), &right);
    for (target, expected) in [
        ("resend?sink=up&through=7", r#"{"sent":7,"items":70,"kept":0}"#),
        ("discard?sink=up&through=7", r#"{"discarded":7,"items":70,"kept":0}"#),
        (
            "resend?through=8&sink=half",
            r#"{"sent":8,"items":70,"kept":1,"message":"letter 9 is \"damaged\""}"#,
        ),
    ] {
        let answer = post(target);
        assert_eq!((answer.status, answer.body.as_str()), (200, expected), "{target}");
        assert!(answer.has("Content-Type: application/json"), "{}", answer.head);
    }
    for (target, status) in [
        ("resend?sink=none&through=7", 404),
        ("resend?sink=busy&through=7", 503),
        ("discard?sink=full&through=7", 500),
        ("resend?sink=up", 400),
        ("resend?through=7", 400),
        ("resend?sink=up&through=-1", 400),
        ("resend?sink=up&through=7&through=8", 400),
        ("discard?sink=../up&through=7", 400),
        ("discard", 400),
        ("forget?sink=up&through=7", 404),
    ] {
        assert_eq!(post(target).status, status, "{target}");
    }
    assert!(post("resend?sink=busy&through=7").has("Retry-After: 2"));
    for path in ["resend", "discard"] {
        let target = format!("/console/dead-letters/{path}?sink=up&through=7");
        assert_eq!(served.ask_with(&format!("POST {target}"), "X-None: 1").status, 403);
        assert_eq!(served.ask_with(&format!("GET {target}"), &right).status, 405);
    }
}

/// Instructions are asked for by kind; the address by which the page was reached is passed on.
#[test]
fn instructions_for_senders_are_passed_on() {
    let served = served();
    let ask = |target: &str| served.ask_with(&format!("GET /console/connect{target}"), "X-None: 1");
    let list: serde_json::Value = serde_json::from_str(&ask("").body).unwrap();
    assert!(list["kind"].is_null() && !list["authority"].as_str().unwrap().is_empty(), "{list}");
    let one: serde_json::Value = serde_json::from_str(&ask("?kind=otel-go").body).unwrap();
    assert_eq!(one["kind"], "otel-go");
    for (target, status) in
        [("?kind=unknown", 404), ("?kind=changing", 503), ("?other=1", 400), ("?kind=a&b=c", 400)]
    {
        assert_eq!(ask(target).status, status, "{target}");
    }
}

/// As many refusals as there can be, with the longest texts, are one answer; texts of strangers are JSON strings.
#[test]
fn refusals_are_listed_with_what_is_known() {
    let longest = RecentRefusal {
        at_ns: u64::MAX,
        reason: Refusal::Destination,
        source: ShortText::of(&"\"".repeat(99)),
        tenant: ShortText::of(&"\"".repeat(99)),
        peer: Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535".parse().unwrap()),
        target: ShortText::of(&"\"".repeat(99)),
        bytes: Some(u64::MAX),
        words: ShortText::of(&"\"".repeat(999)),
    };
    let stray = RecentRefusal {
        at_ns: 1_800_000_000_000_000_000,
        reason: Refusal::NotFound,
        source: ShortText::of(&"http"),
        tenant: ShortText::of(&""),
        peer: None,
        target: ShortText::of(&"GET /\"><script>"),
        bytes: None,
        words: ShortText::of(&""),
    };
    let mut refusals = vec![longest; MOST_RECENT_REFUSALS];
    refusals[0] = stray;
    let mut gateway = gateway_with(healthy());
    gateway.status.books.sources[0].refused = vec![(Refusal::Memory, 2), (Refusal::NotFound, 7)];
    gateway.status.books.sources.truncate(1);
    let served = Served::new(FakeGateway { refusals, ..gateway });
    let answer = served.ask("GET /console/rejects");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let rejects: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(rejects["requests"].as_array().unwrap().len(), MOST_RECENT_REFUSALS);
    assert_eq!(
        rejects["requests"][0],
        serde_json::json!({
            "at": "2027-01-15T08:00:00Z", "source": "http", "reason": "not_found",
            "meaning": "Nothing is served under this path.", "peer": null, "tenant": null, "bytes": null,
            "what": "GET /\"><script>", "detail": null,
        })
    );
    let reasons: Vec<_> = rejects["by_reason"].as_array().unwrap().iter().map(|of| &of["count"]).collect();
    assert_eq!(reasons, [7, 2]);
}
