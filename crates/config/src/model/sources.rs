use crate::declare::settings;
use crate::values::Bytes;

settings! {
    /// What is received.
    pub struct Sources {
        /// OpenTelemetry: traces, metrics, logs and profiles, over HTTP at `/v1/traces`, `/v1/metrics`, `/v1/logs`
        /// and `/v1development/profiles`, and over gRPC.
        otlp: OtlpSource = OtlpSource::default(),
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

settings! {
    /// OpenTelemetry.
    pub struct OtlpSource {
        /// The largest request, as sent and when decompressed. A larger one is answered 413, or
        /// `RESOURCE_EXHAUSTED` over gRPC.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
    }
}
