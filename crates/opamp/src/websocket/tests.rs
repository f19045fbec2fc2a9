//! Whatever a client sends, in whatever pieces: the messages it meant, or the close code of the RFC.

use super::{CloseCode, Event, WebSocket};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{ReceivedBehind, Shutdown, Upgraded};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const LONGEST: usize = 8 << 10;

/// The messages, and the code that ended them.
type Conversation = (Vec<Vec<u8>>, Option<CloseCode>);

/// Reads from a client that sends `pieces` one after the other; gives what the client received besides.
fn talk(pieces: Vec<Vec<u8>>) -> (Conversation, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        client.set_nodelay(true).unwrap();
        let (mut reading, mut writing) = client.into_split();
        let sent = async move {
            for piece in pieces {
                // A server that has closed takes no more.
                if writing.write_all(&piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        let received = async move {
            let mut received = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = reading.read(&mut chunk).await {
                received.extend_from_slice(&chunk[..read]);
            }
            received
        };
        let served = async {
            let arena = Arena::new(4 << 20, Floors::NONE, 1 << 20, 16, 16).unwrap();
            let shutdown = Shutdown::new();
            let mut timer = pin!(tokio::time::sleep_until(Instant::now()));
            let mut signal = pin!(shutdown.begun());
            let link = Upgraded {
                stream: &mut stream,
                timer: timer.as_mut(),
                signal: signal.as_mut(),
                shutdown: &shutdown,
                arena: &arena,
                peer: SocketAddr::from(([127, 0, 0, 1], 1)),
                received: ReceivedBehind::Nothing,
            };
            let socket = WebSocket::open(link, b"", LONGEST).await.unwrap();
            let talked = all_messages(socket).await;
            drop(stream);
            talked
        };
        let (talked, received, ()) = tokio::join!(served, received, sent);
        (talked, received)
    })
}

fn masked_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    let mask = [3, 1, 4, 1];
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Reads until something else than a message comes.
async fn all_messages(mut socket: WebSocket<'_, TcpStream>) -> Conversation {
    let mut messages = Vec::new();
    loop {
        match socket.next(Duration::from_secs(20), |_| Poll::<()>::Pending).await {
            Event::Message(message) => messages.push(message.to_vec()),
            Event::Alive => {}
            Event::Failed(code) => {
                socket.close(code).await;
                return (messages, Some(code));
            }
            _ => return (messages, None),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Messages come out as they were sent, however they are fragmented, interrupted by pings and split into reads.
    #[test]
    fn messages_are_those_that_were_sent(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 1..4),
        fragments in 1..5_usize,
        piece in 1..5000_usize,
        pings: bool,
    ) {
        let mut bytes = Vec::new();
        for message in &messages {
            let size = message.len().div_ceil(fragments).max(1);
            let mut parts: Vec<&[u8]> = message.chunks(size).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            let last = parts.len() - 1;
            for (at, part) in parts.iter().enumerate() {
                let opcode = if at == 0 { 2 } else { 0 };
                bytes.extend(masked_frame(if at == last { 0x80 | opcode } else { opcode }, part));
                if pings {
                    bytes.extend(masked_frame(0x89, b"p"));
                }
            }
        }
        bytes.extend(masked_frame(0x88, &1000_u16.to_be_bytes()));
        let ((received, failed), answers) = talk(bytes.chunks(piece).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(failed, None);
        prop_assert_eq!(&received, &messages);
        let pongs = answers.windows(3).filter(|bytes| *bytes == [0x8a, 1, b'p']).count();
        prop_assert_eq!(pongs > 0, pings);
        prop_assert!(answers.ends_with(&[0x88, 2, 0x03, 0xe8]), "the close is answered: {:?}", answers);
    }

    /// Bytes by chance end in a close code, a lost connection or messages, and never in a panic.
    #[test]
    fn bytes_by_chance_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        bytes.extend(masked_frame(0x88, &[]));
        bytes.extend([0; 64]);
        let ((messages, _), _) = talk(vec![bytes]);
        prop_assert!(messages.iter().all(|message| message.len() <= LONGEST));
    }
}

/// What a client must not send has the code that the RFC names.
#[test]
fn violations_have_their_codes() {
    let long = vec![0; LONGEST + 1];
    let half = vec![0; LONGEST / 2 + 1];
    let cases: [(&str, Vec<u8>, CloseCode); 11] = [
        ("not masked", vec![0x82, 1, 7], CloseCode::Protocol),
        ("a reserved bit", masked_frame(0xc2, b"a"), CloseCode::Protocol),
        ("an unknown opcode", masked_frame(0x83, b"a"), CloseCode::Protocol),
        ("a ping in fragments", masked_frame(0x09, b"a"), CloseCode::Protocol),
        ("a long ping", masked_frame(0x89, &[0; 126]), CloseCode::Protocol),
        ("a continuation of nothing", masked_frame(0x80, b"a"), CloseCode::Protocol),
        (
            "a message in a message",
            [masked_frame(0x02, b"a"), masked_frame(0x82, b"a")].concat(),
            CloseCode::Protocol,
        ),
        ("a length with too many bytes", vec![0x82, 0xfe, 0, 5, 0, 0, 0, 0], CloseCode::Protocol),
        ("text", masked_frame(0x81, b"a"), CloseCode::Unsupported),
        ("too long", masked_frame(0x82, &long), CloseCode::TooLarge),
        (
            "too long together",
            [masked_frame(0x02, &half), masked_frame(0x80, &half)].concat(),
            CloseCode::TooLarge,
        ),
    ];
    for (what, bytes, code) in cases {
        let ((_, failed), answers) = talk(vec![bytes, masked_frame(0x88, &[])]);
        assert_eq!(failed, Some(code), "{what}");
        assert!(answers.ends_with(&[&[0x88, 2], &code.to_bytes()[..]].concat()), "{what}: {answers:?}");
    }
}
