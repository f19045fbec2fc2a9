//! `POST /console/dead-letters/resend` and `/console/dead-letters/discard`: what becomes of a sink's dead letters.
//!
//! Both name the sink and the newest letter that the page has seen (`?sink=NAME&through=NUMBER`): nobody sends or discards
//! what they have not seen. A resent letter goes to the sink that could not deliver it, and to no other.

use crate::console::{DATA_HEADERS, is_name};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use std::pin::Pin;
use tidegate_http1::{Head, Reply};

/// An action on dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterAction {
    /// They are sent again.
    Resend,
    /// They are discarded.
    Discard,
}

/// An order about the dead letters of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterOrder {
    /// The action.
    pub action: DeadLetterAction,
    /// The sink that could not deliver them.
    pub sink: String,
    /// The number of the newest of them that is meant.
    pub through: u64,
}

/// The outcome of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterReport {
    /// The action that was taken.
    pub action: DeadLetterAction,
    /// With how many letters.
    pub letters: u64,
    /// How many items they had.
    pub items: u64,
    /// How many of the letters that were meant are kept.
    pub kept: u64,
    /// Why they are kept, in a sentence; nothing where only the time was over, and the same order goes on.
    pub message: Option<String>,
}

/// Why nothing was done, in a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterError {
    /// There is no such sink.
    Unknown(String),
    /// It may be possible later.
    Busy(String),
    /// The disk refuses.
    Failed(String),
}

/// The outcome of an order, once it has been followed.
pub type DeadLetterFuture<'a> =
    Pin<Box<dyn Future<Output = Result<DeadLetterReport, DeadLetterError>> + Send + 'a>>;

impl DeadLetterAction {
    /// The action of the route with this path.
    pub(crate) fn at(path: &str) -> Option<DeadLetterAction> {
        match path {
            "/console/dead-letters/resend" => Some(DeadLetterAction::Resend),
            "/console/dead-letters/discard" => Some(DeadLetterAction::Discard),
            _ => None,
        }
    }
}

impl DeadLetterOrder {
    /// The order of `head`, whose path is that of `action`.
    pub(crate) fn of(head: &Head<'_>, action: DeadLetterAction) -> Result<DeadLetterOrder, Reply> {
        let pairs = || head.query().unwrap_or_default().split('&');
        let sole = |key: &str| {
            let mut values = pairs().filter_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            values.next().filter(|_| values.next().is_none())
        };
        // The name of a sink needs no escapes.
        let sink = sole("sink").filter(|name| is_name(name));
        let through = sole("through").and_then(|number| number.parse().ok());
        match (sink, through) {
            (Some(sink), Some(through)) => Ok(DeadLetterOrder { action, sink: sink.to_owned(), through }),
            _ => Err(Reply::new(400).headers(&DATA_HEADERS).text(INCOMPLETE)),
        }
    }
}

const INCOMPLETE: &str =
    "name the sink and the number of the newest letter that is meant: ?sink=NAME&through=NUMBER\n";

impl DeadLetterError {
    pub(crate) fn reply(self) -> Reply {
        let reply = |status| Reply::new(status).headers(&DATA_HEADERS);
        match self {
            DeadLetterError::Unknown(words) => reply(404).content(format!("{words}\n")),
            DeadLetterError::Busy(words) => reply(503).retry_after(2).content(format!("{words}\n")),
            DeadLetterError::Failed(words) => reply(500).content(format!("{words}\n")),
        }
    }
}

impl Serialize for DeadLetterReport {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let done = match self.action {
            DeadLetterAction::Resend => "sent",
            DeadLetterAction::Discard => "discarded",
        };
        let mut map = out.serialize_map(None)?;
        map.serialize_entry(done, &self.letters)?;
        map.serialize_entry("items", &self.items)?;
        map.serialize_entry("kept", &self.kept)?;
        if let Some(message) = &self.message {
            map.serialize_entry("message", message)?;
        }
        map.end()
    }
}
