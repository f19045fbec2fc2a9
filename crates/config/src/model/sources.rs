use crate::declare::settings;
use crate::values::Bytes;

settings! {
    /// What is received.
    pub struct Sources {
        /// Prometheus remote write 1.0 and 2.0, at `/api/v1/write` and `/api/v1/receive`.
        prometheus_remote_write: RemoteWriteSource = RemoteWriteSource::default(),
    }
}

settings! {
    /// Prometheus remote write.
    pub struct RemoteWriteSource {
        /// The largest request, measured when decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(32),
    }
}
