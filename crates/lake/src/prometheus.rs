//! Converts remote write views to rows.

use crate::gatherer::{Gatherer, Overflow};
use crate::labels::write_object;
use crate::run::{ExemplarRow, LabelIterator, PointValue, RowKey, RowRejection, stale_flag};
use crate::time::micros_of_millis;
use crate::{Commit, Error, Hour, Writer};
use tidegate_wire::json;
use tidegate_wire::remote_write::{Exemplar, Label, Request, Sample, Series};

/// Where a batch stands in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPosition {
    /// Its sequence; they rise from push to push.
    pub sequence: u64,
    /// When it was received, in nanoseconds since the Unix epoch: the hour it is filed under.
    pub received_at_ns: u64,
}

/// The result of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchResult {
    /// Rows that were taken.
    pub rows: u64,
    /// The skipped parts.
    pub dropped: DroppedItems,
    /// The parts committed to the lake meanwhile.
    pub commit: Option<Commit>,
}

impl BatchResult {
    /// Adds rows and losses.
    pub(crate) fn add(&mut self, other: &BatchResult) {
        self.rows += other.rows;
        self.dropped.too_large += other.dropped.too_large;
        self.dropped.malformed += other.dropped.malformed;
    }
}

/// Items that have no place in the lake, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DroppedItems {
    /// Labels or buckets that do not fit in an empty row group of this slice.
    pub too_large: u64,
    /// Items that the tables cannot hold: invalid UTF-8, a time beyond 292,000 years, buckets that do not match their
    /// spans, a histogram with more than 8,192 buckets, a span with more than 8,192 events or links.
    pub malformed: u64,
}

impl DroppedItems {
    /// All of them.
    pub fn items(&self) -> u64 {
        self.too_large + self.malformed
    }

    /// Of the parts of one item.
    pub(crate) fn at_most_one(self) -> DroppedItems {
        match self {
            DroppedItems { too_large: 1.., .. } => DroppedItems { too_large: 1, malformed: 0 },
            DroppedItems { malformed: 1.., .. } => DroppedItems { too_large: 0, malformed: 1 },
            none => none,
        }
    }

    pub(crate) fn count(&mut self, reason: RowRejection) {
        match reason {
            RowRejection::Malformed | RowRejection::TooMany => self.malformed += 1,
            RowRejection::Full | RowRejection::TooLarge => self.too_large += 1,
        }
    }
}

impl Writer {
    /// Takes all rows of a checked body. A sequence that is in the lake already is passed over.
    ///
    /// `now_ns` is the time in nanoseconds since the Unix epoch, from which files are given their age.
    pub fn push(
        &mut self,
        position: &BatchPosition,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<BatchResult, Error> {
        if self.is_failed() {
            return Err(Error::Failed);
        }
        if self.durable().is_some_and(|durable| position.sequence <= durable) {
            return Ok(BatchResult::default());
        }
        let pushed = self.push_all(position, request, now_ns);
        self.fail(pushed)
    }

    fn push_all(
        &mut self,
        position: &BatchPosition,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<BatchResult, Error> {
        let hour = Hour::of_ns(position.received_at_ns);
        let mut pushed =
            BatchResult { commit: self.begin(position.sequence, hour, now_ns)?, ..BatchResult::default() };
        self.rows.push_request(request, &mut pushed)?;
        pushed.commit = Commit::join(pushed.commit, self.end()?);
        Ok(pushed)
    }
}

impl<O: Overflow> Gatherer<O> {
    /// Adds the rows of a request.
    pub(crate) fn push_request(
        &mut self,
        request: &Request<'_>,
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        for metadata in request.metadata() {
            self.families.learn(&metadata);
        }
        request.series().try_for_each(|series| self.push_series(&series, pushed))
    }

    fn push_series(&mut self, series: &Series<'_>, pushed: &mut BatchResult) -> Result<(), Error> {
        // Early 2.0 senders say once for the series when it began.
        let created = match series {
            Series::V1(_) => 0,
            Series::V2(series) => series.created_timestamp(),
        };
        // Its place in the run, and how often runs had been emptied when that was so.
        let mut place = None;
        for sample in series.samples() {
            self.push_point(series.labels(), &mut place, pushed, |rows, place| {
                rows.points.add(head_of(place, &sample, created)?, PointValue::Double(sample.bits)).map(|_| 1)
            })?;
        }
        for exemplar in series.exemplars() {
            self.push_point(series.labels(), &mut place, pushed, |rows, place| {
                let row = exemplar_row(rows, &exemplar)?;
                rows.points.add_exemplar(place, row)
            })?;
        }
        for histogram in series.histograms() {
            self.take(pushed, |rows| {
                let place = rows.histograms.keys.series_of(series.labels(), &rows.families)?;
                rows.histograms.add(place, &histogram).map(|()| 1)
            })?;
        }
        Ok(())
    }

    /// Adds to the points' run.
    fn push_point<'a>(
        &mut self,
        labels: impl LabelIterator<'a>,
        place: &mut Option<(u64, u32)>,
        pushed: &mut BatchResult,
        add: impl Fn(&mut Self, u32) -> Result<u64, RowRejection>,
    ) -> Result<(), Error> {
        self.take(pushed, |rows| {
            let found = match *place {
                Some((emptied, place)) if emptied == rows.emptied => place,
                _ => rows.points.keys.series_of(labels.clone(), &rows.families)?,
            };
            *place = Some((rows.emptied, found));
            add(rows, found)
        })
    }
}

fn head_of(series: u32, sample: &Sample, created: i64) -> Result<RowKey, RowRejection> {
    let start = if sample.start_timestamp == 0 { created } else { sample.start_timestamp };
    let start = match start {
        0 => None,
        start => Some((micros_of_millis(start).ok_or(RowRejection::Malformed)?, 0)),
    };
    let time_us = micros_of_millis(sample.timestamp).ok_or(RowRejection::Malformed)?;
    Ok(RowKey::new((time_us, 0), start, series, stale_flag(sample.is_stale())))
}

/// The labels `trace_id` and `span_id` get columns of their own when they are what OpenTelemetry writes:
/// 32 and 16 lower-case hexadecimal digits.
fn exemplar_row<'a>(
    rows: &mut Gatherer<impl Overflow>,
    exemplar: &Exemplar<impl LabelIterator<'a>>,
) -> Result<ExemplarRow, RowRejection> {
    let time_us = micros_of_millis(exemplar.timestamp).ok_or(RowRejection::Malformed)?;
    let (mut trace_id, mut span_id) = (None, None);
    let mut most = 2;
    for label in exemplar.labels.clone() {
        match label.name {
            b"trace_id" if trace_id.is_none() => trace_id = hex::<16>(label.value),
            b"span_id" if span_id.is_none() => span_id = hex::<8>(label.value),
            _ => {}
        }
        most += json::escaped_len_of(label.name) + json::escaped_len_of(label.value) + 6;
    }
    let rest = exemplar.labels.clone().filter(|label: &Label<'_>| match label.name {
        b"trace_id" => hex::<16>(label.value).is_none(),
        b"span_id" => hex::<8>(label.value).is_none(),
        _ => true,
    });
    let attributes = rows.points.keys.write(most, |out| write_object(rest, out))?;
    let bits = exemplar.bits;
    Ok(ExemplarRow { row: u32::MAX, attributes, time_us, time_ns: 0, flags: 0, bits, trace_id, span_id })
}

fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for &digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = *byte << 4 | value;
        }
    }
    Some(bytes)
}
