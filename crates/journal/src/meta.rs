//! A batch's metadata, known without reading its body.

use std::fmt;

/// The longest tenant name, in bytes.
pub const TENANT_MAX: usize = 128;

/// The tenant: up to [`TENANT_MAX`] bytes of UTF-8, held inline so that copying does not allocate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// Invariant: the first `len` of `bytes` are UTF-8, the others are zero.
    len: u8,
    bytes: [u8; TENANT_MAX],
}

impl Tenant {
    /// No tenant: where one installation serves one owner.
    pub const NONE: Tenant = Tenant { len: 0, bytes: [0; TENANT_MAX] };

    /// The tenant called `name`, or nothing when the name is longer than [`TENANT_MAX`].
    pub fn new(name: &str) -> Option<Tenant> {
        let mut tenant = Tenant::NONE;
        tenant.bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        tenant.len = u8::try_from(name.len()).ok()?;
        Some(tenant)
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        self.bytes.get(..usize::from(self.len)).and_then(|name| str::from_utf8(name).ok()).unwrap_or("")
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant({:?})", self.as_str())
    }
}

/// Declares an enum whose numbers are written to disk, so none of them may ever change.
macro_rules! code {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$each])* $variant = $code,)+ }

        impl $name {
            /// The meaning of the byte `code`; `None` if this version does not know it.
            pub const fn from_u8(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$variant),)+ _ => None }
            }

            /// The name in listings and metrics.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
    };
}

code! {
    /// A batch's kind of telemetry.
    Signal {
        /// Samples, histograms, exemplars and their metadata.
        Metrics = 0 "metrics",
        /// Log records.
        Logs = 1 "logs",
        /// Spans.
        Traces = 2 "traces",
        /// Items of several signals, and what is none of the others.
        Events = 3 "events",
        /// Profiles.
        Profiles = 4 "profiles",
    }
}

code! {
    /// How a body is laid out once decompressed.
    Protocol {
        /// Prometheus Remote-Write 1.0: a `prometheus.WriteRequest`.
        RemoteWrite1 = 0 "remote_write_1",
        /// Prometheus Remote-Write 2.0: an `io.prometheus.write.v2.Request`.
        RemoteWrite2 = 1 "remote_write_2",
        /// An OTLP export request, in protobuf.
        Otlp = 2 "otlp",
        /// An OTLP export request, in JSON.
        OtlpJson = 3 "otlp_json",
        /// Elastic APM intake: lines of JSON.
        Intake = 4 "intake",
        /// Elasticsearch `_bulk`: pairs of lines.
        Bulk = 5 "bulk",
        /// Lines of a container's log, as the CRI writes them.
        Cri = 6 "cri",
    }
}

code! {
    /// How a body is compressed.
    Encoding {
        /// Not at all.
        Identity = 0 "identity",
        /// One raw Snappy block.
        Snappy = 1 "snappy",
        /// gzip members.
        Gzip = 2 "gzip",
        /// zstd frames.
        Zstd = 3 "zstd",
        /// One zlib stream, which HTTP calls `deflate`.
        Deflate = 4 "deflate",
    }
}

/// The metadata that travels with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The tenant.
    pub tenant: Tenant,
    /// The signals.
    pub signal: Signal,
    /// How it is laid out.
    pub protocol: Protocol,
    /// How it is compressed.
    pub encoding: Encoding,
    /// How many items it holds.
    pub items: u32,
    /// Its length once decompressed, in bytes.
    pub raw_len: u32,
    /// When it was received, in nanoseconds since 1970.
    pub received_at_ns: u64,
}

impl Meta {
    /// The signals that items of a mixed record may be of.
    pub const MIXED: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    /// Whether its items are of several signals, and each of them says of which.
    #[must_use]
    pub const fn is_mixed(&self) -> bool {
        is_mixed(self.protocol, self.signal)
    }
}

/// Whether the items of a record of this protocol and signal are of several signals, and each of them says of which.
#[must_use]
pub const fn is_mixed(protocol: Protocol, signal: Signal) -> bool {
    matches!((protocol, signal), (Protocol::Intake, Signal::Events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_as_they_were_written() {
        for code in 0..=u8::MAX {
            assert!(Signal::from_u8(code).is_none_or(|signal| signal as u8 == code));
            assert!(Protocol::from_u8(code).is_none_or(|protocol| protocol as u8 == code));
            assert!(Encoding::from_u8(code).is_none_or(|encoding| encoding as u8 == code));
        }
    }

    #[test]
    fn tenants_are_at_most_their_longest() {
        let name = "t".repeat(TENANT_MAX);
        assert_eq!(Tenant::new(&name).unwrap().as_str(), name);
        assert!(Tenant::new(&(name + "t")).is_none());
        assert_eq!(Tenant::new("").unwrap(), Tenant::NONE);
    }
}
