//! The two schemas for prost. Doubles are declared as `fixed64`, which is the same on the wire, so that
//! equality is equality of bits.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) timeseries: Vec<SeriesV1>,
    #[prost(message, repeated, tag = "3")]
    pub(super) metadata: Vec<MetadataV1>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SeriesV1 {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<SampleV1>,
    #[prost(message, repeated, tag = "3")]
    pub(super) exemplars: Vec<ExemplarV1>,
    #[prost(message, repeated, tag = "4")]
    pub(super) histograms: Vec<HistogramV1>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct SampleV1 {
    #[prost(fixed64, tag = "1")]
    pub(super) value: u64,
    #[prost(int64, tag = "2")]
    pub(super) timestamp: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExemplarV1 {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
    #[prost(fixed64, tag = "2")]
    pub(super) value: u64,
    #[prost(int64, tag = "3")]
    pub(super) timestamp: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MetadataV1 {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(string, tag = "2")]
    pub(super) family: String,
    #[prost(string, tag = "4")]
    pub(super) help: String,
    #[prost(string, tag = "5")]
    pub(super) unit: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestV2 {
    #[prost(string, repeated, tag = "4")]
    pub(super) symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) timeseries: Vec<SeriesV2>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SeriesV2 {
    #[prost(uint32, repeated, tag = "1")]
    pub(super) labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<SampleV2>,
    #[prost(message, repeated, tag = "3")]
    pub(super) histograms: Vec<HistogramV2>,
    #[prost(message, repeated, tag = "4")]
    pub(super) exemplars: Vec<ExemplarV2>,
    #[prost(message, optional, tag = "5")]
    pub(super) metadata: Option<MetadataV2>,
    #[prost(int64, tag = "6")]
    pub(super) created_timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct SampleV2 {
    #[prost(fixed64, tag = "1")]
    pub(super) value: u64,
    #[prost(int64, tag = "2")]
    pub(super) timestamp: i64,
    #[prost(int64, tag = "3")]
    pub(super) start_timestamp: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExemplarV2 {
    /// Unpacked, which decoders must take as well.
    #[prost(uint32, repeated, packed = "false", tag = "1")]
    pub(super) labels_refs: Vec<u32>,
    #[prost(fixed64, tag = "2")]
    pub(super) value: u64,
    #[prost(int64, tag = "3")]
    pub(super) timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct MetadataV2 {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(uint32, tag = "3")]
    pub(super) help_ref: u32,
    #[prost(uint32, tag = "4")]
    pub(super) unit_ref: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Span {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(super) enum Count {
    #[prost(uint64, tag = "1")]
    Int(u64),
    #[prost(fixed64, tag = "2")]
    Float(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
pub(super) enum ZeroCount {
    #[prost(uint64, tag = "6")]
    Int(u64),
    #[prost(fixed64, tag = "7")]
    Float(u64),
}

macro_rules! histogram {
    ($name:ident $(, $start:ident = $tag:literal)?) => {
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $name {
            #[prost(oneof = "Count", tags = "1, 2")]
            pub(super) count: Option<Count>,
            #[prost(fixed64, tag = "3")]
            pub(super) sum: u64,
            #[prost(sint32, tag = "4")]
            pub(super) schema: i32,
            #[prost(fixed64, tag = "5")]
            pub(super) zero_threshold: u64,
            #[prost(oneof = "ZeroCount", tags = "6, 7")]
            pub(super) zero_count: Option<ZeroCount>,
            #[prost(message, repeated, tag = "8")]
            pub(super) negative_spans: Vec<Span>,
            #[prost(sint64, repeated, tag = "9")]
            pub(super) negative_deltas: Vec<i64>,
            #[prost(fixed64, repeated, tag = "10")]
            pub(super) negative_counts: Vec<u64>,
            #[prost(message, repeated, tag = "11")]
            pub(super) positive_spans: Vec<Span>,
            #[prost(sint64, repeated, packed = "false", tag = "12")]
            pub(super) positive_deltas: Vec<i64>,
            #[prost(fixed64, repeated, packed = "false", tag = "13")]
            pub(super) positive_counts: Vec<u64>,
            #[prost(int32, tag = "14")]
            pub(super) reset_hint: i32,
            #[prost(int64, tag = "15")]
            pub(super) timestamp: i64,
            #[prost(fixed64, repeated, tag = "16")]
            pub(super) custom_values: Vec<u64>,
            $(#[prost(int64, tag = $tag)]
            pub(super) $start: i64,)?
        }
    };
}

histogram!(HistogramV1);
histogram!(HistogramV2, start_timestamp = "17");
