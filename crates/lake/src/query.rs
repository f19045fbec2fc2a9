//! The query: which rows to read.

use crate::{Error, Table};
use jiff::Timestamp;
use std::str::FromStr;
use std::time::Duration;

/// Which rows and columns of a table to read.
#[derive(Debug, Clone)]
pub struct Query {
    /// The table.
    pub table: Table,
    /// Rows of this time and later.
    pub from: Option<Timestamp>,
    /// Rows before this time.
    pub to: Option<Timestamp>,
    /// Rows of this metric.
    pub metric: Option<String>,
    /// Rows of this trace.
    pub trace_id: Option<[u8; 16]>,
    /// Rows of any of these traces; of all, if there are none.
    pub traces: Vec<[u8; 16]>,
    /// Spans that take at least and at most so many nanoseconds.
    pub duration_ns: (Option<i64>, Option<i64>),
    /// Only spans that failed.
    pub failed: bool,
    /// Rows of this service.
    pub service: Option<String>,
    /// Spans, events or metrics of this name.
    pub name: Option<String>,
    /// Log records whose body has this text in it.
    pub contains: Option<String>,
    /// Log records of this severity and above, as OpenTelemetry numbers them.
    pub severity: Option<i32>,
    /// Rows whose labels or attributes match all of these. Attributes of the resource count where the row has
    /// none of that name.
    pub labels: Vec<Matcher>,
    /// At most so many rows.
    pub limit: Option<u64>,
    /// These columns, in this order; none for the table's usual ones.
    pub columns: Vec<String>,
}

/// Columns of long texts, which are read last.
pub(crate) const COSTLY: [&str; 3] = ["attributes", "resource", "body"];

/// One condition on a label or attribute. One that a row does not have is like an empty one, as in Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    /// The value to compare with.
    pub value: String,
    /// Whether rows with another value match.
    pub negated: bool,
}

impl Query {
    /// All rows of `table`, in the usual columns.
    pub fn new(table: Table) -> Query {
        Query {
            table,
            from: None,
            to: None,
            metric: None,
            trace_id: None,
            traces: Vec::new(),
            duration_ns: (None, None),
            failed: false,
            service: None,
            name: None,
            contains: None,
            severity: None,
            labels: Vec::new(),
            limit: None,
            columns: Vec::new(),
        }
    }

    /// Only the rows of the last `duration` before `now`.
    pub fn last(mut self, duration: Duration, now: Timestamp) -> Query {
        self.from = Some(now.saturating_sub(duration).unwrap_or(Timestamp::MIN));
        self
    }

    /// The columns to give out.
    pub(crate) fn output(&self) -> Result<Vec<String>, Error> {
        let usual: &[&str] = match self.table {
            Table::MetricPoints => &["time", "metric_name", "job", "instance", "attributes", "value"],
            Table::MetricHistograms => {
                &["time", "metric_name", "job", "instance", "attributes", "count", "sum"]
            }
            Table::Spans => &[
                "start_time",
                "service_name",
                "span_name",
                "duration_ns",
                "status_code",
                "trace_id",
                "span_id",
                "parent_span_id",
                "attributes",
            ],
            Table::Logs => &["time", "service_name", "severity_text", "body", "trace_id", "attributes"],
        };
        if self.columns.is_empty() {
            return Ok(usual.iter().map(|&column| column.to_owned()).collect());
        }
        let known = self.table.column_names();
        match self.columns.iter().find(|column| !known.contains(column)) {
            None => Ok(self.columns.clone()),
            Some(column) => Err(Error::Column {
                table: self.table.name(),
                column: column.clone(),
                known: known.join(", "),
            }),
        }
    }
}

impl FromStr for Matcher {
    type Err = Error;

    /// Reads `name=value` or `name!=value`.
    fn from_str(text: &str) -> Result<Matcher, Error> {
        let unreadable = || Error::Matcher(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(unreadable)?;
        let (name, negated) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
        if name.is_empty() {
            return Err(unreadable());
        }
        Ok(Matcher { name: name.to_owned(), value: value.to_owned(), negated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_read() {
        let matcher = |text: &str| text.parse::<Matcher>();
        let wanted = |name: &str, value: &str, negated| Matcher {
            name: name.to_owned(),
            value: value.to_owned(),
            negated,
        };
        assert_eq!(matcher("job=a=b").unwrap(), wanted("job", "a=b", false));
        assert_eq!(matcher("job!=").unwrap(), wanted("job", "", true));
        assert!(matcher("job").is_err() && matcher("=a").is_err() && matcher("!=a").is_err());
    }

    #[test]
    fn unknown_columns_are_named_with_the_known_ones() {
        let mut query = Query::new(Table::MetricPoints);
        query.columns = vec!["time".to_owned(), "valve".to_owned()];
        let error = query.output().unwrap_err().to_string();
        assert!(error.contains("`valve`") && error.contains("value_int"), "{error}");
    }
}
