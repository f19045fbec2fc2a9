//! The sink `thanos_receive`: spreads series over the members of Thanos' hashrings, as a Thanos Receive router does.
//!
//! [`spread`](crate::spread) does the work; here is what Thanos adds: its rings and tenants, its request and its answers. The design is
//! in `design/thanos-receive.md`.
//!
//! Protocol: `thanos.WriteableStore/RemoteWrite` over gRPC (`pkg/store/storepb/rpc.proto` of Thanos).

mod answer;
mod coder;
mod forwarding;
mod hashrings;
mod message;
mod peer;
mod protocol;
mod reroute;
mod settings;

pub(crate) use forwarding::Forwarding;
pub use forwarding::{ForwardingReport, HashringFileReport, HashringReport};
pub use hashrings::{HashringError, check as check_hashrings, describe as describe_hashrings};
pub use settings::{Hashrings, Layout, Settings};

use crate::delivery::EndpointError;
use crate::egress_budget::EgressBudget;
use crate::health::Health;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::probe::Probe;
use crate::spread::{Spread, SpreadError, series};
use crate::stop::StopSignal;
use crate::tls::Tls;
use coder::Coder;
use futures_util::FutureExt as _;
use hashrings::HashringSource;
use hyper::header::HeaderMap;
use protocol::ThanosProtocol;
use std::sync::Arc;
use tidegate_journal::{Protocol, Signal};

/// The sink, attached to the journal and ready to run.
pub struct ThanosReceive {
    spread: Spread<ThanosProtocol>,
    shown: ShownForwarding,
}

/// The numbers of forwarding on a sink's pages, until it is dropped: a sink that does not run has no hashrings.
struct ShownForwarding {
    health: Health,
    forwarding: Arc<Forwarding>,
}

impl Drop for ShownForwarding {
    fn drop(&mut self) {
        self.health.hide_forwarding(&self.forwarding);
    }
}

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its hashrings.
    #[error(transparent)]
    Hashrings(#[from] HashringError),
    /// The journal, its logs or its members.
    #[error(transparent)]
    Spread(#[from] SpreadError),
}

impl ThanosReceive {
    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    #[must_use]
    pub const fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        match protocol {
            // A series is in two windows of one request at a time; where there is no room for others, they go to disk.
            Protocol::RemoteWrite1 | Protocol::RemoteWrite2 => Some(Need { working: 512 << 10, factor: 4 }),
            Protocol::Otlp if matches!(signal, Signal::Metrics) => {
                Some(Need { working: 768 << 10, factor: 8 })
            }
            _ => None,
        }
    }

    /// Bytes that a member takes beyond payload.
    #[must_use]
    pub fn member_bytes(is_secure: bool) -> usize {
        Spread::<ThanosProtocol>::MEMBER_BYTES + peer::bytes(is_secure)
    }

    /// Bytes that each replica of each member takes beyond payload: a request that fills.
    #[must_use]
    pub const fn request_bytes() -> usize {
        Spread::<ThanosProtocol>::REQUEST_BYTES
    }

    /// Bytes that the sink takes beyond payload, members and requests: coders, symbols, records in flight, the
    /// names of hashrings.
    #[must_use]
    pub fn bytes() -> usize {
        Spread::<ThanosProtocol>::BYTES + Coder::BYTES + series::scratch_bytes() + Forwarding::BYTES
    }

    /// A write request without series to the member at `address`.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn probe(
        address: &str,
        is_secure: bool,
        headers: &HeaderMap,
        tls: &Tls,
    ) -> Result<Probe, EndpointError> {
        peer::probe(address, is_secure, headers, tls)
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
    ) -> Result<ThanosReceive, StartError> {
        let members = HashringSource::open(&settings)?;
        let engine = settings.spread();
        let (health, forwarding) = (context.health.clone(), Arc::clone(members.0.forwarding()));
        let protocol = ThanosProtocol(settings, Arc::clone(&forwarding));
        let spread = Spread::start(context, room, (protocol, engine), members, stop)?;
        health.show_forwarding(&forwarding);
        Ok(ThanosReceive { spread, shown: ShownForwarding { health, forwarding } })
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent or handed off.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        let ThanosReceive { spread, shown } = self;
        spread.run().map(move |()| drop(shown))
    }
}
