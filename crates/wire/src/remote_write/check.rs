//! The walk that decides what of a body is accepted, and counts what is in it.

mod histogram;
mod labels;
mod partial_rejection;
mod plain;
mod sample;
pub(super) mod v1;
pub(super) mod v2;

use super::error::RemoteWriteError;
pub(super) use labels::Entry;
pub use partial_rejection::PartialRejection;

/// The contents of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Series, those without samples included.
    pub series: u64,
    /// Float samples, stale markers included.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars.
    pub exemplars: u64,
    /// Metadata: entries in 1.0, series that have it in 2.0.
    pub metadata: u64,
    /// Symbols of a 2.0 body.
    pub symbols: u64,
}

/// The limits of a body, and the requirements on a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Labels of one series.
    pub labels: usize,
    /// Bytes of a label's name.
    pub name_bytes: usize,
    /// Bytes of a label's value.
    pub value_bytes: usize,
    /// Symbols of a 2.0 request, each of which takes 4 bytes of scratch.
    pub symbols: usize,
    /// Whether every series must have a `__name__`.
    pub require_metric_name: bool,
}

/// The findings in a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InspectionReport {
    /// The accepted items.
    pub counts: Counts,
    /// The refused items.
    pub rejected: PartialRejection,
    /// The bytes of the largest series that is accepted, with its labels spelled out, or of the largest entry of
    /// metadata: an upper bound on what it takes in a 1.0 body.
    pub largest_item: usize,
    /// A reason why a strict receiver would refuse the body although all of it is accepted: the first series whose
    /// labels are not sorted, or an unused symbol that is not UTF-8.
    pub irregular: Option<RemoteWriteError>,
}

impl InspectionReport {
    /// Whether the body has to be [repaired](super::repair) before it is given to others.
    #[must_use]
    pub fn needs_repair(&self) -> bool {
        self.irregular.is_some() || !self.rejected.is_empty()
    }
}

/// The verdict on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeriesVerdict {
    /// It is good as it is.
    Keep,
    /// It is good with its labels sorted, and without the histograms and exemplars that are not.
    Rewrite,
    /// It is refused.
    Drop,
}

/// The counts of one series that is accepted, wholly or in part.
#[derive(Debug, Clone, Default)]
struct CheckedSeries {
    counts: Counts,
    /// Histograms and exemplars that are refused by themselves, and the first reason.
    malformed: MalformedItems,
    /// The label that is out of order, if one is.
    unsorted: Option<RemoteWriteError>,
    /// With its labels spelled out.
    bytes: usize,
}

/// The refused part of a series whose rest is accepted.
#[derive(Debug, Clone, Default)]
struct MalformedItems {
    histograms: u64,
    exemplars: u64,
    first: Option<RemoteWriteError>,
}

impl MalformedItems {
    /// Notes an item that is refused by itself. Anything else that is wrong is the body's.
    #[cold]
    fn note(
        &mut self,
        error: RemoteWriteError,
        items: fn(&mut MalformedItems) -> &mut u64,
    ) -> Result<(), RemoteWriteError> {
        if error.is_of_body() {
            return Err(error);
        }
        *items(self) += 1;
        self.first.get_or_insert(error);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl InspectionReport {
    /// Enters a series of so many samples and `bytes`, all of which is accepted.
    #[inline(always)]
    fn enter_usual(&mut self, samples: u64, bytes: usize) {
        self.counts.series += 1;
        self.counts.samples += samples;
        self.largest_item = self.largest_item.max(bytes);
    }

    /// Enters what became of the next series, given the message's own counts for when nothing of it is good.
    #[inline]
    fn enter(
        &mut self,
        number: u64,
        found: Result<CheckedSeries, RemoteWriteError>,
        all: impl FnOnce() -> Result<Counts, RemoteWriteError>,
    ) -> Result<SeriesVerdict, RemoteWriteError> {
        match found {
            Ok(CheckedSeries { counts, bytes, unsorted: None, malformed }) if malformed.is_empty() => {
                self.counts.add(&counts);
                self.largest_item = self.largest_item.max(bytes);
                Ok(SeriesVerdict::Keep)
            }
            found => self.enter_irregular(number, found, all),
        }
    }

    #[cold]
    fn enter_irregular(
        &mut self,
        number: u64,
        found: Result<CheckedSeries, RemoteWriteError>,
        all: impl FnOnce() -> Result<Counts, RemoteWriteError>,
    ) -> Result<SeriesVerdict, RemoteWriteError> {
        let error = match found {
            Ok(CheckedSeries { counts, malformed, unsorted, bytes }) => {
                let MalformedItems { histograms, exemplars, first } = malformed;
                if let Some(unsorted) = unsorted {
                    self.irregular.get_or_insert_with(|| unsorted.in_series(number));
                }
                let left = counts.samples + counts.histograms + counts.exemplars;
                match first {
                    // It would be a series of nothing.
                    Some(first) if left == 0 => first,
                    first => {
                        if let Some(first) = first {
                            let malformed = Counts { histograms, exemplars, ..Counts::default() };
                            self.rejected.record(first.in_series(number), &malformed);
                        }
                        self.counts.add(&counts);
                        self.largest_item = self.largest_item.max(bytes);
                        return Ok(SeriesVerdict::Rewrite);
                    }
                }
            }
            Err(error) => error,
        };
        if error.is_of_body() {
            return Err(error.in_series(number));
        }
        let all = all().map_err(|error| error.in_series(number))?;
        self.rejected.record(error.in_series(number), &Counts { series: 1, ..all });
        Ok(SeriesVerdict::Drop)
    }

    /// Everything must be accepted as it is.
    pub(super) fn strict(self) -> Result<Counts, RemoteWriteError> {
        match self.rejected.errors.into_iter().next().or(self.irregular) {
            Some(error) => Err(error),
            None => Ok(self.counts),
        }
    }
}

impl Counts {
    /// Everything that a sink can deliver or lose.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.samples + self.histograms + self.exemplars + self.metadata
    }

    /// The parts of a series besides its labels.
    fn values(&self) -> u64 {
        self.samples + self.histograms + self.exemplars
    }

    fn add(&mut self, more: &Counts) {
        self.series += more.series;
        self.samples += more.samples;
        self.histograms += more.histograms;
        self.exemplars += more.exemplars;
        self.metadata += more.metadata;
    }
}

impl Limits {
    /// Bytes for sorting the labels of a series, in addition to the body.
    #[must_use]
    pub fn bytes_to_sort(&self) -> usize {
        self.labels.saturating_mul(labels::Entry::BYTES)
    }
}

impl Default for Limits {
    /// Far beyond what real senders need: 1,024 labels, names of 4 KiB, values of 64 KiB, 4 Mi symbols.
    fn default() -> Self {
        Self {
            labels: 1024,
            name_bytes: 4 << 10,
            value_bytes: 64 << 10,
            symbols: 4 << 20,
            require_metric_name: true,
        }
    }
}
