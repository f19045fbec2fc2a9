use std::fmt;
use std::str::FromStr;

/// Where requests go: `http://host:port/path`, without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host and port, as they stand in the URL.
    pub authority: String,
    /// The path and what follows it.
    pub path: String,
}

/// A text that is not a [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a target: write it as http://host:port/path")]
pub struct BadTarget(String);

impl Target {
    /// The remote-write endpoint at this address.
    pub fn remote_write(address: std::net::SocketAddr) -> Self {
        Self { authority: address.to_string(), path: "/api/v1/write".to_owned() }
    }

    /// Host and port, with the port that HTTP has when none is given.
    pub(crate) fn address(&self) -> String {
        self.clone().with_port(80).authority
    }

    /// The same target, at this port where it names none.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Target {
        if self.port_at().is_none() {
            self.authority = format!("{}:{port}", self.authority);
        }
        self
    }

    /// The host alone: a name or an address, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        let host = &self.authority[..self.port_at().unwrap_or(self.authority.len())];
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// Where the port begins, with its colon.
    fn port_at(&self) -> Option<usize> {
        let host_end = self.authority.rfind(']').unwrap_or(0);
        self.authority[host_end..].find(':').map(|colon| host_end + colon)
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(url: &str) -> Result<Self, BadTarget> {
        // Possible passwords and keys are not repeated.
        let is_plain = !url.contains(['@', '?']);
        let bad = || BadTarget(if is_plain { url.chars().take(200).collect() } else { "…".to_owned() });
        let rest = url.strip_prefix("http://").ok_or_else(bad)?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let visible = url.bytes().all(|b| b.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !visible {
            return Err(bad());
        }
        Ok(Self { authority: authority.to_owned(), path: path.to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let cases = [
            ("a.example", "a.example", "a.example:443"),
            ("a.example:8443", "a.example", "a.example:8443"),
            ("[::1]", "::1", "[::1]:443"),
            ("[::1]:8443", "::1", "[::1]:8443"),
        ];
        for (authority, host, with_port) in cases {
            let target: Target = format!("http://{authority}/x").parse().unwrap();
            assert_eq!((target.host(), &*target.clone().with_port(443).authority), (host, with_port));
        }
    }
}
