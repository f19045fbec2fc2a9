//! Accepted and refused requests, one row each.

use crate::record::{Seen, run};
use tidegate_http1::{Refusal, SyntaxError};

const BAD: fn(SyntaxError) -> Refusal = Refusal::Malformed;

/// Everything that could be read in two ways, or that this server does not offer, is refused with its own
/// status and reason, and the connection ends: the request behind it is not looked at.
#[test]
fn ambiguous_requests_are_refused() {
    let long_target = format!("GET /{} HTTP/1.1\r\n", "a".repeat(66_000));
    let long_head = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "a".repeat(66_000));
    let many_headers = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(64));
    let rows: &[(&str, u16, Refusal)] = &[
        // The request line.
        ("GET /\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("GET /\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("GET\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("GET / HTTP/1.1x\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET / XTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::RequestLine)),
        ("\x16\x03\x01\x02\x00\x01\x00", 400, BAD(SyntaxError::Tls)),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, Refusal::Version),
        ("GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505, Refusal::Version),
        ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505, Refusal::Version),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, Refusal::Version),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", 501, Refusal::Connect),
        // The target.
        ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /\"a HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /a\\b HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /% HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /%0g HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET /é HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET http:// HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        ("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::Target)),
        (&long_target, 414, Refusal::TargetTooLong { limit: 65_536 }),
        // Line ends.
        ("GET / HTTP/1.1\nHost: h\n\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET / HTTP/1.1\r\nHost: h\n\r\n", 400, BAD(SyntaxError::LineEnd)),
        ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET / HTTP/1.1\r\nHost: h\r\n\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET / HTTP/1.1\rHost: h\r\n\r\n", 400, BAD(SyntaxError::LineEnd)),
        ("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n", 400, BAD(SyntaxError::HeaderValue)),
        ("GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n", 400, BAD(SyntaxError::HeaderValue)),
        // Header lines.
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\n\tA: b\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\nA(: b\r\n\r\n", 400, BAD(SyntaxError::HeaderLine)),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", 400, BAD(SyntaxError::HeaderValue)),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n", 400, BAD(SyntaxError::HeaderValue)),
        (&long_head, 431, Refusal::HeadTooLarge { limit: 65_536 }),
        (&many_headers, 431, Refusal::TooManyHeaders { limit: 64 }),
        // Host.
        ("GET / HTTP/1.1\r\n\r\n", 400, BAD(SyntaxError::Host)),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, BAD(SyntaxError::Host)),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, BAD(SyntaxError::Host)),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, BAD(SyntaxError::Host)),
        ("GET / HTTP/1.0\r\nHost: a@b\r\n\r\n", 400, BAD(SyntaxError::Host)),
        // How the body ends.
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            BAD(SyntaxError::TwoLengths),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            400,
            BAD(SyntaxError::TwoLengths),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            400,
            BAD(SyntaxError::ContentLength),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            400,
            BAD(SyntaxError::ContentLength),
        ),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na", 400, BAD(SyntaxError::ContentLength)),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na", 400, BAD(SyntaxError::ContentLength)),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na", 400, BAD(SyntaxError::ContentLength)),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na", 400, BAD(SyntaxError::ContentLength)),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 1\r\n\r\na", 400, BAD(SyntaxError::ContentLength)),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400, BAD(SyntaxError::ContentLength)),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n", 400, BAD(SyntaxError::TransferEncoding)),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            BAD(SyntaxError::TransferEncoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            400,
            BAD(SyntaxError::Chunk),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n",
            400,
            BAD(SyntaxError::Chunk),
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
            400,
            BAD(SyntaxError::Chunk),
        ),
        // Too large, and what else is not offered.
        (
            "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n",
            413,
            Refusal::BodyTooLarge { limit: 10 },
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            413,
            Refusal::BodyTooLarge { limit: 1 << 20 },
        ),
        (
            "POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n",
            413,
            Refusal::BodyTooLarge { limit: 10 },
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 200-ok\r\n\r\n",
            417,
            Refusal::Expectation,
        ),
        // Cut off.
        ("GET / HTTP/1.1\r\nHo", 400, Refusal::Truncated),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na", 400, Refusal::Truncated),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
            400,
            Refusal::Truncated,
        ),
    ];
    for (request, status, refusal) in rows {
        let cut_off = *refusal == Refusal::Truncated;
        let next = if cut_off { "" } else { "GET / HTTP/1.1\r\nHost: h\r\n\r\n" };
        let run = run([format!("{request}{next}")]);
        assert_eq!(
            (run.statuses.as_slice(), run.refused.as_slice()),
            (&[*status][..], &[*refusal][..]),
            "{request:?}"
        );
        assert!(run.seen.is_empty(), "{request:?}");
    }
}

/// A client that will never send more learns so at once, not when its time is up.
#[test]
fn bytes_that_cannot_begin_a_request_are_refused_early() {
    let rows = [
        "GET /\r\n",
        "PRI * HTTP/2.0\r\n",
        "\x16\x03\x01",
        "GET / HTTP/1.1\n",
        "\0",
        "GET a b HTTP/1.1\r\nHost",
    ];
    for row in rows {
        let run = run([row]);
        assert!(!run.refused.is_empty() && run.refused != [Refusal::Truncated], "{row:?}: {run:?}");
    }
}

fn only(request: &str) -> Seen {
    let mut run = run([request]);
    assert_eq!((run.statuses.as_slice(), run.seen.len()), (&[204][..], 1), "{request:?}: {run:?}");
    run.seen.remove(0)
}

/// Requests that follow the grammar are accepted, and keep their meaning.
#[test]
fn valid_requests_mean_what_they_say() {
    let seen = only(
        "POST /a/%20b;c?d=e&match[]=f HTTP/1.1\r\nhOST:h\r\nX-A:  b \t\r\nContent-Length: 003\r\n\r\nabc",
    );
    assert_eq!((seen.path.as_str(), seen.query.as_deref()), ("/a/%20b;c", Some("d=e&match[]=f")));
    assert_eq!(seen.headers[1], ("X-A".to_owned(), b"b".to_vec()));
    assert_eq!(seen.body, b"abc");
    let seen = only("\r\nPUT http://other:80?q HTTP/1.1\r\nHost: h\r\nA:\r\n\r\n");
    assert_eq!((seen.method.as_str(), seen.path.as_str(), seen.query.as_deref()), ("PUT", "/", Some("q")));
    let seen = only("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n");
    assert_eq!(seen.path, "*");
    let seen = only(
        "POST /small HTTP/1.1\r\nHost: [::1]:80\r\ntransfer-encoding: CHUNKED\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\nA: b\r\n\r\n",
    );
    assert_eq!(seen.body, b"helloworld");
    let seen = only(
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nA: caf\u{e9}\r\n\r\n",
    );
    assert_eq!(seen.method, "GET");
}

/// Which clients may send another request on the same connection.
#[test]
fn connections_stay_open_as_long_as_both_wish() {
    let rows: &[(&str, usize)] = &[
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 2),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 1),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: a, CLOSE\r\n\r\n", 1),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 2),
        ("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", 1),
        ("GET /close HTTP/1.1\r\nHost: h\r\n\r\n", 1),
    ];
    for (request, answers) in rows {
        let run = run([format!("{request}{request}")]);
        assert_eq!((run.statuses.len(), run.seen.len()), (*answers, *answers), "{request:?}");
    }
}

/// A request that the service does not let in costs its client the connection only where what is left of
/// its body is long or has no known end.
#[test]
fn a_declined_body_is_thrown_away() {
    let next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let rows: &[(String, &[u16])] = &[
        ("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello".into(), &[401, 204]),
        (
            format!(
                "POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n{}",
                "x".repeat(50_000)
            ),
            &[401, 204],
        ),
        (
            format!(
                "POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n{}",
                "x".repeat(300_000)
            ),
            &[401],
        ),
        ("POST /refuse HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".into(), &[401]),
        (
            "POST /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
                .into(),
            &[401, 204],
        ),
    ];
    for (request, statuses) in rows {
        let run = run([format!("{request}{next}")]);
        assert_eq!(run.statuses, *statuses, "{:?}", &request[..60]);
    }
}

/// HEAD is answered with the length of what it would be, and without it, refused or not.
#[test]
fn head_has_no_content() {
    for (path, length) in [("/text", 10), ("/refuse", 11), ("/small", 80)] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n01234567890");
        let answers = crate::record::answers([request]);
        assert!(answers.contains(&format!("Content-Length: {length}\r\n")), "{answers}");
        assert!(answers.ends_with("\r\n\r\n"), "{answers}");
    }
}
