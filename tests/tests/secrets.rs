//! Keys and passwords are shown nowhere: not by the commands, not on the log, on the pages, or with dead letters.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use tidegate_load::remote_write::Version;
use tidegate_load::{LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, drive_blocking};
use tidegate_tests::{Gateway, SOON, tidegate, until};

/// A peer that refuses every request for good, and repeats all that it was told of it.
fn parrot() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || refuse(stream));
        }
    });
    address
}

fn refuse(stream: TcpStream) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok()?;
            }
            head.push_str(&line);
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).ok()?;
        let body = format!("no handler for: {head}");
        write!(writer, "HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
}

#[test]
fn a_secret_is_shown_nowhere() {
    let address = parrot();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let write = |address| {
        json!({
            "type": "prometheus_remote_write",
            "url": format!("http://{address}/write?api_key=hunter2"),
            "headers": {"authorization": "Bearer hunter3"},
        })
    };
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sinks": {
            "parrot": write(address),
            "gone": write(gone),
            "es": {"type": "elasticsearch", "endpoints": [format!("http://{address}")], "api_key": "hunter4"},
        },
    }));
    let timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };
    let profile = LoadProfile {
        limit: RunLimit::Passes(1),
        version: Version::V1,
        on_refused: OnRefused::Retry { at_most: std::time::Duration::from_millis(50) },
        ..LoadProfile::default()
    };
    drive_blocking(&gateway.target(), &std::sync::Arc::new(SeriesModel::new(1, 10, timeline)), &profile)
        .unwrap();
    let letters = || {
        let data = gateway.data();
        tidegate(&["journal", "dead-letters", "--data", data.to_str().unwrap()]).stdout
    };
    until(SOON, "a dead letter with what the peer said", || letters().contains("no handler for"));
    let config = gateway.config();
    let config = config.to_str().unwrap();
    let mut shown = vec![letters(), tidegate(&["check", config]).stdout];
    shown.push(tidegate(&["plan", "--config", config]).stdout);
    for page in ["/status", "/status.json", "/metrics", "/health", "/ready", "/"] {
        shown.push(gateway.page(page).text());
    }
    shown.push(gateway.process().stdout());
    shown.push(gateway.log());
    assert!(shown[0].contains("***") && shown.iter().any(|text| text.contains("/write?***")), "{shown:#?}");
    for text in shown {
        for secret in ["hunter2", "hunter3", "hunter4"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

/// A key over plain `http` to another machine is refused before anything starts.
#[test]
fn a_key_does_not_leave_the_machine_in_the_clear() {
    let gateway = Gateway::new(json!({}));
    let check = |insecure: bool| {
        gateway.configure(json!({"sinks": {"es": {
            "type": "elasticsearch",
            "endpoints": ["http://192.0.2.1:9200"],
            "api_key": "hunter2",
            "insecure": insecure,
        }}}));
        tidegate(&["check", gateway.config().to_str().unwrap()])
    };
    let refused = check(false);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("unencrypted") && refused.stderr.contains("insecure: true"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("hunter2"));
    check(true).succeeded();
}
