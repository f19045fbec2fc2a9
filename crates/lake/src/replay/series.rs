//! The metric, the attributes and the sender of points, encoded once for all rows of a series.

use super::columns::{ColumnTypeError, Columns, Ints, Longs, Texts, Times};
use super::message::Message;
use super::origin::{NO_ATTRIBUTES, Origin, OriginColumns};
use super::remote_write;
use super::request::{Item, Level};
use super::values::{ValueError, labels, write_attributes, write_text_attribute};
use crate::labels::{METRIC_NAME, SeriesLabels};
use crate::table::{PROMOTED, flag, point_type};
use tidegate_wire::otlp::{NO_RECORDED_VALUE, temporality};
use tidegate_wire::remote_write::Label;

/// The columns that both tables of metrics have.
pub(super) struct SeriesColumns {
    origin: OriginColumns,
    name: Texts,
    unit: Texts,
    description: Texts,
    point_type: Ints,
    id: Longs,
    attributes: Texts,
    promoted: Vec<Texts>,
    pub(super) time: Times,
    pub(super) start: Times,
    flags: Ints,
}

impl SeriesColumns {
    pub(super) fn of(batch: &impl Columns) -> Result<SeriesColumns, ColumnTypeError> {
        Ok(SeriesColumns {
            origin: OriginColumns::of(batch)?,
            name: Texts::of(batch, "metric_name")?,
            unit: Texts::of(batch, "unit")?,
            description: Texts::of(batch, "description")?,
            point_type: Ints::of(batch, "type")?,
            id: Longs::of(batch, "series_id")?,
            attributes: Texts::of(batch, "attributes")?,
            promoted: PROMOTED.iter().map(|name| Texts::of(batch, name)).collect::<Result<_, _>>()?,
            time: Times::of(batch, "time", "time_ns")?,
            start: Times::of(batch, "start_time", "start_ns")?,
            flags: Ints::of(batch, "flags")?,
        })
    }

    pub(super) fn point_type(&self, row: usize) -> i32 {
        self.point_type.at(row).unwrap_or(point_type::UNKNOWN)
    }

    pub(super) fn name(&self, row: usize) -> &str {
        self.name.at(row).unwrap_or_default()
    }

    pub(super) fn attributes(&self, row: usize) -> &str {
        self.attributes.at(row).unwrap_or(NO_ATTRIBUTES)
    }

    pub(super) fn id(&self, row: usize) -> i64 {
        self.id.at(row).unwrap_or_default()
    }

    /// Whether the row says that there is no value any more.
    pub(super) fn is_stale(&self, row: usize) -> bool {
        self.flags.at(row).unwrap_or_default() & i32::from(flag::STALE) != 0
    }

    /// A point's flags, as OTLP has them.
    pub(super) fn otlp_flags(&self, row: usize) -> u64 {
        if self.is_stale(row) { u64::from(NO_RECORDED_VALUE) } else { 0 }
    }
}

/// The columns that rows of a series have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Series {
    key: Option<SeriesKey>,
    origin: Origin,
    /// Name, unit and description.
    metric: Vec<u8>,
    /// Encoded, in the field of the points that they are for.
    pub(super) attributes: Message,
    /// The labels of a series that came by remote write.
    remote_write: Option<RemoteWriteSeries>,
}

/// A series that came by remote write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RemoteWriteSeries {
    labels: Level,
    metadata: Option<Level>,
}

/// The columns by which a series is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeriesKey {
    attribute_field: u32,
    point_type: i32,
    id: i64,
    texts: [Option<String>; TEXTS],
}

const TEXTS: usize = 4 + PROMOTED.len();

/// Where a histogram or number is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provenance {
    RemoteWrite,
    Otlp,
    /// The series' number tells.
    Unknown,
}

impl Series {
    /// Becomes that of a row. OTLP's points have their attributes in `attribute_field`.
    pub(super) fn update(
        &mut self,
        columns: &SeriesColumns,
        row: usize,
        attribute_field: u32,
        provenance: Provenance,
    ) -> Result<(), ValueError> {
        if self.is_of(columns, row, attribute_field) {
            return Ok(());
        }
        self.key = None;
        self.origin.update(&columns.origin, row, &PROMOTED)?;
        let mut metric = Message::default();
        metric.text(1, columns.name.at(row));
        metric.text(2, columns.description.at(row));
        metric.text(3, columns.unit.at(row));
        self.metric = metric.into_bytes();
        self.attributes.clear();
        self.remote_write = remote_write_series(columns, row, &self.origin, provenance)?;
        if self.remote_write.is_none() {
            let promoted = columns.promoted.iter().zip(PROMOTED).enumerate();
            for (place, (column, name)) in promoted {
                if let Some(text) = column.at(row).filter(|_| !self.origin.has(place)) {
                    write_text_attribute(attribute_field, name, text, &mut self.attributes);
                }
            }
            write_attributes(columns.attributes(row), attribute_field, &mut self.attributes, |_| ())?;
        }
        self.key = Some(SeriesKey {
            attribute_field,
            point_type: columns.point_type(row),
            id: columns.id(row),
            texts: texts(columns, row).map(|text| text.map(str::to_owned)),
        });
        Ok(())
    }

    fn is_of(&self, columns: &SeriesColumns, row: usize, attribute_field: u32) -> bool {
        self.key.as_ref().is_some_and(|key| {
            key.id == columns.id(row)
                && key.point_type == columns.point_type(row)
                && key.attribute_field == attribute_field
                && key.texts.iter().zip(texts(columns, row)).all(|(known, text)| known.as_deref() == text)
                && self.origin.is_of(&columns.origin, row)
        })
    }

    /// The same metric, attributes and sender, of whatever type.
    pub(super) fn is_alike(&self, other: &Series) -> bool {
        self.metric == other.metric && self.attributes == other.attributes && self.origin == other.origin
    }

    pub(super) fn came_by_remote_write(&self) -> bool {
        self.remote_write.is_some()
    }

    /// Puts a point into OTLP's messages around it.
    pub(super) fn enclose(&self, kind: MetricKind, item: &mut Item) {
        let [resource, scope] = &self.origin.levels;
        let metric = Level { field: 2, head: self.metric.clone(), kind: kind.number() };
        let points = kind.level();
        item.enclose([resource, scope, &metric, &points].into_iter());
    }

    /// Puts samples, histograms and exemplars into their series of remote write.
    pub(super) fn enclose_in_labels(&self, item: &mut Item) {
        if let Some(RemoteWriteSeries { labels, metadata }) = &self.remote_write {
            item.enclose([labels].into_iter());
            item.beside.clone_from(metadata);
        }
    }
}

fn texts(columns: &SeriesColumns, row: usize) -> [Option<&str>; TEXTS] {
    let own = [&columns.name, &columns.unit, &columns.description, &columns.attributes];
    let mut all = own.into_iter().chain(&columns.promoted);
    std::array::from_fn(|_| all.next().and_then(|column| column.at(row)))
}

/// The type of a metric, as OTLP has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    Gauge,
    Sum { temporality: i32, is_monotonic: bool },
    Histogram { temporality: i32 },
    ExponentialHistogram { temporality: i32 },
    Summary,
}

impl MetricKind {
    /// Of points of a gauge or a sum.
    pub(super) fn of_numbers(point_type: i32) -> MetricKind {
        let (temporality, is_monotonic) = match point_type {
            point_type::COUNTER => (temporality::CUMULATIVE, true),
            point_type::UP_DOWN_COUNTER => (temporality::CUMULATIVE, false),
            point_type::DELTA => (temporality::DELTA, true),
            point_type::UP_DOWN_DELTA => (temporality::DELTA, false),
            point_type::MONOTONIC => (0, true),
            point_type::SUM => (0, false),
            _ => return MetricKind::Gauge,
        };
        MetricKind::Sum { temporality, is_monotonic }
    }

    fn level(self) -> Level {
        let (field, temporality, is_monotonic) = match self {
            MetricKind::Gauge => (5, 0, false),
            MetricKind::Sum { temporality, is_monotonic } => (7, temporality, is_monotonic),
            MetricKind::Histogram { temporality } => (9, temporality, false),
            MetricKind::ExponentialHistogram { temporality } => (10, temporality, false),
            MetricKind::Summary => (11, 0, false),
        };
        let mut head = Message::default();
        head.int32_unless_0(2, temporality);
        head.varint_unless_0(3, u64::from(is_monotonic));
        Level { field, head: head.into_bytes(), kind: 0 }
    }

    /// Another number for each kind: a metric has points of one.
    fn number(self) -> u64 {
        let of = |field: u64, temporality: i32| field << 32 | u64::from(temporality.cast_unsigned());
        match self {
            MetricKind::Gauge => of(1, 0),
            MetricKind::Sum { temporality, is_monotonic: false } => of(2, temporality),
            MetricKind::Sum { temporality, is_monotonic: true } => of(3, temporality),
            MetricKind::Histogram { temporality } => of(4, temporality),
            MetricKind::ExponentialHistogram { temporality } => of(5, temporality),
            MetricKind::Summary => of(6, 0),
        }
    }
}

/// The series' labels, if it came by remote write.
///
/// Rows of remote write have no resource and no scope. OTLP's may have neither, too, but then the number of the series is
/// another: it is the hash of other things. Types that OTLP's points do not have decide without it.
fn remote_write_series(
    columns: &SeriesColumns,
    row: usize,
    origin: &Origin,
    provenance: Provenance,
) -> Result<Option<RemoteWriteSeries>, ValueError> {
    if provenance == Provenance::Otlp || !origin.is_unknown() {
        return Ok(None);
    }
    let Some(mut labels) = labels(columns.attributes(row))? else { return Ok(None) };
    let promoted = PROMOTED.into_iter().zip(&columns.promoted);
    labels.extend(promoted.filter_map(|(name, column)| Some((name.to_owned(), column.at(row)?.to_owned()))));
    let name = columns.name(row);
    if !name.is_empty() {
        labels.push((String::from_utf8_lossy(METRIC_NAME).into_owned(), name.to_owned()));
    }
    labels.sort_unstable();
    let point_type = columns.point_type(row);
    let is_prometheus = match (provenance, point_type) {
        (Provenance::RemoteWrite, _) => true,
        (_, point_type::UNKNOWN | point_type::HISTOGRAM | point_type::GAUGE_HISTOGRAM) => true,
        _ => {
            let hashed =
                labels.iter().map(|(name, value)| Label { name: name.as_bytes(), value: value.as_bytes() });
            SeriesLabels::new(hashed).id == columns.id(row)
        }
    };
    if !is_prometheus {
        return Ok(None);
    }
    let metadata = remote_write::Family {
        metric: name,
        point_type,
        unit: columns.unit.at(row),
        help: columns.description.at(row),
        has_bound: labels.iter().any(|(name, _)| name == "le"),
    };
    Ok(Some(RemoteWriteSeries {
        labels: Level { field: 1, head: remote_write::encode_labels(&labels), kind: 0 },
        metadata: metadata.level(),
    }))
}
