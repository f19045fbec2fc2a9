//! Agents' requests are journalled as received, or without the refused lines, before they are answered.

use crate::body::{LOG, METADATA, NDJSON, PATH, deflate, gzip};
use crate::rig::Rig;
use serde_json::{Value, json};
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Refusal;
use tidegate_load::elastic_apm::AGENTS;

/// Bodies of four agents in each coding, said or to be seen from the first bytes.
#[tokio::test]
async fn captured_bodies_are_journalled_as_they_came() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let mut items = 0;
    for agent in AGENTS {
        let raw = agent.busy.as_bytes();
        let events = agent.busy.lines().count() as u32 - 1;
        for (name, encoding, body) in [
            ("", Encoding::Identity, raw.to_vec()),
            ("identity", Encoding::Identity, raw.to_vec()),
            ("gzip", Encoding::Gzip, gzip(raw)),
            ("", Encoding::Gzip, gzip(raw)),
            ("deflate", Encoding::Deflate, deflate(raw)),
            ("", Encoding::Deflate, deflate(raw)),
        ] {
            let headers = [NDJSON, ("content-encoding", name)];
            let headers = if name.is_empty() { &headers[..1] } else { &headers[..] };
            let answer = rig.post(PATH, headers, &body).await;
            assert_eq!((answer.status, answer.text().as_str()), (202, ""), "{} {name}", agent.name);
            let (meta, journalled) = rig.journalled(&mut follower).await;
            assert!(journalled == body, "{} {name}", agent.name);
            let expected = Meta {
                // They have events of all of them.
                signal: Signal::Events,
                protocol: Protocol::Intake,
                encoding,
                items: events,
                raw_len: raw.len() as u32,
                ..meta
            };
            assert_eq!(meta, expected, "{} {name}", agent.name);
            items += u64::from(events);
        }
    }
    let books = rig.books_of("elastic_apm");
    assert_eq!((books.accepted, books.items.iter().map(|(_, items)| items).sum::<u64>()), (24, items));
}

/// A body is journalled as what it holds, and its items are booked as what each of them is.
#[tokio::test]
async fn events_are_journalled_and_booked_by_their_signal() {
    const SPAN: &str = r#"{"span":{"id":"0123456789abcdef","trace_id":"0123456789abcdef0123456789abcdef","parent_id":"0123456789abcdef","name":"n","type":"t","start":0,"duration":1}}"#;
    const ERROR: &str = r#"{"error":{"id":"0123456789abcdef0123456789abcdef","log":{"message":"m"}}}"#;
    const METRICS: &str = r#"{"metricset":{"samples":{"a":{"value":1}}}}"#;
    const WRONG: &str = r#"{"error":[]}"#;
    let rig = Rig::new();
    let mut follower = rig.follow();
    for (lines, status, signal, items) in [
        (&[SPAN, SPAN][..], 202, Signal::Traces, 2),
        (&[METRICS], 202, Signal::Metrics, 1),
        (&[ERROR], 202, Signal::Logs, 1),
        (&[ERROR, METRICS, SPAN, ERROR], 202, Signal::Events, 4),
        (&[ERROR, SPAN], 202, Signal::Events, 2),
        // A refused line has no signal.
        (&[WRONG, SPAN, SPAN, WRONG], 400, Signal::Traces, 2),
    ] {
        let body = format!("{METADATA}{}\n", lines.join("\n"));
        let answer = rig.post(PATH, &[NDJSON], body.as_bytes()).await;
        assert_eq!(answer.status, status, "{lines:?} {}", answer.text());
        let (meta, _) = rig.journalled(&mut follower).await;
        assert_eq!((meta.signal, meta.items), (signal, items), "{lines:?}");
    }
    let books = rig.books_of("elastic_apm");
    use tidegate_ledger::Signal::{Logs, Metrics, Traces};
    assert_eq!(books.items, [(Metrics, 2), (Logs, 4), (Traces, 6)]);
}

/// The number of events is said to who asks for it, and to nobody else.
#[tokio::test]
async fn verbose_answers_count() {
    let rig = Rig::new();
    let body = [METADATA, LOG, LOG].concat();
    let answer = rig.post("/intake/v2/events?flushed=true", &[NDJSON], body.as_bytes()).await;
    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
    let answer = rig.post("/intake/v2/events?verbose", &[NDJSON], body.as_bytes()).await;
    assert_eq!((answer.status, answer.text().as_str()), (202, "{\n  \"accepted\": 2\n}\n"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let headers = [NDJSON, ("accept", "text/plain")];
    let answer = rig.post("/intake/v2/events?verbose=true", &headers, body.as_bytes()).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    let books = rig.books_of("elastic_apm");
    assert_eq!(books.accepted, 3);
}

/// Nothing is an answer too: no body, and metadata alone.
#[tokio::test]
async fn bodies_without_events_are_accepted() {
    let rig = Rig::new();
    for body in ["", "\n", METADATA] {
        let answer = rig.post(PATH, &[NDJSON], body.as_bytes()).await;
        assert_eq!((answer.status, answer.text().as_str()), (202, ""), "{body}");
    }
    assert_eq!(rig.journal.stats().head, 0);
    assert_eq!(rig.books_of("elastic_apm").accepted, 3);
}

/// Events of a browser do not say who sent them, so the metadata do then: as proxies say, and last, so that it counts.
#[tokio::test]
async fn the_address_of_a_browser_is_stored() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let metadata = METADATA.replace("{\"service", "{\"tidegate\":{\"client\":\"8.8.8.8\"},\"service");
    let whole = [&*metadata, LOG, LOG].concat();
    let broken = [&*metadata, LOG, "{\"log\":[]}\n", LOG].concat();
    let agent = ("user-agent", "Mozilla/5.0 (\"X\")");
    let proxied = [NDJSON, agent, ("x-forwarded-for", "192.0.2.7, 10.0.0.1")];
    let packed = [NDJSON, agent, ("content-encoding", "gzip")];
    for (headers, body, status) in [
        (&proxied[..], whole.clone().into_bytes(), 202),
        (&packed[..], gzip(whole.as_bytes()), 202),
        (&proxied[..], broken.clone().into_bytes(), 400),
        (&packed[..], gzip(broken.as_bytes()), 400),
    ] {
        let answer = rig.post("/intake/v2/rum/events", headers, &body).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        let (meta, journalled) = rig.journalled(&mut follower).await;
        let text = String::from_utf8(journalled).unwrap();
        assert_eq!((meta.encoding, meta.items), (Encoding::Identity, 2));
        assert_eq!(meta.raw_len as usize, text.len());
        let (line, rest) = text.split_once('\n').unwrap();
        assert_eq!(rest, [LOG, LOG].concat());
        let mut known: Value = serde_json::from_str(line).unwrap();
        let known = known["metadata"]["tidegate"].take();
        assert_eq!(known["user_agent"], "Mozilla/5.0 (\"X\")");
        if headers.len() == proxied.len() && headers[2].0 == "x-forwarded-for" {
            assert_eq!(known["client"], "192.0.2.7");
            assert_eq!((&known["source"], &known["nat"]), (&json!("192.0.2.7"), &json!("127.0.0.1")));
        } else {
            assert_eq!((&known["client"], &known["source"]), (&json!("127.0.0.1"), &json!("127.0.0.1")));
            assert!(known["port"].as_u64().is_some_and(|port| port > 0), "{known}");
        }
    }
}

/// Good lines around bad ones are kept, and only those; of the bad ones five are described, and shortly.
#[tokio::test]
async fn good_lines_are_kept() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let long = format!("{{\"log\":{{\"message\":\"{}\"}}}}\n", "x".repeat(300 << 10));
    let bad = "{\"log\":[]}\n".repeat(6);
    let body = [METADATA, LOG, &long, "{\"nothing\":{}}\n", LOG, &bad, LOG].concat();
    let kept = [METADATA, LOG, LOG, LOG].concat();
    for (name, sent) in [
        ("", body.clone().into_bytes()),
        ("gzip", gzip(body.as_bytes())),
        ("deflate", deflate(body.as_bytes())),
    ] {
        let headers = [NDJSON, ("content-encoding", name)];
        let headers = if name.is_empty() { &headers[..1] } else { &headers[..] };
        let answer = rig.post(PATH, headers, &sent).await;
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["accepted"], 3);
        let errors = said["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 5);
        assert_eq!(errors[0]["message"], "event exceeded the permitted size");
        assert_eq!(errors[0]["document"].as_str().unwrap(), &long[..1024]);
        assert_eq!(errors[1]["message"], "did not recognize object type");
        assert_eq!(
            errors[2],
            json!({"message": "decode error: log: 'log' has a value of another type", "document": "{\"log\":[]}"})
        );
        let (meta, journalled) = rig.journalled(&mut follower).await;
        assert_eq!(String::from_utf8(journalled).unwrap(), kept);
        assert_eq!((meta.items, meta.raw_len as usize, meta.encoding), (3, kept.len(), Encoding::Identity));
    }
    let books = rig.books_of("elastic_apm");
    assert_eq!((books.accepted, books.refused), (3, vec![]));
}

/// Where nothing can be used, that is said, and nothing is journalled.
#[tokio::test]
async fn bodies_without_a_good_line_are_refused() {
    let rig = Rig::new();
    let useless =
        [[METADATA, "{}\n"].concat(), LOG.to_owned(), "x".to_owned(), "{\"metadata\":{}}\n".to_owned() + LOG];
    for body in &useless {
        let answer = rig.post(PATH, &[NDJSON], body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{body}");
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["accepted"], 0, "{body}");
        assert_eq!(said["errors"].as_array().unwrap().len(), 1, "{body}");
    }
    assert_eq!(rig.journal.stats().head, 0);
    assert_eq!(rig.books_of("elastic_apm").refused, [(Refusal::Malformed, 4)]);
}
