//! Promise: both versions of HTTP share every listener, whatever the pieces in which a connection begins; and what
//! a connection waits for has an end.

use crate::body::{logs, message, traces};
use crate::client::{LOGS, PROTOBUF, TRACES, answer, call, call_to, connect, post};
use crate::rig::{CONNECTIONS, Rig, settings};
use crate::wire;
use std::time::Duration;
use tidegate_http1::Settings;
use tidegate_ledger::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes may come one by one.
#[tokio::test]
async fn versions_are_told_apart_byte_by_byte() {
    let rig = Rig::new();
    let request = post("/v1/logs", &[PROTOBUF], &logs(2));
    rig.serve(async |address| {
        for first in [1, 2, 3] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            for byte in &request[..first] {
                stream.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stream.write_all(&request[first..]).await.unwrap();
            assert_eq!(answer(&mut stream).await.status, 200);

            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            for byte in &PREFACE[..first] {
                stream.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stream.write_all(&PREFACE[first..]).await.unwrap();
            let mut settings = [0; 9];
            stream.read_exact(&mut settings).await.unwrap();
            assert_eq!(settings[3], 4, "the first frame is SETTINGS");
        }
    })
    .await;
    assert_eq!(rig.books().accepted, 3);
}

/// A client that sends too little and leaves is answered as over HTTP/1.1, and leaves nothing behind.
#[tokio::test]
async fn half_a_beginning_is_no_version() {
    let rig = Rig::new();
    rig.serve(async |address| {
        for (beginning, said) in [
            (&b""[..], &b""[..]),
            (b"P", b"HTTP/1.1 400 "),
            (b"PR", b"HTTP/1.1 400 "),
            (b"PRX", b"HTTP/1.1 400 "),
            // That is HTTP/2, as far as it goes: its server says which settings it has, and no more.
            (b"PRI * HTTP/2.0\r\n\r\nXX", b"\0\0"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(beginning).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut all = Vec::new();
            while stream.read_buf(&mut all).await.unwrap() > 0 {}
            let text = String::from_utf8_lossy(&all);
            assert!(all.starts_with(said), "{beginning:?}: {text}");
            assert_eq!(all.is_empty(), said.is_empty(), "{beginning:?}: {text}");
            if said.starts_with(b"HTTP") {
                assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
            }
        }
    })
    .await;
    assert_eq!(rig.books().received, 0);
    let refused: u64 = rig.books_of("http").refused.iter().map(|(_, count)| count).sum();
    assert_eq!(refused, 3);
}

/// As many as are allowed are served; the next is told, and counted; and when one leaves there is room again.
#[tokio::test]
async fn connections_have_a_limit() {
    let (rig, body) = (Rig::new(), message(false, &traces(1, 1)));
    rig.serve(async |address| {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut client = connect(address).await;
            assert_eq!(call(&mut client, TRACES, &[], &body).await.code, 0);
            clients.push(client);
        }
        assert_eq!(rig.http2.open(), CONNECTIONS);
        let mut refused = TcpStream::connect(address).await.unwrap();
        refused.write_all(PREFACE).await.unwrap();
        let mut told = Vec::new();
        while refused.read_buf(&mut told).await.is_ok_and(|read| read > 0) {}
        assert!(String::from_utf8_lossy(&told).contains("as many connections as are allowed"), "{told:?}");
        // A frame of settings, then GOAWAY with ENHANCE_YOUR_CALM.
        assert_eq!((told[3], told[12], told[25]), (4, 7, 11));
        drop(clients);
        while rig.http2.open() == CONNECTIONS {
            tokio::task::yield_now().await;
        }
        assert_eq!(call(&mut connect(address).await, TRACES, &[], &body).await.code, 0);
    })
    .await;
    assert_eq!(rig.books_of("http").refused, [(Refusal::Connections, 1)]);
    assert_eq!(rig.books().accepted, CONNECTIONS as u64 + 1);
}

/// Between calls a connection holds nothing that is charged, and after the idle time it is ended with a
/// goodbye.
#[tokio::test]
async fn an_idle_connection_is_charged_nothing_and_ends() {
    let rig = Rig::with(1 << 30, Settings { idle: Duration::from_millis(500), ..settings() });
    rig.serve(async |address| {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        let calling = async {
            assert_eq!(call(&mut client, LOGS, &[], &message(false, &logs(3))).await.code, 0);
            while rig.arena.usage().shares.iter().any(|share| share.used > 0) {
                tokio::task::yield_now().await;
            }
            client
        };
        let (ended, client) = tokio::join!(connection, calling);
        assert!(ended.is_ok(), "a goodbye is no error: {ended:?}");
        drop(client);
    })
    .await;
    assert_eq!(rig.books().accepted, 1);
}

const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// The type of the next frame, and what is in it; nothing at the end.
async fn frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut content = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut content).await.ok()?;
    Some((head[3], content))
}

/// A connection that said nothing until it was told to go, and has heard the whole goodbye.
async fn told_to_go(address: std::net::SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(&[PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()).await.unwrap();
    let mut goodbyes = 0;
    while let Some((kind, content)) = frame(&mut stream).await {
        goodbyes += usize::from(kind == GOAWAY);
        if kind == PING {
            stream.write_all(&[&[0, 0, 8, PING, 1, 0, 0, 0, 0], &content[..]].concat()).await.unwrap();
        }
    }
    assert_eq!(goodbyes, 2, "no new streams; and what was the last");
    stream
}

/// Bytes that a client sends before it learns that its idle connection ends are read and not answered by a reset,
/// which might overtake the GOAWAY.
#[tokio::test]
async fn a_connection_is_drained_after_goaway() {
    let brief = Duration::from_millis(100);
    let rig = Rig::with(1 << 30, Settings { idle: brief, linger: Duration::from_secs(60), ..settings() });
    rig.serve(async |address| {
        let mut stream = told_to_go(address).await;
        for _ in 0..3 {
            stream.write_all(&[0, 0, 8, PING, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).await.unwrap();
            assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "and no reset");
        }
        assert_eq!(rig.http2.open(), 1);
    })
    .await;
}

/// A client that does not close holds no connection for longer than that.
#[tokio::test]
async fn a_connection_is_not_read_on_for_ever() {
    let brief = Duration::from_millis(100);
    let rig = Rig::with(1 << 30, Settings { idle: brief, linger: brief, ..settings() });
    // Dropped when the server has ended its connection.
    let _stream = rig.serve(async |address| told_to_go(address).await).await;
    assert_eq!(rig.http2.open(), 0);
}

/// At a shutdown what is in flight is answered, and then the connection ends.
#[tokio::test]
async fn a_shutdown_waits_for_calls_in_flight() {
    let (rig, body) = (Rig::new(), message(false, &traces(1, 1)));
    rig.serve(async |address| {
        let stream = TcpStream::connect(address).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        let calling = async {
            let mut ready = client.ready().await.unwrap();
            let (response, mut stream) = ready.send_request(call_to(TRACES, &[]), false).unwrap();
            stream.send_data(body[..6].to_vec().into(), false).unwrap();
            while rig.arena.usage().shares.iter().all(|share| share.used == 0) {
                tokio::task::yield_now().await;
            }
            rig.shutdown.begin();
            tokio::task::yield_now().await;
            stream.send_data(body[6..].to_vec().into(), true).unwrap();
            let mut answer = response.await.unwrap().into_body();
            while let Some(data) = answer.data().await {
                data.unwrap();
            }
            assert_eq!(answer.trailers().await.unwrap().unwrap().get("grpc-status").unwrap(), "0");
        };
        let (ended, ()) = tokio::join!(connection, calling);
        assert!(ended.is_ok(), "{ended:?}");
    })
    .await;
    assert_eq!(rig.books().accepted, 1);
}

/// A body that stops arriving is refused, and what it held is given back, while its connection goes on.
#[tokio::test]
async fn a_body_that_stops_arriving_is_refused() {
    let stall = Duration::from_millis(200);
    let rig = Rig::with(1 << 30, Settings { body_stall: stall, body_grace: stall, ..settings() });
    let body = message(false, &traces(1, 1));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let mut ready = client.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(call_to(TRACES, &[]), false).unwrap();
        stream.send_data(body[..6].to_vec().into(), false).unwrap();
        let answer = response.await.unwrap();
        assert_eq!(answer.headers().get("grpc-status").unwrap(), "4");
        assert_eq!(call(&mut client, TRACES, &[], &body).await.code, 0);
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Timeout, 1)]));
}

/// Half a frame is not waited for longer than half a body, and what is charged for it is given back.
#[tokio::test]
async fn half_a_frame_ends_a_connection() {
    let rig = Rig::with(1 << 30, Settings { body_stall: Duration::from_millis(200), ..settings() });
    rig.serve(async |address| {
        // SETTINGS, and the head of HEADERS without END_HEADERS.
        let mut half =
            [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &[0, 0, 9, 1, 0, 0, 0, 0, 1], b"half"].concat();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&half).await.unwrap();
            let mut all = Vec::new();
            while stream.read_buf(&mut all).await.is_ok_and(|read| read > 0) {}
            half.extend_from_slice(b"\x88\x88\x88\x88\x88");
        }
    })
    .await;
    assert_eq!(rig.books().received, 0);
}

/// Many small frames are no way around the limits: the call is answered, or the connection ends with a reason.
#[tokio::test]
async fn bodies_in_tiny_frames_are_held_to_the_same_memory() {
    let (rig, body) = (Rig::new(), message(false, &traces(20, 1000)));
    let answered = rig.serve(async |address| {
        let client = connect(address).await;
        let mut ready = client.ready().await.unwrap();
        let (response, mut stream) = ready.send_request(call_to(TRACES, &[]), false).unwrap();
        let (last, all) = body.split_last().unwrap();
        for byte in all.chunks(3) {
            if stream.send_data(byte.to_vec().into(), false).is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let sent = stream.send_data(vec![*last].into(), true);
        match response.await {
            Ok(answer) => {
                sent.unwrap();
                let mut answer = answer.into_body();
                while let Some(data) = answer.data().await {
                    data.unwrap();
                }
                assert_eq!(answer.trailers().await.unwrap().unwrap().get("grpc-status").unwrap(), "0");
                1
            }
            Err(error) => {
                assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM), "{error:?}");
                0
            }
        }
    });
    let answered = answered.await;
    assert_eq!(rig.books().accepted, answered);
    let peak = rig.arena.usage().shares.iter().map(|share| share.peak).sum::<u64>();
    assert!(peak < 256 << 10, "{peak}");
}

/// A client refused while it still sends is told to stop, after the answer and without an error (RFC 9113, section
/// 8.1); and the connection stays open.
#[tokio::test]
async fn an_early_answer_is_followed_by_a_reset_without_an_error() {
    let rig = Rig::new();
    let call = wire::call("/nowhere", &[0x0a, 0].repeat(20_000));
    rig.serve(async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Within the first window, and not all of it.
        let begun = &call[..call.len() - 10];
        stream.write_all(&[wire::PREFACE, &wire::SETTINGS, begun].concat()).await.unwrap();
        let (mut bytes, mut at, mut seen) = (Vec::new(), 0, Vec::new());
        while seen.last().is_none_or(|(kind, _)| *kind != 3) {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{seen:?}");
            while let Some(head) = bytes.get(at..at + 9) {
                let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let (kind, flags) = (head[3], head[4]);
                let Some(payload) = bytes.get(at + 9..at + 9 + len) else { break };
                if head[8] == 1 {
                    let error = if kind == 3 { payload[3] } else { flags & 1 };
                    seen.push((kind, error));
                }
                at += 9 + len;
            }
        }
        // The answer ends the stream, and then comes NO_ERROR. Windows may be updated in between.
        seen.retain(|(kind, _)| *kind != 8);
        assert_eq!(seen, [(1, 1), (3, 0)]);
        // The rest is on its way, and disturbs nobody.
        stream.write_all(&call[call.len() - 10..]).await.unwrap();
        let mut next = wire::call(TRACES, &traces(1, 1));
        wire::renumber(&mut next, 3);
        stream.write_all(&next).await.unwrap();
        let mut answers = wire::Answers::default();
        while answers.ended == 0 {
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).await.unwrap();
            answers.follow(&piece[..read]).unwrap();
        }
        assert_eq!(answers.reset, 0);
    })
    .await;
    assert_eq!(rig.books().accepted, 1);
}

/// A client refused before its body arrived may send the rest: some clients are about to, and treat a closed stream
/// as a failure without reading the answer. But only within limits of size and time.
#[tokio::test]
async fn the_rest_of_a_refused_request_is_thrown_away() {
    let rig = Rig::new();
    rig.serve(async |address| {
        // Refused for its path, and for its type.
        for path in ["/nowhere", "/v1/traces"] {
            let request = wire::request(path, &vec![b' '; 100_000]);
            let (head, body) = request.split_at(wire::first_frame(&request));
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut answers = wire::Answers::default();
            stream.write_all(&[wire::PREFACE, &wire::SETTINGS, head].concat()).await.unwrap();
            follow(&mut stream, &mut answers, 1).await;
            stream.write_all(body).await.unwrap();
            let mut next = wire::call(TRACES, &traces(1, 1));
            wire::renumber(&mut next, 3);
            stream.write_all(&next).await.unwrap();
            follow(&mut stream, &mut answers, 2).await;
            assert_eq!(answers.reset, 0, "{path}");
        }
        // One that never ends, and one that is longer than that.
        for some in [1 << 10, 300_000] {
            let request = wire::request("/nowhere", &vec![b' '; some]);
            let begun = &request[..request.len() - 1];
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut answers = wire::Answers::default();
            stream.write_all(&[wire::PREFACE, &wire::SETTINGS, begun].concat()).await.unwrap();
            follow(&mut stream, &mut answers, 2).await;
            assert_eq!(answers.reset, 1, "{some}");
        }
    })
    .await;
    assert_eq!(rig.books().accepted, 2);
    assert!(rig.arena.usage().shares.iter().all(|share| share.used == 0));
}

/// Reads until so many streams have ended, once by an answer and once by a reset where both are sent.
pub(crate) async fn follow(stream: &mut TcpStream, answers: &mut wire::Answers, ended: usize) {
    while answers.ended < ended {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        answers.follow(&piece[..read]).unwrap();
    }
}

/// A peer that lets nobody send it an answer holds what that needs for as long as one that does not read.
#[tokio::test]
async fn an_answer_without_a_window_ends_the_connection() {
    let rig = Rig::with(1 << 30, Settings { write: Duration::from_millis(300), ..settings() });
    // SETTINGS_INITIAL_WINDOW_SIZE of zero.
    let closed = [&[0, 0, 6, 4, 0, 0, 0, 0, 0][..], &[0, 4, 0, 0, 0, 0]].concat();
    let call = wire::call(TRACES, &traces(1, 1));
    rig.serve(async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[wire::PREFACE, &closed, &call].concat()).await.unwrap();
        let mut all = Vec::new();
        while stream.read_buf(&mut all).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    assert_eq!(rig.books().accepted, 1);
}

/// Tokens make heads long: up to 64 KiB are taken, over both versions, and more is told so.
#[tokio::test]
async fn heads_may_be_long() {
    let (rig, body) = (Rig::new(), message(false, &traces(1, 1)));
    let token = |length: usize| format!("Bearer {}", "x".repeat(length));
    rig.serve(async |address| {
        for length in [3_000, 12_000, 60_000] {
            let token = token(length);
            let mut client = connect(address).await;
            for _ in 0..2 {
                assert_eq!(call(&mut client, TRACES, &[("authorization", &token)], &body).await.code, 0);
            }
            let request = post("/v1/logs", &[PROTOBUF, ("authorization", &token)], &logs(2));
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&request).await.unwrap();
            assert_eq!(answer(&mut stream).await.status, 200);
        }
        let request = post("/v1/logs", &[PROTOBUF, ("authorization", &token(66_000))], &logs(2));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&request).await.unwrap();
        assert_eq!(answer(&mut stream).await.status, 431);
        let mut client = connect(address).await;
        let mut long = call_to(TRACES, &[]);
        long.headers_mut().insert("authorization", token(66_000).parse().unwrap());
        let (response, _body) = client.clone().ready().await.unwrap().send_request(long, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 431);
        assert_eq!(call(&mut client, TRACES, &[], &body).await.code, 0);
    })
    .await;
    assert_eq!(rig.books().accepted, 3 * 3 + 1);
}

/// A slash at the end of a path is forgiven.
#[tokio::test]
async fn paths_may_end_with_a_slash() {
    let rig = Rig::new();
    for path in ["/v1/logs", "/v1/logs/"] {
        assert_eq!(rig.post(path, &[PROTOBUF], &logs(2)).await.status, 200, "{path}");
    }
    for path in ["/v1/logs//", "/v1//logs", "/v1/", "//"] {
        assert_eq!(rig.post(path, &[PROTOBUF], &logs(2)).await.status, 404, "{path}");
    }
    assert_eq!(rig.books().accepted, 2);
}

/// A peer that opens and resets streams without end holds nothing and is in nobody's way: the codec gets a few frames at
/// a time, and the next when those have been looked at. In plain bytes, since h2's client does not send the head of a
/// stream that it resets at once.
#[tokio::test]
async fn rapid_resets_hold_no_memory_and_delay_no_other_stream() {
    const TURNS: u32 = 50;
    /// Written in one piece: more than the codec would remember.
    const TOGETHER: u32 = 100;
    let rig = Rig::new();
    let (call_frames, body) = (wire::call(TRACES, &traces(1, 1)), message(false, &traces(1, 1)));
    let mut opened_and_reset = call_frames[..wire::first_frame(&call_frames)].to_vec();
    // RST_STREAM with CANCEL.
    opened_and_reset.extend_from_slice(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]);
    rig.serve(async |address| {
        let mut other = connect(address).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[wire::PREFACE, &wire::SETTINGS].concat()).await.unwrap();
        for turn in 0..TURNS {
            let mut frames = Vec::new();
            for reset in 0..TOGETHER {
                wire::renumber(&mut opened_and_reset, 2 * (turn * TOGETHER + reset) + 1);
                frames.extend_from_slice(&opened_and_reset);
            }
            stream.write_all(&frames).await.unwrap();
            assert_eq!(call(&mut other, TRACES, &[], &body).await.code, 0);
        }
        // Behind all of them a call is answered, and nothing else was: what was reset needs no answer.
        let mut last = call_frames.clone();
        wire::renumber(&mut last, 2 * TURNS * TOGETHER + 1);
        stream.write_all(&last).await.unwrap();
        let mut answers = wire::Answers::default();
        follow(&mut stream, &mut answers, 1).await;
        assert_eq!(answers.reset, 0);
    })
    .await;
    assert_eq!(rig.books().accepted, u64::from(TURNS) + 1);
    // No more than streams that may be open at a time begin with, however many there were.
    let peak = rig.arena.usage().shares.iter().map(|share| share.peak).sum::<u64>();
    assert!(peak <= 64 * (64 << 10), "{peak}");
}
