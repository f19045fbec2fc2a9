//! Debian's syslog daemons send to the source `syslog`: every line of a file arrives once over every transport, although the
//! gateway is stopped and killed in between.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tidegate_tests::{Debian, Gateway, Program, Recorder, certificates, free_address, until};

/// How long a part of the lines may take, on a busy machine: the daemons wait a second before they connect again.
const ARRIVED: Duration = Duration::from_secs(120);
/// The lines of a part, few enough for the kernel's buffer of datagrams.
const PART: usize = 80;

/// How a daemon sends a file. The name is the program's in the messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Counted,
    Lines,
    Tls,
    Datagrams,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Counted => "counted",
            Way::Lines => "lines",
            Way::Tls => "tls",
            Way::Datagrams => "datagrams",
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Way::Counted | Way::Lines => "tcp",
            Way::Tls => "tls",
            Way::Datagrams => "udp",
        }
    }
}

fn text(way: Way, number: usize) -> String {
    format!("{} line {number} é \"quoted\" <13>1 [x]", way.name())
}

/// A gateway that a daemon sends to in several ways.
struct Flow {
    gateway: Gateway,
    recorder: Recorder,
    ways: Vec<(Way, SocketAddr)>,
    /// Lines of each way so far.
    written: usize,
}

impl Flow {
    fn start(ways: &[Way]) -> Flow {
        let gateway = Gateway::new(json!({}));
        let folder = gateway.folder().to_owned();
        certificates::authority(&folder, "ca");
        certificates::sign(&folder, "ca", "server", "/CN=127.0.0.1");
        let recorder = Recorder::start();
        let ways: Vec<(Way, SocketAddr)> = ways.iter().map(|way| (*way, free_address())).collect();
        let listener = |(way, address): &(Way, SocketAddr)| {
            let mut listener = json!({"address": format!("{}://{address}", way.scheme())});
            if *way == Way::Tls {
                listener["tls"] =
                    json!({"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")});
            }
            (way.name().to_owned(), listener)
        };
        let listeners: serde_json::Map<String, Value> = ways.iter().map(listener).collect();
        gateway.configure(json!({
            "memory": "64MiB",
            "sources": {"syslog": {"listeners": listeners}},
            "sinks": {"app": {"type": "http", "endpoints": [recorder.url()], "linger": "50ms"}},
        }));
        let mut flow = Flow { gateway, recorder, ways, written: 0 };
        flow.gateway.start();
        flow
    }

    fn file(&self, way: Way) -> PathBuf {
        self.gateway.folder().join(format!("{}.log", way.name()))
    }

    /// After a restart of the gateway syslog-ng finds out that a connection through TLS has ended when it writes to it, and what it
    /// writes then is lost: so it gets a line for that.
    fn knock(&self, daemon: &mut Program) {
        let Some((way, address)) = self.ways.iter().find(|(way, _)| *way == Way::Tls) else { return };
        let connected = "Syslog connection established";
        let of_way = |log: String| {
            let place = format!("AF_INET({address})");
            log.lines().filter(|line| line.contains(connected) && line.contains(&place)).count()
        };
        let before = of_way(daemon.stderr());
        self.append(*way, "knock\n");
        until(ARRIVED, "the daemon to connect again", || of_way(daemon.stderr()) > before);
    }

    fn append(&self, way: Way, lines: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.file(way)).unwrap();
        file.write_all(lines.as_bytes()).unwrap();
    }

    /// Sends a part of the lines, and waits until all lines have arrived.
    fn send(&mut self, daemon: &mut Program) {
        for (way, _) in &self.ways {
            let lines: String =
                (self.written..self.written + PART).map(|number| text(*way, number) + "\n").collect();
            self.append(*way, &lines);
        }
        self.written += PART;
        let expected = self.expected();
        until(ARRIVED, "every line to arrive", || {
            assert_eq!(daemon.ended(), None, "the daemon ended: {}", daemon.stderr());
            self.arrived().values().sum::<usize>() >= expected.len()
        });
        self.gateway.at_rest(ARRIVED);
        assert_eq!(self.arrived(), expected);
    }

    /// Every line so far, once.
    fn expected(&self) -> BTreeMap<(String, String, String), usize> {
        let lines = self.ways.iter().flat_map(|(way, _)| {
            let transport = if way.scheme() == "udp" { "udp" } else { "tcp" };
            (0..self.written)
                .map(|number| ((way.name().to_owned(), transport.to_owned(), text(*way, number)), 1))
        });
        lines.collect()
    }

    /// How often each line has arrived, with its program and its transport.
    fn arrived(&self) -> BTreeMap<(String, String, String), usize> {
        let mut arrived = BTreeMap::new();
        for request in self.recorder.seen() {
            for line in String::from_utf8(request.body).unwrap().lines() {
                let record: Value = serde_json::from_str(line).unwrap();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                if record["body"] == "knock" {
                    continue;
                }
                let program = text(&record["resource"]["attributes"]["service.name"]);
                let transport = text(&record["attributes"]["network.transport"]);
                *arrived.entry((program, transport, text(&record["body"]))).or_default() += 1;
            }
        }
        arrived
    }
}

/// A daemon sends through a stop and a kill of the gateway.
fn sends(ways: &[Way], command: impl FnOnce(&Flow, &Path) -> Command) {
    let mut flow = Flow::start(ways);
    let state = flow.gateway.folder().join("state");
    std::fs::create_dir(&state).unwrap();
    for (way, _) in &flow.ways {
        std::fs::write(flow.file(*way), "").unwrap();
    }
    let command = command(&flow, &state);
    let mut daemon = Program::start("daemon", command, flow.gateway.folder());
    flow.send(&mut daemon);
    assert_eq!(flow.gateway.term(), 0);
    flow.gateway.start();
    flow.knock(&mut daemon);
    flow.send(&mut daemon);
    flow.gateway.kill9();
    flow.gateway.start();
    flow.knock(&mut daemon);
    flow.send(&mut daemon);
    flow.gateway.books_close();
}

/// Without TLS, which is in a package of its own.
#[test]
fn rsyslog_sends_every_line_once() {
    let Some(debian) = Debian::with("usr/sbin/rsyslogd") else { return };
    sends(&[Way::Counted, Way::Lines, Way::Datagrams], |flow, state| {
        let mut settings =
            format!("global(workDirectory=\"{}\")\nmodule(load=\"imfile\")\n", state.display());
        for (way, address) in &flow.ways {
            let how = match way {
                Way::Counted => {
                    r#"protocol="tcp" tcp_framing="octet-counted" template="RSYSLOG_SyslogProtocol23Format""#
                }
                Way::Lines => r#"protocol="tcp" template="RSYSLOG_ForwardFormat""#,
                Way::Tls | Way::Datagrams => r#"protocol="udp" template="RSYSLOG_SyslogProtocol23Format""#,
            };
            settings += &format!(
                r#"ruleset(name="{name}") {{
                  action(type="omfwd" target="{}" port="{}" {how}
                         action.resumeRetryCount="-1" action.resumeInterval="1")
                }}
                input(type="imfile" file="{}" tag="{name}:" ruleset="{name}")
                "#,
                address.ip(),
                address.port(),
                flow.file(*way).display(),
                name = way.name(),
            );
        }
        let config = state.join("rsyslog.conf");
        std::fs::write(&config, settings).unwrap();
        debian.rsyslog(&config, state)
    });
}

#[test]
fn syslog_ng_sends_every_line_once() {
    let Some(debian) = Debian::with("usr/sbin/syslog-ng") else { return };
    sends(&[Way::Counted, Way::Lines, Way::Tls, Way::Datagrams], |flow, state| {
        let mut settings = "@version: 3.35\noptions { time-reopen(1); };\n".to_owned();
        for (way, address) in &flow.ways {
            let place = format!("\"{}\" port({})", address.ip(), address.port());
            let destination = match way {
                Way::Counted => format!("syslog({place} transport(\"tcp\"))"),
                Way::Lines => format!("network({place} transport(\"tcp\"))"),
                Way::Tls => format!(
                    "syslog({place} transport(\"tls\") tls(ca-file(\"{}\") peer-verify(required-trusted)))",
                    flow.gateway.folder().join("ca.pem").display()
                ),
                Way::Datagrams => format!("network({place} transport(\"udp\") flags(syslog-protocol))"),
            };
            settings += &format!(
                "source s_{name} {{ file(\"{file}\" follow-freq(0.2) flags(no-parse) program-override(\"{name}\")); }};\n\
                 destination d_{name} {{ {destination}; }};\n\
                 log {{ source(s_{name}); destination(d_{name}); }};\n",
                name = way.name(),
                file = flow.file(*way).display(),
            );
        }
        let config = state.join("syslog-ng.conf");
        std::fs::write(&config, settings).unwrap();
        debian.syslog_ng(&config, state)
    });
}
