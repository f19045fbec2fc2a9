//! Promise: every refusal is an answer that says why, as Loki words it, and is entered in the books of the source.

use crate::accepts::{PATH, compress, push};
use crate::body::gzip;
use crate::client::{JSON, PROTOBUF};
use crate::rig::{MAX_BODY, Rig};
use tidegate_ledger::Refusal;

/// The headers and the body; the status, the reason, and words of the answer.
type Case<'a> = (Vec<(&'a str, &'a str)>, Vec<u8>, u16, Refusal, &'a str);

#[tokio::test]
async fn unreadable_bodies_are_refused() {
    let large = vec![b' '; MAX_BODY + 1];
    let good = push("{a=\"b\"}", &["x"]);
    let cases: Vec<Case<'_>> = vec![
        (vec![PROTOBUF], b"x".to_vec(), 400, Refusal::Malformed, "Snappy"),
        (vec![PROTOBUF], vec![0xff, 0xff, 0xff, 0x7f, 0], 413, Refusal::TooLarge, ""),
        (vec![PROTOBUF], compress(b"\x0a\x09"), 400, Refusal::Malformed, "the push request is malformed"),
        (vec![PROTOBUF], compress(&push("{a}", &["x"])), 400, Refusal::Malformed, "couldn't parse labels"),
        (vec![PROTOBUF, ("content-encoding", "gzip")], gzip(&good), 415, Refusal::Unsupported, "snappy"),
        (vec![JSON, ("content-encoding", "snappy")], b"{}".to_vec(), 415, Refusal::Unsupported, "gzip, zstd"),
        (vec![JSON, JSON], b"{}".to_vec(), 400, Refusal::Headers, "once"),
        (vec![JSON], b"{".to_vec(), 400, Refusal::Malformed, "the end of the body"),
        (
            vec![JSON],
            br#"{"streams":[{"values":[["1","a"],[2,"b"]]}]}"#.to_vec(),
            400,
            Refusal::Malformed,
            "streams[0].values[1]",
        ),
        (vec![PROTOBUF], compress(&large), 413, Refusal::TooLarge, "too large"),
        (vec![JSON], large.clone(), 413, Refusal::TooLarge, ""),
        (vec![JSON, ("content-encoding", "gzip")], gzip(&large), 413, Refusal::TooLarge, "too large"),
    ];
    for (headers, body, status, reason, words) in cases {
        for version in [1, 2] {
            let rig = Rig::new();
            let answer = match version {
                1 => rig.post(PATH, &headers, &body).await,
                _ => rig.post2(PATH, &headers, &body).await,
            };
            let text = answer.text();
            assert_eq!(answer.status, status, "{headers:?} {text}");
            assert!(text.contains(words), "{text}");
            let books = rig.books_of("loki");
            assert_eq!((books.accepted, books.refused), (0, vec![(reason, 1)]), "{headers:?} {text}");
            assert_eq!(rig.journal.stats().head, 0);
        }
    }
}

#[tokio::test]
async fn other_methods_are_refused() {
    let rig = Rig::new();
    let answer = rig.request2("GET", PATH, &[], b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{}", answer.text());
    assert_eq!(rig.books_of("loki").refused, vec![(Refusal::Method, 1)]);
}
