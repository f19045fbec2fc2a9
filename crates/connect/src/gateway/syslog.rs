//! The addresses of syslog.

use super::Gateway;
use crate::endpoint::{Abilities, Endpoint, Tenant, Tls};
use crate::missing::Missing;
use tidegate_config::{SyslogAddress, SyslogFormat, SyslogFraming, SyslogListener, UnixSocket};

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Tcp,
    Tls,
    Udp,
}

/// One listener on the network.
#[derive(Debug, Clone)]
pub(crate) struct SyslogTarget<'a> {
    pub(crate) endpoint: Endpoint<'a>,
    pub(crate) transport: Transport,
    /// The setting of the listener.
    setting: String,
    framing: SyslogFraming,
    /// Whether messages in a stream begin with their length.
    pub(crate) counted: bool,
    /// Whether messages are those of RFC 3164.
    pub(crate) old_format: bool,
    /// What to know about its tenant.
    tenant_note: Option<String>,
}

impl<'a> Gateway<'a> {
    /// The best listener for a sender that can use these transports: the earliest of them counts most.
    pub(crate) fn syslog(self, transports: &[Transport]) -> Result<SyslogTarget<'a>, Missing> {
        let targets = self.config.sources.syslog.listeners.iter().filter_map(|(name, listener)| {
            let transport = match listener.address {
                SyslogAddress::Tcp(_) => Transport::Tcp,
                SyslogAddress::Tls(_) => Transport::Tls,
                SyslogAddress::Udp(_) => Transport::Udp,
                SyslogAddress::Unix(_) | SyslogAddress::UnixDatagram(_) => return None,
            };
            let rank = transports.iter().position(|usable| *usable == transport)?;
            Some((rank, self.target(name.as_str(), listener, transport)?))
        });
        targets.min_by_key(|(rank, _)| *rank).map(|(_, target)| target).ok_or_else(missing)
    }

    /// The path of a datagram socket for syslog, if there is one.
    pub(crate) fn syslog_socket(self) -> Option<&'a UnixSocket> {
        self.config.sources.syslog.listeners.values().find_map(|listener| match &listener.address {
            SyslogAddress::UnixDatagram(socket) => Some(socket),
            _ => None,
        })
    }

    fn target(
        self,
        name: &str,
        listener: &'a SyslogListener,
        transport: Transport,
    ) -> Option<SyslogTarget<'a>> {
        let address = listener.address.socket()?;
        let setting = format!("sources.syslog.listeners.{name}");
        let (host, reach) = self.reach(address, &format!("{setting}.address"));
        let is_tls = transport == Transport::Tls;
        let tls = is_tls.then(|| self.config.listen.tls.effective_of(&listener.tls)).flatten().map(Tls::new);
        Some(SyslogTarget {
            endpoint: Endpoint {
                sender: self.sender,
                host,
                port: address.port(),
                base: String::new(),
                tls,
                credentials_file: None,
                tenant: Tenant::None,
                reach,
            },
            transport,
            setting,
            framing: listener.framing,
            counted: transport != Transport::Udp && listener.framing != SyslogFraming::Newline,
            old_format: listener.format == SyslogFormat::Rfc3164,
            tenant_note: self.source_tenant_note(
                listener.tenant.as_ref().or(self.config.sources.syslog.tenant.as_ref()),
                "sources.syslog.tenant",
            ),
        })
    }
}

fn missing() -> Missing {
    Missing {
        protocol: "syslog",
        setting: "sources.syslog.listeners",
        lines: "sources:\n  syslog:\n    listeners:\n      network: { address: \"tcp://127.0.0.1:5514\" }\n".to_owned(),
        note: "For senders on other machines, use `tls://0.0.0.0:6514` with a certificate in `listen.tls`; devices that know nothing else \
               need `udp://` and `listen.insecure: true`."
            .to_owned(),
    }
}

impl SyslogTarget<'_> {
    /// What to know about it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.endpoint.reach.clone();
        notes.extend(self.endpoint.tls_notes(Abilities::ALL));
        notes.extend(self.tenant_note.clone());
        notes.push(match self.transport {
            Transport::Udp => "UDP loses messages when either side has no room for them; tidegate counts those that it had no room for."
                .to_owned(),
            Transport::Tcp | Transport::Tls => {
                "Syslog has no acknowledgements: what is in the buffers of a connection is lost when it breaks.".to_owned()
            }
        });
        notes
    }

    /// Where the listener allows only the framing that a sender does not use: it counts octets, or ends messages with a line feed.
    pub(crate) fn framing_note(&self, counts: bool) -> Option<String> {
        let (allowed, sent) = match (self.framing, counts) {
            (SyslogFraming::OctetCounting, false) => ("octet_counting", "ends messages with a line feed"),
            (SyslogFraming::Newline, true) => ("newline", "begins messages with their length"),
            _ => return None,
        };
        (self.transport != Transport::Udp).then(|| {
            format!(
                "The listener has `framing: {allowed}`, but this sender {sent}: set `{}.framing` to `auto`.",
                self.setting
            )
        })
    }
}
