//! The examples run, and what they say arrives.

use crate::oracle::{any, attribute, text};
use crate::peer::Peer;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// An example that was built with the tests, beside them.
fn example(name: &str, peer: &Peer) -> Command {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(
        program.exists(),
        "examples are built by `cargo test` without `--test`, or by `cargo build --examples`"
    );
    let mut command = Command::new(program);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", peer.url());
    command
}

#[test]
fn the_command_line_tool_reports_files_and_mistakes() {
    let peer = Peer::new();
    let run =
        example("command_line", &peer).args([file!(), "no such file"]).current_dir("../..").output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let spans = peer.spans();
    let count = spans.iter().filter(|span| span.name == "count").collect::<Vec<_>>();
    assert_eq!((spans.len(), count.len()), (3, 2));
    assert!(
        count.iter().any(|span| matches!(attribute(&span.attributes, "words"), Some(any::Value::Int(100..))))
    );
    let whole = spans.iter().find(|span| span.name == "count-words").unwrap();
    assert!(count.iter().all(|span| span.parent_span_id == whole.span_id && span.trace_id == whole.trace_id));
    assert_eq!(peer.logs().len(), 1);
}

#[test]
fn the_thread_pool_reports_all_its_jobs() {
    let peer = Peer::new();
    let run = example("thread_pool", &peer).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "201 sent, 0 dropped, 0 left\n");
    assert_eq!((peer.spans().len(), peer.metrics().len()), (200, 1));
}

#[test]
fn the_axum_service_continues_the_trace_of_its_caller() {
    let peer = Peer::new();
    let mut service = example("axum_service", &peer)
        .arg("127.0.0.1:0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(service.stdout.take().unwrap());
    let mut address = String::new();
    output.read_line(&mut address).unwrap();
    let mut stream = TcpStream::connect(address.trim().strip_prefix("http://").unwrap()).unwrap();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    write!(
        stream,
        "GET /hello/you HTTP/1.1\r\nHost: x\r\nConnection: close\r\ntraceparent: {parent}\r\n\r\n"
    )
    .unwrap();
    // A few hundred bytes of a test's own service.
    #[allow(clippy::disallowed_methods, reason = "a test's own bodies are small")]
    let answer = {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(answer.ends_with("Hello, you!\n"), "{answer}");
    drop(service.stdin.take());
    let mut last = String::new();
    output.read_line(&mut last).unwrap();
    assert!(service.wait().unwrap().success());
    assert_eq!(last, "0 events left\n");

    let (spans, logs) = (peer.spans(), peer.logs());
    let request = spans.iter().find(|span| span.name == "GET /hello/{name}").unwrap();
    assert_eq!((request.kind, request.trace_id[..2].to_vec()), (2, vec![0x0a, 0xf7]));
    assert_eq!(attribute(&request.attributes, "http.response.status_code"), Some(&any::Value::Int(200)));
    let greeting = logs.iter().find(|log| text(&log.attributes, "name") == Some("you")).unwrap();
    assert_eq!(greeting.span_id, request.span_id);
}
