//! From remote write's views to rows.

use crate::labels::{escaped_len, write_object};
use crate::run::{Exact, ExemplarRow, Head, NO_START, NotTaken, stale_flag};
use crate::time::micros_of_millis;
use crate::{Commit, Error, Hour, Writer};
use tidegate_wire::remote_write::{Exemplar, Histogram, Label, Request, Sample, Series};

/// Where a batch stands in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Its sequence; they rise from push to push.
    pub sequence: u64,
    /// When it was received, in nanoseconds since the Unix epoch: the hour it is filed under.
    pub received_at_ns: u64,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Rows that were taken.
    pub rows: u64,
    /// What was not.
    pub dropped: Dropped,
    /// What has become part of the lake meanwhile.
    pub commit: Option<Commit>,
}

/// Items that have no place in the lake, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Labels or buckets that do not fit in an empty row group of this slice.
    pub too_large: u64,
    /// Not UTF-8, a time beyond 292,000 years, or buckets that do not match their spans.
    pub malformed: u64,
}

impl Dropped {
    /// All of them.
    pub fn items(&self) -> u64 {
        self.too_large + self.malformed
    }

    fn count(&mut self, reason: NotTaken) {
        match reason {
            NotTaken::Malformed => self.malformed += 1,
            NotTaken::Full | NotTaken::TooLarge => self.too_large += 1,
        }
    }
}

impl Writer {
    /// Takes all rows of a checked body. A sequence that is in the lake already is passed over.
    ///
    /// `now_ns` is the time in nanoseconds since the Unix epoch, from which files are given their age.
    pub fn push(&mut self, position: &Position, request: &Request<'_>, now_ns: u64) -> Result<Pushed, Error> {
        if self.is_failed() {
            return Err(Error::Failed);
        }
        if self.durable().is_some_and(|durable| position.sequence <= durable) {
            return Ok(Pushed::default());
        }
        let pushed = self.push_all(position, request, now_ns);
        self.fail(pushed)
    }

    fn push_all(&mut self, position: &Position, request: &Request<'_>, now_ns: u64) -> Result<Pushed, Error> {
        let hour = Hour::of_ns(position.received_at_ns);
        let mut pushed = Pushed { commit: self.begin(position.sequence, hour, now_ns)?, ..Pushed::default() };
        for metadata in request.metadata() {
            self.families.learn(&metadata);
        }
        for series in request.series() {
            self.push_series(&series, &mut pushed)?;
        }
        pushed.commit = Commit::join(pushed.commit, self.end()?);
        Ok(pushed)
    }

    fn push_series(&mut self, series: &Series<'_>, pushed: &mut Pushed) -> Result<(), Error> {
        // Early 2.0 senders say once for the series when it began.
        let created = match series {
            Series::V1(_) => 0,
            Series::V2(series) => series.created_timestamp(),
        };
        // Its place in the run, for as long as the run is the same.
        let mut place = None;
        for sample in series.samples() {
            self.push_point(series.labels(), &mut place, pushed, |writer, place| {
                writer.points.add(head_of(place, &sample, created)?, sample.bits).map(|()| 1)
            })?;
        }
        for exemplar in series.exemplars() {
            self.push_point(series.labels(), &mut place, pushed, |writer, place| {
                let row = exemplar_row(writer, &exemplar)?;
                writer.points.add_exemplar(place, row)
            })?;
        }
        for histogram in series.histograms() {
            self.push_histogram(series, &histogram, pushed)?;
        }
        Ok(())
    }

    /// Adds to the points' run, which is written out first when it is full.
    fn push_point<'a>(
        &mut self,
        labels: impl Exact<'a>,
        place: &mut Option<u32>,
        pushed: &mut Pushed,
        add: impl Fn(&mut Writer, u32) -> Result<u64, NotTaken>,
    ) -> Result<(), Error> {
        for last in [false, true] {
            let found = match *place {
                Some(place) => Ok(place),
                None => self.points.keys.series_of(labels.clone(), &self.families),
            };
            match found.and_then(|found| {
                *place = Some(found);
                add(self, found)
            }) {
                Ok(rows) => pushed.rows += rows,
                Err(NotTaken::Full) if !last => {
                    self.write_points()?;
                    *place = None;
                    continue;
                }
                Err(reason) => pushed.dropped.count(reason),
            }
            break;
        }
        Ok(())
    }

    fn push_histogram(
        &mut self,
        series: &Series<'_>,
        histogram: &Histogram<'_>,
        pushed: &mut Pushed,
    ) -> Result<(), Error> {
        for last in [false, true] {
            let place = self.histograms.keys.series_of(series.labels(), &self.families);
            match place.and_then(|place| self.histograms.add(place, histogram)) {
                Ok(()) => pushed.rows += 1,
                Err(NotTaken::Full) if !last => {
                    self.write_histograms()?;
                    continue;
                }
                Err(reason) => pushed.dropped.count(reason),
            }
            break;
        }
        Ok(())
    }
}

fn head_of(series: u32, sample: &Sample, created: i64) -> Result<Head, NotTaken> {
    let start = if sample.start_timestamp == 0 { created } else { sample.start_timestamp };
    let start_us = match start {
        0 => NO_START,
        start => micros_of_millis(start).ok_or(NotTaken::Malformed)?,
    };
    let time_us = micros_of_millis(sample.timestamp).ok_or(NotTaken::Malformed)?;
    Ok(Head { time_us, start_us, series, time_ns: 0, flags: stale_flag(sample.is_stale()) })
}

/// The labels `trace_id` and `span_id` get columns of their own when they are what OpenTelemetry writes:
/// 32 and 16 lower-case hexadecimal digits.
fn exemplar_row<'a>(
    writer: &mut Writer,
    exemplar: &Exemplar<impl Exact<'a>>,
) -> Result<ExemplarRow, NotTaken> {
    let time_us = micros_of_millis(exemplar.timestamp).ok_or(NotTaken::Malformed)?;
    let (mut trace_id, mut span_id) = (None, None);
    let mut most = 2;
    for label in exemplar.labels.clone() {
        match label.name {
            b"trace_id" if trace_id.is_none() => trace_id = hex::<16>(label.value),
            b"span_id" if span_id.is_none() => span_id = hex::<8>(label.value),
            _ => {}
        }
        most += escaped_len(label.name) + escaped_len(label.value) + 6;
    }
    let rest = exemplar.labels.clone().filter(|label: &Label<'_>| match label.name {
        b"trace_id" => hex::<16>(label.value).is_none(),
        b"span_id" => hex::<8>(label.value).is_none(),
        _ => true,
    });
    let attributes = writer.points.keys.write(most, |out| write_object(rest, out))?;
    Ok(ExemplarRow { row: u32::MAX, attributes, time_us, bits: exemplar.bits, trace_id, span_id })
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
