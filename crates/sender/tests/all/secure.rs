//! A peer behind TLS.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a helper of several tests, which use parts of it"
)]

use crate::peer::{Peer, serve_any};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A certificate for localhost, and the authority that signed it. Valid for a hundred years, its key is here.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sender/tests/tls").join(name)
}

/// A peer behind TLS, and its port.
pub fn secure(peer: &Arc<Peer>, ask_for_identity: bool) -> u16 {
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
            let behind = Arc::clone(&behind);
            std::thread::spawn(move || serve_any(&behind, stream.clone(), stream));
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
