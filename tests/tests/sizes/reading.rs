//! The same for sources that read or listen by themselves: each record of a file, of syslog or of the forward protocol is accepted
//! or counted as refused, and what is accepted is delivered.

use crate::receiver::Receiver;
use crate::{Before, DELIVERED, KINDS, MIB, SIZES, gateway_with, nothing_is_lost};
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use tidegate_tests::{Gateway, free_address, until};

/// About how long a small record is, in bytes.
const SMALL: usize = 200;
/// No message of the forward protocol is longer.
const MOST_FORWARD: usize = 16 * MIB;

/// How the bytes are divided into records.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Many,
    One,
    /// One, of characters that JSON writes as six bytes each.
    Control,
}

impl Shape {
    /// Each set of texts begins in its own way, so that no file is a copy of another.
    fn texts(self, size: usize) -> Vec<String> {
        let begin = format!("{self:?} {size} ");
        let filled = |filler: char| format!("{begin}{}", String::from(filler).repeat(size));
        match self {
            Shape::Many => {
                let count = (size / SMALL).max(1);
                (0..count).map(|number| format!("{begin}{number:0>SMALL$}")).collect()
            }
            Shape::One => vec![filled('x')],
            Shape::Control => vec![filled('\u{1}')],
        }
    }
}

/// The sources of one gateway.
struct Sources {
    folder: PathBuf,
    syslog: SocketAddr,
    forward: SocketAddr,
}

impl Sources {
    /// Gives these records to every source, and waits until each is accepted, or refused and counted.
    fn send(&self, gateway: &Gateway, name: &str, texts: &[String]) {
        let before = ["file", "syslog", "fluent_forward"].map(|source| settled(gateway, source));
        self.file(name, texts);
        self.syslog(texts);
        let is_acknowledged = self.forward(texts);
        // A message that is too long is one refusal.
        let forwarded = if is_acknowledged { texts.len() } else { 1 };
        let sent = [("file", texts.len()), ("syslog", texts.len()), ("fluent_forward", forwarded)];
        for ((source, count), before) in sent.into_iter().zip(before) {
            until(DELIVERED, &format!("{source} to settle {count} records of {name}"), || {
                settled(gateway, source) >= before + count as f64
            });
            assert_eq!(settled(gateway, source), before + count as f64, "{source}, {name}");
        }
    }

    fn file(&self, name: &str, texts: &[String]) {
        let written = self.folder.join("written");
        fs::write(&written, texts.join("\n") + "\n").unwrap();
        fs::rename(written, self.folder.join(format!("{name}.log"))).unwrap();
    }

    fn syslog(&self, texts: &[String]) {
        let mut stream = TcpStream::connect(self.syslog).unwrap();
        let mut frames = Vec::new();
        for text in texts {
            let message = format!("<13>1 - - - - - - {text}");
            write!(frames, "{} {message}", message.len()).unwrap();
        }
        stream.write_all(&frames).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // It is closed when everything is read.
        stream.set_read_timeout(Some(DELIVERED)).unwrap();
        let end = stream.read(&mut [0]).or_else(|error| match error.kind() {
            ErrorKind::ConnectionReset => Ok(0),
            _ => Err(error),
        });
        assert_eq!(end.ok(), Some(0), "the listener of syslog did not close the connection");
    }

    /// One message; whether it was acknowledged.
    fn forward(&self, texts: &[String]) -> bool {
        let mut stream = TcpStream::connect(self.forward).unwrap();
        stream.set_read_timeout(Some(DELIVERED)).unwrap();
        // [tag, [[time, {"log": text}], ...], {"chunk": "c"}]
        let mut message = vec![0x93, 0xa1, b't', 0xdd];
        message.extend(u32::try_from(texts.len()).unwrap().to_be_bytes());
        for text in texts {
            message.extend([0x92, 0x01, 0x81, 0xa3]);
            message.extend(b"log");
            message.push(0xdb);
            message.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            message.extend(text.as_bytes());
        }
        message.extend([0x81, 0xa5]);
        message.extend(b"chunk");
        message.extend([0xa1, b'c']);
        // A message that is too long is not read to its end.
        let _closed = stream.write_all(&message);
        let mut answer = [0; 16];
        stream.read(&mut answer).is_ok_and(|read| read > 0)
    }
}

/// Records of a source that are accepted, or refused and counted.
fn settled(gateway: &Gateway, source: &str) -> f64 {
    let metrics = gateway.metrics();
    let of = |name: &str| format!("tidegate_items_{name}_total{{source=\"{source}\"");
    let (accepted, refused) = (of("accepted"), of("refused"));
    let counted =
        metrics.iter().filter(|(name, _)| name.starts_with(&accepted) || name.starts_with(&refused));
    // Batches that are tried again are no records that are lost.
    let lost = |name: &str| {
        // A forward message that is longer than the memory that others leave is refused for memory.
        name.starts_with(&accepted)
            || ["too_large", "malformed", "memory"].iter().any(|reason| name.contains(reason))
    };
    counted.filter(|(name, _)| lost(name)).map(|(_, count)| *count).sum()
}

/// Every size of every shape, from every source at once.
fn sweep(memory: &str, kinds: &[&str], before: Before, most: usize) {
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let sources =
        Sources { folder: folder.path().to_owned(), syslog: free_address(), forward: free_address() };
    let settings = json!({
        "file": {"max_files": 64, "inputs": {"main": {"include": [pattern(folder.path())], "max_line": "256KiB"}}},
        "syslog": {"listeners": {"tcp": {
            "address": format!("tcp://{}", sources.syslog), "framing": "octet_counting",
        }}},
        "fluent_forward": {"address": sources.forward},
    });
    let gateway = gateway_with(memory, kinds, before, &receiver, &settings);
    for shape in [Shape::Many, Shape::One, Shape::Control] {
        for (number, size) in SIZES.into_iter().filter(|size| *size <= most.min(MOST_FORWARD)).enumerate() {
            sources.send(&gateway, &format!("{shape:?}-{number}"), &shape.texts(size));
        }
        gateway.at_rest(DELIVERED);
        nothing_is_lost(&gateway, kinds, &format!("{shape:?}"));
    }
    gateway.books_close();
    before.is_felt(&gateway, kinds);
    assert_eq!(receiver.unreadable(), 0, "requests that the receiver could not read");
}

fn pattern(folder: &Path) -> PathBuf {
    folder.join("*.log")
}

/// The sinks that accept logs.
const OF_LOGS: [&str; 6] = ["lake", "otlp", "elasticsearch", "http", "splunk_hec", "loki"];

#[test]
fn the_sinks_are_known() {
    assert!(OF_LOGS.iter().all(|kind| KINDS.contains(kind)));
}

/// One test for each budget and set of sinks: they run side by side.
macro_rules! sweeps {
    ($($name:ident: $memory:literal, $kinds:expr, $before:ident, $most:expr;)*) => {$(
        #[test]
        fn $name() {
            sweep($memory, $kinds, Before::$before, $most);
        }
    )*};
}

sweeps! {
    lake_at_64_mib: "64MiB", &OF_LOGS[..1], Nothing, 4 * MIB;
    otlp_at_64_mib: "64MiB", &OF_LOGS[1..2], Nothing, 24 * MIB;
    elasticsearch_at_64_mib: "64MiB", &OF_LOGS[2..3], Nothing, 24 * MIB;
    http_at_64_mib: "64MiB", &OF_LOGS[3..4], Nothing, 24 * MIB;
    splunk_hec_at_64_mib: "64MiB", &OF_LOGS[4..5], Nothing, 24 * MIB;
    loki_at_64_mib: "64MiB", &OF_LOGS[5..], Nothing, 24 * MIB;
    all_at_256_mib: "256MiB", &OF_LOGS, Nothing, 24 * MIB;
    otlp_behind_growth_at_64_mib: "64MiB", &OF_LOGS[1..2], Growth, 6 * MIB;
    loki_behind_growth_at_64_mib: "64MiB", &OF_LOGS[5..], Growth, 6 * MIB;
}
