//! The sink `splunk_hec`: sends logs as events to Splunk's HTTP Event Collector.
//!
//! It is the sink [`Otlp`] with another last step: requests of logs are written as events before compression, and sent to
//! `/services/collector/event`. The design is in `design/splunk-hec.md`.

use crate::delivery::StartError;
use crate::egress_budget::EgressBudget;
use crate::http::Http;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::otlp::{Otlp, Settings};
use crate::signals::Signals;
use crate::stop::StopSignal;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::{Protocol, Signal};
use tidegate_wire::otlp::splunk_hec::VALUE_BYTES;

/// The sink, attached to the journal and ready to run.
pub struct SplunkHec(Otlp);

impl SplunkHec {
    /// The memory of a sink with these settings beyond payload, in bytes: connections, and the state of encoders.
    pub fn bytes(settings: &Settings) -> usize {
        Otlp::bytes(settings) + VALUE_BYTES
    }

    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    ///
    /// An event grows no more than an item of the sink [`Http`]; beside its record it has the defaults of its metadata,
    /// which the configuration limits to a KiB each.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        let is_logs = matches!((protocol, signal), (Protocol::Otlp, Signal::Logs) | (Protocol::Bulk, _))
            || protocol == Protocol::Intake && signal != Signal::Metrics;
        let http = Http::need(protocol, signal).filter(|_| is_logs)?;
        Some(Need { working: http.working + GROWTH_STEP, ..http })
    }

    /// Attaches the sink to the journal: of other signals than logs it takes nothing.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        settings: Settings,
        stop: StopSignal,
    ) -> Result<SplunkHec, StartError> {
        let signals = Signals::from_iter([Signal::Logs]);
        Otlp::start(SinkContext { signals, ..context }, room, settings, stop).map(SplunkHec)
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}
