//! The body's format, from the request head.

use tidegate_admission::Rejection;
use tidegate_admission::otlp::Media;
use tidegate_journal::{Encoding, Signal as Journalled};
use tidegate_ledger as ledger;
use tidegate_ledger::Refusal;
use tidegate_wire::otlp::Signal;

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyFormat {
    pub(crate) signal: Signal,
    pub(crate) encoding: Encoding,
    pub(crate) media: Media,
}

/// Where each signal is served: its path over HTTP, and its method over gRPC.
pub(crate) const SERVICES: [(Signal, &str, &str); 4] = [
    (Signal::Traces, "/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
    (Signal::Metrics, "/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
    (Signal::Logs, "/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"),
    (
        Signal::Profiles,
        "/v1development/profiles",
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    ),
];

/// The headers that say how a body is written; an error where one of them is there twice.
pub(crate) type Headers<'a> = Result<(Option<&'a [u8]>, Option<&'a [u8]>), ()>;

impl BodyFormat {
    /// The signal that is served over HTTP under `path`.
    pub(crate) fn signal_at(path: &str) -> Option<Signal> {
        SERVICES.iter().find(|(_, known, _)| *known == path).map(|(signal, ..)| *signal)
    }

    /// The form of a request over HTTP, or why it is refused and how that is to be written: as the request
    /// is, or as people read it where that is not known.
    pub(crate) fn over_http(
        signal: Signal,
        method: &str,
        headers: Headers<'_>,
    ) -> Result<BodyFormat, (Rejection, Media)> {
        let Ok((content_type, encoding)) = headers else {
            let words = "Content-Type and Content-Encoding may be given once\n";
            return Err((Rejection::new(Refusal::Headers, words), Media::Json));
        };
        let media = content_type.and_then(media_of);
        let answered = media.unwrap_or(Media::Json);
        if method != "POST" {
            return Err((Rejection::new(Refusal::Method, "OTLP is sent with POST\n"), answered));
        }
        let Some(media) = media else {
            let words = "the Content-Type must be application/x-protobuf or application/json\n";
            return Err((Rejection::new(Refusal::Unsupported, words), answered));
        };
        if (signal, media) == (Signal::Profiles, Media::Json) {
            let words = "profiles are supported in protobuf only: their JSON schema still changes\n";
            return Err((Rejection::new(Refusal::Unsupported, words), answered));
        }
        let Some(encoding) = encoding.map_or(Some(Encoding::Identity), encoding_over_http) else {
            let words = "the Content-Encoding must be gzip, zstd or deflate, or none at all\n";
            return Err((Rejection::new(Refusal::Unsupported, words), answered));
        };
        Ok(BodyFormat { signal, encoding, media })
    }

    /// The JSON name of the rejected items in a partial success response.
    pub(crate) fn items(self) -> &'static str {
        match self.signal {
            Signal::Traces => "Spans",
            Signal::Metrics => "DataPoints",
            Signal::Logs => "LogRecords",
            Signal::Profiles => "Profiles",
        }
    }

    /// The signal as the books and as the journal know it.
    pub(super) fn signals(self) -> (ledger::Signal, Journalled) {
        match self.signal {
            Signal::Traces => (ledger::Signal::Traces, Journalled::Traces),
            Signal::Metrics => (ledger::Signal::Metrics, Journalled::Metrics),
            Signal::Logs => (ledger::Signal::Logs, Journalled::Logs),
            Signal::Profiles => (ledger::Signal::Events, Journalled::Profiles),
        }
    }
}

/// The encoding of this name, in HTTP and in gRPC.
pub(crate) fn encoding_of(name: &[u8]) -> Option<Encoding> {
    const NAMES: [(&[u8], Encoding); 5] = [
        (b"", Encoding::Identity),
        (b"identity", Encoding::Identity),
        (b"none", Encoding::Identity),
        (b"gzip", Encoding::Gzip),
        (b"zstd", Encoding::Zstd),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, encoding)| *encoding)
}

/// The encoding of this name in HTTP: there `deflate` is one too, which some HTTP clients compress with by themselves.
pub(crate) fn encoding_over_http(name: &[u8]) -> Option<Encoding> {
    encoding_of(name).or_else(|| name.eq_ignore_ascii_case(b"deflate").then_some(Encoding::Deflate))
}

/// The media type of a Content-Type; its parameters do not matter here (RFC 9110, section 8.3.1).
fn media_of(content_type: &[u8]) -> Option<Media> {
    let name = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    [Media::Protobuf, Media::Json]
        .into_iter()
        .find(|media| media.content_type().as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_says_how_a_body_is_written() {
        let table = [
            ("application/x-protobuf", Some(Media::Protobuf)),
            ("Application/X-Protobuf", Some(Media::Protobuf)),
            ("application/x-protobuf; charset=utf-8", Some(Media::Protobuf)),
            ("application/json", Some(Media::Json)),
            (" application/json ;charset=utf-8", Some(Media::Json)),
            ("application/protobuf", None),
            ("application/jsonl", None),
            ("text/plain", None),
            ("", None),
        ];
        for (content_type, media) in table {
            assert_eq!(media_of(content_type.as_bytes()), media, "{content_type}");
        }
    }

    #[test]
    fn paths_are_those_of_the_specification() {
        assert_eq!(BodyFormat::signal_at("/v1/traces"), Some(Signal::Traces));
        assert_eq!(BodyFormat::signal_at("/v1development/profiles"), Some(Signal::Profiles));
        for other in ["/v1/traces/", "/V1/traces", "/v1/profiles", "/", ""] {
            assert_eq!(BodyFormat::signal_at(other), None, "{other}");
        }
    }
}
