//! Where syslog is received.

use std::fmt;
use std::net::SocketAddr;

use serde_json::{Value as Json, json};

use super::UnixSocket;
use crate::error::{Invalid, quote};
use crate::setting::Scalar;

/// An address that receives syslog: `udp://0.0.0.0:514`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// `tcp://`
    Tcp(SocketAddr),
    /// `tls://`: TLS over TCP.
    Tls(SocketAddr),
    /// `udp://`
    Udp(SocketAddr),
    /// `unix:`, a stream socket.
    Unix(UnixSocket),
    /// `unixgram:`, a datagram socket.
    UnixDatagram(UnixSocket),
}

impl SyslogAddress {
    /// The address on the network, if it is one.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            SyslogAddress::Tcp(address) | SyslogAddress::Tls(address) | SyslogAddress::Udp(address) => {
                Some(*address)
            }
            SyslogAddress::Unix(_) | SyslogAddress::UnixDatagram(_) => None,
        }
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogAddress::Tcp(address) => write!(out, "tcp://{address}"),
            SyslogAddress::Tls(address) => write!(out, "tls://{address}"),
            SyslogAddress::Udp(address) => write!(out, "udp://{address}"),
            SyslogAddress::Unix(socket) => socket.fmt(out),
            SyslogAddress::UnixDatagram(socket) => write!(out, "unixgram:{}", socket.path().display()),
        }
    }
}

impl Scalar for SyslogAddress {
    const WHAT: &'static str = "an address for syslog";
    const EXAMPLE: &'static str = "udp://127.0.0.1:514";
    const NOTATION: &'static str = "`tcp://`, `tls://` or `udp://`, an address and a port; or `unix:` or `unixgram:` and an absolute path.";

    fn parse(text: &str) -> Result<SyslogAddress, Invalid> {
        let address = |make: fn(SocketAddr) -> SyslogAddress, rest: &str| {
            rest.parse().map(make).map_err(|_| {
                Invalid::new(
                    format!("{} has no valid address and port", quote(text)),
                    "write an IP address and a port, for example `udp://0.0.0.0:514` or `tcp://[::]:601`",
                )
            })
        };
        let parts = text.split_once("://");
        match parts {
            Some(("tcp", rest)) => address(SyslogAddress::Tcp, rest),
            Some(("tls", rest)) => address(SyslogAddress::Tls, rest),
            Some(("udp", rest)) => address(SyslogAddress::Udp, rest),
            _ if text.starts_with("unixgram:") => {
                let path = text.strip_prefix("unixgram:").unwrap_or(text);
                UnixSocket::parse(path).map(SyslogAddress::UnixDatagram)
            }
            _ if text.starts_with("unix:") => UnixSocket::parse(text).map(SyslogAddress::Unix),
            _ => Err(Invalid::new(
                format!("{} is not an address for syslog", quote(text)),
                "write `tcp://`, `tls://` or `udp://` before an address and a port, or `unix:` or `unixgram:` before a path",
            )),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^((tcp|tls|udp)://.+:[0-9]+|unix(gram)?:(//)?/.*[^/])$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in [
            "tcp://127.0.0.1:601",
            "tls://[::]:6514",
            "udp://0.0.0.0:514",
            "unix:/run/tidegate/syslog.sock",
            "unixgram:/dev/log",
        ] {
            let address = SyslogAddress::parse(text).map_err(|_| text).unwrap();
            assert_eq!(address.text(), text);
        }
        for text in
            ["", "127.0.0.1:514", "udp://localhost", "udp://0.0.0.0", "http://1.2.3.4:5", "unixgram:x"]
        {
            assert!(SyslogAddress::parse(text).is_err(), "{text}");
        }
    }
}
