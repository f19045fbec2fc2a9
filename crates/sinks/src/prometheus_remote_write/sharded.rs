//! Remote write with `shard_by`: series are spread over receivers by their labels, and each series is at as many of them as there are
//! `replicas`.
//!
//! [`spread`](crate::spread) does the work; here is what remote write adds: which labels are hashed, requests of 1.0 that are compressed while
//! they fill, and what the answers mean. The design is in `design/remote-write.md`.

mod answer;
mod divide;
mod message;
mod peer;
mod protocol;
mod reroute;
mod settings;

pub use settings::{ShardBy, Sharding};

use super::Settings;
use crate::egress_budget::EgressBudget;
use crate::journal_consumer::SinkContext;
use crate::need::Need;
use crate::spread::{RingSource, RingSourceError, Spread, SpreadError, series};
use crate::stop::StopSignal;
use message::Coder;
use protocol::ShardedProtocol;
use tidegate_journal::{Protocol, Signal};

/// The sink with `shard_by`, attached to the journal and ready to run.
pub struct ShardedRemoteWrite(Spread<ShardedProtocol>);

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ShardedStartError {
    /// Its members.
    #[error(transparent)]
    Members(#[from] RingSourceError),
    /// The journal, its logs or its members.
    #[error(transparent)]
    Spread(#[from] SpreadError),
}

impl ShardedRemoteWrite {
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

    /// Bytes that a receiver takes beyond payload.
    #[must_use]
    pub fn member_bytes(is_secure: bool) -> usize {
        Spread::<ShardedProtocol>::MEMBER_BYTES + peer::bytes(is_secure)
    }

    /// Bytes that each replica of each receiver takes beyond payload: a request that fills.
    #[must_use]
    pub const fn request_bytes() -> usize {
        Spread::<ShardedProtocol>::REQUEST_BYTES
    }

    /// Bytes that the sink takes beyond payload, receivers and requests: coders, symbols, records in flight.
    #[must_use]
    pub fn bytes() -> usize {
        Spread::<ShardedProtocol>::BYTES + Coder::BYTES + series::scratch_bytes()
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`ShardedStartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        (settings, sharding): (Settings, Sharding),
        stop: StopSignal,
    ) -> Result<ShardedRemoteWrite, ShardedStartError> {
        let members = RingSource::open(sharding.members.clone(), sharding.replicas)?;
        let engine = sharding.spread(&settings);
        let protocol = ShardedProtocol { settings, shard_by: sharding.shard_by };
        Ok(ShardedRemoteWrite(Spread::start(context, room, (protocol, engine), members, stop)?))
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent or handed off.
    pub fn run(self) -> impl Future<Output = ()> + Send {
        self.0.run()
    }
}
