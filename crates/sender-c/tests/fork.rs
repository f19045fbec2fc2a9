//! Forks in the middle of everything: each child sends its own spans and no one else's, the parent its own.
//!
//! Here, because `fork` is a foreign call, which this crate may make. A Rust program and one in C do it; one in
//! Python is in `crates/sender-python/tests`. `TIDEGATE_FORKS=10000` forks as often (`make forks`).
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "fork/children.rs"]
mod children;
#[path = "fork/noise.rs"]
mod noise;
#[path = "../../sender/tests/all/oracle.rs"]
mod oracle;
#[path = "../../sender/tests/all/peer.rs"]
mod peer;
#[path = "../../sender/tests/all/secure.rs"]
mod secure;

use children::{fork, forks, stacks};
use peer::{Behaviour, Peer};
use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_sender::{Builder, Sender, Span, SpanContext};

const LONG: Duration = Duration::from_secs(50);
const CHILDREN: u64 = 8;
/// Children that run at a time.
const TOGETHER: usize = 4;

fn span(number: u64) -> Span<'static> {
    let place = SpanContext { trace_id: [7; 16], span_id: (number + 1).to_be_bytes(), flags: 1 };
    Span { context: place, parent: Some([1; 8]), name: "forked", ..Span::default() }
}

fn sender(url: String) -> Builder {
    let quick = Duration::from_millis(5);
    // A request that is sent twice would be taken for one of two processes.
    Sender::builder().endpoint(url).flush_interval(quick).timeout(LONG).backoff(quick, quick)
}

/// In a child: `spans` spans, all of which arrive.
fn sends(sender: &Sender, first: u64, spans: u64) -> bool {
    let taken = (first..first + spans).all(|number| sender.span(&span(number)).is_ok());
    let left = sender.flush(LONG).events;
    let stats = sender.stats();
    taken && left == 0 && stats.sent_total() == spans && stats.balance() == 0
}

fn numbers(peer: &Peer) -> HashSet<Vec<u8>> {
    let spans = peer.spans();
    let numbers: HashSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(numbers.len(), spans.len(), "nothing is sent by two processes");
    numbers
}

#[test]
fn children_send_their_own_events_only() {
    let peer = Peer::new();
    let sender = sender(peer.url()).ring_bytes(16 << 20).start().unwrap();
    let (made, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && made.load(Ordering::Relaxed) < 50_000 {
                    sender.span(&span(made.fetch_add(1, Ordering::Relaxed))).unwrap();
                }
            });
        }
        let children: Vec<_> =
            (1..=CHILDREN).map(|child| fork(|| sends(&sender, child * 1_000_000, 5))).collect();
        for child in children {
            child.wait("a child of many");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(sender.stats().balance(), 0);
    assert_eq!(sender.stats().dropped_total(), 0);
    assert_eq!(numbers(&peer).len() as u64, made.load(Ordering::Relaxed) + 5 * CHILDREN);
}

#[test]
fn children_start_during_any_activity_of_the_parent() {
    let (peer, other) = (Peer::new(), Arc::new(Peer::new()));
    let https = |port: u16| sender(format!("https://localhost:{port}")).authorities(secure::file("ca.pem"));
    let port = secure::secure(&other, false);
    let handshaking = https(secure::secure(&Arc::new(Peer::always(Behaviour::TakeAndClose)), false));
    let handshaking = handshaking.start().unwrap();
    let (plain, tls) = (sender(peer.url()).start().unwrap(), https(port).start().unwrap());
    // Both have connections and sessions, which children must not use.
    for sender in [&plain, &tls] {
        sender.span(&span(0)).unwrap();
        assert!(sender.flush(LONG).is_nothing());
    }
    let forks = forks(300);
    noise::around(&handshaking, || {
        let mut running = VecDeque::new();
        for number in 1..=forks {
            // A handshake costs more than all the rest.
            let sender = if number % 8 == 0 { &tls } else { &plain };
            running.push_back(fork(|| sends(sender, number * 10, 2)));
            if running.len() == TOGETHER {
                running.pop_front().unwrap().wait("a child among noise");
            }
        }
        running.into_iter().for_each(|child| child.wait("a child among noise"));
    });
    assert_eq!((numbers(&peer).len() + numbers(&other).len()) as u64, 2 * forks + 2);
}

/// The sender is started by the parent and first used by a grandchild, also through the call for those who fork
/// without the C library.
#[test]
fn grandchildren_send_their_own_events() {
    let peer = Peer::new();
    let sender = sender(peer.url()).start().unwrap();
    fork(|| {
        let grandchild = fork(|| {
            sender.after_fork_in_child();
            sends(&sender, 20, 2)
        });
        grandchild.wait("a grandchild");
        sends(&sender, 10, 2)
    })
    .wait("a child with a child");
    assert_eq!(numbers(&peer).len(), 4);
}

#[test]
fn children_of_a_c_program_send_their_own_events() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let program = built.join("tidegate-sender-c-forks");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/fork/forks.c"))
        .arg(built.join("libtidegate_sender_c.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a C compiler is needed, as for building the rest");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let (peer, other) = (Arc::new(Peer::new()), Arc::new(Peer::always(Behaviour::TakeAndClose)));
    let forks = forks(300);
    let run = Command::new(&program)
        .arg(forks.to_string())
        .env_clear()
        .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/v1/traces", peer.url()))
        .env(
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
            format!("https://localhost:{}", secure::secure(&other, false)),
        )
        .env("OTEL_EXPORTER_OTLP_CERTIFICATE", secure::file("ca.pem"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    if let Some(stuck) = said.lines().find_map(|line| line.strip_prefix("stuck: ")?.parse().ok()) {
        let stacks = stacks(stuck);
        // SAFETY: a child of the program, which this test started and which leaves it running.
        unsafe { libc::kill(stuck, libc::SIGKILL) };
        panic!("{stacks}");
    }
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(numbers(&peer).len() as u64, forks);
}
