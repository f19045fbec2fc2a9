//! Promise: endpoints of one receiver take turns, one that fails holds up nothing, and over TLS the receiver is who it says.

use crate::rig::{Rig, SECOND, answers, peer, settings};
use std::path::PathBuf;
use std::sync::Arc;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::{RemoteWriteSettings, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The second one asks to be left alone for longer than the test may take.
#[tokio::test]
async fn one_that_fails_is_left_out() {
    for lanes in [1, 4] {
        let mut rig = Rig::new(100, 1 << 20);
        let (works, fails) =
            (peer(Behaviour::Healthy), peer(Behaviour::Status { code: 503, retry_after: Some(3000) }));
        for version in [Version::V1, Version::V2, Version::V1, Version::V2] {
            rig.put(version, 0..100, 1).await;
        }
        let of = |peer: &tidegate_load::VerifyingReceiver| peer.target().to_string().parse().unwrap();
        let endpoints = vec![of(&fails), of(&works)];
        rig.drain(RemoteWriteSettings { endpoints, lanes, ..settings(&works) }).await;
        let asked = answers(&fails.report(), 503);
        assert!(asked >= 1 && asked <= lanes as u64, "{asked} with {lanes} lanes");
        assert_eq!(rig.dropped(), []);
        let arrived = works.report();
        assert_eq!(rig.compare(&arrived).acked, rig.acked.samples());
        rig.assert_exact(&arrived);
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/otlp/certificates").join(name)
}

/// A receiver called `peer.example` that accepts everything; how many requests it has read.
async fn secure(listener: TcpListener, requests: Arc<std::sync::atomic::AtomicUsize>) {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(file("server.key")).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        // A sink that does not trust this certificate ends the handshake.
        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                break;
            }
        }
        requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // The body is short: it is in the buffers of the connection, which ends behind the answer.
        let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        let _ended = stream.write_all(answer).await;
        let _ended = stream.shutdown().await;
    }
}

#[tokio::test]
async fn the_receivers_certificate_is_verified() {
    let trusted =
        Tls { ca: Some(file("ca.pem")), certificate: None, server_name: Some("peer.example".to_owned()) };
    let others = [
        Tls { ca: None, ..trusted.clone() },
        Tls { server_name: Some("other.example".to_owned()), ..trusted.clone() },
    ];
    for (tls, is_trusted) in [(&trusted, true), (&others[0], false), (&others[1], false)] {
        let mut rig = Rig::new(10, 1 << 20);
        rig.put(Version::V1, 0..10, 1).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/api/v1/write", listener.local_addr().unwrap()).parse().unwrap();
        let requests = Arc::default();
        let mut receiver = JoinSet::new();
        receiver.spawn(secure(listener, Arc::clone(&requests)));
        let somebody = peer(Behaviour::Healthy);
        let settings = RemoteWriteSettings { endpoints: vec![url], tls: tls.clone(), ..settings(&somebody) };
        if is_trusted {
            rig.drain(settings).await;
            assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 1);
        } else {
            let (sink, stopper) = rig.sink(settings);
            let script = async {
                while rig.health.activity().failures < 2 {
                    tokio::task::yield_now().await;
                }
                stopper.stop();
            };
            tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
            rig.assert_closed(10);
            assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 0, "{tls:?}");
        }
        receiver.abort_all();
    }
}

/// An authority that is exchanged in its file is trusted without a restart, and nothing is lost meanwhile.
#[tokio::test]
async fn files_of_tls_are_read_again_when_they_change() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    // A certificate that has signed for nobody.
    std::fs::copy(file("client.pem"), &ca).unwrap();
    let mut rig = Rig::new(10, 1 << 20);
    rig.put(Version::V1, 0..10, 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/api/v1/write", listener.local_addr().unwrap()).parse().unwrap();
    let requests = Arc::default();
    let mut receiver = JoinSet::new();
    receiver.spawn(secure(listener, Arc::clone(&requests)));
    let somebody = peer(Behaviour::Healthy);
    let tls = Tls { ca: Some(ca.clone()), certificate: None, server_name: Some("peer.example".to_owned()) };
    let settings = RemoteWriteSettings { endpoints: vec![url], tls, ..settings(&somebody) };
    let health = rig.health.clone();
    let script = async {
        let failed = async |times: u64| {
            while health.activity().failures < times {
                tokio::task::yield_now().await;
            }
        };
        failed(2).await;
        std::fs::write(dir.path().join("new.pem"), "not a certificate").unwrap();
        std::fs::rename(dir.path().join("new.pem"), &ca).unwrap();
        failed(health.activity().failures + 2).await;
        std::fs::copy(file("ca.pem"), dir.path().join("new.pem")).unwrap();
        std::fs::rename(dir.path().join("new.pem"), &ca).unwrap();
    };
    tokio::join!(rig.drain(settings), script);
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(rig.dropped(), []);
}
