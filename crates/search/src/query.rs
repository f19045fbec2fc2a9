//! Queries, as they are written in JSON.

use crate::SearchError;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::collections::BTreeMap;
use tidegate_lake::{Matcher, Query as LakeQuery, Table};

/// The kinds of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Log records.
    Logs,
    /// A list of traces.
    Traces,
    /// One trace.
    Trace,
    /// Names of services.
    Services,
    /// Names of metrics.
    Metrics,
    /// Points of a metric over time.
    Plot,
    /// A list of dead letters.
    DeadLetters,
    /// The items of a dead letter.
    DeadLetter,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::Logs,
        Kind::Traces,
        Kind::Trace,
        Kind::Services,
        Kind::Metrics,
        Kind::Plot,
        Kind::DeadLetters,
        Kind::DeadLetter,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Logs => "logs",
            Kind::Traces => "traces",
            Kind::Trace => "trace",
            Kind::Services => "services",
            Kind::Metrics => "metrics",
            Kind::Plot => "plot",
            Kind::DeadLetters => "dead-letters",
            Kind::DeadLetter => "dead-letter",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Log records.
    Logs(LogQuery),
    /// A list of traces.
    Traces(TraceListQuery),
    /// One trace.
    Trace(TraceQuery),
    /// Names of services.
    Services(ServiceQuery),
    /// Names of metrics.
    Metrics(MetricsQuery),
    /// Points of a metric over time.
    Plot(PlotQuery),
    /// A list of dead letters.
    DeadLetters(LettersQuery),
    /// The items of a dead letter.
    DeadLetter(LetterQuery),
}

impl Query {
    /// Reads a query of that kind from JSON.
    ///
    /// # Errors
    /// [`SearchError::Query`].
    pub fn parse(kind: Kind, json: &[u8]) -> Result<Query, SearchError> {
        let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
        let unreadable = |error: serde_json::Error| SearchError::Query(error.to_string());
        match kind {
            Kind::Logs => serde_json::from_slice(json).map(Query::Logs),
            Kind::Traces => serde_json::from_slice(json).map(Query::Traces),
            Kind::Trace => serde_json::from_slice(json).map(Query::Trace),
            Kind::Services => serde_json::from_slice(json).map(Query::Services),
            Kind::Metrics => serde_json::from_slice(json).map(Query::Metrics),
            Kind::Plot => serde_json::from_slice(json).map(Query::Plot),
            Kind::DeadLetters => serde_json::from_slice(json).map(Query::DeadLetters),
            Kind::DeadLetter => serde_json::from_slice(json).map(Query::DeadLetter),
        }
        .map_err(unreadable)
    }
}

/// Log records: the newest of those that fulfil all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Not before this time.
    pub(crate) from: Option<Time>,
    /// Before this time.
    pub(crate) to: Option<Time>,
    /// Of this service.
    pub(crate) service: Option<String>,
    /// Of this severity and above.
    pub(crate) severity: Option<Severity>,
    /// With this text in the body.
    pub(crate) text: Option<String>,
    /// Of this trace.
    pub(crate) trace_id: Option<TraceId>,
    /// With these attributes.
    #[serde(default)]
    pub(crate) attributes: BTreeMap<String, String>,
    /// At most so many.
    #[serde(default)]
    pub(crate) limit: Limit<200>,
    /// How many matching records there are over time, in so many steps; then `from` and `to` are needed.
    pub(crate) histogram: Option<Limit<60>>,
}

/// Traces with a span that fulfils all conditions, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceListQuery {
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
    pub(crate) service: Option<String>,
    /// The name of a span.
    pub(crate) name: Option<String>,
    pub(crate) min_duration_ns: Option<i64>,
    pub(crate) max_duration_ns: Option<i64>,
    /// Only spans that failed.
    #[serde(default)]
    pub(crate) error: bool,
    #[serde(default)]
    pub(crate) attributes: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) limit: Limit<100>,
}

/// The spans of a trace, and its log records.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceQuery {
    pub(crate) trace_id: TraceId,
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
}

/// Names of services.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceQuery {
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
}

/// Names of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsQuery {
    pub(crate) from: Option<Time>,
    pub(crate) to: Option<Time>,
    pub(crate) service: Option<String>,
}

/// Points of a metric over time, a value for each step and series.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotQuery {
    pub(crate) metric: String,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) service: Option<String>,
    /// Labels that points must have.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Labels by which series are put together; all of them if there are none.
    #[serde(default)]
    pub(crate) by: Vec<String>,
    pub(crate) function: Function,
    /// Between 0 and 1, for [`Function::Quantile`].
    pub(crate) quantile: Option<f64>,
    #[serde(default)]
    pub(crate) steps: Limit<120>,
}

/// Dead letters, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LettersQuery {
    /// Of this sink.
    pub(crate) sink: Option<String>,
    #[serde(default)]
    pub(crate) limit: Limit<100>,
}

/// The items of a dead letter, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LetterQuery {
    /// Its number.
    pub(crate) id: u64,
    /// At most so many of each kind.
    #[serde(default)]
    pub(crate) limit: Limit<100>,
}

/// The calculation over the points in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Function {
    /// By how much a counter rises in a second.
    Rate,
    /// By how much a counter rises.
    Increase,
    Average,
    Minimum,
    Maximum,
    Sum,
    Last,
    /// Of a histogram.
    Quantile,
}

/// A number of rows or steps, from 1 to 1,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct Limit<const USUAL: usize>(pub(crate) usize);

impl<const USUAL: usize> Default for Limit<USUAL> {
    fn default() -> Self {
        Limit(USUAL)
    }
}

impl<const USUAL: usize> TryFrom<u32> for Limit<USUAL> {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        match number {
            1..=1000 => Ok(Limit(number as usize)),
            _ => Err("it must be from 1 to 1000"),
        }
    }
}

/// A least severity: the number of OpenTelemetry, or a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Severity {
    Number(i32),
    Name(SeverityName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SeverityName {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

impl Severity {
    fn number(self) -> i32 {
        match self {
            Severity::Number(number) => number,
            Severity::Name(name) => 1 + 4 * name as i32,
        }
    }
}

/// A time in RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(pub(crate) Timestamp);

impl TryFrom<String> for Time {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Time).map_err(|_| "a time is written as 2026-11-21T07:00:00Z")
    }
}

/// 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct TraceId(pub(crate) [u8; 16]);

impl TryFrom<String> for TraceId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        number.map(|number| TraceId(number.to_be_bytes())).ok_or("a trace id has 32 hexadecimal digits")
    }
}

fn matchers(conditions: &BTreeMap<String, String>) -> Vec<Matcher> {
    let matcher = |(name, value): (&String, &String)| Matcher {
        name: name.clone(),
        value: value.clone(),
        negated: false,
    };
    conditions.iter().map(matcher).collect()
}

fn some(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl LogQuery {
    pub(crate) fn rows(&self) -> LakeQuery {
        LakeQuery {
            from: self.from.map(|time| time.0),
            to: self.to.map(|time| time.0),
            service: some(self.service.as_ref()),
            severity: self.severity.map(Severity::number),
            contains: some(self.text.as_ref()),
            trace_id: self.trace_id.map(|id| id.0),
            labels: matchers(&self.attributes),
            ..LakeQuery::new(Table::Logs)
        }
    }
}

impl TraceListQuery {
    pub(crate) fn rows(&self) -> LakeQuery {
        LakeQuery {
            from: self.from.map(|time| time.0),
            to: self.to.map(|time| time.0),
            service: some(self.service.as_ref()),
            name: some(self.name.as_ref()),
            duration_ns: (self.min_duration_ns, self.max_duration_ns),
            failed: self.error,
            labels: matchers(&self.attributes),
            ..LakeQuery::new(Table::Spans)
        }
    }
}

impl TraceQuery {
    pub(crate) fn rows(&self, table: Table) -> LakeQuery {
        LakeQuery {
            from: self.from.map(|time| time.0),
            to: self.to.map(|time| time.0),
            trace_id: Some(self.trace_id.0),
            ..LakeQuery::new(table)
        }
    }
}

impl ServiceQuery {
    pub(crate) fn rows(&self, table: Table) -> LakeQuery {
        LakeQuery {
            from: self.from.map(|time| time.0),
            to: self.to.map(|time| time.0),
            ..LakeQuery::new(table)
        }
    }
}

impl MetricsQuery {
    pub(crate) fn rows(&self, table: Table) -> LakeQuery {
        LakeQuery {
            from: self.from.map(|time| time.0),
            to: self.to.map(|time| time.0),
            service: some(self.service.as_ref()),
            ..LakeQuery::new(table)
        }
    }
}

impl PlotQuery {
    /// The points of `metric`, a step earlier too: a rate needs the point before.
    pub(crate) fn rows(&self, table: Table, metric: &str) -> LakeQuery {
        let step = SignedDuration::from_nanos(i64::try_from(self.step_ns()).unwrap_or(i64::MAX));
        LakeQuery {
            from: self.from.0.checked_sub(step.max(LOOK_BACK)).ok().or(Some(self.from.0)),
            to: Some(self.to.0),
            service: some(self.service.as_ref()),
            metric: Some(metric.to_owned()),
            labels: matchers(&self.labels),
            ..LakeQuery::new(table)
        }
    }

    /// How long a step is, in nanoseconds: at least one.
    pub(crate) fn step_ns(&self) -> i128 {
        let all = self.to.0.as_nanosecond() - self.from.0.as_nanosecond();
        (all / i128::try_from(self.steps.0).unwrap_or(1)).max(1)
    }
}

/// How far before a plot the last point may be with which its first one is compared.
const LOOK_BACK: SignedDuration = SignedDuration::from_mins(2);
