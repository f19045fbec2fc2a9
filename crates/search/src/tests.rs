//! Searches in a lake and a journal that are really written.

mod hostile;
mod letters;
mod logs;
mod metrics;
mod traces;

use crate::{Bounds, Kind, Query, SearchError, StoredLake, Stores, search};
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue as Any, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Journal, Meta, Protocol, Settings, Signal, StartAt, Tenant,
    WhenFull,
};
use tidegate_lake::{BatchPosition, Writer, WriterSettings};
use tidegate_wire::otlp;
use tidegate_wire::remote_write::{Symbols, Version, view};

/// 2023-11-14T22:13:20Z, in seconds since the Unix epoch.
const START: u64 = 1_700_000_000;
const SECOND: u64 = 1_000_000_000;

/// A journal of which a lake has the first records.
struct Stored {
    dir: TempDir,
    arena: Arena,
    journal: Journal,
    lake: Option<Writer>,
    /// The only sink that the next records are for.
    recipient: Option<&'static str>,
    /// Keeps the records from being consumed.
    _sink: tidegate_journal::Follower,
}

impl Stored {
    fn new() -> Stored {
        let dir = tempfile::tempdir().unwrap();
        let arena = Arena::new(32 << 20, Floors::NONE, 8 << 20, 8, 8).unwrap();
        let settings = Settings {
            durability: Durability::PageCache,
            segment_bytes: 64 << 10,
            ..Settings::new(dir.path().join("journal"))
        };
        let (journal, _) = Journal::open(settings).unwrap();
        let sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        let node = format!("{:016x}", journal.id());
        let settings = WriterSettings::new(dir.path().join("lake"), Writer::smallest_slice(), node);
        let lake = Some(Writer::open(settings).unwrap().0);
        Stored { dir, arena, journal, lake, recipient: None, _sink: sink }
    }

    /// Appends a record; its sequence.
    fn append(
        &self,
        protocol: Protocol,
        signal: Signal,
        encoding: Encoding,
        body: &[u8],
        raw_len: usize,
    ) -> u64 {
        let mut window = self.arena.try_window(Share::Ingest, body.len().max(1)).unwrap();
        window.append(body).unwrap();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal,
            protocol,
            encoding,
            items: 1,
            raw_len: u32::try_from(raw_len).unwrap(),
            received_at_ns: START * SECOND,
        };
        let mut batch = Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() };
        if let Some(sink) = self.recipient {
            batch = batch.to_sink(sink).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.journal.append(batch)).unwrap().sequence
    }

    fn append_otlp(&self, signal: Signal, request: &impl prost::Message) -> (u64, Vec<u8>) {
        let raw = request.encode_to_vec();
        (self.append(Protocol::Otlp, signal, Encoding::Identity, &raw, raw.len()), raw)
    }

    /// Appends a request, and has the lake take it.
    fn commit_otlp(&mut self, signal: Signal, request: &impl prost::Message) {
        let (sequence, raw) = self.append_otlp(signal, request);
        let signal = match signal {
            Signal::Logs => otlp::Signal::Logs,
            Signal::Traces => otlp::Signal::Traces,
            _ => otlp::Signal::Metrics,
        };
        let position = BatchPosition { sequence, received_at_ns: START * SECOND };
        let lake = self.lake.as_mut().unwrap();
        lake.push_otlp(&position, signal, &raw, START * SECOND).unwrap();
        lake.close_files().unwrap();
    }

    /// Appends a body of Remote-Write 1.0, and has the lake take it if `is_committed`.
    fn remote_write(&mut self, raw: &[u8], is_committed: bool) {
        let body = snap::raw::Encoder::new().compress_vec(raw).unwrap();
        let sequence =
            self.append(Protocol::RemoteWrite1, Signal::Metrics, Encoding::Snappy, &body, raw.len());
        if is_committed {
            let position = BatchPosition { sequence, received_at_ns: START * SECOND };
            let mut symbols = Symbols::new();
            let request = view(Version::V1, raw, &mut symbols).unwrap();
            let lake = self.lake.as_mut().unwrap();
            lake.push(&position, &request, START * SECOND).unwrap();
            lake.close_files().unwrap();
        }
    }

    fn stores(&self) -> Stores {
        let node = format!("{:016x}", self.journal.id());
        let lake = self.lake.as_ref().map(|_| StoredLake {
            dir: self.dir.path().join("lake"),
            node,
            sink: "lake".to_owned(),
        });
        Stores { journal: Some(self.journal_dir()), lake, dead_letters: self.dir.path().join("dead-letters") }
    }

    fn journal_dir(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    fn ask(&self, kind: Kind, query: &Value) -> Value {
        self.ask_within(kind, query, &bounds())
    }

    fn ask_within(&self, kind: Kind, query: &Value, bounds: &Bounds) -> Value {
        let query = Query::parse(kind, query.to_string().as_bytes()).unwrap();
        let answer = search(&query, &self.stores(), bounds).unwrap();
        assert!(answer.len() <= bounds.answer, "{} bytes", answer.len());
        serde_json::from_slice(&answer).unwrap()
    }
}

fn bounds() -> Bounds {
    Bounds::within(24 << 20, Duration::from_secs(30), 500 << 10)
}

/// What `name` of each element of a list is, as text.
fn each(list: &Value, name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    list.as_array().unwrap().iter().map(|element| text(&element[name])).collect()
}

fn text(value: &str) -> Any {
    Any { value: Some(AnyValue::StringValue(value.to_owned())) }
}

fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    let pair = |(key, value): &(&str, &str)| KeyValue {
        key: (*key).to_owned(),
        value: Some(text(value)),
        ..KeyValue::default()
    };
    pairs.iter().map(pair).collect()
}

fn resource(service: &str) -> Option<Resource> {
    let attributes = attributes(&[("service.name", service), ("host.name", "host-1")]);
    Some(Resource { attributes, ..Resource::default() })
}

#[test]
fn queries_that_cannot_be_read_say_why() {
    let error = |kind, json: &str| match Query::parse(kind, json.as_bytes()) {
        Err(SearchError::Query(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(error(Kind::Logs, r#"{"servce":"a"}"#).contains("servce"));
    assert!(error(Kind::Logs, r#"{"limit":0}"#).contains("1 to 1000"));
    assert!(error(Kind::Logs, r#"{"from":"yesterday"}"#).contains("2026-11-21"));
    assert!(
        error(Kind::Trace, r#"{"trace_id":"+1234567890123456789012345678901"}"#).contains("32 hexadecimal")
    );
    assert!(error(Kind::Plot, r#"{"metric":"m"}"#).contains("from"));
    assert!(Query::parse(Kind::Logs, b"").is_ok());
}
