//! Whatever an agent sends, over WebSocket or by POST, each answer is a whole one of the protocol, and a connection that has ended holds no
//! memory.
#![no_main]
#![allow(dead_code, reason = "others use the rest of it")]

#[path = "../src/agents.rs"]
mod agents;
#[path = "../src/folder.rs"]
mod folder;
#[path = "../../crates/http1/tests/codec/pipe.rs"]
mod pipe;

use agents::{Plane, arena};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tidegate_opamp::{AgentApi, Opamp, Settings};

thread_local! {
    static PLANE: Cell<Option<Plane<AgentApi>>> = const { Cell::new(None) };
}

const HANDSHAKE: &[u8] =
    b"GET /v1/opamp HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// First bytes of frames: whole messages, the parts of one, control frames.
const FRAMES: [u8; 7] = [0x82, 0x82, 0x02, 0x80, 0x88, 0x89, 0x8a];

fuzz_target!(|input: (u8, bool, Vec<(u8, &[u8])>)| {
    let (size, is_websocket, messages) = input;
    let mut sent = if is_websocket { HANDSHAKE.to_vec() } else { Vec::new() };
    for (kind, message) in messages.into_iter().take(16) {
        match (is_websocket, usize::from(kind) % (FRAMES.len() + 1)) {
            (false, kind) => post(&mut sent, message, kind == 0),
            (true, kind) => match FRAMES.get(kind) {
                Some(first) => frame(&mut sent, *first, message),
                None => sent.extend_from_slice(message),
            },
        }
    }
    let mut plane = PLANE.take().unwrap_or_else(|| Plane::new(service));
    let answers = plane.talk(&sent, usize::from(size) + 1);
    PLANE.set(plane.kept());
    if let (true, Some(end)) = (is_websocket, answers.windows(4).position(|bytes| bytes == b"\r\n\r\n")) {
        are_frames(&answers[end + 4..]);
    }
});

async fn service(
    store: tidegate_fleet::EmbeddedStore,
    _: &folder::Folder,
    requests: tidegate_arena::Arena,
) -> AgentApi {
    let settings = Settings {
        max_message: 64 << 10,
        needs_token: false,
        own_telemetry: Some("http://127.0.0.1:4318".to_owned()),
        forget_after: Duration::from_secs(3600),
        check: |_| Ok(()),
    };
    AgentApi::new(Opamp::load(Arc::new(store), settings, (requests, arena())).await.expect("an empty state"))
}

fn post(out: &mut Vec<u8>, message: &[u8], is_compressed: bool) {
    let coding = if is_compressed { "Content-Encoding: gzip\r\n" } else { "" };
    let length = message.len();
    let head = "POST /v1/opamp HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n";
    out.extend_from_slice(format!("{head}{coding}Content-Length: {length}\r\n\r\n").as_bytes());
    out.extend_from_slice(message);
}

/// Appends a frame of a client, with a mask that changes nothing.
fn frame(out: &mut Vec<u8>, first: u8, payload: &[u8]) {
    out.push(first);
    match payload.len() {
        len @ 0..126 => out.push(0x80 | len as u8),
        len => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
}

/// They are whole frames of a server: messages with the header of OpAMP, and control frames.
fn are_frames(mut bytes: &[u8]) {
    while let [first, second, rest @ ..] = bytes {
        let (len, rest) = match (*second, rest) {
            (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
            (len @ 0..126, rest) => (usize::from(len), rest),
            _ => panic!("a frame of a server is short and has no mask"),
        };
        let (payload, rest) = rest.split_at(len);
        assert!(
            matches!((*first, payload.first()), (0x82, Some(0)) | (0x88..=0x8a, _)),
            "{first:x} {payload:?}"
        );
        bytes = rest;
    }
    assert!(bytes.is_empty());
}
