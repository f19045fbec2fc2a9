//! Pages of gateways in which something is wrong.

use super::*;
use crate::finding::Severity;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

fn status() -> Value {
    json!({
        "at": "2027-01-15T08:00:00Z", "version": "1", "state": "flowing", "reason": "all is well", "uptime_seconds": 5.0,
        "journal": {"dir": "/d/journal"},
        "memory": {"limit": 1000, "resident": {"now": 100}, "payload": {"shares": []}},
        "books": {"sources": []},
        "sinks": [{"name": "a", "lag": {"items": 0, "age_seconds": null}, "usual_lag_seconds": 1.0, "broken": false, "dropped": {}}],
    })
}

/// The findings on a status that are not fine.
fn told(change: impl FnOnce(&mut Value)) -> Vec<(Severity, String)> {
    let mut status = status();
    change(&mut status);
    let mut findings = vec![state(&status, None)];
    findings.extend(sinks(&status));
    findings.extend(memory(&status));
    findings.extend(refusals(&status));
    let findings = findings.into_iter().filter(|finding| finding.severity > Severity::Fine);
    findings.map(|finding| (finding.severity, finding.what)).collect()
}

#[test]
fn a_gateway_that_is_well_is_fine() {
    assert_eq!(told(|_| {}), []);
    assert_eq!(state(&status(), Some("the disk is full")).severity, Severity::Broken);
}

#[test]
fn sinks_that_fail_or_lag_are_told() {
    let told = told(|status| {
        status["state"] = "spilling".into();
        status["sinks"] = json!([
            {"name": "a", "broken": true, "last_error": {"message": "m", "at": "t"}},
            {"name": "b", "lag": {"items": 7, "age_seconds": 100.0}, "usual_lag_seconds": 1.0},
            {"name": "c", "dropped": {"rejected": 3, "quota": 2, "filtered": 70, "sampled_out": 900}, "last_error": {"at": "2027-01-15T07:56:40Z"}},
            {"name": "d", "dropped": {"rejected": 3}, "last_error": {"at": "2027-01-14T07:56:40Z"}},
            {"name": "e", "dropped": {"filtered": 70, "sampled_out": 900}},
        ]);
    });
    let words: Vec<&str> = told.iter().map(|(_, what)| what.as_str()).collect();
    assert!(words[0].contains("piles up on disk"), "{told:?}");
    assert!(words[1].contains("`a` has failed") && told[1].0 == Severity::Broken, "{told:?}");
    assert!(words[2].contains("`b` is 100 s behind"), "{told:?}");
    assert_eq!(
        (told[3].0, words[3]),
        (Severity::AtRisk, "the sink `c` has dropped 5 items since it was set up")
    );
    assert_eq!(told[4].0, Severity::Note, "that was yesterday: {told:?}");
    assert_eq!(told.len(), 5, "what a pipeline is told to drop is no loss: {told:?}");
}

#[test]
fn short_memory_and_refusals_are_told() {
    let told = told(|status| {
        status["memory"]["resident"]["now"] = 990.into();
        status["books"]["sources"] =
            json!([{"refused": {"memory": 3, "invalid": 0}}, {"refused": {"memory": 4}}]);
        status["refused_lately"] = json!(["memory"]);
    });
    assert_eq!(
        told[0],
        (Severity::Note, "the gateway's memory is near its limit, which it does not exceed".to_owned())
    );
    assert_eq!(told[1], (Severity::AtRisk, "clients are being refused".to_owned()));
}

/// A server that answers each request with this.
fn serve(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn whatever_answers_is_looked_at_twice() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let asked = ask(nobody, "");
    assert!(!asked.is_answered && asked.failure.is_some());
    let asked = ask(serve("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), "");
    assert_eq!((asked.failure.as_deref(), asked.status), (Some("what answers there is not a gateway"), None));
    let asked = ask(serve("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"), "Bearer x");
    assert_eq!((asked.failure.as_deref(), &*asked.said), (Some("it answered with status 401"), "no"));
}

/// Words of others are never evidence, which is archived, and are neither long nor slow to look at.
#[test]
fn words_of_whatever_answers_are_quotes() {
    let word = "telemetry, ".repeat(100);
    let setup = crate::checks::journal::tests::setup(Path::new("/d/e"), &[]);
    let reasons: serde_json::Map<String, Value> =
        (0..50_000).map(|number| (format!("{word}{number}"), json!(1))).collect();
    let mut status = json!({
        "state": word, "reason": word, "version": word, "uptime_seconds": 5.0, "journal": {"dir": word},
        "books": {"sources": [{"refused": reasons}]},
        "sinks": [
            {"name": word, "broken": true, "last_error": {"at": word, "message": word}},
            {"name": word, "dropped": {"telemetry": 7, "rejected": 1}},
        ],
    });
    let running =
        |status: &Value, is_ours| Running { status: Some(status.clone()), is_ours, ..Running::default() };
    let mut findings = check(&running(&status, true), &setup, Path::new("/"), None);
    findings.extend(check(&running(&status, false), &setup, Path::new("/"), None));
    status["state"] = "flowing".into();
    let unready = Running { unready: Some(brief(&word)), ..running(&status, true) };
    findings.extend(check(&unready, &setup, Path::new("/"), None));
    let refusing = Running { is_answered: true, said: brief(&word), ..Running::default() };
    findings.extend(check(&refusing, &setup, Path::new("/"), Some(1)));
    assert!(findings.len() > 8, "{findings:?}");
    for finding in findings {
        let Finding { what, evidence, quote, .. } = &finding;
        assert!(!what.contains("telemetry") && !evidence.contains("telemetry"), "{finding:?}");
        assert!(quote.len() < 1000, "{finding:?}");
    }
}

/// Another's state is not told as this one's.
#[test]
fn another_gateway_is_not_taken_for_this_one() {
    const STATUS: &str =
        "HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{\"journal\":{\"dir\":\"/d/d/journal\"}}";
    let (root, admin, own) = (Path::new("/"), serve(STATUS), std::process::id());
    let asked = |data: &str, owner| ask_for(root, admin, Path::new(data), owner, "");
    assert!(asked("/d/d", None).is_ours);
    assert!(asked("/d/e", Some(own)).is_ours, "the process that has the folder listens there");
    let relative = Running { status: Some(json!({"journal": {"dir": "./d/journal"}})), ..Running::default() };
    assert!(relative.is_of(Path::new("/x/d"), Some(Path::new("/x"))));
    assert!(!relative.is_of(Path::new("./d"), Some(Path::new("/x"))), "another folder of that name");
    let other = asked("/d/e", None);
    let setup = crate::checks::journal::tests::setup(Path::new("/d/e"), &[]);
    let found = check(&other, &setup, root, None);
    assert_eq!((found.len(), found[0].severity), (1, Severity::AtRisk), "{found:?}");
    assert!(found[0].what.contains("another gateway"), "{found:?}");
}
