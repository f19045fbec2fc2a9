//! `/console/search/`: who may search, what becomes of a query, and one search at a time.

use super::sample::healthy;
use super::served::{Answer, FakeGateway, FakeProcess, Served, gateway_with, whole};
use crate::{LONGEST_SEARCH_ANSWER, ProcessError, SEARCHES};
use std::sync::{Arc, Condvar, Mutex};

/// A gateway whose searches answer with what they were asked.
fn echoing() -> FakeGateway {
    let search: FakeProcess = Arc::new(|asked, output| {
        assert!(output(b"200\n"));
        output(asked);
        Ok(())
    });
    FakeGateway { search, ..gateway_with(healthy()) }
}

fn token(served: &Served) -> String {
    let session: serde_json::Value = serde_json::from_str(&served.ask("GET /console/session").body).unwrap();
    format!("X-Tidegate-Token: {}", session["token"].as_str().unwrap())
}

fn search(served: &Served, kind: &str, query: &[u8]) -> Answer {
    whole(served.send_with(&format!("/console/search/{kind}"), &token(served), query))
}

#[test]
fn a_query_is_handed_over_and_its_answer_too() {
    let served = Served::new(echoing());
    for kind in SEARCHES {
        let answer = search(&served, kind, b"{\"limit\":1}");
        assert_eq!((answer.status, answer.body), (200, format!("{kind} {{\"limit\":1}}")));
        assert!(answer.head.contains("Content-Type: application/json"), "{}", answer.head);
    }
    let longest: FakeProcess = Arc::new(|_, output| {
        assert!(output(b"200\n") && output(&vec![b' '; LONGEST_SEARCH_ANSWER]));
        Ok(())
    });
    let served = Served::new(FakeGateway { search: longest, ..gateway_with(healthy()) });
    assert_eq!(search(&served, "logs", b"").body.len(), LONGEST_SEARCH_ANSWER);
}

#[test]
fn only_a_page_with_the_token_may_search_and_only_where_it_is_on() {
    let served = Served::new(echoing());
    let send = |target: &str, header: &str, body: &[u8]| whole(served.send_with(target, header, body));
    assert_eq!(send("/console/search/logs", "X-None: 1", b"{}").status, 403);
    assert_eq!(send("/console/search/logs", "X-Tidegate-Token: 0", b"{}").status, 403);
    assert_eq!(send("/console/search/log", &token(&served), b"{}").status, 404);
    assert_eq!(send("/console/search/logs", &token(&served), &[b' '; 20 << 10]).status, 413);
    assert_eq!(served.ask_with("GET /console/search/logs", &token(&served)).status, 405);
    assert_eq!(served.ask_with("POST /console/search/logs", &token(&served)).status, 413, "without a length");
    let off = Served::new(FakeGateway { searchable: false, ..echoing() });
    assert_eq!(search(&off, "logs", b"{}").status, 403);
    assert!(off.ask("GET /console/session").body.contains("\"search\":false"));
}

#[test]
fn failures_are_said_in_words() {
    for (error, status, words) in [
        (ProcessError::Memory, 503, "memory"),
        (ProcessError::Late, 422, "took too long"),
        (ProcessError::Ended(24 << 20), 422, "24 MiB"),
        (ProcessError::Start("no such file".to_owned()), 500, "no such file"),
    ] {
        let failing: FakeProcess = Arc::new(move |_, _| Err(error.clone()));
        let served = Served::new(FakeGateway { search: failing, ..gateway_with(healthy()) });
        let answer = search(&served, "logs", b"{}");
        assert!(answer.status == status && answer.body.contains(words), "{}: {}", answer.status, answer.body);
    }
    let refusing: FakeProcess = Arc::new(|_, output| {
        output(b"400\n");
        output(b"the query cannot be read\n");
        Ok(())
    });
    let served = Served::new(FakeGateway { search: refusing, ..gateway_with(healthy()) });
    let answer = search(&served, "logs", b"{}");
    assert_eq!((answer.status, answer.body.as_str()), (400, "the query cannot be read\n"));
}

/// One runs at a time; eight wait; the tenth is told to come back.
#[test]
fn searches_take_turns() {
    type Running = Arc<(Mutex<(usize, usize, bool)>, Condvar)>;
    let running: Running = Arc::default();
    let seen = Arc::clone(&running);
    let slow: FakeProcess = Arc::new(move |_, output| {
        let (state, changed) = &*seen;
        let mut all = state.lock().unwrap();
        all.0 += 1;
        all.1 = all.1.max(all.0);
        changed.notify_all();
        while !all.2 {
            all = changed.wait(all).unwrap();
        }
        all.0 -= 1;
        output(b"200\n");
        Ok(())
    });
    let served = Served::on_threads(FakeGateway { search: slow, ..gateway_with(healthy()) }, 12);
    let token = token(&served);
    let send = || served.send_with("/console/search/logs", &token, b"{}");
    let first = send();
    let (state, changed) = &*running;
    let mut all = state.lock().unwrap();
    while all.0 == 0 {
        all = changed.wait(all).unwrap();
    }
    drop(all);
    // Of nine more, one finds no place to wait.
    let more: Vec<_> = (0..9)
        .map(|_| {
            std::thread::spawn({
                let stream = send();
                move || whole(stream).status
            })
        })
        .collect();
    let mut refused = None;
    while refused.is_none() {
        refused = more.iter().position(std::thread::JoinHandle::is_finished);
        std::thread::yield_now();
    }
    state.lock().unwrap().2 = true;
    changed.notify_all();
    assert_eq!(whole(first).status, 200);
    let mut statuses: Vec<u16> = more.into_iter().map(|one| one.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 503]);
    assert_eq!(state.lock().unwrap().1, 1, "one at a time");
}
