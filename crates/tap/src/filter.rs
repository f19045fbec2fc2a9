//! The filter of a tap, parsed from a request's query.

use crate::watch::TapPoint;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_journal::{Meta, Protocol, Signal};

/// The sources, by the names that a look may say; a protocol's name will do as well.
pub const SOURCES: [&str; 11] = [
    "elastic_apm",
    "elasticsearch",
    "file",
    "fluent_forward",
    "http",
    "journald",
    "kubernetes_logs",
    "loki",
    "otlp",
    "prometheus_remote_write",
    "syslog",
];
/// The longest that an answer waits for something to be caught.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The longest value of a parameter, in bytes.
const LONGEST_VALUE: usize = 512;
/// Stands for every name.
const ANY: &str = "*";
const SIGNALS: [Signal; 5] =
    [Signal::Metrics, Signal::Logs, Signal::Traces, Signal::Events, Signal::Profiles];
const PROTOCOLS: [Protocol; 3] = [Protocol::Otlp, Protocol::RemoteWrite1, Protocol::RemoteWrite2];

/// The filter of a tap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapFilter {
    /// The tap's id: readings of the same tap have the same one.
    pub id: String,
    /// Records of this source or protocol; `*` for all. Of all too when neither source nor sink is said.
    pub source: Option<String>,
    /// Records that the sink of this name takes; `*` for all.
    pub sink: Option<String>,
    /// Records of this signal only.
    pub signal: Option<Signal>,
    /// Items of this service only.
    pub service: Option<String>,
    /// Items of this name only: spans, events, metrics.
    pub name: Option<String>,
    /// Items only whose line has this text.
    pub contains: Option<String>,
    /// One of so many records; at least 1.
    pub every: u32,
    /// How long an answer waits for something to be caught.
    pub wait: Duration,
    /// Whether the look ends with the connection on which it was asked for.
    pub bound: bool,
    /// That connection, where it is bound and once it is known.
    pub peer: Option<SocketAddr>,
}

/// The part of a look that decides about records while they pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Points {
    source: Option<String>,
    sink: Option<String>,
    signal: Option<Signal>,
    pub(crate) every: u32,
}

/// A request for a look cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No such parameter.
    #[error(
        "a look has no parameter `{0}`; there are source, sink, signal, service, name, contains, every, wait, id, bound"
    )]
    Parameter(String),
    /// A value that is not one.
    #[error("`{name}={value}`: {help}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: String,
        /// The valid values.
        help: &'static str,
    },
    /// Not UTF-8 in per cent, or too long.
    #[error("the value of `{0}` is longer than 512 bytes, or not UTF-8 once it is decoded")]
    Text(String),
}

impl Default for TapFilter {
    fn default() -> TapFilter {
        TapFilter {
            id: String::new(),
            source: None,
            sink: None,
            signal: None,
            service: None,
            name: None,
            contains: None,
            every: 1,
            wait: Duration::ZERO,
            bound: false,
            peer: None,
        }
    }
}

impl TapFilter {
    /// The look that a query says: `source=otlp&service=shop&wait=1s`.
    ///
    /// # Errors
    /// [`FilterError`], in a sentence.
    pub fn from_query(query: &str) -> Result<TapFilter, FilterError> {
        let mut look = TapFilter::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or_else(|| FilterError::Text(shown(name)))?;
            match name {
                "id" => look.id = value,
                "source" => look.source = Some(source(value)?),
                "sink" => look.sink = Some(value),
                "signal" => look.signal = Some(signal(value)?),
                "service" => look.service = Some(value),
                "name" => look.name = Some(value),
                "contains" => look.contains = Some(value),
                "every" => look.every = every(value)?,
                "wait" => look.wait = wait(value)?,
                "bound" => look.bound = true,
                other => return Err(FilterError::Parameter(shown(other))),
            }
        }
        Ok(look)
    }

    /// The query that says this.
    pub fn to_query(&self) -> String {
        let (every, wait) = (self.every.to_string(), format!("{}ms", self.wait.as_millis()));
        let texts = [
            ("id", Some(self.id.as_str())),
            ("source", self.source.as_deref()),
            ("sink", self.sink.as_deref()),
            ("signal", self.signal.map(Signal::name)),
            ("service", self.service.as_deref()),
            ("name", self.name.as_deref()),
            ("contains", self.contains.as_deref()),
            ("every", Some(&every)),
            ("wait", Some(&wait)),
            ("bound", self.bound.then_some("")),
        ];
        let said = texts.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
        said.collect::<Vec<_>>().join("&")
    }

    /// As it is asked for on the connection from `peer`.
    #[must_use]
    pub fn seen_by(self, peer: SocketAddr) -> TapFilter {
        TapFilter { peer: self.bound.then_some(peer), ..self }
    }

    pub(crate) fn points(&self) -> Points {
        Points {
            source: self.source.clone(),
            sink: self.sink.clone(),
            signal: self.signal,
            every: self.every.max(1),
        }
    }
}

impl Points {
    /// Whether a record that passes here is one of those to be looked at.
    pub(crate) fn take(&self, at: TapPoint<'_>, meta: &Meta) -> bool {
        let here = match (at, &self.source, &self.sink) {
            (TapPoint::Source(_), None, sink) => sink.is_none(),
            // A protocol's name that is also a source's means that source: several journal the same protocol.
            (TapPoint::Source(name), Some(source), _) => {
                let source = source.as_str();
                [ANY, name].contains(&source)
                    || (source == meta.protocol.name() && !SOURCES.contains(&source))
            }
            (TapPoint::Sink(name), _, Some(sink)) => [ANY, name].contains(&sink.as_str()),
            (TapPoint::Sink(_), _, None) => false,
        };
        let may_have = |signal| signal == meta.signal || (meta.is_mixed() && Meta::MIXED.contains(&signal));
        here && self.signal.is_none_or(may_have)
    }
}

fn source(value: String) -> Result<String, FilterError> {
    let known = value == ANY
        || SOURCES.contains(&value.as_str())
        || PROTOCOLS.iter().any(|protocol| protocol.name() == value);
    let help = "the sources are elastic_apm, elasticsearch, file, fluent_forward, http, journald, kubernetes_logs, loki, \
        otlp, prometheus_remote_write (remote_write_1, remote_write_2), syslog, and * for all";
    if known { Ok(value) } else { Err(FilterError::Value { name: "source", value, help }) }
}

fn signal(value: String) -> Result<Signal, FilterError> {
    let help = "the signals are metrics, logs, traces and profiles";
    let found = SIGNALS.iter().find(|signal| signal.name() == value).copied();
    found.ok_or(FilterError::Value { name: "signal", value, help })
}

fn every(value: String) -> Result<u32, FilterError> {
    let help = "one in this many records: a number from 1 on";
    let number = value.parse().ok().filter(|every| *every > 0);
    number.ok_or(FilterError::Value { name: "every", value, help })
}

fn wait(value: String) -> Result<Duration, FilterError> {
    let help = "how long to wait for something to be caught, up to 10s: 500ms, 2s";
    let (digits, millis) = match value.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (value.strip_suffix('s').unwrap_or(""), 1000),
    };
    let wait = digits.parse::<u32>().ok().map(|number| Duration::from_millis(u64::from(number) * millis));
    let wait = wait.filter(|wait| *wait <= LONGEST_WAIT);
    wait.ok_or(FilterError::Value { name: "wait", value, help })
}

/// The meaning of a value in a query.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if bytes.len() >= LONGEST_VALUE {
            return None;
        }
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte);
    value
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A name as it can be repeated to whoever said it.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}
