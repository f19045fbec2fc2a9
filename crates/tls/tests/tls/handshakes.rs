//! Promises: a handshake has an end; who speaks something else can be told so; who is not trusted does not get in.

use crate::rig::{Authority, LIMIT, files, rig, write};
use std::sync::Arc;
use tidegate_tls::{AcceptError, ClientAuth, HandshakeFailure, ServerIdentity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

#[tokio::test]
async fn only_certificates_of_the_authority_let_in() {
    let rig = rig(ClientAuth::Required).await;
    let stranger = Authority::new().sign("agent", "Acme");
    let reasons = [HandshakeFailure::NoCertificate, HandshakeFailure::UnknownAuthority];
    for (shows, reason) in [None, Some(&stranger)].into_iter().zip(reasons) {
        let config = Arc::new(rig.client(shows));
        let client = async {
            // With TLS 1.3 the client learns it when it reads.
            let mut stream = rig.connect(&config).await?;
            stream.read(&mut [0]).await
        };
        let (entered, told) = tokio::join!(rig.enter(), client);
        assert!(matches!(entered, Err(AcceptError::Lost(_))));
        assert_eq!(rig.acceptor.tally().failed(reason), 1, "{reason:?}");
        assert!(told.unwrap_err().to_string().contains("lert"), "an alert");
    }
}

#[tokio::test]
async fn a_plain_http_client_leaves_the_socket_usable() {
    let rig = rig(ClientAuth::None).await;
    let mut client = TcpStream::connect(rig.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let Err(AcceptError::NotTls(mut socket)) = rig.enter().await else { panic!("that is no TLS") };
    let mut request = [0; 16];
    socket.read_exact(&mut request).await.unwrap();
    assert_eq!(&request, b"GET / HTTP/1.1\r\n");
    assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::NotTls), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_an_end() {
    let rig = rig(ClientAuth::None).await;
    for begins in [&b""[..], &[22], &[22, 3, 1, 0, 200, 1, 0, 0]] {
        let mut client = TcpStream::connect(rig.address).await.unwrap();
        client.write_all(begins).await.unwrap();
        let socket = rig.socket().await;
        let began = Instant::now();
        assert!(matches!(rig.acceptor.accept(socket).await, Err(AcceptError::Late)), "{begins:?}");
        assert_eq!(began.elapsed(), LIMIT);
    }
    assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::Timeout), 3);
    assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), 0);
}

/// Where memory is short, handshakes wait for it, and are told when there is none in time.
#[tokio::test(start_paused = true)]
async fn handshakes_are_charged() {
    let rig = rig(ClientAuth::None).await;
    let _held = rig.arena.try_charge(tidegate_arena::Share::Ingest, 64 << 20).unwrap();
    let mut client = TcpStream::connect(rig.address).await.unwrap();
    client.write_all(&[22, 3, 1]).await.unwrap();
    assert!(matches!(rig.enter().await, Err(AcceptError::Crowded)));
    assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::NoRoom), 1);
    let mut alert = [0; 7];
    client.read_exact(&mut alert).await.unwrap();
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 80]);
}

#[tokio::test]
async fn hostile_client_hellos_end_the_connection() {
    let rig = rig(ClientAuth::Optional).await;
    let hellos: Vec<Vec<u8>> = vec![
        vec![22, 3, 1, 0, 4, 1, 0, 0, 0],
        vec![22, 3, 1, 0xff, 0xff, 1],
        [vec![22, 3, 1, 64, 0, 1, 0, 63, 252], vec![0; 16_380]].concat(),
        // A message of 16 MiB, announced; and records of nothing.
        [
            vec![22, 3, 1, 0, 4, 1, 255, 255, 255],
            [22, 3, 1, 64, 0].into_iter().chain([0; 16_384]).collect::<Vec<_>>().repeat(4),
        ]
        .concat(),
        [22, 3, 1, 0, 0].repeat(5_000),
        vec![21, 3, 3, 0, 2, 2, 80],
        vec![22, 3, 1, 0, 1, 1, 23, 3, 3, 0, 1, 0],
    ];
    let many = hellos.len() as u64;
    for hello in hellos {
        let client = async {
            let mut client = TcpStream::connect(rig.address).await.unwrap();
            let _ = client.write_all(&hello).await;
            let _ = client.shutdown().await;
            while client.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        };
        // Dropped at once: the client waits for the end.
        let (refused, ()) = tokio::join!(async { rig.enter().await.is_err() }, client);
        assert!(refused, "{:?}", &hello[..hello.len().min(20)]);
    }
    assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), 0);
    let tally = rig.acceptor.tally();
    let failed: u64 = HandshakeFailure::ALL.map(|reason| tally.failed(reason)).iter().sum();
    assert_eq!((failed, tally.done()), (many, 0));
    assert!(tally.failed(HandshakeFailure::Protocol) > 0);
}

/// A client that does not trust what it is shown says so, and that has a reason of its own.
#[tokio::test]
async fn a_client_that_rejects_our_certificate_is_counted_separately() {
    let rig = rig(ClientAuth::None).await;
    let strange = crate::rig::rig(ClientAuth::None).await;
    let config = Arc::new(strange.client(None));
    let (entered, connected) = tokio::join!(rig.enter(), rig.connect(&config));
    assert!(entered.is_err() && connected.is_err());
    assert_eq!(rig.acceptor.tally().failed(HandshakeFailure::Alert), 1);
}

/// Two acceptors show two certificates and ask for two authorities, and count together.
#[tokio::test]
async fn acceptors_have_certificates_and_authorities_of_their_own() {
    let rig = rig(ClientAuth::None).await;
    let (dir, other) = (tempfile::tempdir().unwrap(), Authority::new());
    let files = files(&dir, ClientAuth::Required);
    write(&files, &rig.authority.sign("second", "us"));
    std::fs::write(files.client_ca.as_ref().unwrap(), other.pem()).unwrap();
    let second = rig.acceptor.beside(ServerIdentity::new(files).unwrap());
    let agent = other.sign("agent", "Acme");
    for (acceptor, shows, name) in [(&rig.acceptor, None, None), (&second, Some(&agent), Some("agent"))] {
        let config = Arc::new(rig.client(shows));
        let entering = async { acceptor.accept(rig.socket().await).await.unwrap() };
        let (entered, connected) = tokio::join!(entering, rig.connect(&config));
        let connected = connected.unwrap();
        let certificate = entered.shared_certificate();
        assert_eq!(certificate.as_ref().and_then(|names| names.common_name.as_deref()), name);
        let (_, session) = connected.get_ref();
        let shown = &session.peer_certificates().unwrap()[0];
        let is_second = shown.windows(6).any(|part| part == b"second");
        assert_eq!(is_second, name.is_some());
    }
    assert_eq!((rig.acceptor.tally().done(), second.tally().done()), (2, 2));
}
