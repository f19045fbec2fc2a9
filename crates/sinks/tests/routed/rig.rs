//! A journal with the sink behind it, and what each receiver should have taken.

use crate::receiver::{Receiver, Traces};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::dead_letters::{self, DeadLetters};
use tidegate_journal::{
    Batch, Checkpoints, Durability, Encoding, Journal, Meta, Protocol, Signal, Tenant, WhenFull,
};
use tidegate_ledger::{Counts, Ledger, SinkBalance};
use tidegate_members::Entry;
use tidegate_meters::Registry;
use tidegate_sinks::{
    BorrowQueue, Compression, EgressBudget, Health, MemberReport, OtlpSettings, RouteKey, RoutedOtlp,
    Routing, Signals, SinkContext, SplunkHecSettings, StopSender, Transport,
};
use tidegate_tap::Tap;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
const NAME: &str = "receivers";
/// Enough for everything to go the usual way.
pub(crate) const PART: usize = 8 << 20;
const INGEST: u64 = 16 << 20;

/// Everything on the near side of the receivers.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) arena: Arena,
    pub(crate) journal: Journal,
    pub(crate) ledger: Ledger,
    letters: DeadLetters,
    pub(crate) turn: Arc<BorrowQueue>,
    pub(crate) health: Health,
    tap: Tap,
    part: usize,
    total: u64,
    /// The spans put in, by trace.
    pub(crate) put: Traces,
    /// All items put in.
    pub(crate) items: u64,
}

impl Rig {
    /// With a sink that may hold `part` bytes.
    pub(crate) fn new(part: usize) -> Rig {
        Rig::of((part, 64 << 20), tempfile::tempdir().unwrap())
    }

    fn of((part, total): (usize, u64), dir: tempfile::TempDir) -> Rig {
        let floors = Floors::NONE.with(Share::Egress, 2 * part as u64).with(Share::Ingest, INGEST);
        let arena = Arena::new(total, floors, 8 << 20, 256, 64).unwrap();
        let settings = tidegate_journal::Settings {
            segment_bytes: 16 << 20,
            durability: Durability::PageCache,
            ..tidegate_journal::Settings::new(dir.path().join("journal"))
        };
        let (journal, recovery) = Journal::open(settings).unwrap();
        let ledger = Ledger::new(&Registry::new(1), recovery.items);
        let head = ledger.head();
        journal.observe(move |items| head.advance_to(items));
        let letters = DeadLetters::open(&dir.path().join("letters"), dead_letters::DEFAULT_MAX).unwrap();
        let (turn, health, tap) = (Arc::default(), Health::default(), Tap::new(arena.clone()));
        let (put, items) = (Traces::new(), 0);
        Rig { dir, arena, journal, ledger, letters, turn, health, tap, part, total, put, items }
    }

    /// The same after a restart of the process.
    pub(crate) fn restarted(self) -> Rig {
        let Rig { dir, arena, journal, ledger, letters, tap, health, part, total, put, items, .. } = self;
        assert!(journal.close(60 * SECOND));
        drop((arena, journal, ledger, letters, tap, health));
        Rig { put, items, ..Rig::of((part, total), dir) }
    }

    /// Puts a request of a service with another span of each of these traces into the journal.
    pub(crate) async fn put(&mut self, service: &str, traces: Range<u64>) {
        let items = traces.end - traces.start;
        let mut spans = Vec::new();
        for trace in traces {
            self.items += 1;
            self.put.entry(trace).or_default().push(self.items);
            let id = |number: u64, len: usize| [&[7; 16][..len - 8], &number.to_be_bytes()].concat();
            let (trace_id, span_id) = (id(trace, 16), id(self.items, 8));
            spans.push(Span { trace_id, span_id, name: "work".to_owned(), ..Span::default() });
        }
        let value = Some(AnyValue { value: Some(Value::StringValue(service.to_owned())) });
        let attribute = KeyValue { key: "service.name".to_owned(), value, ..KeyValue::default() };
        let resource = Some(Resource { attributes: vec![attribute], ..Resource::default() });
        let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Traces,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: u32::try_from(items).unwrap(),
            raw_len: u32::try_from(body.len()).unwrap(),
            received_at_ns: 1,
        };
        let mut window = self.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(&body).unwrap();
        let open = self.ledger.source("test").unwrap().open();
        let submitted = open.submit(Counts::of(tidegate_ledger::Signal::Traces, items, body.len() as u64));
        let batch = Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() };
        self.journal.append(batch).await.unwrap();
        submitted.accept();
    }

    /// Runs the sink beside `script`, and stops it behind that.
    pub(crate) async fn run<T>(
        &mut self,
        settings: &SinkSettings,
        script: impl AsyncFnOnce(&mut Rig) -> T,
    ) -> T {
        let (sink, stopper) = self.sink(settings);
        let script = async {
            let output = script(self).await;
            stopper.stop();
            output
        };
        let both = async { tokio::join!(sink.run(), script) };
        let ((), output) = tokio::time::timeout(90 * SECOND, both).await.expect("the sink ends");
        self.page();
        assert_eq!(self.held(), 0, "all memory is given back");
        output
    }

    /// A sink that is attached.
    pub(crate) fn sink(&self, settings: &SinkSettings) -> (RoutedOtlp, StopSender) {
        let (stopper, stop) = StopSender::new();
        let room = EgressBudget::new(&self.arena, Share::Egress, self.part, &self.turn);
        let context = SinkContext {
            name: NAME,
            journal: &self.journal,
            ledger: &self.ledger,
            when_full: WhenFull::Block,
            health: &self.health,
            signals: Signals::ALL,
            dead_letters: &self.letters,
            tap: Some(&self.tap),
            pipeline: None,
        };
        (RoutedOtlp::start(context, room, settings.clone(), stop).unwrap(), stopper)
    }

    /// The sink's entry in the books, after checking that they balance.
    pub(crate) fn page(&self) -> SinkBalance {
        let balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        balance.sinks.into_iter().find(|sink| sink.name == NAME).unwrap()
    }

    /// Waits until nothing is queued.
    pub(crate) async fn settled(&self) {
        until("everything is settled", || self.page().queued == 0).await;
    }

    /// How a receiver is doing.
    pub(crate) fn report(&self, receiver: &Receiver) -> MemberReport {
        let members = self.health.members();
        members.into_iter().find(|report| report.address == receiver.url()).unwrap()
    }

    /// Bytes that the sink holds.
    pub(crate) fn held(&self) -> u64 {
        self.egress().used
    }

    /// The most bytes that the sink has held.
    pub(crate) fn peak(&self) -> u64 {
        self.egress().peak
    }

    fn egress(&self) -> tidegate_arena::ShareUse {
        let usage = self.arena.usage();
        usage.shares.into_iter().find(|known| known.share == Share::Egress).unwrap()
    }
}

/// All traces that were taken; no trace is at two of these receivers.
pub(crate) fn merged<'r>(receivers: impl IntoIterator<Item = &'r Receiver>) -> Traces {
    let mut all = Traces::new();
    for (trace, spans) in receivers.into_iter().flat_map(Receiver::traces) {
        assert!(all.insert(trace, spans).is_none(), "trace {trace} is at two receivers");
    }
    all
}

/// Waits for an event that only its effects show.
pub(crate) async fn until(event: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(40 * SECOND, waiting).await.unwrap_or_else(|_| panic!("waited in vain: {event}"));
}

pub(crate) type SinkSettings = (OtlpSettings, Routing);

/// The default settings for these receivers, with logs in the rig's folder.
pub(crate) fn settings(rig: &Rig, receivers: &[Receiver], replicas: usize) -> SinkSettings {
    let entries = receivers.iter().map(|receiver| Entry::Literal(receiver.url())).collect();
    let handoff = tidegate_handoff::Settings {
        durability: tidegate_handoff::Durability::PageCache,
        members: 16,
        ..tidegate_handoff::Settings::new(rig.dir.path().join("handoff"))
    };
    let members = tidegate_members::Settings {
        entries,
        file: None,
        check: |_| Ok(()),
        max_members: 16,
        interval: 30 * SECOND,
        name_servers: Vec::new(),
    };
    let route_by = RouteKey::TraceId;
    let routing = Routing { route_by, replicas, members, patience: 30 * SECOND, handoff };
    let settings = OtlpSettings {
        endpoints: Vec::new(),
        transport: Transport::Http,
        splunk_hec: SplunkHecSettings::default(),
        compression: Compression::None,
        join_members: false,
        headers: Default::default(),
        tenant_header: None,
        tls: Default::default(),
        max_request_bytes: 1 << 20,
        max_in_flight: 8,
        linger: Duration::from_millis(20),
        timeout: 30 * SECOND,
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
        labels: Arc::default(),
    };
    (settings, routing)
}
