//! TLS: verified, refused, mutual.

use crate::peer::Peer;
use crate::secure::{file, secure};
use crate::{LONG, balances, numbered, quick};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn events_go_over_tls_to_a_peer_that_an_authority_vouches_for() {
    let peer = Arc::new(Peer::new());
    let port = secure(&peer, false);
    let sender = quick(&peer)
        .endpoint(format!("https://localhost:{port}"))
        .authorities(file("ca.pem"))
        .start()
        .unwrap();
    for number in 0..2_000 {
        sender.span(&numbered(number)).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(peer.spans().len(), 2_000);
    assert!(sender.memory().tls > 0);
    assert_eq!(sender.stats().connections, 1);
    balances(&sender);
}

#[test]
fn an_untrusted_peer_gets_nothing_unless_verification_is_off() {
    let peer = Arc::new(Peer::new());
    let port = secure(&peer, false);
    let other_authority = file("server.pem");
    let url = format!("https://127.0.0.1:{port}");
    let sender = quick(&peer).endpoint(&url).authorities(other_authority).start().unwrap();
    sender.span(&numbered(1)).unwrap();
    assert_eq!(sender.flush(Duration::from_millis(300)).events, 1);
    assert!(peer.spans().is_empty());
    assert!(!sender.shutdown(Duration::ZERO).is_nothing());

    let sender = quick(&peer).endpoint(&url).trust_anybody().start().unwrap();
    sender.span(&numbered(1)).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(peer.spans().len(), 1);
}

#[test]
fn a_client_certificate_is_shown_on_request() {
    let peer = Arc::new(Peer::new());
    let port = secure(&peer, true);
    let sender = quick(&peer)
        .endpoint(format!("https://localhost:{port}"))
        .authorities(file("ca.pem"))
        .identity(file("server.pem"), file("server.key"))
        .start()
        .unwrap();
    sender.span(&numbered(1)).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(peer.spans().len(), 1);
}
