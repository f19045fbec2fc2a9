//! Remote write, both versions, as a sender writes it and as a checking receiver reads it.

mod bare;
mod decode;
pub(crate) mod proto;
mod v1;
mod v2;

pub use bare::bare_scan;
#[cfg(feature = "drivers")]
pub(crate) use decode::decode_series;
pub use decode::{DecodeError, ReceivedSample, RequestTotals, decode};
pub(crate) use v1::encoded_labels;

use crate::model::{Series, SeriesModel, Timeline};

/// A NaN that says that a series has ended: these bits and no other NaN's.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Which of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `prometheus.WriteRequest`
    V1,
    /// `io.prometheus.write.v2.Request`
    V2,
}

impl Version {
    /// The media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::V1 => "application/x-protobuf",
            Self::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }

    /// The version's header value.
    pub fn header(self) -> &'static str {
        match self {
            Self::V1 => "0.1.0",
            Self::V2 => "2.0.0",
        }
    }

    /// The version that a media type names, if it is one of the two.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let mut parts = content_type.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case("application/x-protobuf") {
            return None;
        }
        match parts.find_map(|parameter| parameter.strip_prefix("proto=")) {
            None | Some("prometheus.WriteRequest") => Some(Self::V1),
            Some("io.prometheus.write.v2.Request") => Some(Self::V2),
            Some(_) => None,
        }
    }
}

/// Which samples a request carries: `samples` of each series, beginning with number `first`.
#[derive(Clone, Copy, Debug)]
pub struct SampleBatch<'a> {
    /// The series.
    pub series: &'a [Series],
    /// When samples were taken.
    pub timeline: Timeline,
    /// The first sample's number.
    pub first: u64,
    /// How many samples of each series.
    pub samples: u64,
    /// The additional contents.
    pub extras: RequestExtras,
}

/// The possible contents of a request in addition to samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestExtras {
    /// An exemplar for every eighth float series.
    pub exemplars: bool,
    /// Type, help and unit of each metric.
    pub metadata: bool,
    /// A stale marker after the last sample of each float series.
    pub stale: bool,
}

impl<'a> SampleBatch<'a> {
    /// `samples` of each of `series`, without extras.
    pub fn of(model: &SeriesModel, series: &'a [Series], first: u64, samples: u64) -> Self {
        Self { series, timeline: model.timeline(), first, samples, extras: RequestExtras::default() }
    }

    /// The request message, replacing what is in `out`.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        out.clear();
        match version {
            Version::V1 => v1::encode(self, out),
            Version::V2 => v2::encode(self, out),
        }
    }

    /// The numbers and times of the samples.
    fn numbered(&self) -> impl Iterator<Item = (u64, i64)> + use<> {
        let timeline = self.timeline;
        (self.first..self.first + self.samples).map(move |number| (number, timeline.at(number)))
    }

    /// When the stale marker belongs.
    fn end_ms(&self) -> i64 {
        self.timeline.at(self.first + self.samples)
    }

    /// The time of the exemplar of the series at `index`, if it has one.
    fn exemplar_at(&self, index: usize) -> Option<i64> {
        (self.extras.exemplars && index.is_multiple_of(8)).then(|| self.timeline.at(self.first))
    }
}

/// Compresses a message as remote write wants it (a raw Snappy block), replacing what is in `out`.
pub fn compress(raw: &[u8], out: &mut Vec<u8>) {
    out.resize(snap::raw::max_compress_len(raw.len()), 0);
    // Fails only beyond 4 GiB or with too little room.
    let written = snap::raw::Encoder::new().compress(raw, out).unwrap_or(0);
    out.truncate(written);
}

/// The identity of a label set. `canonical` is scratch space.
pub(crate) fn key_of<'a>(labels: impl Iterator<Item = (&'a [u8], &'a [u8])>, canonical: &mut Vec<u8>) -> u64 {
    canonical.clear();
    for (name, value) in labels {
        // 0xff occurs in no UTF-8 text, so no two label sets write the same bytes.
        canonical.extend_from_slice(name);
        canonical.push(0xff);
        canonical.extend_from_slice(value);
        canonical.push(0xff);
    }
    xxhash_rust::xxh3::xxh3_64(canonical)
}

/// One sample with any value.
pub(crate) struct Sample<'a> {
    pub(crate) series: &'a Series,
    pub(crate) value: f64,
    pub(crate) time_ms: i64,
}

/// A version 1 request message of these samples, replacing what is in `out`.
pub(crate) fn encode_sampled<'a>(samples: impl Iterator<Item = Sample<'a>>, out: &mut Vec<u8>) {
    out.clear();
    for sampled in samples {
        v1::encode_sampled(&sampled, out);
    }
}
