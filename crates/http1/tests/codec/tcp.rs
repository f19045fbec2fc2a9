//! The codec on real sockets: what clients see.

use crate::record::{Record, server, statuses};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use tidegate_http1::{ConnectionEnd, Reply, Server, Settings, reject, reply_and_close};

/// Serves one connection on a thread, and gives its client.
fn connect(server: &Arc<Server<Record>>) -> (TcpStream, thread::JoinHandle<ConnectionEnd>) {
    let (client, served) = pair();
    let serve = on_runtime(served, {
        let server = server.clone();
        move |stream, peer| server.serve(stream, peer)
    });
    (client, serve)
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    (client, listener.accept().unwrap().0)
}

fn on_runtime<F: Future<Output = ConnectionEnd>>(
    stream: TcpStream,
    serve: impl FnOnce(tokio::net::TcpStream, std::net::SocketAddr) -> F + Send + 'static,
) -> thread::JoinHandle<ConnectionEnd> {
    thread::spawn(move || {
        let peer = stream.peer_addr().unwrap();
        stream.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { serve(tokio::net::TcpStream::from_std(stream).unwrap(), peer).await })
    })
}

fn read_answer(client: &mut TcpStream) -> u16 {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    statuses(&answer)[0]
}

fn read_to_close(client: &mut TcpStream) -> Vec<u16> {
    let (mut answers, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match client.read(&mut piece) {
            Ok(0) => return statuses(&answers),
            Ok(read) => answers.extend_from_slice(&piece[..read]),
            Err(error) => panic!("{error} after {} bytes", answers.len()),
        }
    }
}

/// Requests on one connection are answered one after the other, and the bodies arrive whole.
#[test]
fn an_open_connection_carries_many_requests() {
    let server = server(Settings::default());
    let (mut client, serving) = connect(&server);
    for length in [0, 1, 100, 5_000, 300_000] {
        let body = vec![b'b'; length];
        write!(client, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n").unwrap();
        client.write_all(&body).unwrap();
        assert_eq!(read_answer(&mut client), 204);
        assert_eq!(server.service().seen.lock().unwrap().pop().unwrap().body, body);
    }
    drop(client);
    assert_eq!(serving.join().unwrap(), ConnectionEnd::ByClient);
}

/// A client that waits for it is told to continue, and one that may not continue is told the reason.
#[test]
fn expectations_are_answered_before_the_body() {
    let server = server(Settings::default());
    let (mut client, serving) = connect(&server);
    let head = "HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    write!(client, "POST /x {head}").unwrap();
    assert_eq!(read_answer(&mut client), 100);
    client.write_all(b"hello").unwrap();
    assert_eq!(read_answer(&mut client), 204);
    write!(client, "POST /refuse {head}").unwrap();
    assert_eq!(read_to_close(&mut client), [401]);
    drop(client);
    assert_eq!(serving.join().unwrap(), ConnectionEnd::Refused);
}

/// Every refusal is an answer: a client in the middle of a body that is too large can read why.
#[test]
fn a_refused_body_does_not_hide_the_answer() {
    let server = server(Settings::default());
    let (mut client, serving) = connect(&server);
    write!(client, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n").unwrap();
    // All of it before a look at the answer, as many clients do.
    client.write_all(&vec![0; 9_000_000]).unwrap();
    assert_eq!(read_to_close(&mut client), [413]);
    drop(client);
    assert_eq!(serving.join().unwrap(), ConnectionEnd::Refused);
}

/// The same where the service refuses, where the body is chunked, and where the refused one was all but small.
#[test]
fn a_request_refused_early_is_drained() {
    let server = server(Settings::default());
    for (head, status) in [
        ("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n", 401),
        ("POST /refuse HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 401),
        ("POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n895440\r\n", 413),
        ("BAD\r\n\r\n", 400),
    ] {
        let (mut client, serving) = connect(&server);
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&vec![0; 9_000_000]).unwrap();
        assert_eq!(read_to_close(&mut client), [status], "{head}");
        drop(client);
        assert_eq!(serving.join().unwrap(), ConnectionEnd::Refused);
    }
}

/// A shutdown ends idle connections, and finishes requests in progress first.
#[test]
fn shutdown_answers_what_is_in_progress() {
    let shutdown = tidegate_http1::Shutdown::new();
    let arena = tidegate_arena::Arena::new(1 << 20, tidegate_arena::Floors::NONE, 1 << 20, 8, 8).unwrap();
    let server = Server::new(Record::default(), Settings::default(), arena, shutdown.clone());
    let (idle, idle_serving) = connect(&server);
    let (mut busy, busy_serving) = connect(&server);
    write!(busy, "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut busy), 100);
    shutdown.begin();
    assert_eq!(idle_serving.join().unwrap(), ConnectionEnd::Shutdown);
    drop(idle);
    busy.write_all(b"hello").unwrap();
    assert_eq!(read_to_close(&mut busy), [204]);
    drop(busy);
    assert_eq!(busy_serving.join().unwrap(), ConnectionEnd::Answered);
}

/// A connection that is one too many gets an answer too.
#[test]
fn connections_beyond_the_limit_are_answered() {
    let busy = || Reply::new(503).text("too many connections\n").retry_after(3);
    let (mut client, served) = pair();
    client.write_all(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    let serving =
        on_runtime(
            served,
            move |stream, _| async move { reject(stream, busy(), &Settings::default()).await },
        );
    assert_eq!(read_to_close(&mut client), [503]);
    drop(client);
    assert_eq!(serving.join().unwrap(), ConnectionEnd::Refused);

    let (mut client, served) = pair();
    reply_and_close(served, &busy()).unwrap();
    assert_eq!(read_to_close(&mut client), [503]);
}
