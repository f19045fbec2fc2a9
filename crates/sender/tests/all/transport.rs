//! TLS: verified, refused, mutual.

use crate::peer::{Peer, serve_any};
use crate::{LONG, balances, numbered, quick};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A certificate for localhost, and the authority that signed it. Valid for a hundred years, its key is here.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// A peer behind TLS, and its port.
fn secure(peer: &Arc<Peer>, ask_for_identity: bool) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = if ask_for_identity {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.unwrap().with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.unwrap().with_no_client_auth()
    };
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = Arc::clone(peer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = Half(Arc::new(Mutex::new(StreamOwned::new(session, stream.unwrap()))));
            serve_any(&behind, stream.clone(), stream);
        }
    });
    port
}

/// Reads and writes the same stream.
#[derive(Clone)]
struct Half(Arc<Mutex<StreamOwned<ServerConnection, std::net::TcpStream>>>);

impl std::io::Read for Half {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().read(room)
    }
}

impl std::io::Write for Half {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}

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
fn nothing_is_sent_to_a_peer_that_nobody_vouches_for_unless_anybody_will_do() {
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
fn a_peer_that_asks_who_we_are_is_told() {
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
