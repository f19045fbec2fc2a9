//! The sink `loki`: sends log records to Loki's push API.
//!
//! It is the sink [`Otlp`] with another last step: requests are written as push requests, in Snappy. The design is in
//! `design/loki.md`.

use crate::delivery::StartError;
use crate::egress_budget::EgressBudget;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::otlp::{Otlp, PUSH_BYTES, Settings};
use crate::stop::StopSignal;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::{Protocol, Signal};
use tidegate_wire::loki::push::GROWTH;

/// The sink, attached to the journal and ready to run.
pub struct Loki(Otlp);

/// The window of a piece as it goes out, beside what the sink `otlp` needs.
const WORKING: usize = 2 * GROWTH_STEP;

impl Loki {
    /// The memory of a sink with these settings beyond payload, in bytes: connections, and the state of encoders.
    pub fn bytes(settings: &Settings) -> usize {
        // A batch may be prepared, or a record be cut: never both.
        Otlp::bytes(settings) + PUSH_BYTES
    }

    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    ///
    /// A piece is held as protobuf and as a push request, which Snappy makes a sixth longer at worst. A translated piece may
    /// have a window of twice its length, and hardly grows: translations have texts, and few numbers.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        let is_accepted = match protocol {
            Protocol::Otlp => signal == Signal::Logs,
            Protocol::Intake | Protocol::Bulk => true,
            _ => false,
        };
        let otlp = Otlp::need(protocol, signal).filter(|_| is_accepted)?;
        let factor = match protocol {
            Protocol::Otlp => otlp.factor + (GROWTH * 7).div_ceil(6),
            _ => (2 + 3) * otlp.factor,
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
    ) -> Result<Loki, StartError> {
        Otlp::start(context, room, settings, stop).map(Loki)
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}
