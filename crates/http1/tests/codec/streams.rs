//! Content that is made while it is sent.

use crate::pipe::pipe;
use crate::record::{answers, peer, run, server};
use std::time::Duration;
use tidegate_http1::{ConnectionEnd, Settings};

/// All of it comes, and the connection goes on; a request for the head alone gets that.
#[test]
fn a_stream_is_sent_whole() {
    let sent = answers([
        "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
        "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /text HTTP/1.1\r\nHost: h\r\n\r\n",
    ]);
    let parts: Vec<&str> = sent.split("\r\n\r\n").collect();
    assert!(parts[0].contains("\r\nContent-Length: 100000"), "{}", parts[0]);
    assert_eq!(parts[1].split("HTTP/1.1").next().unwrap(), "z".repeat(100_000));
    assert!(parts[1].ends_with("\r\nContent-Length: 100000"), "{:.300}", parts[1].trim_matches('z'));
    assert!(parts[3].starts_with("some text\n"), "{}", parts[3]);
}

/// A part says which one it is.
#[test]
fn a_part_has_its_range() {
    let sent = answers(["GET /part HTTP/1.1\r\nHost: h\r\n\r\n"]);
    assert!(sent.starts_with("HTTP/1.1 206 Partial Content\r\n"), "{sent}");
    assert!(sent.contains("\r\nContent-Range: bytes 5-14/20\r\n"), "{sent}");
    assert!(sent.ends_with("\r\n\r\nzzzzzzzzzz"), "{sent}");
}

/// A stream that ends too early ends the connection, so that its client does not take it for whole.
#[test]
fn a_stream_that_breaks_ends_the_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    client.send("GET /broken HTTP/1.1\r\nHost: h\r\n\r\nGET /text HTTP/1.1\r\nHost: h\r\n\r\n");
    let ended = runtime.unwrap().block_on(server(Settings::default()).serve(pipe, peer()));
    let sent = String::from_utf8(client.answers()).unwrap();
    assert_eq!(ended, ConnectionEnd::Lost);
    assert!(sent.ends_with("z") && !sent.contains("some text"), "{:.300}", sent);
}

/// A client that takes nothing is given up after the time for a write, for each piece anew.
#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    client.take_at_most(1500);
    client.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    let server = server(Settings::default());
    let lasted = runtime.unwrap().block_on(async {
        let begun = tokio::time::Instant::now();
        let taking = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            client.take_at_most(2500);
        };
        let (ended, ()) = tokio::join!(server.serve(pipe, peer()), taking);
        assert_eq!(ended, ConnectionEnd::Lost);
        begun.elapsed()
    });
    assert!((17..=19).contains(&lasted.as_secs()), "{lasted:?}");
}

/// Nothing of a stream is left behind in the books.
#[test]
fn streams_count_as_answers() {
    let run = run(["GET /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"]);
    assert_eq!((run.ended, run.statuses), (ConnectionEnd::Answered, vec![200]));
}
