//! The configuration of a sender.

mod endpoint;
mod env;
#[cfg(test)]
mod tests;

pub(crate) use endpoint::{Address, Endpoint};
pub use env::{SETTINGS, Setting};

use crate::class::Signal;
use crate::ring::MIN_BYTES;
use crate::sender::Sender;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The endpoint's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OTLP over HTTP, as protobuf
    #[default]
    Otlp,
    /// Elastic APM intake v2, as lines of JSON
    ElasticApm,
}

/// How bodies are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// gzip, but nothing to a unix socket or to this machine
    #[default]
    Auto,
    /// gzip
    Gzip,
    /// nothing
    None,
}

/// Settings that cannot work, each as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub(crate) mistakes: Vec<String>,
}

impl ConfigError {
    /// All mistakes, in the order of the settings.
    pub fn mistakes(&self) -> &[String] {
        &self.mistakes
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.mistakes.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// Settings of a [`Sender`], all of which have a default.
///
/// Nothing is checked before [`start`](Builder::start), which names all mistakes at once.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before `start`"]
pub struct Builder {
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: String,
    pub(crate) signal_endpoints: [Option<String>; 3],
    pub(crate) headers: Vec<(Option<Signal>, String, String)>,
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) scope: (String, String),
    pub(crate) ring_bytes: usize,
    pub(crate) event_bytes: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) stripes: usize,
    pub(crate) flush_interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) backoff: (Duration, Duration),
    pub(crate) compression: Compression,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    pub(crate) unverified: bool,
    pub(crate) disabled: bool,
    pub(crate) mistakes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Builder {
            protocol: Protocol::Otlp,
            endpoint: String::new(),
            signal_endpoints: [None, None, None],
            headers: Vec::new(),
            resource: Vec::new(),
            scope: (String::new(), String::new()),
            ring_bytes: 1 << 20,
            event_bytes: 300 << 10,
            batch_bytes: 256 << 10,
            stripes: cores.next_power_of_two().clamp(2, 16),
            flush_interval: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            backoff: (Duration::from_secs(1), Duration::from_secs(36)),
            compression: Compression::Auto,
            authorities: None,
            identity: None,
            unverified: false,
            disabled: false,
            mistakes: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Builder {
    /// The endpoint's protocol; OTLP by default.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Where to: `http://host:4318`, `https://host/prefix`, or `unix:/run/tidegate.sock`. The protocol's own
    /// path (`/v1/traces` and so on, or `/intake/v2/events`) is appended. By default this machine, at the
    /// protocol's usual port.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = url.into();
        self
    }

    /// Where one signal goes, taken as it is: nothing is appended.
    pub fn signal_endpoint(mut self, signal: Signal, url: impl Into<String>) -> Self {
        if let Some(endpoint) = self.signal_endpoints.get_mut(signal as usize) {
            *endpoint = Some(url.into());
        }
        self
    }

    /// A header of every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((None, name.into(), value.into()));
        self
    }

    /// `Authorization: Bearer …`: a bearer token, or the secret token of an APM server.
    pub fn bearer(self, token: impl fmt::Display) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// `Authorization: ApiKey …`, where `key` is already encoded, as Elasticsearch hands it out.
    pub fn api_key(self, key: impl fmt::Display) -> Self {
        self.header("Authorization", format!("ApiKey {key}"))
    }

    /// The name of the service, `service.name`.
    pub fn service(self, name: impl Into<String>) -> Self {
        self.resource("service.name", name)
    }

    /// Something that is true of all events; replaces what was said under the same name.
    pub fn resource(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.resource.retain(|(other, _)| *other != name);
        self.resource.push((name, value));
        self
    }

    /// Name and version of the default [`Scope`](crate::Scope).
    pub fn scope(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.scope = (name.into(), version.into());
        self
    }

    /// Memory of the ring: 1 MiB by default, 128 KiB at least.
    pub fn ring_bytes(mut self, bytes: usize) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// An event at most, encoded: 300 KiB by default, which is what an APM server takes; never more than
    /// half of the ring.
    pub fn event_bytes(mut self, bytes: usize) -> Self {
        self.event_bytes = bytes;
        self
    }

    /// A request is sent as soon as about so many bytes wait (uncompressed), and takes no more unless a
    /// single event is larger: 256 KiB by default, half of the ring at most.
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// In how many places threads can write without meeting each other: by default one per core, 16 at most.
    pub fn stripes(mut self, stripes: usize) -> Self {
        self.stripes = stripes;
        self
    }

    /// How long an event waits for others at most: 1 s by default.
    pub fn flush_interval(mut self, interval: Duration) -> Self {
        self.flush_interval = interval;
        self
    }

    /// How long a request may take, connecting and the answer included: 10 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The wait after the first failure, doubled after each further one, and the longest: 1 s and 36 s by
    /// default. Each wait is between half and all of that, by chance.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = (first, longest.max(first));
        self
    }

    /// How bodies are packed.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// A PEM file with the certificate authorities to trust, instead of the system's.
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.authorities = Some(file.into());
        self
    }

    /// PEM files with the certificate that this program shows to the peer, and its key.
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Does not check who the peer is. For tests, and for `ELASTIC_APM_VERIFY_SERVER_CERT`.
    pub fn trust_anybody(mut self) -> Self {
        self.unverified = true;
        self
    }

    /// Takes all events and sends none: they are counted as dropped for `shutdown`.
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// Warnings about environment variables that were interpreted differently than intended, each as a sentence. The
    /// caller should log them; the library does not.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Allocates everything, and starts the sending thread. The peer need not be there.
    pub fn start(self) -> Result<Sender, ConfigError> {
        Sender::start(&self)
    }

    /// The endpoint of each signal; an APM server has the same for all.
    pub(crate) fn endpoints(&self, mistakes: &mut Vec<String>) -> [Option<Endpoint>; 3] {
        Signal::ALL.map(|signal| {
            let own = self.signal_endpoints.get(signal as usize).and_then(Option::as_deref);
            let (url, path) = match (own, self.protocol) {
                (Some(url), Protocol::Otlp) => (url, String::new()),
                (_, Protocol::Otlp) => (self.base("http://localhost:4318"), format!("/v1/{}", signal.name())),
                (_, Protocol::ElasticApm) => {
                    (self.base("http://127.0.0.1:8200"), "/intake/v2/events".to_owned())
                }
            };
            Endpoint::parse(url, &path).map_err(|mistake| mistakes.push(mistake)).ok()
        })
    }

    fn base<'a>(&'a self, default: &'a str) -> &'a str {
        if self.endpoint.is_empty() { default } else { &self.endpoint }
    }

    pub(crate) fn gzip_to(&self, endpoint: &Endpoint) -> bool {
        match self.compression {
            Compression::Gzip => true,
            Compression::None => false,
            Compression::Auto => !endpoint.is_near(),
        }
    }

    pub(crate) fn check(&self, mistakes: &mut Vec<String>) {
        mistakes.extend(self.mistakes.iter().cloned());
        if self.ring_bytes < MIN_BYTES {
            mistakes.push(format!(
                "a ring of {} bytes is too small: give it at least {MIN_BYTES}",
                self.ring_bytes
            ));
        }
        if self.ring_bytes > u32::MAX as usize / 2 {
            mistakes.push(format!("a ring of {} bytes is too large: 2 GiB is the most", self.ring_bytes));
        }
        for (_, name, value) in &self.headers {
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(token) {
                mistakes.push(format!("`{name}` is not the name of a header: use letters, digits and -"));
            }
            if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 127)) {
                mistakes.push(format!("the value of header `{name}` has control characters: take them out"));
            }
        }
        if !cfg!(feature = "tls") && (self.authorities.is_some() || self.identity.is_some()) {
            mistakes.push("certificates were given, but this was built without the feature `tls`".to_owned());
        }
    }
}
