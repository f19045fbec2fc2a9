//! Errors in a remote-write body, in words that help the client.

use std::fmt;

use thiserror::Error;

use crate::proto::Malformed;

/// A body was refused: where, and why. Its text is meant for the answer's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteWriteError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    series: Option<u64>,
    offset: usize,
    reason: RemoteWriteErrorKind,
}

/// Why a body was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteWriteErrorKind {
    /// Not the protobuf message that it should be.
    #[error("{0}")]
    Malformed(Malformed),
    /// More than 4 GiB.
    #[error("the decompressed body has {0} bytes, more than the 4 GiB that one request may have")]
    TooLong(usize),
    /// Fields of the other version's message and none of this one's.
    #[error("this looks like {found}, but the Content-Type announces {announced}")]
    OtherVersion {
        /// Its apparent type.
        found: &'static str,
        /// Its declared type.
        announced: &'static str,
    },
    /// A text is not UTF-8.
    #[error("{0} is not valid UTF-8: `{1}`")]
    Utf8(ErrorSubject, Excerpt),
    /// A label has no name.
    #[error("a label has an empty name (its value is `{value}`)")]
    EmptyName {
        /// The value of that label.
        value: Excerpt,
    },
    /// Labels are not sorted.
    #[error("label `{name}` comes after `{before}`: labels must be sorted by name")]
    Unsorted {
        /// The label that comes too late.
        name: Excerpt,
        /// The one before it.
        before: Excerpt,
    },
    /// Two labels have one name.
    #[error("label `{name}` is there twice: names must be unique within a series")]
    Repeated {
        /// That name.
        name: Excerpt,
    },
    /// The series has no metric name.
    #[error("there is no label `__name__`, or it is empty")]
    NoMetricName,
    /// The series has no labels at all.
    #[error("the series has no labels")]
    NoLabels,
    /// A limit on labels is exceeded.
    #[error("{subject} is over the limit: {given} of at most {limit}")]
    Limit {
        /// The limited quantity.
        subject: ErrorSubject,
        /// The actual value.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// A label reference has no partner.
    #[error("{0} label references are given: they must come in pairs of name and value")]
    OddReferences(usize),
    /// A reference points past the symbol table.
    #[error("{subject} refers to symbol {reference}, and the table has {symbols}")]
    Reference {
        /// The referring field.
        subject: ErrorSubject,
        /// The number of the symbol.
        reference: u64,
        /// How many there are.
        symbols: usize,
    },
    /// Neither samples nor histograms nor exemplars.
    #[error("the series has neither samples nor histograms nor exemplars")]
    NoSamples,
    /// Samples and histograms in one 2.0 series.
    #[error("the series has both samples and histograms: they must be sent as two series")]
    Mixed,
    /// A histogram's spans and buckets differ.
    #[error("a histogram's {side} spans cover {covered} buckets, and {given} are given")]
    Buckets {
        /// On which side of zero.
        side: HistogramSide,
        /// Sum of the spans' lengths.
        covered: u64,
        /// Number of deltas or counts.
        given: u64,
    },
    /// A histogram has a schema that Prometheus does not have.
    #[error("a histogram has the schema {0}: it must be from -4 to 8, or -53 for custom buckets")]
    Schema(i32),
    /// A histogram's span begins before the end of the one before it.
    #[error("a histogram's {side} span {span} has the offset {offset}: it must not be negative")]
    SpanOffset {
        /// On which side of zero.
        side: HistogramSide,
        /// Its number, counted from 1.
        span: u64,
        /// Its offset.
        offset: i32,
    },
    /// A histogram has a bucket with less than nothing in it.
    #[error("a histogram's {side} bucket {bucket} has a negative count")]
    NegativeBucket {
        /// On which side of zero.
        side: HistogramSide,
        /// Its number, counted from 1.
        bucket: u64,
    },
    /// A float histogram counts less than nothing.
    #[error("a histogram has a negative count")]
    NegativeCount,
    /// A histogram's count is not the sum of its buckets.
    #[error("a histogram counts {count} observations, and {found} are in its buckets")]
    Count {
        /// Its count.
        count: u64,
        /// The count in its buckets.
        found: u64,
    },
    /// Custom buckets that contradict themselves.
    #[error("a histogram {0}")]
    CustomBuckets(&'static str),
}

/// A side of zero, of a histogram's buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HistogramSide {
    /// Above zero.
    #[error("positive")]
    Positive,
    /// Below zero.
    #[error("negative")]
    Negative,
}

/// The subject of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ErrorSubject {
    /// A label's name.
    #[error("a label's name")]
    LabelName,
    /// A label's value.
    #[error("a label's value")]
    LabelValue,
    /// The number of labels of a series.
    #[error("the number of labels")]
    Labels,
    /// The symbols of a 2.0 request: one of them, or their number.
    #[error("a symbol")]
    Symbol,
    /// The number of symbols.
    #[error("the number of symbols")]
    Symbols,
    /// A label of an exemplar.
    #[error("a label of an exemplar")]
    ExemplarLabel,
    /// A family name, help text or unit.
    #[error("a metadata text")]
    Metadata,
}

/// The first bytes of something that the sender wrote, made printable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    /// How many bytes are shown at most.
    pub const BYTES: usize = 64;

    /// Cuts `bytes` to [`BYTES`](Self::BYTES) and replaces what cannot be printed.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let shown = bytes.get(..Self::BYTES).unwrap_or(bytes);
        let mut text: String = String::from_utf8_lossy(shown)
            .chars()
            .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
            .collect();
        if shown.len() < bytes.len() {
            text.push('…');
        }
        Self(text.into())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RemoteWriteError {
    /// The position of the faulty series in the body, counted from 0.
    #[must_use]
    pub fn series(&self) -> Option<u64> {
        self.0.series
    }

    /// The byte of the decompressed body where it was noticed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The error.
    #[must_use]
    pub fn kind(&self) -> &RemoteWriteErrorKind {
        &self.0.reason
    }

    /// Whether the body as a whole cannot be read, so that nothing of it can be told apart.
    #[must_use]
    pub fn is_of_body(&self) -> bool {
        match &self.0.reason {
            RemoteWriteErrorKind::Malformed(_)
            | RemoteWriteErrorKind::TooLong(_)
            | RemoteWriteErrorKind::OtherVersion { .. } => true,
            RemoteWriteErrorKind::Limit { subject, .. } => *subject == ErrorSubject::Symbols,
            _ => false,
        }
    }

    #[cold]
    pub(super) fn new(offset: usize, reason: RemoteWriteErrorKind) -> Self {
        Self(Box::new(Inner { series: None, offset, reason }))
    }

    #[cold]
    pub(super) fn in_series(mut self, series: u64) -> Self {
        self.0.series = Some(series);
        self
    }
}

impl From<Malformed> for RemoteWriteError {
    #[cold]
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.offset, RemoteWriteErrorKind::Malformed(malformed))
    }
}

impl fmt::Display for RemoteWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { series, offset, reason } = &*self.0;
        if let Some(series) = series {
            write!(f, "series {series}: ")?;
        }
        match reason {
            RemoteWriteErrorKind::Malformed(malformed) => write!(f, "{malformed}"),
            reason => write!(f, "{reason} (byte {offset})"),
        }
    }
}

impl std::error::Error for RemoteWriteError {}
