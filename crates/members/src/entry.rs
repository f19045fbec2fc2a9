//! An entry of a configured list: an address, or a name that stands for several.

/// One entry of a list of members.
///
/// | written | its members |
/// |---|---|
/// | `host:port`, `http://host:port/path` | itself |
/// | `dns+host:port`, `dns+http://host:port/path` | the same with each IPv4 and IPv6 address of the host |
/// | `dnssrv+_service._proto.name`, `dnssrv+http://_service._proto.name/path` | the same with host and port of each SRV record (RFC 2782) |
///
/// The prefixes are those of Thanos and Prometheus-style tools; `dnssrv+` does not resolve the hosts of the records, as `dnssrvnoa+`
/// of Thanos: a pod of a StatefulSet keeps its place when its address changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An address.
    Literal(String),
    /// A name with addresses.
    Addresses(Pattern),
    /// A name with SRV records.
    Services(Pattern),
}

/// A name within an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Before the name: a scheme, or nothing.
    before: String,
    name: String,
    /// After the name: a port, a path, or nothing.
    after: String,
}

/// An entry cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// There is no name.
    #[error("the name to look up is missing")]
    NoName,
    /// DNS cannot carry the name.
    #[error("this is no DNS name: labels have 1 to 63 characters, all of them 253 at most")]
    Name,
    /// SRV records say the port.
    #[error("SRV records have the port: leave it out, or use `dns+`")]
    Port,
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// [`EntryError`], never for a text without `dns+` or `dnssrv+`.
    pub fn parse(text: &str) -> Result<Entry, EntryError> {
        if let Some(rest) = text.strip_prefix("dns+") {
            let pattern = Pattern::parse(rest)?;
            // An address is its own answer.
            let is_address =
                pattern.name.parse::<std::net::Ipv4Addr>().is_ok() || pattern.name.starts_with('[');
            return Ok(if is_address { Entry::Literal(rest.to_owned()) } else { Entry::Addresses(pattern) });
        }
        let Some(rest) = text.strip_prefix("dnssrv+") else { return Ok(Entry::Literal(text.to_owned())) };
        let pattern = Pattern::parse(rest)?;
        if pattern.after.starts_with(':') {
            return Err(EntryError::Port);
        }
        Ok(Entry::Services(pattern))
    }

    /// Whether its members come from DNS.
    #[must_use]
    pub fn is_looked_up(&self) -> bool {
        !matches!(self, Entry::Literal(_))
    }

    /// An address of the form that its members have, for checking the rest of it: the literal itself, or an example.
    #[must_use]
    pub fn example(&self) -> String {
        match self {
            Entry::Literal(address) => address.clone(),
            Entry::Addresses(pattern) => pattern.with("192.0.2.1"),
            Entry::Services(pattern) => pattern.with("host.example:1"),
        }
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, EntryError> {
        let from = text.find("://").map_or(0, |at| at + 3);
        let authority = text.get(from..).unwrap_or_default();
        let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
        let authority = authority.get(..end).unwrap_or_default();
        let start = authority.rfind('@').map_or(0, |at| at + 1);
        let host = authority.get(start..).unwrap_or_default();
        let length = if host.starts_with('[') { host.find(']').map(|at| at + 1) } else { host.find(':') };
        let name = host.get(..length.unwrap_or(host.len())).unwrap_or_default();
        let (before, after) = text.split_at(from + start);
        let after = after.get(name.len()..).unwrap_or_default();
        if name.is_empty() {
            return Err(EntryError::NoName);
        }
        if !name.starts_with('[') && !crate::dns::is_name(name) {
            return Err(EntryError::Name);
        }
        Ok(Pattern { before: before.to_owned(), name: name.to_owned(), after: after.to_owned() })
    }

    /// The name to look up.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address with `host` in the place of the name.
    pub(crate) fn with(&self, host: &str) -> String {
        format!("{}{host}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_within_an_address() {
        for (text, name, example) in [
            ("dns+receive:10901", "receive", "192.0.2.1:10901"),
            ("dns+receive", "receive", "192.0.2.1"),
            (
                "dns+http://store.ns.svc:9090/api/v1/write?x=y:z",
                "store.ns.svc",
                "http://192.0.2.1:9090/api/v1/write?x=y:z",
            ),
            ("dns+https://store./v1", "store.", "https://192.0.2.1/v1"),
            ("dns+http://user:secret@store:1", "store", "http://user:secret@192.0.2.1:1"),
            ("dnssrv+_grpc._tcp.receive", "_grpc._tcp.receive", "host.example:1"),
            ("dnssrv+http://_http._tcp.store.ns/write", "_http._tcp.store.ns", "http://host.example:1/write"),
        ] {
            let entry = Entry::parse(text).unwrap();
            let (Entry::Addresses(pattern) | Entry::Services(pattern)) = &entry else { panic!("{entry:?}") };
            assert_eq!((pattern.name(), entry.example().as_str()), (name, example));
            assert!(entry.is_looked_up());
        }
    }

    #[test]
    fn addresses_stand_for_themselves() {
        for (text, address) in [
            ("receive:10901", "receive:10901"),
            ("http://host/dns+x", "http://host/dns+x"),
            ("dns+192.0.2.7:1", "192.0.2.7:1"),
            ("dns+http://[2001:db8::1]:1/x", "http://[2001:db8::1]:1/x"),
        ] {
            assert_eq!(Entry::parse(text), Ok(Entry::Literal(address.to_owned())));
        }
    }

    #[test]
    fn what_cannot_be_looked_up_is_refused() {
        for text in ["dns+", "dns+:9090", "dns+http://", "dns+http:///path", "dnssrv+http://@/x"] {
            assert_eq!(Entry::parse(text), Err(EntryError::NoName), "{text}");
        }
        let long = format!("dns+{}:1", "x".repeat(64));
        for text in ["dns+a..b:1", "dns+.a:1", "dns+a b:1", long.as_str()] {
            assert_eq!(Entry::parse(text), Err(EntryError::Name), "{text}");
        }
        assert_eq!(Entry::parse("dnssrv+_a._tcp.b:1"), Err(EntryError::Port));
    }
}
