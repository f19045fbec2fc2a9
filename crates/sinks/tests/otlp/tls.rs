//! Promise: over TLS the peer is who it says, and so is the sink; gRPC agrees on HTTP/2 by ALPN.
//!
//! The certificates are of an authority that nobody trusts but these tests.

use crate::peer::Peer;
use crate::rig::{BOTH, PART, Rig, settings};
use hyper::Uri;
use std::path::PathBuf;
use std::sync::Arc;
use tidegate_journal::{Encoding, Signal};
use tidegate_sinks::{OtlpSettings, Tls, Transport};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/otlp/certificates").join(name)
}

/// A peer called `peer.example` that wants to see a certificate.
fn peer(transport: Transport) -> Peer {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build().unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(file("server.key")).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = match transport {
        Transport::Grpc => vec![b"h2".to_vec()],
        Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
            vec![b"http/1.1".to_vec()]
        }
    };
    Peer::secure(config)
}

fn tls() -> Tls {
    Tls {
        ca: Some(file("ca.pem")),
        certificate: Some((file("client.pem"), file("client.key"))),
        server_name: Some("peer.example".to_owned()),
    }
}

fn secure(peer: &Peer, transport: Transport, tls: Tls) -> OtlpSettings {
    let url: Uri = format!("https://{}", peer.address()).parse().unwrap();
    OtlpSettings { endpoints: vec![url], tls, ..settings(peer, transport) }
}

#[tokio::test]
async fn both_peers_verify_each_others_certificates() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = peer(transport);
        for _ in 0..20 {
            rig.put(Signal::Traces, Encoding::Gzip, 100).await;
        }
        rig.drain(secure(&peer, transport, tls())).await;
        rig.assert_exact(&[&peer]);
    }
}

/// Nothing is sent to somebody else, nor dropped because of it.
#[tokio::test]
async fn nothing_is_sent_where_one_of_them_is_not() {
    let wrong = [
        Tls { ca: None, ..tls() },
        Tls { server_name: None, ..tls() },
        Tls { server_name: Some("other.example".to_owned()), ..tls() },
        Tls { certificate: None, ..tls() },
    ];
    for transport in BOTH {
        for tls in &wrong {
            let mut rig = Rig::new(PART);
            let peer = peer(transport);
            rig.put(Signal::Logs, Encoding::Identity, 3).await;
            let (sink, stopper) = rig.sink(secure(&peer, transport, tls.clone()));
            let script = async {
                while rig.health.activity().failures < 2 {
                    tokio::task::yield_now().await;
                }
                stopper.stop();
            };
            tokio::join!(sink.run(), script);
            assert_eq!((rig.page().queued, peer.arrived().len()), (3, 0), "{tls:?}");
        }
    }
}
