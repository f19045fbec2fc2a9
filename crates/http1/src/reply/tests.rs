use super::date::{with_date, written};
use super::*;
use crate::clock::coarse_ns;

fn rendered(reply: &Reply, ending: ConnectionHeaders) -> String {
    let mut out = Vec::new();
    if render_head(reply, ending, coarse_ns(), &mut out) {
        out.extend_from_slice(reply.bytes());
    }
    let text = String::from_utf8(out).unwrap();
    let date = text.split("\r\n").find(|line| line.starts_with("Date: ")).unwrap();
    assert_eq!(date.len(), "Date: Sun, 06 Nov 1994 08:49:37 GMT".len());
    text.replace(&format!("{date}\r\n"), "")
}

const OPEN: ConnectionHeaders = ConnectionHeaders { close: false, keep_alive: false, bodiless: false };

/// Answers follow RFC 9112 byte for byte.
#[test]
fn replies_are_rendered_to_the_byte() {
    let empty = Reply::new(204).numbers(&["A-Written", "B-Written"], [7, 0, 9]);
    assert_eq!(rendered(&empty, OPEN), "HTTP/1.1 204 No Content\r\nA-Written: 7\r\nB-Written: 0\r\n\r\n");
    let busy = Reply::new(503).text("busy\n").retry_after(12).headers(&[("Allow", "POST")]);
    assert_eq!(
        rendered(&busy, ConnectionHeaders { close: true, ..OPEN }),
        "HTTP/1.1 503 Service Unavailable\r\nAllow: POST\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 5\r\nConnection: close\r\nRetry-After: 12\r\n\r\nbusy\n"
    );
    let owned = Reply::new(200).content(String::from("{}")).content_type("application/json");
    assert_eq!(
        rendered(&owned, ConnectionHeaders { bodiless: true, keep_alive: true, ..OPEN }),
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n"
    );
    assert_eq!(rendered(&Reply::new(599), OPEN), "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n");
}

/// A sentence's length is announced as it is written, for every number of digits.
#[test]
fn sentences_have_the_length_they_announce() {
    for number in [0, 9, 10, 99, 100, 12_345, usize::MAX] {
        let text = rendered(&Reply::new(413).sentence(&["at most ", " bytes\n"], number), OPEN);
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(content, format!("at most {number} bytes\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", content.len())), "{head}");
    }
}

/// The date is the example of RFC 9110, and right on the days on which calendars go wrong.
#[test]
fn dates_are_written_as_http_wants_them() {
    let shown = |second| String::from_utf8(written(second).to_vec()).unwrap();
    assert_eq!(shown(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(shown(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(shown(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
    assert_eq!(shown(1_709_251_199), "Thu, 29 Feb 2024 23:59:59 GMT");
    assert_eq!(shown(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
    assert_eq!(shown(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
    assert_eq!(shown(253_402_300_799), "Fri, 31 Dec 9999 23:59:59 GMT");
}

/// A reply waits in every connection's task, so it stays small.
#[test]
fn replies_are_small() {
    assert!(size_of::<Reply>() < 128, "{} bytes", size_of::<Reply>());
}

/// Text has the shape that was asked for, and the length that it announces; what is no text has none.
#[test]
fn text_is_put_into_its_shape() {
    fn quoted(out: &mut Vec<u8>, parts: [&[u8]; 3]) {
        out.push(b'"');
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'"');
    }
    let shown = |reply: Reply| {
        let text = rendered(&reply.formatted(quoted), OPEN);
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", content.len())), "{head}");
        content.to_owned()
    };
    assert_eq!(shown(Reply::new(413).sentence(&["at most ", " bytes"], 1024)), "\"at most 1024 bytes\"");
    assert_eq!(shown(Reply::new(413).sentence(&["", ""], usize::MAX)), format!("\"{}\"", usize::MAX));
    assert_eq!(shown(Reply::new(400).text("no")), "\"no\"");
    assert_eq!(shown(Reply::new(400).content(String::from("never"))), "\"never\"");
    assert_eq!(shown(Reply::new(200)), "");
    let bodiless =
        rendered(&Reply::new(400).text("no").formatted(quoted), ConnectionHeaders { bodiless: true, ..OPEN });
    assert!(bodiless.ends_with("Content-Length: 4\r\n\r\n"), "{bodiless}");
}

/// A prepared answer equals the rendered reply byte for byte, with every connection option and every delay.
#[test]
fn prepared_replies_equal_rendered_ones() {
    fn quoted(out: &mut Vec<u8>, parts: [&[u8]; 3]) {
        out.push(b'"');
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'"');
    }
    let replies: [fn() -> Reply; 6] = [
        || Reply::new(503).text("busy\n"),
        || Reply::new(429).text("busy").formatted(quoted).content_type("application/json"),
        || {
            Reply::new(429)
                .text("x")
                .numbers(&["A-Written", "B-Written"], [0; 3])
                .headers(&[("Allow", "POST")])
        },
        || Reply::new(413).sentence(&["at most ", " bytes"], 7),
        || Reply::new(204).headers(&[("Allow", "POST")]),
        || Reply::new(404),
    ];
    for reply in replies {
        let prepared: &'static PreparedReply = Box::leak(Box::new(PreparedReply::new(&reply())));
        assert_eq!(Reply::prepared(prepared).status(), reply().status());
        for (close, keep_alive, bodiless) in
            [(false, false, false), (true, false, false), (false, true, false), (true, false, true)]
        {
            let ending = ConnectionHeaders { close, keep_alive, bodiless };
            let (plain, ready) = (rendered(&reply(), ending), rendered(&Reply::prepared(prepared), ending));
            assert_eq!(ready, plain);
            if !bodiless {
                assert!(plain.as_bytes().ends_with(prepared.content()));
            }
            for seconds in [0, 7, 12_345] {
                let plain = rendered(&reply().retry_after(seconds), ending);
                assert_eq!(rendered(&Reply::prepared(prepared).retry_after(seconds), ending), plain);
            }
        }
    }
}

/// The date is the system's, whatever was asked for before.
#[test]
fn dates_are_those_of_the_clock() {
    let seconds = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let now = coarse_ns();
    for moment in [now, now + 1, now + 5_000_000_000, now, 0] {
        // The coarse clock may still be in the second before.
        let from = seconds() - 1;
        with_date(moment, |date| assert!((from..=seconds()).any(|second| written(second) == *date)));
    }
}
