//! The address of agents that speak OpAMP.

use std::net::{Ipv4Addr, SocketAddr};

use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration, Url};

choices! {
    /// The agents that may connect.
    pub enum OpampAccess is "one of these" {
        /// Agents with a token of `tidegate fleet collector token create`.
        Tokens = "tokens",
        /// Everybody who reaches the address. Configurations may hold credentials.
        Open = "open",
    }
}

settings! {
    /// An address where OpenTelemetry Collectors and other agents that speak OpAMP report, and get the configurations assigned to
    /// them. The path is `/v1/opamp`, over WebSocket and plain HTTP. `tidegate fleet config` and `tidegate fleet collector` manage them.
    pub struct OpampListener {
        /// The address. 4320 is the port of OpAMP.
        address: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4320)),
        /// The agents that may connect.
        access: OpampAccess = OpampAccess::Tokens,
        /// The longest message of an agent, as received and decompressed.
        max_message: Bytes [Bytes::kib(64)..=Bytes::mib(64)] = Bytes::mib(1),
        /// Memory of messages and answers in progress. At least 4 MiB more than four times `max_message`.
        memory: Bytes [Bytes::mib(4)..=Bytes::gib(4)] = Bytes::mib(12),
        /// The URL of an OTLP receiver over HTTP, such as this gateway's, that agents are told to send their own telemetry to.
        own_telemetry: Option<Url> = None,
        /// Agents that were not seen for this long are forgotten.
        forget_after: Duration [Duration::minutes(1)..=Duration::days(365)] = Duration::days(7),
    }
}
