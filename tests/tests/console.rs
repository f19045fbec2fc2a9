//! The console of a whole gateway: in a real browser, and as its pages ask for it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tidegate_tests::fleet::{Fleet, POLICY};
use tidegate_tests::http::Answer;
use tidegate_tests::{Gateway, SOON, finish, free_address, http, skip, until};

/// A body that is no OTLP.
const BROKEN: &[u8] = b"{\"resourceLogs\": 5}";

/// Two sinks, of which one cannot reach its peer; tenants; and a refusal of each kind that is easy to get.
fn busy_gateway() -> Gateway {
    busy_gateway_with(json!({}))
}

/// The same with more sinks.
fn busy_gateway_with(sinks: Value) -> Gateway {
    let gateway = Gateway::started(busy_settings(sinks));
    make_busy(&gateway);
    gateway
}

fn busy_settings(mut sinks: Value) -> Value {
    sinks["lake"] = json!({"type": "lake", "file_age": "1s"});
    sinks["upstream"] = json!({"type": "otlp", "endpoints": [format!("http://{}", free_address())]});
    json!({
        "memory": "96MiB",
        "tenants": {"header": "X-Scope-OrgID", "default": "everyone"},
        "sinks": sinks,
    })
}

fn make_busy(gateway: &Gateway) {
    for tenant in ["shop", "bank"] {
        let tenant = format!("X-Scope-OrgID: {tenant}");
        let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json", &tenant];
        assert_eq!(http::request(gateway.http(), &head, logs().as_bytes()).unwrap().status, 200);
        let broken = http::request(gateway.http(), &head, BROKEN).unwrap();
        assert_eq!(broken.status, 400, "{}", broken.text());
    }
    for (path, body) in [("/v1/traces", spans()), ("/v1/metrics", points())] {
        let request = format!("POST {path} HTTP/1.1");
        let head = [request.as_str(), "Content-Type: application/json"];
        assert_eq!(http::request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
    }
    assert_eq!(http::get(gateway.http(), "/no/such/path").unwrap().status, 404);
    until(SOON, "the sink to fail", || !gateway.sink("upstream")["last_error"].is_null());
}

/// An agent that reports a component that has failed.
fn enroll_ill_agent(fleet: &Fleet) {
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll_host(&fleet.token("web"), "web-1.example");
    let unit = json!({"id": "logfile-system", "type": "input", "status": "FAILED", "message": "no such file: <b>x</b>"});
    let component = json!({"id": "logfile-default", "type": "logfile", "status": "DEGRADED", "message": "1 unit", "units": [unit]});
    agent.check_in(json!({"status": "degraded", "components": [component]}));
}

fn nanoseconds_ago(milliseconds: u64) -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    (since - Duration::from_millis(milliseconds)).as_nanos().to_string()
}

/// A trace of two spans, of which one failed.
fn spans() -> String {
    let span = |id: &str, parent: &str, name: &str, (began, ended): (u64, u64), code: u64| {
        json!({
            "traceId": "5b8efff798038103d269b633813fc60c", "spanId": id, "parentSpanId": parent, "name": name, "kind": 2,
            "startTimeUnixNano": nanoseconds_ago(began), "endTimeUnixNano": nanoseconds_ago(ended),
            "status": {"code": code},
            "events": [{"name": "exception", "timeUnixNano": nanoseconds_ago(ended)}],
            "attributes": [{"key": "http.route", "value": {"stringValue": "/pay"}}],
        })
    };
    let spans = [
        span("eee19b7ec3c1b174", "", "POST /pay", (500, 100), 0),
        span("eee19b7ec3c1b175", "eee19b7ec3c1b174", "charge the card", (400, 200), 2),
    ];
    let service = json!([{"key": "service.name", "value": {"stringValue": "checkout"}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": spans}]}]})
        .to_string()
}

/// A counter that rises.
fn points() -> String {
    let points: Vec<Value> = (0..60_u64)
        .map(|place| json!({"asInt": (place * place).to_string(), "timeUnixNano": nanoseconds_ago((60 - place) * 30_000)}))
        .collect();
    let sum = json!({"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true});
    let metric = json!({"name": "payments", "unit": "1", "description": "Payments.", "sum": sum});
    json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}).to_string()
}

fn logs() -> String {
    let now = nanoseconds_ago(0);
    let record =
        json!({"severityNumber": 17, "timeUnixNano": now, "body": {"stringValue": "payment declined"}});
    let service = json!([{"key": "service.name", "value": {"stringValue": "checkout"}}]);
    json!({"resourceLogs": [{"resource": {"attributes": service}, "scopeLogs": [{"logRecords": [record]}]}]})
        .to_string()
}

/// Every page, narrow and wide, dark and light, by keyboard alone: no error, nothing serious for axe, nothing from elsewhere. Dead letters
/// are sent again and discarded.
#[test]
fn every_page_in_a_browser() {
    let variable = "TIDEGATE_TEST_BROWSER";
    let Some(packages) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
        return skip(variable, &format!("{variable} is not set; `make test` sets it"));
    };
    // An admin address takes no data, and says so for good; and nothing ever arrives at this gateway.
    let peer = Gateway::started(json!({"memory": "32MiB", "sinks": {"none": {"type": "blackhole"}}}));
    let mut settings = busy_settings(json!({
        "picky": {"type": "otlp", "protocol": "http", "endpoints": [format!("http://{}", peer.admin())]},
    }));
    // The fleet has a share of its own beside what searches need.
    settings["memory"] = json!("160MiB");
    let fleet = Fleet::start_in(settings);
    let gateway = &fleet.gateway;
    make_busy(gateway);
    enroll_ill_agent(&fleet);
    // Two log records, two spans, and sixty points.
    until(SOON, "the dead letters", || gateway.sink("picky")["dropped"]["rejected"] == 64);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut browser = Command::new("node");
    browser
        .arg(scripts.join("run.mjs"))
        .arg(format!("http://{}", gateway.admin()))
        .env("TIDEGATE_TEST_DEAD_LETTERS", "1")
        .env("TIDEGATE_TEST_EMPTY", format!("http://{}", peer.admin()))
        .env("TIDEGATE_TEST_NODE_MODULES", Path::new(&packages).join("node_modules"));
    let seen = finish(&mut browser).succeeded();
    println!("{seen}");
    gateway.books_close();
}

/// Pages that ask at the same moment do not shut each other out of the configuration.
#[test]
fn pages_that_ask_at_once_are_all_answered() {
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"s": {"type": "blackhole"}}}));
    let ask = || {
        for kind in ["otel-python", "prometheus"].iter().cycle().take(100) {
            let answer = gateway.page(&format!("/console/connect?kind={kind}"));
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(ask);
        }
    });
}

/// A page that stays open gets the status each second, and ends when the gateway does.
#[test]
fn an_open_page_ends_with_the_gateway() {
    let mut gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"s": {"type": "blackhole"}}}));
    let mut page = TcpStream::connect(gateway.admin()).unwrap();
    page.set_read_timeout(Some(SOON)).unwrap();
    page.write_all(b"GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut seen = String::new();
    let mut piece = [0; 4096];
    let mut read = |seen: &mut String| {
        let read = page.read(&mut piece).unwrap();
        seen.push_str(str::from_utf8(&piece[..read]).unwrap());
        read
    };
    while seen.matches("\n\n").count() < 3 {
        assert_ne!(read(&mut seen), 0, "{seen}");
    }
    assert!(seen.contains("data: {\"state\":\"flowing\""), "{seen}");
    assert_eq!(gateway.term(), 0);
    while read(&mut seen) > 0 {}
}

/// The seventeenth page is refused with words, and there is room again when one is closed.
#[test]
fn at_most_sixteen_pages_are_open() {
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"s": {"type": "blackhole"}}}));
    let open = || {
        let mut page = TcpStream::connect(gateway.admin()).unwrap();
        page.set_read_timeout(Some(SOON)).unwrap();
        page.write_all(b"GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut status = [0; 12];
        page.read_exact(&mut status).unwrap();
        (page, status)
    };
    let mut pages: Vec<_> = (0..16).map(|_| open()).collect();
    assert!(pages.iter().all(|(_, status)| status == b"HTTP/1.1 200"));
    assert_eq!(&open().1, b"HTTP/1.1 503");
    pages.pop();
    until(SOON, "room for a page", || &open().1 == b"HTTP/1.1 200");
}

/// Refused requests are listed with their peer and the reason.
#[test]
fn refused_requests_are_listed() {
    let gateway = busy_gateway();
    let rejects = gateway.page("/console/rejects").json();
    let of = |reason: &str| {
        let requests = rejects["requests"].as_array().unwrap();
        requests.iter().filter(|request| request["reason"] == reason).cloned().collect::<Vec<_>>()
    };
    let stray = of("not_found");
    assert_eq!(stray[0]["what"], "GET /no/such/path", "{rejects}");
    assert!(stray[0]["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{rejects}");
    let tenants: Vec<Value> = of("malformed").iter().map(|request| request["tenant"].clone()).collect();
    assert_eq!(tenants, ["bank", "shop"], "the newest first: {rejects}");
    for malformed in of("malformed") {
        assert!(malformed["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{rejects}");
        assert!(malformed["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{rejects}");
        assert_eq!(malformed["bytes"], BROKEN.len(), "{rejects}");
    }
    assert_eq!(
        rejects["by_reason"][0],
        json!({
            "reason": "malformed", "count": 2,
            "meaning": "The body contradicts its headers, or violates its format.",
        })
    );
}

struct Session<'a> {
    gateway: &'a Gateway,
    token: String,
}

impl Session<'_> {
    fn of(gateway: &Gateway) -> Session<'_> {
        let session = gateway.page("/console/session").json();
        assert_eq!(session["operator"], true);
        Session { gateway, token: session["token"].as_str().unwrap().to_owned() }
    }

    fn post(&self, path: &str, more: &[&str]) -> Answer {
        let (line, token) = (format!("POST {path} HTTP/1.1"), format!("X-Tidegate-Token: {}", self.token));
        let head = [&[&*line, &token], more].concat();
        http::request(self.gateway.admin(), &head, b"").unwrap()
    }

    fn report(&self, path: &str) -> Value {
        let answer = self.post(path, &["Sec-Fetch-Site: same-origin"]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// A changed file is checked and put in effect from the page; a wrong one is explained, and changes nothing; no page of another
/// origin can do either.
#[test]
fn the_configuration_is_checked_and_reloaded() {
    let settings = |sink: &str, shutdown: &str| {
        json!({
            "memory": "64MiB",
            "limits": {"shutdown_timeout": shutdown},
            "sinks": {sink: {"type": "blackhole"}},
        })
    };
    let gateway = Gateway::started(settings("one", "10s"));
    let session = Session::of(&gateway);
    assert_eq!(session.report("/console/check")["changes"], json!([]));

    gateway.configure(settings("two", "11s"));
    let checked = session.report("/console/check");
    assert_eq!(checked["ok"], true, "{checked}");
    assert_eq!(
        checked["changes"],
        json!([
            {"what": "sinks", "effect": "reload"},
            {"what": "limits.shutdown_timeout", "effect": "restart"},
        ])
    );
    let in_effect = || gateway.page("/console/configuration").json();
    assert!(in_effect()["text"].as_str().unwrap().contains("  one:\n"), "a check changes nothing");
    assert_eq!(in_effect()["file"], gateway.config().display().to_string());

    for (path, origin) in
        [("/console/reload", "Origin: http://evil.example"), ("/console/check", "Sec-Fetch-Site: cross-site")]
    {
        assert_eq!(session.post(path, &[origin]).status, 403, "{path} {origin}");
    }
    let reloaded = session.report("/console/reload");
    assert_eq!(reloaded["ok"], true, "{reloaded}");
    assert!(reloaded["message"].as_str().unwrap().contains("limits.shutdown_timeout"), "{reloaded}");
    assert!(in_effect()["text"].as_str().unwrap().contains("  two:\n"));
    assert_eq!(gateway.status()["sinks"][0]["name"], "two");

    gateway.configure_text("memory: 64MiB\nsinks: {s: {type: blackhol}}\n");
    for path in ["/console/check", "/console/reload"] {
        let wrong = session.report(path);
        assert_eq!((&wrong["ok"], &wrong["errors"][0]["line"]), (&json!(false), &json!(2)), "{wrong}");
        assert!(wrong["errors"][0]["suggestion"].as_str().unwrap().contains("blackhole"), "{wrong}");
    }
    assert_eq!(gateway.status()["sinks"][0]["name"], "two");
}

/// After some steps of five seconds the history has what passed.
#[test]
fn the_history_has_what_passed() {
    let gateway = busy_gateway();
    until(Duration::from_secs(40), "a step of the history", || {
        let history = gateway.page("/console/history").json();
        let steps = history["points"].as_array().unwrap();
        let received: u64 = steps.iter().map(|step| step["received"].as_u64().unwrap()).sum();
        let malformed: u64 = steps.iter().filter_map(|step| step["refused"]["malformed"].as_u64()).sum();
        // Two log records, two spans, and sixty points.
        (received, malformed) == (64, 2)
    });
}
