//! The settings that all sinks over the network have in common.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::declare::settings;
use crate::model::WhenFull;
use crate::values::{Duration, HeaderName, Secret};

settings! {
    /// How requests are sent, and how long their data is kept.
    pub struct Delivery {
        /// Delay between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization` or `x-scope-orgid`. Their values are never shown.
        headers: BTreeMap<HeaderName, Secret> = BTreeMap::new(),
        /// Header for the tenant's name, for example `X-Scope-OrgID`. A request contains the data of one tenant only;
        /// data without a tenant is sent without the header.
        tenant_header: Option<HeaderName> = None,
        /// TLS settings for `https` endpoints.
        tls: Tls = Tls::default(),
        /// Whether keys, passwords and tokens may be sent to another machine over plain `http`, where anyone on the
        /// network can read them. Only for trusted networks.
        insecure: bool = false,
        /// Behaviour when this sink is so far behind that the journal is full. Default: `journal.when_full`.
        when_full: Option<WhenFull> = None,
    }
}

settings! {
    /// Delay between attempts.
    pub struct Backoff {
        /// Delay before the second attempt. It doubles with each further attempt, with jitter. A longer `Retry-After`
        /// of the receiver takes precedence.
        min: Duration [Duration::milliseconds(1)..=Duration::hours(1)] = Duration::milliseconds(30),
        /// Longest delay between two attempts.
        max: Duration [Duration::milliseconds(1)..=Duration::hours(1)] = Duration::seconds(5),
    }
}

settings! {
    /// TLS towards the receivers.
    pub struct Tls {
        /// PEM file with the certificate authorities to trust. Default: the system's.
        ca_file: Option<PathBuf> = None,
        /// PEM file with the client certificate, if the receivers require one.
        cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// Host name that the receivers' certificates must match, if it differs from the endpoint's, for example
        /// behind an IP address or a tunnel.
        server_name: Option<String> = None,
    }
}
