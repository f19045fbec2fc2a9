//! Content that is made while it is sent.

use crate::pipe::pipe;
use crate::record::{Record, answers, peer, run, server};
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{ConnectionEnd, Server, Settings, Shutdown};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

/// Content without a length goes on until the server shuts down; neither its length nor another request follows.
#[test]
fn a_stream_without_end_ends_with_the_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    client.send("GET /events HTTP/1.1\r\nHost: h\r\n\r\nGET /text HTTP/1.1\r\nHost: h\r\n\r\n");
    let shutdown = Shutdown::new();
    let arena = Arena::new(16 << 20, Floors::NONE, 2 << 20, 16, 16).unwrap();
    let server = Server::new(Record::default(), Settings::default(), arena, shutdown.clone());
    let ended = runtime.unwrap().block_on(async {
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            shutdown.begin();
        };
        tokio::join!(server.serve(pipe, peer()), stopping).0
    });
    let sent = String::from_utf8(client.answers()).unwrap();
    let (head, events) = sent.split_once("\r\n\r\n").unwrap();
    assert_eq!((ended, events), (ConnectionEnd::Answered, "data: event\n\ndata: event\n\n"));
    assert!(head.contains("\r\nConnection: close") && !head.contains("Content-Length"), "{head}");
}

/// A request for the head of it alone gets that.
#[test]
fn the_head_of_a_stream_without_end_has_no_length() {
    let sent = answers(["HEAD /events HTTP/1.1\r\nHost: h\r\n\r\n"]);
    assert!(sent.ends_with("\r\n\r\n") && !sent.contains("Content-Length"), "{sent}");
}

/// A client that leaves is noticed though nothing is sent meanwhile.
#[tokio::test]
async fn a_client_that_leaves_ends_a_stream_without_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, peer) = listener.accept().await.unwrap();
    let server: Arc<Server<Record>> = server(Settings::default());
    let watching = async {
        client.write_all(b"GET /events HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"event\n\ndata: event\n\n") {
            assert_ne!(client.read_buf(&mut seen).await.unwrap(), 0);
        }
        drop(client);
    };
    let (ended, ()) = tokio::join!(server.serve(stream, peer), watching);
    assert_eq!(ended, ConnectionEnd::Answered);
}
