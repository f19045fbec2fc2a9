//! The sink `http`: sends NDJSON, JSON arrays or OTLP/JSON to any URL.
//!
//! It is the sink [`Otlp`] with another last step: requests are written as JSON before compression. The design is in
//! `design/http-sink.md`.

use crate::delivery::StartError;
use crate::egress_budget::EgressBudget;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::otlp::{Otlp, Settings};
use crate::stop::StopSignal;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::{Protocol, Signal};
use tidegate_wire::otlp::json::{ENCODER_BYTES, GROWTH};

/// The sink, attached to the journal and ready to run.
pub struct Http(Otlp);

/// The window of a piece as JSON, beside what the sink `otlp` needs.
const WORKING: usize = 2 * GROWTH_STEP;

impl Http {
    /// The memory of a sink with these settings beyond payload, in bytes: connections, and the state of encoders.
    pub fn bytes(settings: &Settings) -> usize {
        // A batch may be prepared, or a record be cut: never both.
        Otlp::bytes(settings) + ENCODER_BYTES
    }

    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    ///
    /// A piece is held as protobuf and as JSON. A translated piece may have a window of twice its length; its JSON grows
    /// less, because translations consist mostly of names.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        let otlp = Otlp::need(protocol, signal).filter(|_| signal != Signal::Profiles)?;
        let factor = match protocol {
            Protocol::Otlp => otlp.factor + GROWTH,
            // An empty bucket takes one byte in protobuf and four in JSON.
            Protocol::RemoteWrite1 | Protocol::RemoteWrite2 => (2 + 4) * otlp.factor,
            _ => (2 + 2) * otlp.factor,
        };
        Some(Need { working: otlp.working + WORKING, factor })
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        settings: Settings,
        stop: StopSignal,
    ) -> Result<Http, StartError> {
        Otlp::start(context, room, settings, stop).map(Http)
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}
