//! Promises: what is sent arrives, in whatever pieces; a connection that waits holds no memory of the arena; an
//! end is told from a cut.

use crate::rig::{echo, rig};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_http1::ConnectionEnd;
use tidegate_tls::ClientAuth;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

fn sized(body: &[u8]) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(5000) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Reads one answer and gives its content.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if content.len() == length.unwrap_or(0) {
                return content.to_owned();
            }
        }
        // Not into the next one.
        let mut piece = [0; 1];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the answer ends early: {text}");
        bytes.extend(&piece[..read]);
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece) {
        stream.write_all(piece).await.unwrap();
        stream.flush().await.unwrap();
    }
}

#[tokio::test]
async fn requests_arrive_in_whatever_pieces_they_are_sent() {
    for (versions, fragment) in [
        (rustls::ALL_VERSIONS, None),
        (&[&rustls::version::TLS12][..], None),
        (rustls::ALL_VERSIONS, Some(100)),
    ] {
        let rig = rig(ClientAuth::None).await;
        let mut config = rig.client(None);
        if versions.len() == 1 {
            let provider = Arc::clone(config.crypto_provider());
            let mut roots = rustls::RootCertStore::empty();
            use rustls::pki_types::pem::PemObject as _;
            let pem = rig.authority.pem();
            roots.add(rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
            config = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        }
        config.max_fragment_size = fragment;
        let config = Arc::new(config);
        let client = async {
            let mut stream = rig.connect(&config).await.unwrap();
            for len in [0, 1, 100, 4000, 4096, 16_300, 16_384, 20_000, 70_000, 1_000_000] {
                let body = body(len);
                for piece in [usize::MAX, 16_384, 9_999] {
                    let bytes = if piece % 2 == 0 { sized(&body) } else { chunked(&body) };
                    send(&mut stream, &bytes, piece).await;
                    assert_eq!(answer(&mut stream).await, echo("nobody", &body), "{len} {piece}");
                }
            }
            // Several in one record, and a large one behind.
            let many = [sized(b"a"), chunked(b"bc"), sized(&body(30_000))].concat();
            send(&mut stream, &many, usize::MAX).await;
            for expected in [&b"a"[..], b"bc", &body(30_000)] {
                assert_eq!(answer(&mut stream).await, echo("nobody", expected));
            }
            stream.shutdown().await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the server says goodbye too");
        };
        let (ended, ()) = tokio::join!(rig.serve(), client);
        assert_eq!(ended, ConnectionEnd::ByClient);
        assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), 0);
    }
}

/// Byte by byte, below TLS: half a record is a page.
#[tokio::test]
async fn half_a_record_holds_a_page() {
    let rig = rig(ClientAuth::None).await;
    let config = Arc::new(rig.client(None));
    let client = async {
        let mut stream = rig.connect(&config).await.unwrap();
        stream.write_all(&sized(b"x")).await.unwrap();
        assert_eq!(answer(&mut stream).await, echo("nobody", b"x"));
        let (socket, session) = stream.get_mut();
        io::Write::write_all(&mut session.writer(), &sized(&body(3000))).unwrap();
        let mut records = Vec::new();
        session.write_tls(&mut records).unwrap();
        for (at, byte) in records.iter().enumerate() {
            socket.write_all(&[*byte]).await.unwrap();
            if at % 64 == 0 {
                tokio::task::yield_now().await;
                let used: u64 = rig.arena.usage().shares.iter().map(|share| share.used).sum();
                // The part, and the window that the request will be in.
                assert!(used <= 2 * 4096, "{used}");
            }
        }
        assert_eq!(answer(&mut stream).await, echo("nobody", &body(3000)));
        // A cut in the middle of a record ends it.
        let (socket, _) = stream.get_mut();
        socket.write_all(&[23, 3, 3, 1, 0, 1, 2, 3]).await.unwrap();
        socket.shutdown().await.unwrap();
    };
    let (ended, ()) = tokio::join!(rig.serve(), client);
    assert_eq!(ended, ConnectionEnd::Lost);
}

#[tokio::test]
async fn invalid_and_tampered_records_end_the_connection() {
    for hostile in
        [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![23, 3, 3, 0, 40].into_iter().chain([9; 40]).collect()]
    {
        let rig = rig(ClientAuth::None).await;
        let config = Arc::new(rig.client(None));
        let client = async {
            let mut stream = rig.connect(&config).await.unwrap();
            stream.get_mut().0.write_all(&hostile).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_buf(&mut rest).await;
        };
        let (ended, ()) = tokio::join!(rig.serve(), client);
        assert_eq!(ended, ConnectionEnd::Lost);
    }
}

/// As HTTP/2's codec reads: with buffers smaller than records, and writes that the peer is slow to take.
#[tokio::test]
async fn readers_with_small_buffers_and_slow_peers_get_everything() {
    let rig = rig(ClientAuth::None).await;
    let config = Arc::new(rig.client(None));
    let sent = body(300_000);
    let server = async {
        let mut stream = rig.enter().await.unwrap();
        let (mut received, mut piece) = (Vec::new(), [0; 37]);
        while received.len() < 300_000 {
            let read = AsyncReadExt::read(&mut stream, &mut piece).await.unwrap();
            received.extend(&piece[..read]);
        }
        for _ in 0..20 {
            stream.write_all(&received).await.unwrap();
        }
        AsyncWriteExt::shutdown(&mut stream).await.unwrap();
        received
    };
    let client = async {
        let mut stream = rig.connect(&config).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        let mut back = Vec::new();
        while stream.read_buf(&mut back).await.unwrap() > 0 {}
        back
    };
    let (received, back) = tokio::join!(server, client);
    assert_eq!(received, sent);
    assert_eq!(back.len(), 20 * sent.len());
    assert!(back.chunks(sent.len()).all(|part| part == sent));
}

#[tokio::test]
async fn the_clients_identity_reaches_the_service() {
    let rig = rig(ClientAuth::Optional).await;
    let signed = rig.authority.sign("agent 7", "Acme");
    for (shows, who) in [(Some(&signed), "agent 7"), (None, "nobody")] {
        let config = Arc::new(rig.client(shows));
        // The second time with a ticket, which the certificate is in.
        for _ in 0..2 {
            let client = async {
                let mut stream = rig.connect(&config).await.unwrap();
                stream.write_all(&sized(b"x")).await.unwrap();
                assert_eq!(answer(&mut stream).await, echo(who, b"x"));
            };
            tokio::join!(rig.serve(), client);
        }
    }
}

/// Where memory is short, a large record waits where it is: unread, in the kernel, until there is room for it.
#[tokio::test]
async fn a_record_without_room_waits_in_the_socket() {
    const FREE: u64 = 60 << 10;
    let rig = rig(ClientAuth::None).await;
    let config = Arc::new(rig.client(None));
    let held = rig.arena.try_charge(Share::Ingest, (64 << 20) - FREE).unwrap();
    let (look, looks) = tokio::sync::oneshot::channel();
    let server = async {
        let socket = rig.socket().await;
        look.send(rustix::io::dup(&socket).unwrap()).unwrap();
        let stream = rig.acceptor.accept(socket).await.unwrap();
        let peer = stream.peer_addr().unwrap();
        rig.server.serve(stream, peer).await
    };
    let client = async {
        let mut stream = rig.connect(&config).await.unwrap();
        let request = sized(&body(100_000));
        send(&mut stream, &request, usize::MAX).await;
        let socket = looks.await.unwrap();
        let unread = || rustix::io::ioctl_fionread(&socket).unwrap();
        let ingest =
            || rig.arena.usage().shares.into_iter().find(|share| share.share == Share::Ingest).unwrap();
        // All bytes read are charged, and uncharged bytes stay in the socket.
        while ingest().waiting == 0 || unread() + FREE < request.len() as u64 {
            tokio::task::yield_now().await;
        }
        assert!(ingest().used <= 64 << 20);
        tokio::select! {
            biased;
            early = answer(&mut stream) => panic!("{early} answers a request without room"),
            () = tokio::task::yield_now() => {}
        }
        drop(held);
        assert_eq!(answer(&mut stream).await, echo("nobody", &body(100_000)));
        assert_eq!(unread(), 0);
    };
    let patience = Duration::from_secs(60);
    let both = Box::pin(async { tokio::join!(server, client) });
    tokio::time::timeout(patience, both).await.expect("the record is read");
}
