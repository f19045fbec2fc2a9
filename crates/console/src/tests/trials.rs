//! `/pipelines` over real sockets: the page, and what becomes of a form.

use super::sample::healthy;
use super::served::{FakeGateway, FakeProcess, Served, gateway_with};
use super::trial_page::{pipelines, status};
use crate::{ProcessError, TrialAnswer, TrialRequest};
use std::sync::{Arc, Condvar, Mutex};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_tap::{Tap, TapPoint};

const TYPE: &str = "multipart/form-data; boundary=x";

fn form(steps: &str, items: &str) -> Vec<u8> {
    let part = |name: &str, text: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    format!("{}{}--x--\r\n", part("steps", steps), part("items", items)).into_bytes()
}

/// A gateway whose trials answer with what they were given.
fn echoing() -> FakeGateway {
    let trial: FakeProcess = Arc::new(|input, output| {
        assert!(output(b"200\n"));
        for piece in input.chunks(1000) {
            output(piece);
        }
        Ok(())
    });
    FakeGateway { pipelines: pipelines(), trial, ..gateway_with(status()) }
}

#[test]
fn the_page_is_served_with_steps_to_begin_with() {
    let served = Served::new(echoing());
    let page = served.ask("GET /pipelines");
    assert_eq!(page.status, 200);
    assert!(
        page.has("Content-Type: text/html; charset=utf-8") && page.has("Referrer-Policy: same-origin"),
        "{}",
        page.head
    );
    assert!(
        page.head.contains("form-action 'self'") && page.head.contains("default-src 'none'"),
        "{}",
        page.head
    );
    assert!(
        page.body.contains("<td class=\"right\">12,345</td>")
            && page.body.contains("no source or sink uses it")
    );
    assert!(page.body.contains("placeholder=") && page.body.ends_with("</html>\n"));
    let page = served.ask("GET /pipelines?load=clean");
    assert!(
        page.body.contains("\n- drop: log.body == \"&lt;x&gt;\"\n- edit:   # \"why\"\n"),
        "{}",
        page.body
    );
    for (target, status) in
        [("?load=none", 404), ("?load=names", 404), ("?load=a%20b", 400), ("?x=1", 400), ("?", 200)]
    {
        assert_eq!(served.ask(&format!("GET /pipelines{target}")).status, status, "{target}");
    }
    let answer = served.ask("DELETE /pipelines");
    assert!(answer.status == 405 && answer.has("Allow: GET, HEAD, POST"), "{}", answer.head);
}

/// The form goes to the trial as it came, with what else was asked for; and what comes back is a part of the page.
#[test]
fn a_form_is_handed_over_as_it_came() {
    let served = Served::new(echoing());
    let body = form("- steps", "items");
    let page = served.post("/pipelines?load=clean", TYPE, &body);
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.head.contains("form-action 'self'"));
    let (begin, rest) = page.body.split_once("{\"content_type\"").unwrap();
    assert!(begin.starts_with("<!DOCTYPE html>") && rest.ends_with("</html>\n"));
    let (line, rest) = rest.split_once('\n').unwrap();
    let request: TrialRequest = serde_json::from_str(&format!("{{\"content_type\"{line}")).unwrap();
    assert_eq!((request.form_bytes, request.content_type.as_str()), (body.len(), TYPE));
    assert_eq!(request.pipelines, ["clean", "names", "spare"]);
    assert_eq!(request.load.unwrap().steps, pipelines()[0].steps);
    assert!(rest.starts_with(std::str::from_utf8(&body).unwrap()));

    let json = served.post("/pipelines", "application/json", b"{}");
    assert!(
        json.has("Content-Type: application/json") && json.body.starts_with("{\"content_type\""),
        "{}",
        json.body
    );
}

#[test]
fn mistakes_and_failures_are_answered_in_words() {
    let served = Served::new(echoing());
    for (target, content_type, status) in [
        ("/pipelines", "text/plain", 415),
        ("/pipelines", "application/x-www-form-urlencoded", 415),
        ("/pipelines?take=all", TYPE, 400),
        ("/pipelines?laod=clean", TYPE, 400),
        ("/pipeline", TYPE, 404),
    ] {
        assert_eq!(served.post(target, content_type, b"").status, status, "{target} {content_type}");
    }
    assert_eq!(served.post("/pipelines", TYPE, &vec![b'x'; 300 << 10]).status, 413);
    // None of them has kept the turn.
    assert_eq!(served.post("/pipelines", TYPE, b"").status, 200);
    for (error, status, words) in [
        (ProcessError::Memory, 503, "memory"),
        (ProcessError::Late, 422, "took too long"),
        (ProcessError::Ended(16 << 20), 422, "more than the 16 MiB"),
        (ProcessError::Start("no such file".to_owned()), 500, "no such file"),
    ] {
        let trial: FakeProcess = Arc::new(move |_, output| {
            output(b"200\n");
            output(b"half");
            Err(error.clone())
        });
        let served = Served::new(FakeGateway { trial, ..gateway_with(healthy()) });
        let plain = served.post("/pipelines", "application/json", b"{}");
        let page = served.post("/pipelines", TYPE, &form("- x: \"<\"\r\n", "pasted\r\n"));
        for answer in [&plain, &page] {
            assert_eq!(answer.status, status);
            assert_eq!(answer.has("Retry-After: 5"), status == 503, "{}", answer.head);
            assert!(answer.body.contains(words) && !answer.body.contains("half"), "{}", answer.body);
        }
        assert!(plain.body.lines().count() == 1, "{}", plain.body);
        // Pasted items are not lost.
        let text = page.body.as_str();
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"), "{text}");
        assert!(text.contains("\n- x: \"&lt;\"\r\n</textarea>") && text.contains("\npasted\r\n</textarea>"));
        let signs = "&".repeat(120 << 10);
        let page = served.post("/pipelines", TYPE, &form("- kept", &signs));
        assert!(page.body.contains("- kept</textarea>") && page.body.contains("cannot show them again"));
        let page = served.post("/pipelines", TYPE, &form(&signs, "items"));
        assert!(page.status == status && page.body.contains(words) && page.body.ends_with("</html>\n"));
    }
    let trial: FakeProcess = Arc::new(|_, output| {
        output(b"200\n");
        while output(&[b'x'; 4096]) {}
        Ok(())
    });
    let answer = Served::new(FakeGateway { trial, ..gateway_with(healthy()) }).post("/pipelines", TYPE, b"");
    assert_eq!(answer.status, 500);
    let trial: FakeProcess = Arc::new(|_, output| {
        output(TrialAnswer::refused("no form", true).bytes().get(..4).unwrap());
        output(b"{}");
        Ok(())
    });
    let served = Served::new(FakeGateway { trial, ..gateway_with(healthy()) });
    assert_eq!(served.post("/pipelines", "application/json", b"").status, 400);
}

/// One at a time: the next is told to come again, and other pages are served meanwhile.
#[test]
fn there_is_one_trial_at_a_time() {
    let gate = Arc::new((Mutex::new((false, false)), Condvar::new()));
    let (inner, begun) = (Arc::clone(&gate), Arc::clone(&gate));
    let trial: FakeProcess = Arc::new(move |_, output| {
        let (state, changed) = &*inner;
        let mut state = state.lock().unwrap();
        state.0 = true;
        changed.notify_all();
        while !state.1 {
            state = changed.wait(state).unwrap();
        }
        output(b"200\n");
        Ok(())
    });
    // The first has a thread of its own, since this trial blocks it.
    let served = Arc::new(Served::on_threads(FakeGateway { trial, ..gateway_with(healthy()) }, 2));
    let first = std::thread::spawn({
        let served = Arc::clone(&served);
        move || served.post("/pipelines", TYPE, &form("a", "b")).status
    });
    {
        let (state, changed) = &*begun;
        let mut state = state.lock().unwrap();
        while !state.0 {
            state = changed.wait(state).unwrap();
        }
    }
    let second = served.post("/pipelines", TYPE, &form("a", "b"));
    assert_eq!(second.status, 503);
    assert!(second.has("Retry-After: 5") && second.body.contains("one can at a time"), "{}", second.body);
    assert_eq!(served.ask("GET /health").status, 200);
    gate.0.lock().unwrap().1 = true;
    gate.1.notify_all();
    assert_eq!(first.join().unwrap(), 200);
}

/// Somebody who sends a form slowly has no turn yet. All forms on their way together are no longer than the longest may be.
#[test]
fn a_slow_form_does_not_hold_the_turn() {
    let served = Served::on_threads(echoing(), 3);
    let slow = |length: usize| {
        served.begin(&format!(
            "POST /pipelines HTTP/1.1\r\nHost: h\r\nContent-Type: {TYPE}\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        ))
    };
    let first = slow(100 << 10);
    assert_eq!(served.post("/pipelines", TYPE, &form("a", "b")).status, 200);
    let _second = slow(60 << 10);
    let long = served.post("/pipelines", TYPE, &form("a", &"b".repeat(40 << 10)));
    assert!(long.status == 503 && long.has("Retry-After: 5"), "{}", long.head);
    assert_eq!(served.post("/pipelines", TYPE, &form("a", "b")).status, 200);
    drop(first);
}

fn meta(protocol: Protocol, signal: Signal, body: &[u8]) -> Meta {
    Meta {
        tenant: Tenant::NONE,
        signal,
        protocol,
        encoding: Encoding::Identity,
        items: 1,
        raw_len: u32::try_from(body.len()).unwrap(),
        received_at_ns: 1,
    }
}

/// Shows records to whoever looks, until the answer is there.
fn taken(signal: &str, records: Vec<(Meta, Vec<u8>)>) -> String {
    let gateway = echoing();
    let tap: Tap = gateway.tap.clone();
    let served = Served::new(gateway);
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| served.post(&format!("/pipelines?take={signal}"), TYPE, &form("", "")));
        while !asking.is_finished() {
            for (meta, body) in &records {
                tap.offer(TapPoint::Source("otlp"), meta, Some(body));
            }
            std::thread::yield_now();
        }
        asking.join().unwrap()
    });
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!tap.is_open(), "the look is over");
    answer.body
}

#[test]
fn items_are_taken_from_what_arrives() {
    // A request with 30 log records.
    let record = [b"\x12\x07\x2a\x05\x0a\x03".as_slice(), b"abc"].concat();
    let scope = record.repeat(30);
    let field = |number: u8, bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8], bytes].concat()
    };
    let logs = field(1, &field(2, &scope));
    let spans = meta(Protocol::Otlp, Signal::Traces, b"");
    let page = taken("logs", vec![(spans, Vec::new()), (meta(Protocol::Otlp, Signal::Logs, &logs), logs)]);
    assert!(page.contains("Took 10 items."), "{page}");
    assert_eq!(page.matches("\"body\":\"abc\"").count(), 10, "{page}");

    let series = b"\x0a\x1a\x0a\x0e\x0a\x08__name__\x12\x02up\x0a\x08\x0a\x03job\x12\x01a".to_vec();
    let page = taken("metrics", vec![(meta(Protocol::RemoteWrite1, Signal::Metrics, &series), series)]);
    assert!(page.contains("\nup{job=\"a\"}\n"), "{page}");
}
