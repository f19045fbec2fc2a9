//! Sends spans, logs and metrics to any OTLP or Elastic APM endpoint: tidegate, an OpenTelemetry Collector, an
//! APM server, or a vendor. It cannot grow, block or forget.
//!
//! ```
//! use tidegate_sender::{Log, Sender, Severity, Span, Value};
//! use std::time::Duration;
//!
//! // Endpoint, service name and the rest from OTEL_* or ELASTIC_APM_*; or say them here.
//! let sender = Sender::builder().endpoint("http://localhost:4318").service("shop").start()?;
//!
//! let context = Sender::new_span_context(None);
//! sender.span(&Span {
//!     context,
//!     name: "GET /cart",
//!     start: 1_700_000_000_000_000_000,
//!     end: 1_700_000_000_020_000_000,
//!     attributes: &[("http.response.status_code", 200.into())],
//!     ..Span::default()
//! })?;
//! sender.log(&Log {
//!     time: 1_700_000_000_010_000_000,
//!     severity: Severity::WARN,
//!     body: Value::Str("cart is nearly full"),
//!     context: Some(context),
//!     ..Log::default()
//! })?;
//!
//! let left = sender.shutdown(Duration::from_millis(10));
//! println!("{} events left: {:?}", left.events, sender.stats());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - **Memory is fixed at the start** and stated by [`Sender::memory`]: 1.4 MiB with the defaults. Batches of
//!   any size, large events and outages allocate nothing: 0 bytes, 0 calls, sending thread included. (With
//!   `https`, rustls allocates records for a moment, within a stated bound; a connection that is opened asks
//!   the system for addresses.)
//! - **A call never waits**: not for the network, not for the sending thread, not for another caller, not for
//!   room. It encodes the event into memory that it owns at that moment, in a few hundred nanoseconds.
//! - **What a failed request held is sent again.** Events stay in the ring until the peer has acknowledged
//!   them; the compressed form is thrown away and made anew.
//! - **When the ring is full, the oldest of the least valuable goes first**: metrics, then spans, logs,
//!   transactions (roots and served requests), errors. Every loss is counted by [`Class`] and [`Reason`].
//! - **The books balance**: [`Stats::balance`] is 0 whenever nobody is in the middle of a call.
//!
//! # Ways in
//!
//! | from | by | feature |
//! |---|---|---|
//! | your own code | [`Sender::span`], [`Sender::log`], [`Sender::metric`] | |
//! | `tracing` | `Layer`, on a registry: spans, their events, logs | `tracing` |
//! | `log` | `Logger` | `log` |
//! | the OpenTelemetry SDK | `opentelemetry::Exporter`, for spans, logs and metrics | `opentelemetry` |
//! | C, and what can call C | `include/tidegate_sender.h` of `tidegate-sender-c` | |
//! | Python | `crates/sender-python`: a `logging` handler, OpenTelemetry exporters | |
//!
//! # Ways out
//!
//! OTLP/HTTP as protobuf, or Elastic APM intake v2 ([`Protocol`]); over `http://`, `https://` (feature `tls`, on
//! by default: rustls, the system's authorities or yours, client certificates) or `unix:`. Bodies are gzip but
//! for peers on the same machine ([`Compression`]). Credentials are a header: [`Builder::bearer`],
//! [`Builder::api_key`], [`Builder::header`]. [`Builder::from_env`] reads the variables of both conventions:
//! [`SETTINGS`] lists them.
//!
//! # What happens to an event
//!
//! 1. It is encoded, at the call, into a block of the ring that belongs to the calling thread for that moment.
//!    Larger than [`Builder::event_bytes`], it is [`RefusedEvent`].
//! 2. After [`Builder::flush_interval`], or when [`Builder::batch_bytes`] wait, or on [`Sender::flush`], the
//!    sending thread takes the oldest blocks of one signal and streams them: through the compressor, 16 KiB at
//!    a time, as chunks of one request.
//! 3. The answer decides. **2xx**: sent; what OTLP's partial success says was rejected is counted so. **429,
//!    502, 503, 504**, no answer, a broken connection: the blocks go back to their place, as old as before,
//!    and may be evicted; the next try is after `Retry-After`, or after a wait that doubles, with jitter.
//!    **413**: the same in halves. **Anything else**: never again; counted as [`Reason::Rejected`].
//!
//! Delivery is at least once: a peer that took a request whose answer was lost gets it again.
//!
//! # Ends and forks
//!
//! [`Sender::shutdown`] sends what is left within a time and returns what was not. Dropping the last handle
//! waits for nobody: the thread tries once more, if the program lives that long.
//!
//! After `fork`, a child has an empty ring and, from its first event on, a thread of its own; what the parent
//! had in the ring, the parent sends. That thread starts whatever other threads of the parent were doing at the
//! fork: `design/sender.md` goes through the locks on the way. (Rust programs fork rarely; pre-forking Python and C
//! servers do.)
//!
//! # What it leaves to you
//!
//! Sampling; propagation of context (but for [`SpanContext::from_traceparent`]); clocks (times are yours, but for
//! `tracing` and `log`); aggregation of metrics. `design/sender.md` in the repository argues how it works.

mod class;
#[cfg(any(feature = "tracing", feature = "log", feature = "opentelemetry"))]
mod clock;
mod config;
mod counters;
mod encode;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod gzip;
mod http;
#[cfg(feature = "tracing")]
mod layer;
#[cfg(feature = "log")]
mod logger;
#[cfg(feature = "opentelemetry")]
pub mod opentelemetry;
mod random;
mod record;
mod ring;
mod sender;
mod sync;
mod worker;

pub use class::{Class, Reason, Signal};
pub use config::{Builder, Compression, ConfigError, Protocol, SETTINGS, Setting};
pub use counters::Stats;
#[cfg(feature = "tracing")]
pub use layer::{EventsAs, Layer};
#[cfg(feature = "log")]
pub use logger::Logger;
pub use record::{
    Attributes, Buckets, ExponentialPoint, HistogramPoint, Link, Links, Log, Metric, Nanos, NoAttributes,
    Number, NumberPoint, Point, Points, PointsOf, Scope, Severity, Span, SpanContext, SpanEvent, SpanEvents,
    SpanKind, Status, Temporality, Value, Values,
};
pub use sender::{Memory, RefusedEvent, Sender, UnsentEvents};
