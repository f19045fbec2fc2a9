//! The source `syslog` before real senders and hostile ones: every numbered line arrives once, with what its header says; what
//! cannot be accepted is refused or counted, and memory stays where it is.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use tidegate_tests::{Gateway, Recorder, SOON, certificates, finish, free_address, until};

/// A gateway with these listeners, whose records go to the recorder as JSON lines.
fn gateway(listeners: &Value, recorder: &Recorder, more: &Value) -> Gateway {
    let sink = json!({"type": "http", "endpoints": [recorder.url()], "linger": "50ms"});
    let mut settings = json!({
        "memory": "96MiB", "sinks": {"app": sink}, "sources": {"syslog": {"listeners": listeners}},
    });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gateway::started(settings)
}

/// All records that arrived.
fn records(recorder: &Recorder) -> Vec<Value> {
    let bodies = recorder.seen().into_iter().map(|request| String::from_utf8(request.body).unwrap());
    let lines = bodies.flat_map(|body| body.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

fn texts(recorder: &Recorder) -> Vec<String> {
    let records = records(recorder);
    records.iter().map(|record| record["body"].as_str().unwrap().to_owned()).collect()
}

/// Waits until so many records have arrived, and checks that each text is there once.
fn expect(recorder: &Recorder, expected: &BTreeSet<String>) {
    until(SOON, "all lines to arrive", || texts(recorder).len() >= expected.len());
    let found = texts(recorder);
    let distinct: BTreeSet<String> = found.iter().cloned().collect();
    assert_eq!(&distinct, expected);
    assert_eq!(found.len(), expected.len(), "each line arrives once");
}

fn numbered(name: &str, count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("{name} line {number}")).collect()
}

/// Sends each line of its input with `logger`, and these arguments.
fn logger(arguments: &[&str], lines: &BTreeSet<String>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let mut command = Command::new("logger");
    command.args(arguments).arg("--file").arg(file.path());
    finish(&mut command).succeeded();
}

fn refused(gateway: &Gateway, metric: &str, reason: &str) -> f64 {
    let name = format!("tidegate_{metric}_total{{source=\"syslog\",reason=\"{reason}\"}}");
    gateway.metrics().get(&name).copied().unwrap_or_else(|| panic!("{name} is missing"))
}

/// `logger` (util-linux) in both formats over TCP in both framings, over UDP, and through a socket such as `/dev/log`.
#[test]
fn logger_is_understood() {
    let (tcp, udp) = (free_address(), free_address());
    let recorder = Recorder::start();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let listeners = json!({
        "tcp": {"address": format!("tcp://{tcp}")},
        "udp": {"address": format!("udp://{udp}")},
        "log": {"address": format!("unixgram:{}", log.display())},
    });
    let gateway = gateway(&listeners, &recorder, &json!({}));
    let (host, port) = (tcp.ip().to_string(), tcp.port().to_string());
    let udp_port = udp.port().to_string();
    let mut expected = BTreeSet::new();
    let stream = ["--server", &host, "--port", &port, "--tcp", "--tag", "real", "--priority", "local3.err"];
    let datagram = ["--server", &host, "--port", &udp_port, "--udp", "--tag", "real", "--id=77"];
    let socket = ["--socket", log.to_str().unwrap(), "--tag", "real"];
    for (name, transport, more) in [
        ("tcp 5424", &stream[..], &["--rfc5424", "--sd-id", "a@1", "--sd-param", "k=\"v\""][..]),
        ("tcp 3164", &stream[..], &["--rfc3164"]),
        ("tcp counted", &stream[..], &["--rfc5424", "--octet-count"]),
        ("udp 5424", &datagram[..], &["--rfc5424"]),
        ("udp 3164", &datagram[..], &["--rfc3164"]),
        ("socket", &socket[..], &[]),
    ] {
        // So few datagrams fit in the kernel's buffer.
        let lines = numbered(name, if name.starts_with("udp") { 80 } else { 200 });
        logger(&[transport, more].concat(), &lines);
        expected.extend(lines);
        expect(&recorder, &expected);
    }
    let records = records(&recorder);
    let of = |name: &str| {
        let text = format!("{name} line 7");
        records.iter().find(|record| record["body"] == text.as_str()).unwrap().clone()
    };
    for name in ["tcp 5424", "tcp 3164", "tcp counted"] {
        let record = of(name);
        assert_eq!(
            (&record["severity_number"], &record["severity_text"]),
            (&json!(17), &json!("err")),
            "{record}"
        );
        let attributes = &record["attributes"];
        assert_eq!(attributes["syslog.facility.code"], 19, "{record}");
        assert_eq!(attributes["network.transport"], "tcp", "{record}");
        assert_eq!(attributes["network.peer.address"], "127.0.0.1", "{record}");
        assert_eq!(record["resource"]["attributes"]["service.name"], "real", "{record}");
        assert!(record["resource"]["attributes"]["host.name"].is_string(), "{record}");
        assert!(record["time"].is_string(), "{record}");
    }
    assert_eq!(of("tcp 5424")["attributes"]["syslog.structured_data.a@1.k"], "v");
    assert_eq!(of("udp 5424")["attributes"]["process.pid"], 77);
    assert_eq!(of("udp 3164")["attributes"]["process.pid"], 77);
    assert!(of("socket")["resource"]["attributes"]["host.name"].is_null(), "a local program names no host");
    gateway.at_rest(SOON);
    gateway.books_close();
}

/// TLS with a certificate of its own, through `openssl s_client`.
#[test]
fn tls_is_served() {
    let address = free_address();
    let recorder = Recorder::start();
    let folder = tempfile::tempdir().unwrap();
    certificates::authority(folder.path(), "ca");
    certificates::sign(folder.path(), "ca", "server", "/CN=server");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = json!({"cert_file": file("server.pem"), "key_file": file("server.key")});
    let listeners = json!({"secure": {"address": format!("tls://{address}"), "tls": tls}});
    let gateway = gateway(&listeners, &recorder, &json!({}));
    let expected = numbered("tls", 500);
    let text: String = expected.iter().map(|line| format!("<13>1 - - - - - - {line}\n")).collect();
    std::fs::write(folder.path().join("lines"), text).unwrap();
    let script = format!(
        "openssl s_client -quiet -no_ign_eof -verify_return_error -CAfile ca.pem -servername localhost -connect {address} < lines"
    );
    finish(Command::new("sh").arg("-c").arg(script).current_dir(folder.path())).succeeded();
    expect(&recorder, &expected);
    gateway.books_close();
}

/// Messages sent before the gateway was asked to stop arrive; the kernel keeps the rest for the sender to know.
#[test]
fn a_stop_loses_nothing_that_was_read() {
    let address = free_address();
    let recorder = Recorder::start();
    let listeners = json!({"tcp": {"address": format!("tcp://{address}")}});
    let mut gateway = gateway(&listeners, &recorder, &json!({}));
    let expected = numbered("stop", 20_000);
    let mut stream = TcpStream::connect(address).unwrap();
    for line in &expected {
        stream.write_all(format!("<13>1 - - - - - - {line}\n").as_bytes()).unwrap();
    }
    // The end of the stream is read behind all lines.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "nothing is sent")]
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(gateway.term(), 0);
    gateway.start();
    expect(&recorder, &expected);
}

/// Half messages, wrong counts, noise, oversize messages and too many connections: each costs itself alone.
#[test]
fn hostile_connections_cost_themselves() {
    let address = free_address();
    let recorder = Recorder::start();
    let listeners = json!({"tcp": {"address": format!("tcp://{address}"), "max_message": "1KiB"}});
    let limits = json!({"limits": {"connections": 300, "body_timeout": "1s"}});
    let gateway = gateway(&listeners, &recorder, &limits);
    let connect = || TcpStream::connect(address).unwrap();
    let ended = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut byte = [0];
        matches!(stream.read(&mut byte), Ok(0) | Err(_))
    };
    let mut wrong = connect();
    wrong.write_all(b"1000000000000 <13>x").unwrap();
    assert!(ended(wrong), "a count of 10^12 ends its connection");
    assert!(refused(&gateway, "items_refused", "malformed") >= 1.0);

    let half: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect();
            stream.write_all(&[b"900 <13>".as_slice(), &[b'x'; 500]].concat()).unwrap();
            stream
        })
        .collect();
    let mut good = connect();
    good.write_all(b"<13>1 - - - - - - alone\n").unwrap();
    until(SOON, "a whole message beside half ones", || texts(&recorder) == ["alone"]);
    assert!(half.into_iter().all(ended), "half messages have a deadline");
    until(SOON, "them to be counted", || refused(&gateway, "items_refused", "timeout") >= 200.0);

    good.write_all(format!("<13>1 - - - - - - {}\n<13>1 - - - - - - next\n", "y".repeat(5000)).as_bytes())
        .unwrap();
    until(SOON, "the next message behind a long one", || texts(&recorder).iter().any(|text| text == "next"));
    let cut = texts(&recorder).into_iter().find(|text| text.starts_with('y')).unwrap();
    assert!(cut.len() < 1024 && cut.bytes().all(|byte| byte == b'y'), "{} bytes", cut.len());

    let many: Vec<TcpStream> = (0..2000).map(|_| connect()).collect();
    until(SOON, "connections to be refused", || {
        refused(&gateway, "requests_refused", "connections") >= 1000.0
    });
    drop(many);
    until(SOON, "a new connection to be served", || {
        let mut late = connect();
        let _refused = late.write_all(b"<13>1 - - - - - - late\n");
        texts(&recorder).iter().any(|text| text == "late")
    });
}

/// A flood of datagrams at a small budget: what is not accepted was dropped by the kernel, and is counted.
#[test]
fn a_flood_of_datagrams_is_counted() {
    let address: SocketAddr = free_address();
    let recorder = Recorder::start();
    let listeners = json!({"udp": {"address": format!("udp://{address}")}});
    let more = json!({"memory": "48MiB", "sinks": {"app": {"type": "blackhole"}}});
    let gateway = gateway(&listeners, &recorder, &more);
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let message = format!("<13>1 - - - - - - {}", "z".repeat(900));
    let sent = (0..100_000).filter(|_| sender.send_to(message.as_bytes(), address).is_ok()).count();
    let accepted = || {
        let metrics = gateway.metrics();
        metrics
            .iter()
            .filter(|(name, _)| name.starts_with("tidegate_items_accepted_total{source=\"syslog\""))
            .map(|(_, count)| *count)
            .sum::<f64>()
    };
    let dropped = || refused(&gateway, "items_refused", "memory");
    until(SOON, "datagrams to be accepted", || accepted() > 0.0);
    gateway.at_rest(SOON);
    // The kernel may drop datagrams before they reach the socket.
    assert!(accepted() + dropped() <= sent as f64, "{} and {} of {sent}", accepted(), dropped());
    assert!(gateway.hwm() < 48 << 20, "{} bytes", gateway.hwm());
    gateway.books_close();
}

/// A second gateway, or a foreign socket, keeps its path; the name of the setting is in the message.
#[test]
fn what_cannot_be_listened_on_is_named() {
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let _foreign = UnixDatagram::bind(&path).unwrap();
    for (address, words) in [
        (format!("udp://{}", taken.local_addr().unwrap()), "sources.syslog.listeners.one.address"),
        (format!("unixgram:{}", path.display()), "another tidegate or program"),
        (format!("tls://{}", free_address()), "there is no certificate"),
    ] {
        let listeners = json!({"one": {"address": address}});
        let mut gateway = Gateway::new(json!({"sources": {"syslog": {"listeners": listeners}}}));
        let refused = gateway.refuses_to_start();
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}
