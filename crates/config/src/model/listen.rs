use std::net::{Ipv4Addr, SocketAddr};

use super::access::ListenTls;
use super::fleet::FleetListener;
use super::opamp::OpampListener;
use super::thanos_receive::ThanosReceiveListener;
use crate::declare::settings;
use crate::values::{HostName, UnixSocket};

settings! {
    /// Listening addresses.
    pub struct Listen {
        /// Every HTTP protocol, distinguished by path.
        http: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4318)),
        /// The same protocols, on the default port of gRPC clients. Both addresses accept HTTP/1.1 and HTTP/2; set it
        /// to the address of `http` to listen on only one.
        grpc: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4317)),
        /// The Elasticsearch API alone, at Elasticsearch's own paths: for clients that cannot add a path prefix.
        /// Elasticsearch's port is 9200.
        elasticsearch: Option<SocketAddr> = None,
        /// The same protocols as `http`, on the default port of Elastic APM agents, 8200.
        apm: Option<SocketAddr> = None,
        /// An address that serves what Thanos Receive serves to senders, with its tenant rules: for senders, probes and
        /// alerts that were made for Thanos.
        thanos_receive: Option<ThanosReceiveListener> = None,
        /// An address that serves what Fleet Server serves to Elastic Agents. Write `fleet: {}` for its default, port 8220 of
        /// this machine.
        fleet: Option<FleetListener> = None,
        /// An address where agents that speak OpAMP are managed, such as OpenTelemetry Collectors. Write `opamp: {}` for its default,
        /// port 4320 of this machine.
        opamp: Option<OpampListener> = None,
        /// The same protocols as `http`, on a Unix socket, for local senders in the socket's group (mode 0660). TLS
        /// and per-client limits do not apply; clients count as 127.0.0.1. A `.lock` file beside the socket prevents
        /// a second gateway from using it.
        unix: Option<UnixSocket> = None,
        /// Operations: `/metrics`, `/status`, `/pipelines`, `/files`, `/health`, `/ready`. Do not expose it to untrusted networks.
        admin: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4319)),
        /// Host names of the admin address, in addition to `localhost` and its own address (any address, if it
        /// listens on all): the `Host` header of scrapers and browsers, without the port. Requests for other names
        /// are answered 421, as protection against DNS rebinding.
        admin_hosts: Option<Vec<HostName>> = None,
        /// TLS for clients.
        tls: ListenTls = ListenTls::default(),
        /// Whether a non-loopback address may be served without TLS. Everything sent there, including tokens and
        /// passwords, can be read and changed on the network. Only for trusted networks, or behind a proxy that
        /// terminates TLS.
        insecure: bool = false,
    }
}
