//! Names: of services, and of metrics.

use crate::answer::{Answer, Totals};
use crate::attributes::text_of;
use crate::query::{MetricsQuery, ServiceQuery};
use crate::walk::{Collector, Walk};
use crate::{Bounds, SearchError};
use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate_lake::{Table, Visitor};

/// The most names of each kind, and the longest that are kept, in bytes.
const MOST: usize = 2000;
const LONGEST: usize = 512;
/// The most labels of a metric that are given, and the longest of them, in bytes.
const MOST_LABELS: usize = 40;
const LONGEST_LABEL: usize = 128;

/// Answers with the names of services.
pub(crate) fn services(query: &ServiceQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let (mut all, mut has_more) = (BTreeMap::new(), false);
    for table in [Table::Spans, Table::Logs, Table::MetricPoints, Table::MetricHistograms] {
        let mut found = Names::new(&["service_name"], &[], walk.bounds);
        walk.search(&query.rows(table), &mut found)?;
        all.append(&mut found.names);
        has_more |= found.is_cut;
    }
    let mut answer = Answer::new(walk.bounds.answer);
    let names: Vec<Vec<u8>> = all
        .keys()
        .filter(|name| !name.is_empty())
        .map(|name| Value::from(name.as_str()).to_string().into())
        .collect();
    answer.list("services", names.iter().map(Vec::as_slice));
    let totals = Totals { has_more, ..Totals::default() };
    Ok(answer.end(walk, totals, None))
}

/// Answers with the names of metrics.
pub(crate) fn metrics(query: &MetricsQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let (mut all, mut has_more) = (BTreeMap::new(), false);
    for table in [Table::MetricHistograms, Table::MetricPoints] {
        let mut found = Names::new(&METRIC, &LABELS, walk.bounds);
        walk.search(&query.rows(table), &mut found)?;
        all.append(&mut found.names);
        has_more |= found.is_cut;
    }
    let mut answer = Answer::new(walk.bounds.answer);
    let metrics: Vec<Vec<u8>> = all
        .iter()
        .filter_map(|(name, about)| {
            let shown = ShownMetric {
                name,
                unit: about.unit.as_deref(),
                kind: about.kind,
                description: about.description.as_deref(),
                labels: &about.labels,
            };
            serde_json::to_vec(&shown).ok()
        })
        .collect();
    answer.list("metrics", metrics.iter().map(Vec::as_slice));
    let totals = Totals { has_more, ..Totals::default() };
    Ok(answer.end(walk, totals, None))
}

#[derive(Serialize)]
struct ShownMetric<'m> {
    name: &'m str,
    unit: Option<&'m str>,
    kind: &'static str,
    description: Option<&'m str>,
    labels: &'m [String],
}

const METRIC: [&str; 4] = ["metric_name", "type", "unit", "description"];
const LABELS: [&str; 7] =
    ["metric_name", "attributes", "job", "instance", "k8s.namespace.name", "k8s.pod.name", "host.name"];

/// The description of a name.
#[derive(Debug, Default)]
struct About {
    kind: &'static str,
    unit: Option<String>,
    description: Option<String>,
    /// Labels of a row of it.
    labels: Vec<String>,
}

/// Collects the different texts of the first of some columns.
struct Names<'b> {
    columns: &'static [&'static str],
    taken: &'static [&'static str],
    bounds: &'b Bounds,
    names: BTreeMap<String, About>,
    /// Memory of the names and of their descriptions, in bytes: at most about that of an answer, which could not hold more.
    bytes: usize,
    /// Names are left out: there are too many, or they are too long.
    is_cut: bool,
    /// The places of rows whose labels are wanted.
    wanted: Vec<usize>,
}

impl<'b> Names<'b> {
    fn new(columns: &'static [&'static str], taken: &'static [&'static str], bounds: &'b Bounds) -> Self {
        Names { columns, taken, bounds, names: BTreeMap::new(), bytes: 0, is_cut: false, wanted: Vec::new() }
    }
}

impl Visitor for Names<'_> {
    fn looked_at(&self) -> &[&'static str] {
        self.columns
    }

    fn taken(&self) -> &[&'static str] {
        self.taken
    }

    fn look(&mut self, first: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
        let Some(names) = self.columns.first().and_then(|name| rows.column_by_name(name)) else {
            return Ok(());
        };
        let names = names.as_string_view();
        let mut last = None;
        for row in 0..rows.num_rows() {
            let name = names.value(row);
            // Rows of a metric or a service follow each other.
            if last.replace(name) == Some(name) || self.names.contains_key(name) {
                continue;
            }
            if self.names.len() >= MOST || self.bytes >= self.bounds.answer || name.len() > LONGEST {
                self.is_cut = true;
                continue;
            }
            let mut about = About::default();
            if let Some(kinds) = rows.column_by_name("type") {
                about.kind = kind_name(kinds.as_primitive::<Int32Type>().value(row));
                let text = |column| text_of(rows, column, row).filter(|text| text.len() <= LONGEST);
                about.unit = text("unit").map(str::to_owned);
                about.description = text("description").map(str::to_owned);
                self.wanted.push(first + row);
            }
            self.bytes += size_of::<About>() + name.len();
            self.bytes +=
                [&about.unit, &about.description].into_iter().flatten().map(String::len).sum::<usize>();
            self.names.insert(name.to_owned(), about);
        }
        Ok(())
    }

    fn wanted(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.wanted)
    }

    fn take(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        for row in 0..rows.num_rows() {
            let about = text_of(rows, "metric_name", row).and_then(|name| self.names.get_mut(name));
            let Some(about) = about else { continue };
            let attributes: Map<String, Value> = text_of(rows, "attributes", row)
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            let promoted = Table::MetricPoints.promoted().iter();
            let promoted =
                promoted.filter(|name| text_of(rows, name, row).is_some()).map(|name| (*name).to_owned());
            about.labels =
                promoted.chain(attributes.into_iter().map(|(name, _)| name)).take(MOST_LABELS).collect();
            about.labels.retain(|name| name.len() <= LONGEST_LABEL);
            self.bytes += about.labels.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
        }
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.bounds.is_over()
    }
}

impl Collector for Names<'_> {
    fn reset(&mut self) {
        self.names.clear();
        (self.bytes, self.is_cut) = (0, false);
        self.wanted.clear();
    }
}

/// The kind of a metric by the column `type`.
fn kind_name(number: i32) -> &'static str {
    match number {
        1 => "gauge",
        2 | 3 | 11 => "counter",
        4 | 10 | 12 => "sum",
        5..=7 => "summary",
        8 | 9 => "histogram",
        _ => "",
    }
}
