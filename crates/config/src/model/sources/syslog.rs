//! Syslog.

use std::collections::BTreeMap;

use super::super::access::ListenerTls;
use super::source_pipeline::SourceKind;
use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration, Name, SyslogAddress, TenantName};

settings! {
    /// Syslog: RFC 5424 and RFC 3164.
    pub struct SyslogSource {
        /// The addresses to listen on, each with a unique name. Default: none.
        listeners: BTreeMap<Name, SyslogListener> = BTreeMap::new(),
        /// The tenant of the messages. Default: `tenants.default`.
        tenant: Option<TenantName> = None,
    }
}

settings! {
    /// An address that receives syslog.
    pub struct SyslogListener {
        /// Where to listen: `tcp://`, `tls://` or `udp://` with an address and a port, `unix:` with the path of a stream socket,
        /// or `unixgram:` with that of a datagram socket such as `/dev/log`.
        address: SyslogAddress,
        /// The format of the messages.
        format: SyslogFormat = SyslogFormat::Auto,
        /// How messages in a stream are told apart. Datagrams are one message each.
        framing: SyslogFraming = SyslogFraming::Auto,
        /// Longest message. A longer one is cut.
        max_message: Bytes [Bytes::new(480)..=Bytes::kib(64)] = Bytes::kib(64),
        /// The zone of times without one (RFC 3164): `UTC`, `local`, an offset such as `+02:00`, or a name such as `Europe/Berlin`. Such times
        /// have no year either: they are of the year in which they are nearest to now.
        timezone: String = "UTC".to_owned(),
        /// How long a connection may send nothing. Default: as long as it likes.
        idle_timeout: Option<Duration> [Duration::seconds(1)..=Duration::days(1)] = None,
        /// The tenant of the messages. Default: `sources.syslog.tenant`.
        tenant: Option<TenantName> = None,
        /// The certificate of a `tls://` address. Settings left out are those of `listen.tls`.
        tls: ListenerTls = ListenerTls::default(),
    }
}

choices! {
    /// The format of syslog messages.
    pub enum SyslogFormat is "a format" {
        /// RFC 5424 if a message begins like that, otherwise RFC 3164.
        Auto = "auto",
        /// RFC 5424. The text of other messages is kept.
        Rfc5424 = "rfc5424",
        /// RFC 3164, the format of BSD, and what devices make of it.
        Rfc3164 = "rfc3164",
    }
}

choices! {
    /// How messages in a stream are told apart.
    pub enum SyslogFraming is "a framing" {
        /// Each message decides: one that begins with its length and a space before the `<` is counted, others end with a line feed or
        /// a NUL.
        Auto = "auto",
        /// All messages begin with their length (RFC 5425, RFC 6587).
        OctetCounting = "octet_counting",
        /// All messages end with a line feed or a NUL.
        Newline = "newline",
    }
}

impl SourceKind for SyslogSource {}

impl SyslogSource {
    /// The TLS settings of the listeners that use TLS.
    pub(crate) fn tls(&self) -> impl Iterator<Item = &ListenerTls> {
        let is_tls = |listener: &&SyslogListener| matches!(listener.address, SyslogAddress::Tls(_));
        self.listeners.values().filter(is_tls).map(|listener| &listener.tls)
    }
}
