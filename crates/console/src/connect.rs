//! Instructions for senders, shown where nothing has arrived yet: `/console/connect`.

use crate::console::DATA_HEADERS;
use serde_json::Value;
use tidegate_http1::{Head, Reply};

/// A question about senders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectQuery {
    /// The kind whose instructions are asked for; `None` for the list of all kinds.
    pub kind: Option<String>,
    /// The host and port by which the page was reached; may be empty.
    pub authority: String,
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
        Ok(ConnectQuery { kind, authority: head.host().to_owned() })
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
