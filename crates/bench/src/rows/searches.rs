//! Searches of the console: how long they take in a large lake, and what the intake loses while pages are open and clients search
//! without pause.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidegate_load::otlp::{OtlpProfile, OtlpReport, Signal, drive_blocking};
use tidegate_load::{OnRefused, Target};

pub(super) const ROW: Row = Row {
    name: "searches",
    what: "time of searches in a lake of ten million rows, and the intake's rate beside 16 open pages and 4 searching clients",
    measure,
};

const SETTINGS: &str =
    "memory: 64MiB\njournal: { quota: 128MiB, segment: 4MiB }\nsinks: { lake: { type: lake } }";
/// The longest that filling the lake, and then a run under load, may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How late a search may be answered that waits behind others.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
const CONNECTIONS: u64 = 48;
const PER_REQUEST: u64 = 500;
/// Searches of each kind, one after the other, before there is load: so few that none has to rest.
const ROUNDS: usize = 4;
const VIEWERS: usize = 16;
const SEARCHING: usize = 4;
/// Times without and with viewers and searches, by turns.
const PAIRS: usize = 10;

/// A kind of search, by the name that it has in the path, and a query.
struct Search {
    kind: &'static str,
    query: String,
}

/// The credentials of a page.
struct Page<'s> {
    subject: &'s Subject,
    token: String,
}

/// The outcomes of searches under load.
#[derive(Default)]
struct Answered {
    seconds: Vec<f64>,
    unavailable: u64,
}

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let subject = Subject::start(&folder, SETTINGS)?;
    fill(&subject, bench.rows)?;
    let page = Page::open(&subject)?;
    let searches = page.usual_searches()?;
    let mut figures = Vec::new();
    for (search, (what, bar)) in searches.iter().zip([
        ("a search for a trace by its id, ms", 300.0),
        ("a search for logs by service and text over an hour, ms", 2_000.0),
    ]) {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            page.find(search)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let details = vec![("rows in the lake", bench.rows as f64)];
        let (bar, measured) = (Bar::AtMost(bar), median(times));
        figures.push(Figure { name: ROW.name, what: what.to_owned(), bar, measured, details });
    }
    figures.push(under_load(bench, &page, &searches)?);
    let peak = subject.memory("VmHWM")? / f64::from(1 << 20);
    figures.push(Figure {
        name: ROW.name,
        what: "resident memory of the gateway at most, searches' processes apart, MiB".to_owned(),
        bar: Bar::AtMost(64.0),
        measured: peak,
        details: Vec::new(),
    });
    Ok(figures)
}

/// Half spans, half log records, all of them in the lake.
fn fill(subject: &Subject, rows: u64) -> Result<(), Failure> {
    for signal in [Signal::Traces, Signal::Logs] {
        let requests = rows / 2 / PER_REQUEST / CONNECTIONS;
        let report = send(subject, &OtlpProfile { signal, requests, deadline: PATIENCE, ..profile() })?;
        if report.items != requests * PER_REQUEST * CONNECTIONS {
            return Err(Failure(format!("the lake was not filled: {report:?}")));
        }
    }
    subject.wait_until_settled_within(PATIENCE)
}

fn profile() -> OtlpProfile {
    OtlpProfile {
        connections: CONNECTIONS,
        items: PER_REQUEST,
        on_refused: OnRefused::Retry { at_most: Duration::from_millis(200) },
        ..OtlpProfile::default()
    }
}

fn send(subject: &Subject, profile: &OtlpProfile) -> Result<OtlpReport, Failure> {
    let target = Target { authority: subject.address().to_string(), path: String::new() };
    let report = drive_blocking(&target, profile)?;
    if report.failed > 0 {
        return Err(Failure(format!("the gateway did not answer every request: {report:?}")));
    }
    Ok(report)
}

impl<'s> Page<'s> {
    fn open(subject: &'s Subject) -> Result<Page<'s>, Failure> {
        let answer = subject.ask_admin("GET", "/console/session", &[], b"")?;
        let token = body(&answer)?["token"].as_str().ok_or("the console gave no token")?.to_owned();
        Ok(Page { subject, token: format!("X-Tidegate-Token: {token}") })
    }

    /// The answer with its head.
    fn ask(&self, search: &Search) -> Result<String, Failure> {
        let path = format!("/console/search/{}", search.kind);
        let asked = ("POST", path.as_str());
        let query = search.query.as_bytes();
        Ok(self.subject.ask_admin_within(ANSWER_WITHIN, asked, &[&self.token], query)?)
    }

    fn find(&self, search: &Search) -> Result<Value, Failure> {
        let answer = self.ask(search)?;
        if is_found(&answer) { body(&answer) } else { Err(unexpected(&answer)) }
    }

    /// For a trace by its id, for logs by service and text in the last hour, and for the names of services.
    fn usual_searches(&self) -> Result<[Search; 3], Failure> {
        let newest = self.find(&Search { kind: "traces", query: json!({"limit": 100}).to_string() })?;
        let traces = newest["traces"].as_array().ok_or("no traces were found")?;
        let trace = traces.last().map(|trace| &trace["trace_id"]).ok_or("no traces were found")?;
        let now = jiff::Timestamp::now();
        let (from, to) = (now - Duration::from_secs(3600), now + Duration::from_secs(600));
        let (from, to) = (from.to_string(), to.to_string());
        let logs = json!({"from": from, "to": to, "service": "service-7", "text": "in 77 ms"});
        let search = |kind, query: Value| Search { kind, query: query.to_string() };
        Ok([
            search("trace", json!({"trace_id": trace})),
            search("logs", logs),
            search("services", json!({"from": from, "to": to})),
        ])
    }

    /// Looks at the live status until it is told to stop.
    fn view(&self, stop: &AtomicBool) -> Result<(), Failure> {
        let mut stream =
            self.subject.connect_admin("GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        let mut piece = vec![0; 64 << 10];
        while !stop.load(Relaxed) {
            match stream.read(&mut piece) {
                Ok(0) => return Err(Failure::from("the gateway ended the live status")),
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error.into()),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Searches without pause until it is told to stop.
    fn search(
        &self,
        searches: &[Search],
        stop: &AtomicBool,
        answered: &Mutex<Answered>,
    ) -> Result<(), Failure> {
        for search in searches.iter().cycle() {
            if stop.load(Relaxed) {
                break;
            }
            let begun = Instant::now();
            // Those that are slow count, too.
            let answer = self.ask(search)?;
            let mut answered = answered.lock().map_err(|_| "a searching client panicked")?;
            if is_found(&answer) {
                answered.seconds.push(begun.elapsed().as_secs_f64());
            } else if answer.starts_with("HTTP/1.1 503 ") {
                answered.unavailable += 1;
            } else {
                return Err(unexpected(&answer));
            }
        }
        Ok(())
    }
}

fn is_found(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

fn unexpected(answer: &str) -> Failure {
    Failure(format!("a search was answered with:\n{answer}"))
}

/// The body of an answer, as JSON.
fn body(answer: &str) -> Result<Value, Failure> {
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    Ok(serde_json::from_str(body)?)
}

/// The rate of the intake at full load while pages are open and clients search, relative to its rate without them.
fn under_load(bench: &Bench, page: &Page<'_>, searches: &[Search]) -> Result<Figure, Failure> {
    let subject = page.subject;
    let window = (bench.seconds / 5).max(Duration::from_secs(1));
    let answered = Mutex::new(Answered::default());
    let mut rates = [Vec::new(), Vec::new()];
    let is_over = AtomicBool::new(false);
    let load = OtlpProfile {
        requests: u64::MAX / PER_REQUEST / CONNECTIONS,
        prebuilt: Some(8),
        first: 1 << 40,
        deadline: window,
        ..profile()
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let load = scope.spawn(|| -> Result<(), Failure> {
            while !is_over.load(Relaxed) {
                send(subject, &load)?;
            }
            Ok(())
        });
        std::thread::sleep(window);
        let measured = (0..PAIRS * 2).try_for_each(|turn| {
            let stop = AtomicBool::new(false);
            // Without, with, with, without: a rate that falls while the lake grows falls for both.
            let is_searched = matches!(turn % 4, 1 | 2);
            std::thread::scope(|scope| {
                let mut clients = Vec::new();
                if is_searched {
                    clients.extend((0..VIEWERS).map(|_| scope.spawn(|| page.view(&stop))));
                    clients.extend(
                        (0..SEARCHING).map(|_| scope.spawn(|| page.search(searches, &stop, &answered))),
                    );
                }
                let rate = intake_rate(subject, window);
                stop.store(true, Relaxed);
                for client in clients {
                    client.join().map_err(|_| "a client panicked")??;
                }
                rates[usize::from(is_searched)].push(rate?);
                Ok(())
            })
        });
        is_over.store(true, Relaxed);
        load.join().map_err(|_| "the load panicked")??;
        measured
    })?;
    let ratios = rates[1].iter().zip(&rates[0]).map(|(with, without)| with / without).collect();
    let answered = answered.into_inner().map_err(|_| "a searching client panicked")?;
    let [without, with] = rates;
    Ok(Figure {
        name: ROW.name,
        what: "rate of the intake beside 16 open pages and 4 searching clients, of that without".to_owned(),
        bar: Bar::AtLeast(0.97),
        measured: median(ratios),
        details: vec![
            ("items a second without", median(without)),
            ("with", median(with)),
            ("searches answered", answered.seconds.len() as f64),
            ("searches without memory or turn", answered.unavailable as f64),
            ("seconds of a search", median(answered.seconds)),
        ],
    })
}

/// Items that are accepted in a second.
fn intake_rate(subject: &Subject, window: Duration) -> Result<f64, Failure> {
    let accepted = || subject.meter("tidegate_items_accepted_total");
    let (begun, before) = (Instant::now(), accepted()?);
    std::thread::sleep(window);
    Ok((accepted()? - before) / begun.elapsed().as_secs_f64())
}
