//! Against a second implementation on random input: what hyper and this codec both take, they understand
//! alike; and what this codec takes, hyper takes.

use crate::record::{Seen, run};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;

/// hyper's result for `bytes`.
fn seen_by_hyper(bytes: &[u8]) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = seen.clone();
    runtime.unwrap().block_on(async move {
        let (mut client, served) = tokio::io::duplex(1 << 20);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let noting = noting.clone();
            async move {
                let (head, body) = request.into_parts();
                let Ok(body) = body.collect().await else {
                    return Ok::<_, Infallible>(hyper::Response::new(Empty::<Bytes>::new()));
                };
                noting.lock().unwrap().push(Seen {
                    method: head.method.to_string(),
                    path: head.uri.path().to_owned(),
                    query: head.uri.query().map(str::to_owned),
                    headers: sorted(head.headers.iter().map(|(n, v)| (n.to_string(), v.as_bytes().to_vec()))),
                    body: body.to_bytes().to_vec(),
                });
                Ok(hyper::Response::new(Empty::new()))
            }
        });
        // An error is what it makes of the end, or of what it does not take.
        let _ = hyper::server::conn::http1::Builder::new()
            .half_close(true)
            .serve_connection(TokioIo::new(served), service)
            .await;
    });
    std::mem::take(&mut *seen.lock().unwrap())
}

fn sorted(headers: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut headers: Vec<_> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    headers.sort();
    headers
}

/// This codec's result for `pieces`.
fn seen_here<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> (Vec<u16>, Vec<Seen>) {
    let run = run(pieces);
    let in_order = |seen: Seen| Seen { headers: sorted(seen.headers.into_iter()), ..seen };
    (run.statuses, run.seen.into_iter().map(in_order).collect())
}

/// `bytes`, cut where `cuts` say.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).filter(|piece| !piece.is_empty()).collect()
}

/// One well-formed request.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = prop::sample::select(vec!["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X-OWN"]);
    let target = "/[a-z0-9/._~!$&'()*+,;=:@-]{0,20}(%[0-9A-F]{2})?(\\?[a-z0-9/=&?-]{0,20})?";
    let absolute = prop::sample::select(vec!["", "", "http://other:81"]);
    let headers = prop::collection::vec(("x-[a-z]{1,8}", "[!-~]([ -~\t]{0,20}[!-~])?"), 0..5);
    (method, target, absolute, headers, body()).prop_map(
        |(method, target, absolute, headers, (framing, body))| {
            let mut request = format!("{method} {absolute}{target} HTTP/1.1\r\nHost: h\r\n");
            headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}:{value} \r\n")));
            request.push_str(&format!("{framing}\r\n"));
            let mut request = request.into_bytes();
            request.extend_from_slice(&body);
            request
        },
    )
}

/// A body as it is sent, with the header that says how it ends.
fn body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let chunk = (prop::collection::vec(any::<u8>(), 1..200), prop::sample::select(vec!["", ";a", ";a=b"]));
    let chunked = prop::collection::vec(chunk, 0..6).prop_map(|chunks| {
        let mut body = Vec::new();
        for (chunk, extension) in &chunks {
            body.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        ("Transfer-Encoding: chunked\r\n".to_owned(), body)
    });
    let sized = prop::collection::vec(any::<u8>(), 0..6_000)
        .prop_map(|body| (format!("Content-Length: {}\r\n", body.len()), body));
    prop_oneof![Just((String::new(), Vec::new())), sized, chunked]
}

/// One change to a stream of requests: of the kind that smuggling is made of.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let tokens: Vec<&[u8]> = vec![
        b"",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0",
        b" ",
        b"\t",
        b":",
        b";",
        b",",
        b"0",
        b"1",
        b"f",
        b"+",
        b"\x0b",
        b"\x80",
        b"/",
        b"\r\nContent-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n ",
        b"HTTP/1.0",
        b"close",
        b"0\r\n\r\n",
    ];
    let token = prop_oneof![
        3 => prop::sample::select(tokens).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ];
    (any::<prop::sample::Index>(), 0..3_usize, token)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Well-formed requests, one behind the other and in whatever pieces they arrive, are understood as
    /// hyper understands them.
    #[test]
    fn well_formed_requests_are_understood_alike(
        requests in prop::collection::vec(request(), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = requests.concat();
        let (statuses, here) = seen_here(pieces(&bytes, &cuts));
        prop_assert_eq!(statuses, vec![204; requests.len()]);
        prop_assert_eq!(here, seen_by_hyper(&bytes));
    }

    /// Whatever this codec takes of a damaged stream, hyper takes and understands alike: stricter, never
    /// laxer. And the pieces in which it arrives change nothing.
    #[test]
    fn damaged_requests_are_never_understood_otherwise(
        requests in prop::collection::vec(request(), 1..3),
        changes in prop::collection::vec(change(), 1..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut bytes = requests.concat();
        for (at, removed, token) in changes {
            // Most of the bytes are body; damage to what frames it is what matters.
            let at = at.index(bytes.len().min(400));
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, token);
        }
        let (statuses, here) = seen_here([&bytes]);
        let hyper = seen_by_hyper(&bytes);
        prop_assert!(hyper.starts_with(&here), "{}\nhere: {:?}\nhyper: {:?}", bytes.escape_ascii(), here, hyper);
        prop_assert_eq!(seen_here(pieces(&bytes, &cuts)), (statuses, here));
    }
}

/// One byte at a time is the hardest way to arrive.
#[test]
fn every_byte_alone_gives_the_same() {
    let bytes = b"POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n\
        \r\nPOST /c HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyGET /d HTTP/1.1\r\nHost: h\r\n\r\n";
    let (statuses, seen) = seen_here(bytes.chunks(1));
    assert_eq!(statuses, [204, 204, 204]);
    assert_eq!(seen, seen_here([bytes]).1);
    assert_eq!(
        seen.iter().map(|seen| seen.body.as_slice()).collect::<Vec<_>>(),
        [&b"helloabc"[..], b"body", b""]
    );
}
