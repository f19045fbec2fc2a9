//! The body's format, from the head of a remote-write request.

use tidegate_admission::Rejection;
use tidegate_http1::Head;
use tidegate_ledger::Refusal;
use tidegate_wire::remote_write::Version;

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyFormat {
    pub(crate) version: Version,
}

/// Reads method, Content-Type and Content-Encoding. A request that leaves the latter two out, or empty, is
/// taken for 1.0 in Snappy, as Prometheus does for the senders of the first hour.
pub(crate) fn form(head: &Head<'_>) -> Result<BodyFormat, Rejection> {
    if head.method() != "POST" {
        return Err(Rejection::new(Refusal::Method, "remote write is sent with POST\n"));
    }
    let twice = |_| Rejection::new(Refusal::Headers, "Content-Type and Content-Encoding may be given once\n");
    let given = |value: &&[u8]| !value.trim_ascii().is_empty();
    let content_type = head.sole_header("content-type").map_err(twice)?.filter(given);
    let encoding = head.sole_header("content-encoding").map_err(twice)?.filter(given);
    let version = content_type.map_or(Some(Version::V1), version);
    match (version, encoding) {
        (None, _) => Err(unsupported(
            "the Content-Type must be application/x-protobuf, with proto=prometheus.WriteRequest (Remote-Write \
             1.0, also without the parameter) or proto=io.prometheus.write.v2.Request (2.0)\n",
        )),
        (Some(_), Some(encoding)) if !encoding.eq_ignore_ascii_case(b"snappy") => {
            Err(unsupported("the Content-Encoding must be snappy, in the block format\n"))
        }
        (Some(version), _) => Ok(BodyFormat { version }),
    }
}

const fn unsupported(words: &'static str) -> Rejection {
    Rejection::new(Refusal::Unsupported, words)
}

/// The version that a Content-Type names: a media type and parameters as in RFC 9110, section 8.3.1.
fn version(content_type: &[u8]) -> Option<Version> {
    let text = str::from_utf8(content_type).ok()?;
    let mut parts = text.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("application/x-protobuf") {
        return None;
    }
    let mut version = Version::V1;
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        if name.trim().eq_ignore_ascii_case("proto") {
            let value = value.trim().trim_matches('"');
            version = [Version::V1, Version::V2].into_iter().find(|version| version.message() == value)?;
        }
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_alone_chooses_the_schema() {
        let table: [(&str, Option<Version>); 10] = [
            ("application/x-protobuf", Some(Version::V1)),
            ("Application/X-Protobuf", Some(Version::V1)),
            ("application/x-protobuf;proto=prometheus.WriteRequest", Some(Version::V1)),
            ("application/x-protobuf; proto=io.prometheus.write.v2.Request", Some(Version::V2)),
            (
                "application/x-protobuf ; charset=utf-8 ; PROTO=\"io.prometheus.write.v2.Request\"",
                Some(Version::V2),
            ),
            ("application/x-protobuf;proto=io.prometheus.write.v3.Request", None),
            ("application/x-protobuf;proto=", None),
            ("application/json", None),
            ("", None),
            ("text/plain; proto=prometheus.WriteRequest", None),
        ];
        for (content_type, expected) in table {
            assert_eq!(version(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
