//! Promise: over TLS an ingestor is who it says, and so is the sink.
//!
//! The certificates are of an authority that nobody trusts but these tests.

use crate::member::Member;
use crate::rig::{PART, Rig, settings, until};
use crate::rings::{from_file, ring_of, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_sinks::{ThanosReceiveSettings, Tls};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp/certificates").join(name)
}

/// Ingestors called `peer.example` that want to see a certificate.
fn secure_members(count: usize) -> Vec<Member> {
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
    config.alpn_protocols = vec![b"h2".to_vec()];
    (0..count).map(|_| Member::secure(config.clone())).collect()
}

fn tls(ca: PathBuf) -> Tls {
    Tls {
        ca: Some(ca),
        certificate: Some((file("client.pem"), file("client.key"))),
        server_name: Some("peer.example".to_owned()),
    }
}

#[tokio::test]
async fn ingestors_and_the_sink_verify_each_other() {
    let members = secure_members(3);
    let members: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(PART);
    let tls = tls(file("ca.pem"));
    let settings = ThanosReceiveSettings { is_secure: true, tls, ..settings(&rig, &members, 2) };
    rig.run(&settings, async |rig| {
        rig.put(None, 0..500, 1).await;
        rig.arrived(&settings, &members).await;
        rig.settled().await;
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

/// The sink sends nothing to an ingestor that it cannot verify, and keeps the data.
#[tokio::test]
async fn an_ingestor_with_another_name_gets_nothing() {
    let members = secure_members(1);
    let mut rig = Rig::new(PART);
    let other = Tls { server_name: Some("other.example".to_owned()), ..tls(file("ca.pem")) };
    let settings = ThanosReceiveSettings { is_secure: true, tls: other, ..settings(&rig, &[&members[0]], 1) };
    rig.run(&settings, async |rig| {
        rig.put(None, 0..10, 1).await;
        let says =
            |rig: &Rig| rig.health.trouble().last_error.is_some_and(|said| said.contains("certificate"));
        until("the error is reported", || says(rig)).await;
    })
    .await;
    assert_eq!((members[0].requests(), rig.page().delivered, rig.page().dropped), (0, 0, vec![]));
}

/// A ring is read and its members cannot be served, as here without the authority's certificate: it is used as soon as they can.
#[tokio::test]
async fn a_ring_that_could_not_be_used_is_tried_again() {
    let members = secure_members(3);
    let [a, b, c] = &members[..] else { unreachable!() };
    let mut rig = Rig::new(PART);
    let ca = rig.dir.path().join("ca.pem");
    std::fs::copy(file("ca.pem"), &ca).unwrap();
    let settings =
        ThanosReceiveSettings { is_secure: true, tls: tls(ca.clone()), ..from_file(&rig, &[a, b], 1) };
    rig.run(&settings, async |rig| {
        let is_in_use = |rig: &Rig| rig.health.forwarding().and_then(|report| report.file).unwrap().is_in_use;
        assert!(is_in_use(rig));
        std::fs::remove_file(&ca).unwrap();
        write(rig, &ring_of(&[a, b, c]));
        let says = |rig: &Rig| rig.health.trouble().last_error.is_some_and(|said| said.contains("TLS"));
        until("the ring is refused", || says(rig)).await;
        assert!(!is_in_use(rig) && rig.health.members().len() == 2, "the old ring stays");
        std::fs::copy(file("ca.pem"), &ca).unwrap();
        until("the ring is used", || rig.health.members().len() == 3).await;
        assert!(is_in_use(rig));
    })
    .await;
}
