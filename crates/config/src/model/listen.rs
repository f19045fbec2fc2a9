use std::net::{Ipv4Addr, SocketAddr};

use super::access::ListenTls;
use crate::declare::settings;
use crate::values::{HostName, UnixSocket};

settings! {
    /// Where to listen.
    pub struct Listen {
        /// Every HTTP protocol, told apart by path.
        http: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4318)),
        /// The same protocols again, where OpenTelemetry's clients expect gRPC. Both addresses take HTTP/1.1 and
        /// HTTP/2 alike; give it the address of `http` to listen on one only.
        grpc: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4317)),
        /// Elasticsearch alone, with the paths that it has itself: for clients that cannot have a path of their own
        /// before them. Elasticsearch listens on port 9200.
        elasticsearch: Option<SocketAddr> = None,
        /// The same protocols once more, where agents of Elastic APM look for their server: that is port 8200.
        apm: Option<SocketAddr> = None,
        /// The same protocols once more on a Unix socket, for senders on this machine that may write to it: the file's
        /// group may (mode 0660). TLS and bounds for each peer do not apply there; its clients count as coming from
        /// 127.0.0.1. A `.lock` file beside the socket keeps it one gateway's.
        unix: Option<UnixSocket> = None,
        /// Operation: `/metrics`, `/status`, `/health`, `/ready`. Not to be reachable by strangers.
        admin: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4319)),
        /// Names by which `admin` may be asked, besides `localhost` and its own address (any address where it listens on
        /// all): what stands in the `Host` of scrapers and browsers, without the port. Requests by other names are
        /// answered 421, since any page in a browser can have a name of its own lead here.
        admin_hosts: Option<Vec<HostName>> = None,
        /// TLS for those who send.
        tls: ListenTls = ListenTls::default(),
        /// Whether an address that others can reach may be served without TLS: what is sent there, tokens and passwords
        /// with it, can be read and changed on its way. Only where the network itself is trusted, or a proxy before
        /// tidegate speaks TLS.
        insecure: bool = false,
    }
}
