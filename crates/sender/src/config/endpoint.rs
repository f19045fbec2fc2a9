//! Where a request goes: an address, and a path there.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    /// For the `Host` header.
    pub(crate) authority: String,
    pub(crate) path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    #[cfg(unix)]
    Unix(std::path::PathBuf),
    #[cfg(feature = "tls")]
    Tls {
        host: String,
        port: u16,
    },
}

impl Endpoint {
    /// Reads `scheme://host[:port][/path]` or `unix:/path`, and appends `path`.
    pub(crate) fn parse(url: &str, path: &str) -> Result<Endpoint, String> {
        let wrong = |what: &str| format!("the endpoint `{url}` {what}");
        #[cfg(unix)]
        if let Some(socket) = url.strip_prefix("unix:") {
            let socket = socket.strip_prefix("//").unwrap_or(socket);
            if socket.is_empty() {
                return Err(wrong("names no socket: write unix:/path/to/socket"));
            }
            let path = if path.is_empty() { "/" } else { path };
            let (authority, path) = ("localhost".to_owned(), path.to_owned());
            return Ok(Endpoint { address: Address::Unix(socket.into()), authority, path });
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(wrong("has no scheme: begin it with http://, https:// or unix:"));
        };
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" if cfg!(feature = "tls") => true,
            "https" => return Err(wrong("needs TLS: build with the feature `tls`")),
            _ => return Err(wrong("has an unknown scheme: begin it with http://, https:// or unix:")),
        };
        let (authority, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("has a user name in it: give credentials as a header"));
        }
        let (host, port) =
            split_port(authority).ok_or_else(|| wrong("has a port that is no number up to 65535"))?;
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        let clean = |byte: u8| byte.is_ascii_graphic();
        if host.is_empty() || !host.bytes().all(clean) || !base.bytes().all(clean) {
            return Err(wrong("has no host, or characters that do not belong into an address"));
        }
        let path = format!("{}{path}", base.strip_suffix('/').filter(|_| !path.is_empty()).unwrap_or(base));
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = match secure {
            #[cfg(feature = "tls")]
            true => Address::Tls { host, port },
            _ => Address::Tcp { host, port },
        };
        Ok(Endpoint { address, authority: authority.to_owned(), path })
    }

    /// On this machine, as far as its name says.
    pub(crate) fn is_near(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => {
                host == "localhost"
                    || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            }
            #[cfg(unix)]
            Address::Unix(_) => true,
            #[cfg(feature = "tls")]
            Address::Tls { .. } => false,
        }
    }
}

/// Host, with brackets if it has some, and port; nothing when the port is none.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let after_host = authority.rfind(']').unwrap_or(0);
    match authority.get(after_host..)?.rfind(':') {
        None => Some((authority, None)),
        Some(at) => {
            let (host, port) = authority.split_at(after_host + at);
            Some((host, Some(port.get(1..)?.parse().ok()?)))
        }
    }
}
