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
        let host_end = self.authority.rfind(']').unwrap_or(0);
        let has_port = self.authority[host_end..].contains(':');
        if has_port { self.authority.clone() } else { format!("{}:80", self.authority) }
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
