//! Peers that really fail in each of the ways that are told apart.

use super::*;
use crate::finding::Severity;
use crate::probe::{self, PEER_LIMIT};
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_journal::Signal;
use tidegate_sinks::{
    Compression, Naming, Otlp, OtlpSettings, Prefer, Probe, RemoteWrite, RemoteWriteSettings,
    SplunkHecSettings, Tls, Translation, Transport,
};

/// Serves each connection with `serve`.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Reads a head, and answers with this.
fn answer(mut stream: impl Read + Write, answer: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    // A handshake of TLS begins with a byte that no request begins with.
    while !head.ends_with(b"\r\n\r\n")
        && head.first() != Some(&0x16)
        && stream.read(&mut byte).is_ok_and(|read| read > 0)
    {
        head.push(byte[0]);
    }
    let answer = answer.replace("{head}", &String::from_utf8_lossy(&head));
    let _ = stream.write_all(answer.as_bytes());
    let _ = stream.flush();
}

fn http(status: &'static str, body: &'static str) -> SocketAddr {
    server(move |stream| {
        answer(stream, &format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}"));
    })
}

fn remote_write(url: &str, tls: Tls) -> Probe {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer hunter2-token"));
    let settings = RemoteWriteSettings {
        endpoints: vec![url.parse::<Uri>().unwrap()],
        tls,
        headers,
        tenant_header: None,
        prefer: Prefer::V1,
        lanes: 1,
        max_bytes: 1 << 20,
        max_items: 100,
        linger: Duration::ZERO,
        timeout: Duration::from_secs(5),
        backoff: (Duration::from_secs(1), Duration::from_secs(2)),
        otlp: Translation {
            naming: Naming::NoTranslation,
            promote: Vec::new(),
            scope_labels: false,
            target_info: false,
            delta_series: 0,
        },
    };
    RemoteWrite::probes(&settings).remove(0)
}

fn otlp(url: &str, transport: Transport) -> Probe {
    let settings = OtlpSettings {
        endpoints: vec![url.parse::<Uri>().unwrap()],
        transport,
        splunk_hec: SplunkHecSettings::default(),
        compression: Compression::None,
        join_members: false,
        headers: HeaderMap::new(),
        tenant_header: None,
        tls: Tls::default(),
        max_request_bytes: 1 << 20,
        max_in_flight: 1,
        linger: Duration::ZERO,
        timeout: Duration::from_secs(5),
        backoff: (Duration::from_secs(1), Duration::from_secs(2)),
        labels: Arc::default(),
    };
    Otlp::probes(&settings, Signal::Logs).unwrap().remove(0)
}

/// The finding on what is asked so.
fn found_within(probe: Probe, kind: &'static str, limit: Duration) -> Finding {
    let peer = Peer { sink: "up".into(), kind, probe };
    let report = probe::ask_all(&[&peer], limit).remove(0);
    judge(&peer, &report)
}

fn found(probe: Probe) -> Finding {
    found_within(probe, "prometheus_remote_write", PEER_LIMIT)
}

fn write_to(address: SocketAddr) -> Probe {
    remote_write(&format!("http://{address}/write?key=hunter3-key"), Tls::default())
}

#[track_caller]
fn is(finding: &Finding, severity: Severity, what: &str, remedy: &str) {
    assert_eq!(finding.severity, severity, "{finding:?}");
    assert!(finding.what.contains(what), "{finding:?}");
    assert!(finding.remedy.contains(remedy), "{finding:?}");
    assert!(!format!("{finding:?}").contains("hunter"), "{finding:?}");
}

#[test]
fn a_peer_that_takes_requests_is_fine() {
    is(&found(write_to(http("204 No Content", ""))), Severity::Fine, "takes requests", "");
}

#[test]
fn refusals_are_told_with_what_the_peer_said_and_no_secret() {
    for (status, severity, remedy) in [
        ("401 Unauthorized", Severity::Broken, "credentials"),
        ("403 Forbidden", Severity::Broken, "right to write"),
        ("404 Not Found", Severity::Broken, "path"),
        ("301 Moved Permanently", Severity::Broken, "redirects to"),
        ("429 Too Many Requests", Severity::AtRisk, "limit"),
        ("503 Service Unavailable", Severity::AtRisk, "its log"),
    ] {
        let finding = found(write_to(http(status, "no handler for {head} and more: token hunter2-token")));
        is(&finding, severity, "http://127.0.0.1:", remedy);
        assert!(finding.evidence.contains(&status[..3]), "{finding:?}");
        assert!(finding.quote.contains("no handler for POST /write?***"), "{finding:?}");
        assert!(finding.quote.len() <= 310, "{finding:?}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_told() {
    let finding = found(remote_write("http://nowhere.invalid/write", Tls::default()));
    is(&finding, Severity::Broken, "does not resolve", "name server");
    assert!(finding.evidence.contains("looking up the name"), "{finding:?}");
}

#[test]
fn a_port_where_nobody_listens_is_told() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    is(&found(write_to(nobody)), Severity::Broken, "cannot be connected to", "nothing listens");
}

#[test]
fn a_black_hole_has_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let probe = write_to(listener.local_addr().unwrap());
    let finding = found_within(probe, "prometheus_remote_write", Duration::from_millis(300));
    is(&finding, Severity::Broken, "does not answer", "accepts connections");
    assert!(finding.evidence.contains("300ms"), "{finding:?}");
}

/// The failure is told even if the peer, which breaks off once, is silent while the doctor tries to find out what it is.
#[test]
fn a_failure_is_not_lost_for_a_guess() {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let address = server(move |mut stream| {
        if is_first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            answer(&mut stream, "SSH-2.0 here\r\n\r\n");
            return;
        }
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    });
    let finding = found_within(write_to(address), "prometheus_remote_write", Duration::from_millis(500));
    assert!(!finding.evidence.contains("no answer within"), "{finding:?}");
    assert!(finding.evidence.contains("the request: "), "{finding:?}");
}

/// The words of a proxy are a quote.
#[test]
fn words_of_a_proxy_are_no_evidence() {
    let peer = Peer { sink: "up".into(), kind: "otlp", probe: otlp("https://h", Transport::Http) };
    let failure = probe::Failure {
        said: "HTTP/1.1 403 telemetry".to_owned(),
        ..probe::Failure::at(Step::Proxy, "the proxy refuses".to_owned())
    };
    let (outcome, path) = (Outcome::Failed(failure), probe::NetworkPath::default());
    let finding = judge(&peer, &PeerReport { outcome, took: Duration::ZERO, path });
    assert!(
        finding.quote.contains("403 telemetry") && !finding.evidence.contains("telemetry"),
        "{finding:?}"
    );
}

/// A pipe in the place of a file that nobody writes: the probe ends.
#[test]
fn a_pipe_in_the_place_of_a_certificate_holds_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("ca.pem");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let tls = Tls { ca: Some(pipe), ..Tls::default() };
    let probe = remote_write("https://127.0.0.1:1/write", tls);
    let finding = found_within(probe, "prometheus_remote_write", Duration::from_millis(300));
    is(&finding, Severity::Broken, "TLS to", "");
}

/// A server with TLS, and the file with the authority that its certificate is of.
fn secure(folder: &Path, name: &str) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    std::fs::write(folder.join("ca.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    server(move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        answer(StreamOwned::new(session, stream), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    })
}

#[test]
fn tls_is_tried_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let address = secure(dir.path(), "localhost");
    let url = format!("https://localhost:{}/write", address.port());
    let trusting = Tls { ca: Some(dir.path().join("ca.pem")), ..Tls::default() };
    is(&found(remote_write(&url, trusting.clone())), Severity::Fine, "takes requests", "");
    let finding = found(remote_write(&url, Tls::default()));
    is(&finding, Severity::Broken, "TLS to https://localhost", "tls.ca_file");
    assert!(finding.evidence.contains("the TLS handshake"), "{finding:?}");
    let other = Tls { server_name: Some("other.example".into()), ..trusting };
    is(&found(remote_write(&url, other)), Severity::Broken, "TLS to", "server_name");
    let missing = Tls { ca: Some(dir.path().join("none.pem")), ..Tls::default() };
    is(&found(remote_write(&url, missing)), Severity::Broken, "TLS to", "PEM");
}

#[test]
fn tls_and_plain_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let plain = http("200 OK", "");
    let finding = found(remote_write(&format!("https://{plain}/write"), Tls::default()));
    is(&finding, Severity::Broken, "TLS to", "http://");
    let secure = secure(dir.path(), "localhost");
    is(&found(write_to(secure)), Severity::Broken, "does not answer", "https://");
}

#[test]
fn grpc_and_http_are_told_apart() {
    let plain = server(|stream| {
        answer(stream, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    });
    let finding = found_within(otlp(&format!("http://{plain}"), Transport::Grpc), "otlp", PEER_LIMIT);
    is(&finding, Severity::Broken, "does not answer", "protocol: http");
    // What a server of HTTP/2 begins with: empty settings.
    let grpc = server(|mut stream| {
        let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.read(&mut [0; 512]);
    });
    let finding = found_within(otlp(&format!("http://{grpc}"), Transport::Http), "otlp", PEER_LIMIT);
    is(&finding, Severity::Broken, "does not answer", "protocol: grpc");
}

#[test]
fn refusals_of_nothing_are_fine() {
    let loki = http("422 Unprocessable Entity", "error at least one valid stream is required for ingestion");
    is(
        &found_within(otlp(&format!("http://{loki}"), Transport::Loki), "loki", PEER_LIMIT),
        Severity::Fine,
        "takes requests",
        "",
    );
    let splunk = http("400 Bad Request", r#"{"text":"No data","code":5}"#);
    is(
        &found_within(otlp(&format!("http://{splunk}"), Transport::SplunkHec), "splunk_hec", PEER_LIMIT),
        Severity::Fine,
        "takes requests",
        "",
    );
    let splunk = http("403 Forbidden", r#"{"text":"Invalid token","code":4}"#);
    is(
        &found_within(otlp(&format!("http://{splunk}"), Transport::SplunkHec), "splunk_hec", PEER_LIMIT),
        Severity::Broken,
        "credentials",
        "right",
    );
}

#[test]
fn offline_is_said_loudly() {
    let setup = Setup {
        peers: vec![
            Ok(Peer { sink: "up".into(), kind: "otlp", probe: otlp("http://h", Transport::Http) }),
            Err("`sinks.x`: no".into()),
        ],
        ..crate::checks::journal::tests::setup(Path::new("/d"), &[])
    };
    let findings = check(&setup, &[], true, SystemTime::now());
    assert_eq!(findings[0].severity, Severity::Broken, "{findings:?}");
    assert!(findings[1].what.contains("NO PEER WAS ASKED"), "{findings:?}");
}

#[test]
fn endpoints_that_are_not_asked_are_counted() {
    let setup = Setup {
        left_out: vec![("up".to_owned(), 7)],
        ..crate::checks::journal::tests::setup(Path::new("/d"), &[])
    };
    let findings = check(&setup, &[], false, SystemTime::now());
    assert_eq!(findings[0].what, "`sinks.up`: 7 of its endpoints were not asked");
}
