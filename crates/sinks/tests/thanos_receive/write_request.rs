//! Requests to an ingestor, read by `prost`.

/// `thanos.WriteRequest`, with its series as they came.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteRequest {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) series: Vec<Vec<u8>>,
    #[prost(string, tag = "2")]
    pub(crate) tenant: String,
    #[prost(int64, tag = "3")]
    pub(crate) replica: i64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) tuples: Vec<TenantSeries>,
}

/// Series of one tenant in a request of many.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TenantSeries {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) series: Vec<Vec<u8>>,
    #[prost(string, tag = "2")]
    pub(crate) tenant: String,
}
