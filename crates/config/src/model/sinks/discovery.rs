use crate::declare::settings;
use crate::values::{DnsUrl, Duration};
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    /// Endpoints that come and go, besides those of `endpoints`. A failed look-up or a file that cannot be used leaves the known
    /// endpoints in use.
    pub struct DiscoverySettings {
        /// URLs whose hosts are looked up in DNS.
        dns: Option<Vec<DnsUrl>> = None,
        /// File with a URL on each line, or a list of URLs in JSON or YAML. It is read again when it changes.
        file: Option<PathBuf> = None,
        /// How often names are looked up.
        interval: Duration [Duration::seconds(1)..=Duration::minutes(60)] = Duration::seconds(30),
        /// The DNS servers to ask. Default: those of the system.
        name_servers: Option<Vec<SocketAddr>> = None,
    }
}

impl DiscoverySettings {
    /// Whether there is anything to look up or to read.
    pub fn is_used(&self) -> bool {
        self.dns.is_some() || self.file.is_some()
    }
}
