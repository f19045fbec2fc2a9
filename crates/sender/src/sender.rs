//! The handle that programs hold.

mod scopes;
mod shared;

pub(crate) use scopes::{Growing, SCOPES, Scopes};
pub(crate) use shared::Shared;

use crate::class::{Class, Kind, Reason};
use crate::config::{Builder, ConfigError, Protocol};
use crate::counters::Stats;
use crate::encode::{intake, otlp};
use crate::random;
use crate::record::{Log, Metric, Scope, Severity, Span, SpanContext, Status, Value};
use crate::ring::Payload;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Takes events from any thread, and sends them from one of its own. Cheap to clone; all clones are one.
///
/// When the last clone is dropped, the sending thread tries once to send what is left, and ends; nobody waits
/// for it. A program that ends wants [`shutdown`](Sender::shutdown).
#[derive(Clone)]
pub struct Sender {
    shared: Arc<Shared>,
    /// Drops with the last handle, which the sending thread has none of.
    _last: Arc<ShutdownOnDrop>,
}

/// An event was not taken. It is counted under the same class and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefusedEvent {
    /// The class of the event.
    pub class: Class,
    /// Why it was not taken.
    pub reason: Reason,
}

impl fmt::Display for RefusedEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            Reason::TooLarge => "it is larger than one event may be: raise `event_bytes`, or say less",
            Reason::Full | Reason::Evicted => "the ring is full of more valuable events: raise `ring_bytes`",
            Reason::Shutdown => "the sender was shut down, or is disabled",
            Reason::Unstable => "one of its values showed itself in two different lengths",
            Reason::TooManyOpen => "too many spans are open: raise `open_spans`",
            Reason::Rejected => "the peer does not take it",
        };
        write!(out, "the {} was not taken: {why}", self.class.name())
    }
}

impl std::error::Error for RefusedEvent {}

/// The events unsent at the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "what is left may be lost"]
pub struct UnsentEvents {
    /// Events.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl UnsentEvents {
    /// Everything was sent.
    pub fn is_nothing(&self) -> bool {
        self.events == 0
    }
}

/// Bytes on the heap, all taken when the sender starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The ring with its tables.
    pub ring: usize,
    /// Chunk, compression state and answer buffer.
    pub buffers: usize,
    /// Heads, resource, scopes, and the list of blocks under way.
    pub tables: usize,
    /// Most that open TLS connections take, with the chunk that waits for the socket; 0 without TLS. This one
    /// is a bound, and rustls' own records come and go inside it.
    pub tls: usize,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> usize {
        self.ring + self.buffers + self.tables + self.tls
    }
}

impl Sender {
    /// Settings to begin with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A sender as the environment says: see [`SETTINGS`](crate::SETTINGS).
    pub fn from_env() -> Result<Sender, ConfigError> {
        Builder::from_env().start()
    }

    pub(crate) fn start(builder: &Builder) -> Result<Sender, ConfigError> {
        let shared = Shared::start(builder)?;
        Ok(Sender { _last: Arc::new(ShutdownOnDrop(Arc::clone(&shared))), shared })
    }

    /// Takes a span that ended. In intake v2, its events are sent as logs, and exceptions as errors.
    ///
    /// # Errors
    /// It was not taken, and was counted.
    pub fn span(&self, span: &Span<'_>) -> Result<(), RefusedEvent> {
        let kind = span_kind(span);
        match self.shared.protocol {
            Protocol::Otlp => self.push(kind, span.scope, &otlp::EndedSpan::new(span)),
            Protocol::ElasticApm => {
                span.events.each(&mut |event| {
                    let exception = event.name == "exception";
                    let severity = if exception { Severity::ERROR } else { Severity::INFO };
                    let log = Log {
                        time: event.time,
                        severity,
                        body: Value::Str(event.name),
                        attributes: event.attributes,
                        context: Some(span.context),
                        ..Log::default()
                    };
                    // Counted if it is refused; the span is worth its own try.
                    let _ = self.log(&log);
                });
                self.push(kind, span.scope, &intake::SpanLine::new(span))
            }
        }
    }

    /// Takes a log record.
    ///
    /// # Errors
    /// It was not taken, and was counted.
    pub fn log(&self, log: &Log<'_>) -> Result<(), RefusedEvent> {
        let error = log.severity >= Severity::ERROR;
        let kind = if error { Kind::ErrorLog } else { Kind::Log };
        match self.shared.protocol {
            Protocol::Otlp => self.push(kind, log.scope, &otlp::LogRecord::new(log)),
            Protocol::ElasticApm if error => {
                self.push(kind, log.scope, &intake::ErrorLine::new(log, random::trace_id()))
            }
            Protocol::ElasticApm => self.push(kind, log.scope, &intake::LogLine::new(log)),
        }
    }

    /// Takes a metric. One with many points becomes several events, each of which is taken or not.
    ///
    /// # Errors
    /// At least one of them was not taken; all that were not were counted.
    pub fn metric(&self, metric: &Metric<'_>) -> Result<(), RefusedEvent> {
        /// Points in one event: some kilobytes.
        const POINTS: usize = 32;
        let mut result = Ok(());
        let count = metric.points.count();
        let step = if self.shared.protocol == Protocol::Otlp { POINTS } else { 1 };
        for first in (0..count).step_by(step) {
            let pushed = match self.shared.protocol {
                Protocol::Otlp => {
                    let range = first..(first + step).min(count);
                    self.push(Kind::Metric, metric.scope, &otlp::MetricPoints::new(metric, range))
                }
                Protocol::ElasticApm => {
                    self.push(Kind::Metric, metric.scope, &intake::MetricLine::new(metric, first))
                }
            };
            result = result.and(pushed);
        }
        result
    }

    /// A scope for the events of one library. The same name and version give the same scope. There are 64 at
    /// most, of 256 bytes each; what is beyond gets the default one.
    pub fn scope(&self, name: &str, version: &str) -> Scope {
        self.shared.scopes.add(name, version)
    }

    /// A new identity for a span, or for the root of a trace. Not for secrets.
    pub fn new_span_context(parent: Option<SpanContext>) -> SpanContext {
        SpanContext {
            trace_id: parent.map_or_else(random::trace_id, |parent| parent.trace_id),
            span_id: random::span_id(),
            flags: parent.map_or(1, |parent| parent.flags),
        }
    }

    /// Has everything sent that was taken so far, and waits for it. Retries go on meanwhile.
    pub fn flush(&self, timeout: Duration) -> UnsentEvents {
        self.shared.flush(timeout)
    }

    /// Takes no more events, has everything sent, and ends the sending thread. What is left when the time is
    /// up is dropped, counted, and returned.
    pub fn shutdown(&self, timeout: Duration) -> UnsentEvents {
        self.shared.shutdown(timeout)
    }

    /// The counts so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The memory of this sender, constant over time.
    pub fn memory(&self) -> Memory {
        self.shared.memory
    }

    /// For the child of a fork that is not made by the C library's `fork`: forgets what the parent will
    /// send, and starts a thread of its own. After an ordinary `fork` that happens by itself.
    pub fn after_fork_in_child(&self) {
        tidegate_sender_fork::notice();
        self.shared.start_anew();
    }

    /// Says more about the resource: what `attributes` has replaces the builder's of the same name. For SDKs
    /// that know their resource late: once, the first call counts, from the next request on.
    pub fn adopt_resource(&self, attributes: &dyn crate::record::Attributes) {
        self.shared.adopt(attributes);
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn refuse(&self, class: Class, reason: Reason) {
        self.shared.ring.counters.refused(class, reason);
    }

    fn push<P: Payload + ?Sized>(&self, kind: Kind, scope: Scope, event: &P) -> Result<(), RefusedEvent> {
        self.shared.push(kind, scope, event).map_err(|reason| RefusedEvent { class: kind.class(), reason })
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sender").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

fn span_kind(span: &Span<'_>) -> Kind {
    match span.status {
        Status::Error(_) => Kind::ErrorSpan,
        _ if intake::is_transaction(span) => Kind::Transaction,
        _ => Kind::Span,
    }
}

/// Tells the sending thread that no handle is left.
struct ShutdownOnDrop(Arc<Shared>);

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
