//! Dead letters that an operator sends again, or discards, from the console's page.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_load::{
    Behaviour, Check, LoadProfile, SeriesModel, Timeline, VerifyingReceiver, drive_blocking,
};
use tidegate_tests::http::Answer;
use tidegate_tests::{Gateway, SOON, http, until};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };
const REJECTING: Behaviour = Behaviour::Status { code: 400, retry_after: None };

fn receiver(behaviour: Behaviour) -> VerifyingReceiver {
    VerifyingReceiver::start(behaviour, Check::Timed(TIMELINE)).unwrap()
}

fn to(receiver: &VerifyingReceiver) -> Value {
    json!({"type": "prometheus_remote_write", "url": receiver.target().to_string(), "backoff": {"max": "200ms"}})
}

/// Has the gateway accept so many requests of 100 samples, each of which is a letter where it is rejected.
fn send(gateway: &Gateway, requests: std::ops::Range<u64>) {
    let model = Arc::new(SeriesModel::new(8, 100, TIMELINE));
    for first in requests {
        let profile =
            LoadProfile { first, connections: 1, series_per_request: 100, ..LoadProfile::default() };
        assert_eq!(drive_blocking(&gateway.target(), &model, &profile).unwrap().samples, 100);
        gateway.at_rest(SOON);
    }
}

/// The page, with the token of its session.
struct Page<'g> {
    gateway: &'g Gateway,
    token: String,
}

impl Page<'_> {
    fn of(gateway: &Gateway) -> Page<'_> {
        let session = gateway.page("/console/session").json();
        let token = format!("X-Tidegate-Token: {}", session["token"].as_str().unwrap());
        Page { gateway, token }
    }

    fn post(&self, path: &str, more: &[&str], body: &str) -> Answer {
        let line = format!("POST /console/{path} HTTP/1.1");
        let head = [&[&*line, "Sec-Fetch-Site: same-origin"], more].concat();
        http::request(self.gateway.admin(), &head, body.as_bytes()).unwrap()
    }

    fn order(&self, order: &str) -> Value {
        let answer = self.post(&format!("dead-letters/{order}"), &[&self.token], "");
        assert_eq!(answer.status, 200, "{order}: {}", answer.text());
        answer.json()
    }

    fn refused(&self, order: &str) -> (u16, String) {
        let answer = self.post(&format!("dead-letters/{order}"), &[&self.token], "");
        (answer.status, answer.text())
    }

    /// The letters of each sink, as the page lists them.
    fn letters(&self) -> Value {
        let answer = self.post("search/dead-letters", &[&self.token, "Content-Type: application/json"], "{}");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["sinks"].clone()
    }
}

/// They reach the sink that could not deliver them, and no other; the list and the books know.
#[test]
fn resent_letters_reach_their_sink_alone() {
    let (picky, other) = (receiver(REJECTING), receiver(Behaviour::Healthy));
    let mut gateway =
        Gateway::started(json!({"memory": "96MiB", "sinks": {"picky": to(&picky), "other": to(&other)}}));
    send(&gateway, 0..3);
    assert_eq!(gateway.sink("picky")["dropped"]["rejected"], 300);
    let page = Page::of(&gateway);
    assert_eq!(page.letters(), json!([{"sink": "picky", "letters": 3, "items": 300, "through": 3}]));

    for wrong in [&[][..], &["X-Tidegate-Token: 0"]] {
        assert_eq!(page.post("dead-letters/resend?sink=picky&through=3", wrong, "").status, 403);
        assert_eq!(page.post("dead-letters/discard?sink=picky&through=3", wrong, "").status, 403);
    }
    let (status, words) = page.refused("resend?sink=nobody&through=3");
    assert!(status == 404 && words.contains("`nobody` is not configured"), "{status}: {words}");
    assert_eq!(page.refused("discard?sink=nobody&through=3").0, 404);
    assert_eq!(page.refused("resend?sink=picky").0, 400);
    assert_eq!(page.letters()[0]["letters"], 3, "what was refused changed nothing");

    picky.set(Behaviour::Healthy);
    assert_eq!(page.order("resend?sink=picky&through=2"), json!({"sent": 2, "items": 200, "kept": 0}));
    assert_eq!(page.letters(), json!([{"sink": "picky", "letters": 1, "items": 100, "through": 3}]));
    assert!(picky.wait_for(SOON, |arrivals| arrivals.samples() == 200));
    assert_eq!(page.order("resend?sink=picky&through=3"), json!({"sent": 1, "items": 100, "kept": 0}));
    assert!(picky.wait_for(SOON, |arrivals| arrivals.samples() == 300));
    assert_eq!(page.letters(), json!([]));
    assert_eq!(page.order("resend?sink=picky&through=3"), json!({"sent": 0, "items": 0, "kept": 0}));

    let status = gateway.at_rest(SOON);
    let sources = status["books"]["sources"].as_array().unwrap();
    let resent = sources.iter().find(|source| source["name"] == "dead_letters").unwrap();
    assert_eq!((&resent["accepted"], &resent["items"]["metrics"]), (&json!(3), &json!(300)), "{resent}");
    gateway.books_close();
    assert_eq!((picky.report().samples(), other.report().samples()), (300, 300));
    assert_eq!(gateway.term(), 0);
}

/// Letters that are rejected once more are new letters, and discarded ones are gone, up to the number that was seen.
#[test]
fn letters_are_rejected_again_and_discarded() {
    let picky = receiver(REJECTING);
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"picky": to(&picky)}}));
    send(&gateway, 0..2);
    let page = Page::of(&gateway);
    assert_eq!(page.order("resend?sink=picky&through=2")["sent"], 2);
    let again = json!([{"sink": "picky", "letters": 2, "items": 200, "through": 4}]);
    until(SOON, "the letters to come back", || page.letters() == again);
    assert_eq!(page.order("discard?sink=picky&through=3"), json!({"discarded": 1, "items": 100, "kept": 0}));
    assert_eq!(page.letters()[0]["letters"], 1, "the newer one was not meant");
    assert_eq!(page.order("discard?sink=picky&through=4")["discarded"], 1);
    assert_eq!(page.letters(), json!([]));
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(picky.report().samples(), 0);
}

/// Letters of a sink that is not configured any more can be discarded, and not sent.
#[test]
fn letters_of_a_removed_sink_are_discarded() {
    let picky = receiver(REJECTING);
    let mut gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"picky": to(&picky)}}));
    send(&gateway, 0..1);
    assert_eq!(gateway.term(), 0);
    gateway.configure(json!({"memory": "64MiB", "sinks": {"new": {"type": "blackhole"}}}));
    gateway.start();
    let page = Page::of(&gateway);
    let (status, words) = page.refused("resend?sink=picky&through=1");
    assert!(status == 404 && words.contains("tidegate journal resend --sink picky"), "{status}: {words}");
    assert_eq!(page.order("discard?sink=picky&through=1")["discarded"], 1);
    assert_eq!(page.letters(), json!([]));
}

/// A letter that its sink would not take any more stays, with the reason, and those after it are sent.
#[test]
fn a_letter_that_its_sink_would_not_take_is_kept() {
    let peer = receiver(REJECTING);
    let mut gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"picky": to(&peer)}}));
    send(&gateway, 0..1);
    assert_eq!(gateway.term(), 0);
    let url = format!("http://{}", peer.address());
    gateway.configure(json!({"memory": "64MiB", "sinks": {"picky": {"type": "loki", "endpoints": [url]}}}));
    gateway.start();
    let page = Page::of(&gateway);
    for _twice in 0..2 {
        let report = page.order("resend?sink=picky&through=1");
        assert_eq!((&report["sent"], &report["kept"]), (&json!(0), &json!(1)), "{report}");
        assert!(report["message"].as_str().unwrap().starts_with("letter 1: the sink"), "{report}");
    }
    assert_eq!(page.letters()[0]["letters"], 1);
    gateway.books_close();
}
