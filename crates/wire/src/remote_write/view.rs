//! One view over both versions, so that readers are written once.

use super::histogram::Histogram;
use super::item::{Exemplar, Label, Metadata, Sample};
use super::{v1, v2};
use crate::proto::Messages;

/// A request of either version.
#[derive(Debug, Clone, Copy)]
pub enum Request<'a> {
    /// 1.0
    V1(v1::Request<'a>),
    /// 2.0
    V2(v2::Request<'a>),
}

/// A series of either version.
#[derive(Debug, Clone, Copy)]
pub enum Series<'a> {
    /// 1.0
    V1(v1::Series<'a>),
    /// 2.0
    V2(v2::Series<'a>),
}

/// The series of a request, in order.
#[derive(Debug, Clone)]
pub enum SeriesIter<'a> {
    /// 1.0
    V1(Messages<'a>),
    /// 2.0
    V2(Messages<'a>, v2::Table<'a>),
}

/// The labels of a series or of an exemplar.
#[derive(Debug, Clone)]
pub enum Labels<'a> {
    /// 1.0
    V1(v1::Labels<'a>),
    /// 2.0
    V2(v2::Labels<'a>),
}

impl<'a> Request<'a> {
    /// Its series, in order.
    #[must_use]
    pub fn series(&self) -> SeriesIter<'a> {
        match self {
            Self::V1(request) => SeriesIter::V1(request.messages()),
            Self::V2(request) => SeriesIter::V2(request.messages(), request.symbols()),
        }
    }

    /// The metadata of metric families. 1.0 has a separate list; in 2.0 each series may carry it, so a family can
    /// appear more than once, under the name of each of its series.
    pub fn metadata(&self) -> impl Iterator<Item = Metadata<'a>> + Clone + use<'a> {
        match self {
            Self::V1(request) => Either::One(request.metadata()),
            Self::V2(request) => Either::Two(request.series().filter_map(|series| series.metadata())),
        }
    }
}

impl<'a> Series<'a> {
    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        match self {
            Self::V1(series) => series.message(),
            Self::V2(series) => series.message(),
        }
    }

    /// Its labels, in the sender's order, which is by name in a checked body.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        match self {
            Self::V1(series) => Labels::V1(series.labels()),
            Self::V2(series) => Labels::V2(series.labels()),
        }
    }

    /// The value of its label `name`.
    #[must_use]
    pub fn label(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.labels().find(|label| label.name == name).map(|label| label.value)
    }

    /// Its float samples, in order.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + Clone + use<'a> {
        match self {
            Self::V1(series) => Either::One(series.samples()),
            Self::V2(series) => Either::Two(series.samples()),
        }
    }

    /// Its native histograms, in order.
    pub fn histograms(&self) -> impl Iterator<Item = Histogram<'a>> + Clone + use<'a> {
        match self {
            Self::V1(series) => Either::One(series.histograms()),
            Self::V2(series) => Either::Two(series.histograms()),
        }
    }

    /// Its exemplars, in order.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<Labels<'a>>> + Clone + use<'a> {
        match self {
            Self::V1(series) => Either::One(series.exemplars().map(|exemplar| {
                let Exemplar { labels, bits, timestamp } = exemplar;
                Exemplar { labels: Labels::V1(labels), bits, timestamp }
            })),
            Self::V2(series) => Either::Two(series.exemplars().map(|exemplar| {
                let Exemplar { labels, bits, timestamp } = exemplar;
                Exemplar { labels: Labels::V2(labels), bits, timestamp }
            })),
        }
    }

    /// The metadata of a 2.0 series' family; 1.0 has that in [`Request::metadata`] only.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        match self {
            Self::V1(_) => None,
            Self::V2(series) => series.metadata(),
        }
    }
}

impl<'a> Iterator for SeriesIter<'a> {
    type Item = Series<'a>;

    #[inline]
    fn next(&mut self) -> Option<Series<'a>> {
        match self {
            Self::V1(messages) => messages.next().map(|message| Series::V1(v1::Series::new(message))),
            Self::V2(messages, symbols) => {
                messages.next().map(|message| Series::V2(v2::Series::new(message, *symbols)))
            }
        }
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    #[inline]
    fn next(&mut self) -> Option<Label<'a>> {
        match self {
            Self::V1(labels) => labels.next(),
            Self::V2(labels) => labels.next(),
        }
    }
}

/// Two iterators over one type of item.
#[derive(Clone)]
enum Either<A, B> {
    One(A),
    Two(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Either<A, B> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self {
            Self::One(one) => one.next(),
            Self::Two(two) => two.next(),
        }
    }

    #[inline]
    fn nth(&mut self, skipped: usize) -> Option<T> {
        match self {
            Self::One(one) => one.nth(skipped),
            Self::Two(two) => two.nth(skipped),
        }
    }

    fn count(self) -> usize {
        match self {
            Self::One(one) => one.count(),
            Self::Two(two) => two.count(),
        }
    }
}
