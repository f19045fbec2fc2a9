//! OTLP with `route_by`: items are spread over receivers by a key, so that all items with one key are at one receiver.
//!
//! [`spread`](crate::spread) does the work; here is what OTLP adds: which key, requests that say a resource once, and what the answers
//! mean. The design is in `design/otlp.md`.

mod divide;
mod message;
mod peer;
mod protocol;
mod settings;

pub use settings::Routing;

use super::Settings;
use crate::delivery::compressor::{BadLevel, Compressor};
use crate::egress_budget::EgressBudget;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::spread::{RingSource, RingSourceError, Spread, SpreadError};
use crate::stop::StopSignal;
use protocol::RoutedProtocol;
use std::sync::Arc;
use tidegate_journal::{Protocol, Signal};
use tidegate_wire::otlp::route::RouteKey;

/// The sink with `route_by`, attached to the journal and ready to run.
pub struct RoutedOtlp(Spread<RoutedProtocol>);

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RoutedStartError {
    /// Its members.
    #[error(transparent)]
    Members(#[from] RingSourceError),
    /// The compression.
    #[error(transparent)]
    Compression(#[from] BadLevel),
    /// The journal, its logs or its members.
    #[error(transparent)]
    Spread(#[from] SpreadError),
}

impl RoutedOtlp {
    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    #[must_use]
    pub fn need(key: RouteKey, protocol: Protocol, signal: Signal) -> Option<Need> {
        let is_routed =
            protocol == Protocol::Otlp && super::wire_signal(signal).is_some_and(|signal| key.is_of(signal));
        // An item is in one request at a time with what encloses it; where there is no room for others, they go to disk.
        is_routed.then_some(Need { working: 768 << 10, factor: 2 })
    }

    /// Bytes that a receiver takes beyond payload.
    #[must_use]
    pub fn member_bytes(settings: &Settings, is_secure: bool) -> usize {
        Spread::<RoutedProtocol>::MEMBER_BYTES + peer::bytes(settings, is_secure)
    }

    /// Bytes that each replica of each receiver takes beyond payload: a request that fills.
    #[must_use]
    pub const fn request_bytes() -> usize {
        Spread::<RoutedProtocol>::REQUEST_BYTES
    }

    /// Bytes that the sink takes beyond payload, receivers and requests: coders, records in flight.
    #[must_use]
    pub fn bytes(settings: &Settings) -> usize {
        Spread::<RoutedProtocol>::BYTES + Compressor::bytes(settings.compression)
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`RoutedStartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        (settings, routing): (Settings, Routing),
        stop: StopSignal,
    ) -> Result<RoutedOtlp, RoutedStartError> {
        let members = RingSource::open(routing.members.clone(), routing.replicas)?;
        let engine = routing.spread(&settings);
        let compressor = Arc::new(tokio::sync::Mutex::new(Compressor::new(settings.compression)?));
        let protocol =
            RoutedProtocol { settings: peer::settings(settings), key: routing.route_by, compressor };
        Ok(RoutedOtlp(Spread::start(context, room, (protocol, engine), members, stop)?))
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent or handed off.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}
