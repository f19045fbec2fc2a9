//! The sender against the gateway, over a Unix socket: from a span in one program to a sink of the other.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::json;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_sender::{Protocol, Sender, Span, SpanContext};
use tidegate_tests::{Gateway, SOON};

const SPANS: u64 = 500;

/// A gateway that listens on a Unix socket in its folder as well.
fn gateway() -> (Gateway, PathBuf) {
    let gateway = Gateway::new(json!({}));
    let socket = gateway.folder().join("tidegate.sock");
    gateway.configure(json!({
        "memory": "64MiB",
        "listen": {
            "http": gateway.http(),
            "grpc": gateway.grpc(),
            "admin": gateway.admin(),
            "unix": format!("unix:{}", socket.display()),
        },
        "sinks": { "out": { "type": "blackhole" } },
    }));
    (gateway, socket)
}

fn send(socket: &Path, protocol: Protocol) -> Sender {
    let sender = Sender::builder()
        .endpoint(format!("unix:{}", socket.display()))
        .protocol(protocol)
        .timeout(SOON)
        .backoff(Duration::from_millis(20), Duration::from_millis(100))
        .start()
        .unwrap();
    for number in 1..=SPANS {
        let place = SpanContext { trace_id: [7; 16], span_id: number.to_be_bytes(), flags: 1 };
        sender.span(&Span { context: place, name: "over a socket", ..Span::default() }).unwrap();
    }
    sender
}

#[test]
fn events_of_both_protocols_arrive_over_a_unix_socket() {
    let (mut gateway, socket) = gateway();
    gateway.start();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    for protocol in [Protocol::Otlp, Protocol::ElasticApm] {
        let sender = send(&socket, protocol);
        assert!(sender.flush(SOON).is_nothing(), "{:?}", sender.stats());
        assert_eq!((sender.stats().sent_total(), sender.stats().dropped_total()), (SPANS, 0));
    }
    gateway.at_rest(SOON);
    assert_eq!(gateway.sink("out")["delivered"], 2 * SPANS);
    gateway.books_close();

    // HTTP/2 is told apart there as everywhere.
    let mut http2 = UnixStream::connect(&socket).unwrap();
    http2.set_read_timeout(Some(SOON)).unwrap();
    http2.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut settings = [0; 9];
    http2.read_exact(&mut settings).unwrap();
    assert_eq!(settings[3], 4, "a frame of settings");
    drop(http2);

    assert_eq!(gateway.term(), 0);
    assert!(!socket.exists(), "it goes with the gateway");
}

#[test]
fn a_killed_gateway_leaves_a_socket_that_the_next_one_takes_over() {
    let (mut gateway, socket) = gateway();
    gateway.start();
    let (mut other, _) = self::gateway();
    other.configure(json!({
        "memory": "64MiB",
        "listen": {
            "http": other.http(),
            "grpc": other.grpc(),
            "admin": other.admin(),
            "unix": socket,
        },
        "sinks": { "out": { "type": "blackhole" } },
    }));
    let refused = other.refuses_to_start();
    assert!(refused.stderr.contains("another tidegate or program does so"), "{}", refused.stderr);

    gateway.kill9();
    // Taken while nobody is there, and sent when somebody is.
    let sender = send(&socket, Protocol::Otlp);
    other.start();
    assert!(sender.flush(SOON).is_nothing(), "{:?}", sender.stats());
    other.at_rest(SOON);
    assert_eq!(other.sink("out")["delivered"], SPANS);
}
