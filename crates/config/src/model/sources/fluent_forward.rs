use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::declare::settings;
use crate::model::access::ListenerTls;
use crate::values::{Bytes, Duration, Name, Secret, TenantName, UnixSocket};

settings! {
    /// Fluentd's forward protocol.
    pub struct FluentForwardSource {
        /// Listening address. Fluentd's port is 24224.
        address: Option<SocketAddr> = None,
        /// Unix socket, for local clients in the socket's group (mode 0660).
        unix: Option<UnixSocket> = None,
        /// TLS at `address`; an empty mapping uses the certificate of `listen.tls`. Default: no TLS.
        tls: Option<ListenerTls> = None,
        /// Key that clients must have: `shared_key` of Fluentd and Fluent Bit. Default: clients need no key.
        shared_key: Option<Secret> = None,
        /// Users with their passwords, one of which clients must have besides `shared_key`. Default: the key suffices.
        users: BTreeMap<Name, Secret> = BTreeMap::new(),
        /// Name of this server in the handshake: `self_hostname` of Fluentd. Clients must have another one.
        hostname: String = "tidegate".to_owned(),
        /// Members of a record that become the body of the log record: the first that is there. The others become attributes.
        body_keys: Vec<String> = vec!["log".to_owned(), "message".to_owned()],
        /// Largest message, both as sent and decompressed: Fluentd's chunk. A connection with a larger one is closed.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(16),
        /// Largest record. A larger one is dropped and counted; the other records of its message are accepted.
        max_record: Bytes [Bytes::kib(4)..=Bytes::mib(64)] = Bytes::mib(1),
        /// How long a client may take for the rest of a message, for the handshake, and for reading an acknowledgement.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(60),
        /// Tenant of the records. Default: `tenants.default`.
        tenant: Option<TenantName> = None,
    }
}

impl FluentForwardSource {
    /// Whether it listens anywhere.
    pub fn is_configured(&self) -> bool {
        self.address.is_some() || self.unix.is_some()
    }
}
