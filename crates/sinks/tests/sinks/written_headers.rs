//! Promises: samples that a 2.0 receiver did not write do not count as delivered; exemplars and metadata are sent in the
//! version that receivers accept.

use crate::rig::{NAME, Rig, SECOND};
use hyper::Uri;
use std::sync::{Arc, Mutex};
use tidegate_journal::dead_letters::read;
use tidegate_ledger::Dropped;
use tidegate_load::protobuf::field;
use tidegate_load::remote_write::{self as load, RequestTotals, compress};
use tidegate_sinks::{Prefer, RemoteWriteSettings, Translation};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The received requests: the version of each, and its contents.
pub(crate) type Came = Arc<Mutex<Vec<(load::Version, RequestTotals)>>>;

/// A peer that answers 204, having written what `writes` makes of what came.
pub(crate) async fn peer(
    listener: TcpListener,
    came: Came,
    writes: impl Fn([u64; 3]) -> [u64; 3] + Clone + Send + Sync + 'static,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (came, writes) = (Arc::clone(&came), writes.clone());
        connections.spawn(async move { while answer(&stream, &came, &writes).await.is_some() {} });
    }
}

async fn answer(mut stream: &TcpStream, came: &Came, writes: &impl Fn([u64; 3]) -> [u64; 3]) -> Option<()> {
    let mut stream = StreamOf(&mut stream);
    let (version, body) = stream.request().await?;
    let totals = load::decode(version, &body, 64 << 20, &mut |_| {}).unwrap();
    came.lock().unwrap().push((version, totals));
    let [samples, histograms, exemplars] = writes([totals.samples, totals.histograms, totals.exemplars]);
    let written = format!(
        "HTTP/1.1 204 No Content\r\nX-Prometheus-Remote-Write-Samples-Written: {samples}\r\n\
         X-Prometheus-Remote-Write-Histograms-Written: {histograms}\r\n\
         X-Prometheus-Remote-Write-Exemplars-Written: {exemplars}\r\n\r\n"
    );
    stream.write(written.as_bytes()).await
}

/// The peer's side of a connection.
pub(crate) struct StreamOf<'s, 'a>(pub(crate) &'s mut &'a TcpStream);

impl StreamOf<'_, '_> {
    /// The next request: its version and its body.
    pub(crate) async fn request(&mut self) -> Option<(load::Version, Vec<u8>)> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
            self.read(&mut bytes).await?;
        };
        let text = String::from_utf8(bytes[..head].to_vec()).unwrap().to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.trim().parse().unwrap();
        while bytes.len() < head + length {
            self.read(&mut bytes).await?;
        }
        let version = if text.contains("v2.request") { load::Version::V2 } else { load::Version::V1 };
        Some((version, bytes.split_off(head)))
    }

    async fn read(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        loop {
            self.0.readable().await.ok()?;
            match self.0.try_read_buf(bytes) {
                Ok(0) => return None,
                Ok(_) => return Some(()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            self.0.writable().await.ok()?;
            match self.0.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// The settings of a sink for the peer at `url`.
pub(crate) fn settings(url: Uri) -> RemoteWriteSettings {
    RemoteWriteSettings {
        endpoints: vec![url],
        tls: Default::default(),
        headers: Default::default(),
        tenant_header: None,
        prefer: Prefer::AsReceived,
        lanes: 1,
        max_bytes: 8 << 20,
        max_items: 20_000,
        linger: SECOND,
        timeout: 20 * SECOND,
        backoff: (SECOND / 1000, SECOND / 50),
        otlp: Translation::default(),
    }
}

/// Has all of `rig` sent as 2.0 to a peer that writes this of it. Gives what came.
pub(crate) async fn sent(
    rig: &Rig,
    prefer: Prefer,
    writes: impl Fn([u64; 3]) -> [u64; 3] + Clone + Send + Sync + 'static,
) -> Vec<(load::Version, RequestTotals)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let settings = RemoteWriteSettings { prefer, ..settings(url) };
    let came = Came::default();
    let mut peers = JoinSet::new();
    peers.spawn(peer(listener, Arc::clone(&came), writes));
    rig.drain(settings).await;
    peers.abort_all();
    let came = came.lock().unwrap();
    came.clone()
}

/// A success that says less than was sent is a success for what it says.
#[tokio::test]
async fn unwritten_samples_do_not_count_as_delivered() {
    let mut rig = Rig::new(100, 1 << 20);
    rig.put(load::Version::V2, 0..100, 1).await;
    let all = 100;
    let came = sent(&rig, Prefer::V2, |[samples, histograms, exemplars]| {
        [samples - 7, histograms.saturating_sub(1), exemplars]
    })
    .await;
    assert_eq!(came.len(), 1, "it is not sent again");
    let lost = if came[0].1.histograms > 0 { 8 } else { 7 };
    let page = rig.assert_closed(0);
    assert_eq!((page.dropped, page.delivered), (vec![(Dropped::Rejected, lost)], all - lost));
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    let letter = letters.next().unwrap();
    assert_eq!(letter.sink, NAME);
    let sent = came[0].1.samples + came[0].1.histograms;
    let expected = format!("204 No Content: the peer wrote {} of {sent} samples", sent - lost);
    assert!(letter.reason.starts_with(&expected), "{}", letter.reason);
}

/// Nothing written is nothing delivered, and a success all the same: it is not asked again.
#[tokio::test]
async fn a_success_that_wrote_nothing_is_no_delivery() {
    let mut rig = Rig::new(100, 1 << 20);
    for _ in 0..3 {
        rig.put(load::Version::V2, 0..100, 1).await;
    }
    let came = sent(&rig, Prefer::V2, |_| [0; 3]).await;
    assert_eq!(came.len(), 1);
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 300)]);
}

fn label(name: &str, value: &str) -> Vec<u8> {
    field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
}

const SAMPLE: [u8; 11] = [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1];

fn exemplar() -> Vec<u8> {
    [label("trace_id", "1"), vec![0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x18, 1]].concat()
}

/// Appends a 1.0 body.
async fn append(rig: &Rig, raw: &[u8], items: u64) {
    let mut body = Vec::new();
    compress(raw, &mut body);
    rig.append(load::Version::V1, &body, raw.len(), items).await;
}

/// A 1.0 body with one sample of the series of this name.
pub(crate) fn one_sample(name: &str) -> Vec<u8> {
    series(name, field(2, &SAMPLE))
}

fn series(name: &str, rest: Vec<u8>) -> Vec<u8> {
    field(1, &[label("__name__", name), rest].concat())
}

/// As Prometheus sends them: samples, exemplars and metadata, each for themselves, in requests of their own.
#[tokio::test]
async fn exemplars_and_metadata_of_1_0_join_their_series_in_2_0() {
    let rig = Rig::new(1, 1 << 20);
    // WriteRequest { metadata: [{ type: COUNTER, family: "a", help: "A" }] }
    let metadata = field(3, &[vec![0x08, 1], field(2, b"a"), field(4, b"A")].concat());
    append(&rig, &metadata, 1).await;
    append(&rig, &series("a", field(2, &SAMPLE)), 1).await;
    append(&rig, &series("a", field(3, &exemplar())), 1).await;
    let came = sent(&rig, Prefer::V2, |written| written).await;
    assert_eq!(rig.dropped(), []);
    let [(load::Version::V2, totals)] = came[..] else { panic!("{came:?}") };
    assert_eq!((totals.series, totals.samples, totals.exemplars, totals.metadata), (1, 1, 1, 1));
}

/// Exemplars whose series is not there are sent as 1.0, which takes them.
#[tokio::test]
async fn exemplars_without_their_series_are_sent_as_1_0() {
    let rig = Rig::new(1, 1 << 20);
    append(&rig, &series("a", field(2, &SAMPLE)), 1).await;
    append(&rig, &series("b", field(3, &exemplar())), 1).await;
    let mut came = sent(&rig, Prefer::V2, |written| written).await;
    assert_eq!(rig.dropped(), []);
    came.sort_by_key(|(version, _)| *version == load::Version::V2);
    let [(load::Version::V1, left), (load::Version::V2, joined)] = came[..] else { panic!("{came:?}") };
    assert_eq!((left.samples, left.exemplars), (0, 1));
    assert_eq!((joined.samples, joined.exemplars), (1, 0));
}

/// The same of exemplars that came by 2.0.
#[tokio::test]
async fn lone_exemplars_of_2_0_join_their_series() {
    let rig = Rig::new(1, 1 << 20);
    let symbols = ["", "__name__", "a", "b", "trace_id"].map(|symbol| field(4, symbol.as_bytes())).concat();
    let exemplar = [field(1, &[4, 2]), vec![0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x18, 1]].concat();
    let raw = [
        symbols,
        field(5, &[field(1, &[1, 2]), field(4, &exemplar)].concat()),
        field(5, &[field(1, &[1, 2]), field(2, &SAMPLE)].concat()),
        field(5, &[field(1, &[1, 3]), field(4, &exemplar)].concat()),
    ];
    let raw = raw.concat();
    let mut body = Vec::new();
    compress(&raw, &mut body);
    rig.append(load::Version::V2, &body, raw.len(), 3).await;
    let came = sent(&rig, Prefer::AsReceived, |written| written).await;
    assert_eq!(rig.dropped(), []);
    let of =
        |version| came.iter().filter(|(of, _)| *of == version).map(|(_, totals)| *totals).collect::<Vec<_>>();
    let (old, new) = (of(load::Version::V1), of(load::Version::V2));
    assert_eq!((new.len(), new[0].series, new[0].samples, new[0].exemplars), (1, 1, 1, 1), "{came:?}");
    assert_eq!((old.len(), old[0].exemplars), (1, 1), "{came:?}");
}
