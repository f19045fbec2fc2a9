//! Promises: a ticket saves the signature and nothing else: who could not get in with a full handshake does not get in
//! with a ticket either; and no connection waits for longer than its certificate is valid.

use crate::rig::{Authority, Clock, Rig, Shows, Signed, files, rig_at};
use rustls::HandshakeKind;
use std::sync::Arc;
use tidegate_http1::{Certificate, ConnectionEnd};
use tidegate_tls::{ClientAuth, HandshakeFailure};
use tokio::io::{AsyncReadExt, AsyncWriteExt as _};

/// The beginning of the year 2030: the last second in which the client's certificates here are valid.
const END: u64 = 1_893_456_000;

static TLS13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
static TLS12: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS12];

fn versions() -> [&'static [&'static rustls::SupportedProtocolVersion]; 2] {
    [&TLS13, &TLS12]
}

/// Connects, hears one byte, with which the ticket has come, and says whether it resumed a session and as whom.
async fn visit(
    rig: &Rig,
    config: &Arc<rustls::ClientConfig>,
) -> Result<(HandshakeKind, Arc<Certificate>), std::io::Error> {
    Box::pin(visit_now(rig, config)).await
}

async fn visit_now(
    rig: &Rig,
    config: &Arc<rustls::ClientConfig>,
) -> Result<(HandshakeKind, Arc<Certificate>), std::io::Error> {
    let server = async {
        let mut stream = rig.enter().await.ok()?;
        stream.write_all(b"!").await.ok()?;
        AsyncReadExt::read(&mut stream, &mut [0]).await.ok()?;
        Some(stream.shared_certificate().unwrap())
    };
    let client = async {
        let mut stream = rig.connect(config).await?;
        stream.read_exact(&mut [0]).await?;
        let kind = stream.get_ref().1.handshake_kind().unwrap();
        stream.shutdown().await?;
        std::io::Result::Ok(kind)
    };
    let (certificate, kind) = tokio::join!(server, client);
    Ok((kind?, certificate.ok_or(std::io::ErrorKind::NotConnected)?))
}

fn expiring(authority: &Authority) -> Signed {
    authority.sign_until("agent", (2030, 1, 1))
}

#[tokio::test]
async fn an_expired_certificate_is_not_resumed() {
    for versions in versions() {
        let clock = Clock::at(END);
        let rig = rig_at(ClientAuth::Required, clock.clone()).await;
        let signed = expiring(&rig.authority);
        let config = Arc::new(rig.client_of(versions, Some(&signed)));
        let mut kinds = Vec::new();
        // Tickets that were made when a session was resumed end at the same time.
        for _ in 0..3 {
            let (kind, certificate) = visit(&rig, &config).await.unwrap();
            assert_eq!(certificate.common_name.as_deref(), Some("agent"));
            assert_eq!(certificate.valid_until, Some(END));
            kinds.push(kind);
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]);
        clock.set(END + 1);
        assert!(visit(&rig, &config).await.is_err());
        assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::BadCertificate), 1);
    }
}

/// A client that was given a new certificate gets in with that when the old one has expired, whatever tickets it has.
#[tokio::test]
async fn an_expired_ticket_leads_to_a_full_handshake() {
    for versions in versions() {
        let clock = Clock::at(END);
        let rig = rig_at(ClientAuth::Optional, clock.clone()).await;
        let mut config = rig.client_of(versions, None);
        let shows = Arc::new(Shows::new(&expiring(&rig.authority)));
        config.client_auth_cert_resolver = Arc::<Shows>::clone(&shows);
        let config = Arc::new(config);
        assert_eq!(visit(&rig, &config).await.unwrap().0, HandshakeKind::Full);
        shows.change(&rig.authority.sign_until("renewed", (2039, 1, 1)));
        let (kind, certificate) = visit(&rig, &config).await.unwrap();
        assert_eq!((kind, certificate.common_name.as_deref()), (HandshakeKind::Resumed, Some("agent")));
        clock.set(END + 1);
        let (kind, certificate) = visit(&rig, &config).await.unwrap();
        assert_eq!(kind, HandshakeKind::Full);
        assert_eq!(certificate.common_name.as_deref(), Some("renewed"));
    }
}

/// Nor does a ticket outlive the authority that its certificate was checked with.
#[tokio::test]
async fn a_withdrawn_authority_is_not_resumed() {
    for versions in versions() {
        let clock = Clock::at(END);
        let rig = rig_at(ClientAuth::Required, clock).await;
        let config = Arc::new(rig.client_of(versions, Some(&expiring(&rig.authority))));
        visit(&rig, &config).await.unwrap();
        let files = files(&rig.dir, ClientAuth::Required);
        std::fs::write(files.client_ca.as_ref().unwrap(), Authority::new().pem()).unwrap();
        rig.acceptor.identity().reload().unwrap();
        assert!(visit(&rig, &config).await.is_err());
        assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::UnknownAuthority), 1);
    }
}

#[tokio::test]
async fn a_connection_does_not_wait_beyond_its_certificate() {
    // By this clock it is valid, by that of the connection it expired long ago.
    let rig = rig_at(ClientAuth::Required, Clock::at(1_262_304_000)).await;
    let signed = rig.authority.sign_until("agent", (2011, 1, 1));
    let config = Arc::new(rig.client(Some(&signed)));
    let client = async {
        let mut stream = rig.connect(&config).await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the end, and no answer to nothing");
    };
    let (ended, ()) = tokio::join!(rig.serve(), client);
    assert_eq!(ended, ConnectionEnd::Idle);
}
