//! What to paste into senders, for where nothing has arrived yet: `/console/connect`.

use crate::console::DATA_HEADERS;
use serde_json::Value;
use tidegate_http1::{Head, Reply};

/// A question about senders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectQuery {
    /// The kind whose instructions are asked for; `None` for the list of all kinds.
    pub kind: Option<String>,
    /// The host by which the page was reached, without its port.
    pub host: Option<String>,
}

/// The list of all kinds, or `snippets`, or what is `missing` in the configuration.
pub type ConnectAnswer = Result<Value, ConnectError>;

/// Why there are no instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectError {
    /// There is no such kind.
    Unknown,
    /// The configuration is being changed.
    Changing,
}

impl ConnectQuery {
    /// The question of a request.
    pub(crate) fn of(head: &Head<'_>) -> Result<ConnectQuery, Reply> {
        let kind = match head.query().unwrap_or_default() {
            "" => None,
            query => match query.strip_prefix("kind=") {
                Some(kind) if !kind.contains('&') => Some(kind.to_owned()),
                _ => {
                    return Err(Reply::new(400)
                        .headers(&DATA_HEADERS)
                        .text("the only parameter is kind=KIND\n"));
                }
            },
        };
        let host = head.sole_header("host").ok().flatten().and_then(|host| str::from_utf8(host).ok());
        Ok(ConnectQuery { kind, host: host.and_then(host_of) })
    }
}

impl ConnectError {
    pub(crate) fn reply(self) -> Reply {
        match self {
            ConnectError::Unknown => {
                Reply::new(404).headers(&DATA_HEADERS).text("there is no such kind of sender\n")
            }
            ConnectError::Changing => Reply::new(503)
                .retry_after(1)
                .headers(&DATA_HEADERS)
                .text("the configuration is being changed\n"),
        }
    }
}

/// The host of an authority: `[::1]:8080` is of `::1`.
fn host_of(authority: &str) -> Option<String> {
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split_once(']')?.0,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn a_host_has_no_port_and_no_brackets() {
        for (authority, host) in [
            ("gateway.example:13133", Some("gateway.example")),
            ("gateway.example", Some("gateway.example")),
            ("[::1]:13133", Some("::1")),
            ("[::1", None),
            (":13133", None),
        ] {
            assert_eq!(host_of(authority).as_deref(), host, "{authority}");
        }
    }
}
