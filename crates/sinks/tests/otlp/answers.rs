//! Promise: what the specification says may be sent again is sent again, and nothing else; what is not wanted is
//! counted, kept, and does not hold up the rest.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, NAME, PART, Rig, SECOND, settings};
use hyper::header::HeaderName;
use std::time::{Duration, Instant, SystemTime};
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, OtlpSettings, Transport};

/// Sends one request that is answered with `reply` at first; how often it came, and what was dropped.
async fn once(transport: Transport, reply: Reply) -> (Rig, Peer) {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    peer.script([reply]);
    rig.put(Signal::Traces, Encoding::Identity, 7).await;
    rig.drain(settings(&peer, transport)).await;
    (rig, peer)
}

async fn is_sent_again(transport: Transport, reply: Reply) {
    let what = format!("{reply:?}");
    let (rig, peer) = once(transport, reply).await;
    rig.assert_exact(&[&peer]);
    assert_eq!((rig.dropped(), peer.arrived().len()), (vec![], 2), "{what}");
    assert_eq!(rig.health.activity().resent, 7);
    assert_eq!(rig.health.trouble().retry_at, None, "{what}");
}

async fn is_dropped(transport: Transport, reply: Reply, reason: Dropped, words: &str) {
    let what = format!("{reply:?}");
    let (rig, peer) = once(transport, reply).await;
    assert_eq!((rig.dropped(), peer.arrived().len()), (vec![(reason, 7)], 1), "{what}");
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    let letter = letters.next().unwrap();
    assert_eq!((letter.sink.as_str(), letter.meta.items, letter.meta.protocol), (NAME, 7, Protocol::Otlp));
    assert!(letter.reason.contains(words), "{}", letter.reason);
    let body = letters.body().unwrap();
    assert_eq!(
        (body.len() as u32, body),
        (letter.meta.raw_len, crate::bodies::request(Signal::Traces, 0..7, 100))
    );
    assert!(rig.health.trouble().last_error.unwrap().contains(words));
}

fn http(status: u16) -> Reply {
    Reply::Http(status, vec![], b"no thanks".to_vec())
}

fn grpc(code: u16) -> Reply {
    Reply::Grpc(code, "no%20thanks", None)
}

/// `google.rpc.Status` with `RetryInfo` of so many seconds, as `grpc-status-details-bin` has it.
fn retry_info(seconds: u8) -> String {
    let status = status(seconds);
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in status.chunks(3) {
        let bits = chunk.iter().chain(&[0, 0]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        (0..=chunk.len()).for_each(|at| text.push(digits[(bits >> (18 - 6 * at)) as usize & 63].into()));
    }
    text
}

fn status(seconds: u8) -> Vec<u8> {
    let name = b"type.googleapis.com/google.rpc.RetryInfo";
    let mut any = vec![0x0a, name.len() as u8];
    any.extend(name);
    any.extend([0x12, 4, 0x0a, 2, 0x08, seconds]);
    let mut status = vec![0x08, 14, 0x12, 4];
    status.extend(b"busy");
    status.extend([0x1a, any.len() as u8]);
    status.extend(any);
    status
}

#[tokio::test]
async fn the_codes_of_the_specification_are_sent_again() {
    for status in [429, 502, 503, 504] {
        is_sent_again(Transport::Http, http(status)).await;
    }
    for code in [1, 4, 10, 11, 14, 15] {
        is_sent_again(Transport::Grpc, grpc(code)).await;
    }
    is_sent_again(Transport::Grpc, Reply::Grpc(8, "", Some(retry_info(0)))).await;
    // A proxy that does not speak gRPC.
    is_sent_again(Transport::Grpc, http(503)).await;
}

#[tokio::test]
async fn every_other_code_is_dropped_and_kept() {
    for status in [301, 400, 403, 404, 405, 415, 500, 501] {
        is_dropped(Transport::Http, http(status), Dropped::Rejected, "no thanks").await;
    }
    for code in [2, 3, 5, 6, 7, 9, 12, 13] {
        is_dropped(Transport::Grpc, grpc(code), Dropped::Rejected, "no thanks").await;
    }
    is_dropped(Transport::Http, http(413), Dropped::TooLarge, "413").await;
    is_dropped(Transport::Grpc, grpc(8), Dropped::TooLarge, "RESOURCE_EXHAUSTED").await;
    is_dropped(Transport::Grpc, http(404), Dropped::Rejected, "404").await;
    // The words in a `google.rpc.Status` are found.
    let reply = Reply::Http(400, vec![], status(1));
    is_dropped(Transport::Http, reply, Dropped::Rejected, "400 Bad Request: busy").await;
}

/// Wrong credentials say nothing about the items: they wait until somebody mends them. One tenant's may not hold up the others.
#[tokio::test]
async fn items_wait_until_the_sender_is_known() {
    let unknown = [(Transport::Http, http(401)), (Transport::Http, http(407)), (Transport::Grpc, grpc(16))];
    for (transport, reply) in unknown {
        is_sent_again(transport, reply.clone()).await;
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        peer.script([reply]);
        rig.put(Signal::Traces, Encoding::Identity, 7).await;
        let tenant_header = Some(HeaderName::from_static("x-scope-orgid"));
        rig.drain(OtlpSettings { tenant_header, ..settings(&peer, transport) }).await;
        assert_eq!((rig.dropped(), peer.arrived().len()), (vec![(Dropped::Rejected, 7)], 1));
    }
}

#[tokio::test]
async fn the_peer_is_left_alone_for_as_long_as_it_asks() {
    // A date has whole seconds, so this one is between one and two away.
    let date = httpdate::fmt_http_date(SystemTime::now() + 2 * SECOND);
    let replies = [
        (Transport::Http, Reply::Http(503, vec![("retry-after", "1".into())], vec![])),
        (Transport::Http, Reply::Http(429, vec![("retry-after", date)], vec![])),
        (Transport::Http, Reply::Http(503, vec![], status(1))),
        (Transport::Grpc, Reply::Grpc(14, "", Some(retry_info(1)))),
        (Transport::Grpc, Reply::Grpc(8, "", Some(retry_info(1)))),
    ];
    let each = replies.map(|(transport, reply)| async move {
        let asked = Instant::now();
        is_sent_again(transport, reply).await;
        let waited = asked.elapsed();
        assert!(waited >= SECOND - Duration::from_millis(5) && waited < 10 * SECOND, "{waited:?}");
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn broken_connections_are_sent_again() {
    for transport in BOTH {
        is_sent_again(transport, Reply::Reset).await;
    }
}

/// Items rejected by a partial success are counted, reported, and not sent again.
#[tokio::test]
async fn partial_success_is_never_sent_again() {
    let mut response = vec![0x0a, 12, 0x08, 3, 0x12, 8];
    response.extend(b"too old!");
    for transport in BOTH {
        let (rig, peer) = once(transport, Reply::Ok(response.clone())).await;
        assert_eq!(peer.arrived().len(), 1);
        assert_eq!(rig.dropped(), [(Dropped::Rejected, 3)]);
        assert_eq!(rig.page().delivered, 4);
        let error = rig.health.trouble().last_error.unwrap();
        assert!(error.contains("3 of its items") && error.contains("too old!"), "{error}");
        assert_eq!(rig.health.activity().failures, 0);
        // More than there were is nonsense.
        let (rig, _) = once(transport, Reply::Ok(vec![0x0a, 3, 0x08, 0xe8, 0x07])).await;
        assert_eq!(rig.dropped(), [(Dropped::Rejected, 7)]);
        // A warning without rejections is told too.
        let (rig, _) = once(transport, Reply::Ok(vec![0x0a, 4, 0x12, 2, b'h', b'm'])).await;
        assert_eq!(rig.dropped(), []);
        assert!(rig.health.trouble().last_error.unwrap().contains("hm"));
    }
}

/// A success is one however long it is; but in gRPC it is only said at the end, which is not waited for for ever.
#[tokio::test]
async fn a_long_success_response_is_a_success() {
    for transport in BOTH {
        for len in [1 << 20, (4 << 20) + 1] {
            let (rig, peer) = once(transport, Reply::Long(len)).await;
            assert_eq!((rig.dropped(), peer.arrived().len()), (vec![], 1));
        }
        let (rig, peer) = once(transport, Reply::Long(17 << 20)).await;
        let expected = if transport == Transport::Http { vec![] } else { vec![(Dropped::Rejected, 7)] };
        assert_eq!((rig.dropped(), peer.arrived().len()), (expected, 1));
    }
}

/// A redirection that keeps the method is followed once, on the same host; what is elsewhere is tried again.
#[tokio::test]
async fn redirections_are_followed_on_the_same_host() {
    for status in [307, 308] {
        let to = |place: String| Reply::Http(status, vec![("location", place)], vec![]);
        let mut rig = Rig::new(PART);
        let (peer, other) = (Peer::new(), Peer::new());
        rig.put(Signal::Traces, Encoding::Identity, 7).await;
        let elsewhere = format!("http://localhost:{}/v1/traces", peer.address().port());
        // Twice in a row is once too often.
        peer.script([
            to("/v1/traces/".into()),
            to("/v1/traces".into()),
            to(elsewhere),
            to(format!("{}v1/traces", other.url())),
        ]);
        rig.drain(settings(&peer, Transport::Http)).await;
        rig.assert_exact(&[&other]);
        assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 7));
        assert_eq!(peer.arrived().len(), 4);
        assert!(rig.health.trouble().last_error.unwrap().contains("localhost"));
    }
}

#[tokio::test]
async fn a_peer_that_does_not_answer_is_given_up_after_the_timeout() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        peer.script([Reply::Stall, Reply::Stall]);
        rig.put(Signal::Traces, Encoding::Identity, 7).await;
        rig.drain(OtlpSettings { timeout: Duration::from_millis(100), ..settings(&peer, transport) }).await;
        assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 7));
        // More where the machine was too busy to answer in time.
        assert!(rig.health.activity().failures >= 2);
        assert!(peer.connections() >= 2, "the old connection is not trusted");
    }
}

/// Of a joined request only the bad record is dropped, and the others are joined again afterwards.
#[tokio::test]
async fn of_a_joined_request_only_the_bad_record_is_dropped() {
    for transport in BOTH {
        for compression in [Compression::None, Compression::Gzip(1)] {
            let mut rig = Rig::new(PART);
            let peer = Peer::new();
            for _ in 0..10 {
                rig.put(Signal::Logs, Encoding::Identity, 10).await;
            }
            peer.always(Reply::Dislikes(42));
            rig.drain(OtlpSettings { compression, ..settings(&peer, transport) }).await;
            rig.assert_but(&[&peer], 40..50);
            assert_eq!(rig.dropped(), [(Dropped::Rejected, 10)]);
            let letters: Vec<_> = read(&rig.letters_dir(), false).unwrap().collect();
            assert_eq!(letters.len(), 1);
            assert!(letters[0].reason.contains("bad item"));
            assert_eq!(peer.arrived().len(), 11, "once together, once alone");
        }
    }
}

/// A dead letter can be resent unchanged.
#[tokio::test]
async fn a_dead_letter_keeps_the_encoding_of_its_body() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Metrics, Encoding::Identity, 7).await;
    peer.always(http(403));
    let settings = settings(&peer, Transport::Http);
    rig.drain(OtlpSettings { compression: Compression::Zstd(1), ..settings }).await;
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    let letter = letters.next().unwrap();
    assert_eq!((letter.meta.encoding, letter.meta.signal), (Encoding::Zstd, Signal::Metrics));
    let raw = crate::bodies::decoded(Encoding::Zstd, &letters.body().unwrap());
    assert_eq!(
        (raw.len() as u32, crate::bodies::numbers(Signal::Metrics, &raw).len()),
        (letter.meta.raw_len, 7)
    );
}
