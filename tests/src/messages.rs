//! The messages of remote write 1.0 and of remote read, for prost: a codec that is not the gateway's.
#![allow(
    missing_docs,
    reason = "the fields are those of the Prometheus project's types.proto and remote.proto"
)]

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    pub metadata: Vec<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "4")]
    pub histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Label {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The value is read as bits, so that every NaN stays what it is.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Sample {
    #[prost(fixed64, tag = "1")]
    pub bits: u64,
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    #[prost(fixed64, tag = "2")]
    pub bits: u64,
    #[prost(int64, tag = "3")]
    pub timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    #[prost(uint64, tag = "1")]
    pub count: u64,
    #[prost(fixed64, tag = "3")]
    pub sum_bits: u64,
    #[prost(sint32, tag = "4")]
    pub schema: i32,
    #[prost(double, tag = "5")]
    pub zero_threshold: f64,
    #[prost(uint64, tag = "6")]
    pub zero_count: u64,
    #[prost(message, repeated, tag = "11")]
    pub positive_spans: Vec<Span>,
    #[prost(sint64, repeated, tag = "12")]
    pub positive_deltas: Vec<i64>,
    #[prost(int32, tag = "14")]
    pub reset_hint: i32,
    #[prost(int64, tag = "15")]
    pub timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Span {
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    #[prost(uint32, tag = "2")]
    pub length: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub family: String,
    #[prost(string, tag = "4")]
    pub help: String,
    #[prost(string, tag = "5")]
    pub unit: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub queries: Vec<Query>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Query {
    #[prost(int64, tag = "1")]
    pub start_ms: i64,
    #[prost(int64, tag = "2")]
    pub end_ms: i64,
    #[prost(message, repeated, tag = "3")]
    pub matchers: Vec<Matcher>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Matcher {
    /// 0 equal, 1 not equal, 2 matching, 3 not matching.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResponse {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<QueryResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

impl TimeSeries {
    /// A float series with these labels, which are not sorted here, and samples of a time and a value.
    pub fn new(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> Self {
        let samples =
            samples.iter().map(|(timestamp, value)| Sample { bits: value.to_bits(), timestamp: *timestamp });
        Self { labels: Label::all(labels), samples: samples.collect(), ..Self::default() }
    }

    /// The label set as one text.
    pub fn name(&self) -> String {
        let labels: Vec<String> =
            self.labels.iter().map(|label| format!("{}={:?}", label.name, label.value)).collect();
        format!("{{{}}}", labels.join(", "))
    }
}

impl Label {
    /// Labels, in this order.
    pub fn all(labels: &[(&str, &str)]) -> Vec<Self> {
        labels
            .iter()
            .map(|(name, value)| Self { name: (*name).to_owned(), value: (*value).to_owned() })
            .collect()
    }
}

/// The body of a request: the message, compressed.
///
/// # Panics
/// When it is too large for Snappy.
pub fn body(message: &impl Message) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(&message.encode_to_vec()).unwrap()
}

/// The message that a body holds.
///
/// # Panics
/// When it holds something else.
pub fn message<M: Message + Default>(body: &[u8]) -> M {
    let raw = snap::raw::Decoder::new().decompress_vec(body).expect("a Snappy block");
    M::decode(raw.as_slice()).expect("a message of this type")
}
