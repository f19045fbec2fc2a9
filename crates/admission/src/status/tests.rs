//! Promise: any protobuf or JSON reader finds in a status what was put there.

use super::*;
use prost::Message;

/// `google.rpc.Status` and what can be in it, as the schema has them.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Duration>,
}

#[derive(Clone, PartialEq, Message)]
struct Duration {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<FieldViolation>,
}

#[derive(Clone, PartialEq, Message)]
struct FieldViolation {
    #[prost(string, tag = "2")]
    description: String,
}

/// Short and long, in one part and in three, with and without the end of a line.
const MESSAGES: [[&str; 3]; 6] = [
    ["", "", ""],
    ["no\n", "", ""],
    ["at most ", "1024", " bytes\n"],
    ["at most ", "7\n", ""],
    ["a \"quote\", a \\, a\ttab, two\nlines, and ü", "", "\n"],
    [
        "long: 0123456789012345678901234567890123456789012345678901234567890123456789",
        "_",
        "\u{1}0123456789\
      0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\n",
    ],
];

fn bytes(parts: [&str; 3]) -> [&[u8]; 3] {
    parts.map(str::as_bytes)
}

#[test]
fn protobuf_reads_back_as_it_was_written() {
    for parts in MESSAGES {
        let text = parts.concat();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        for detail in
            [Detail::Nothing, Detail::BadRequest, Detail::RetryIn(0), Detail::RetryIn(4_000_000_000)]
        {
            let mut out = b"before".to_vec();
            protobuf(&mut out, Code::Unavailable, bytes(parts), detail);
            let status = Status::decode(&out[6..]).unwrap();
            assert_eq!((status.code, status.message.as_str()), (14, text));
            let mut details = status.details.iter();
            match detail {
                Detail::Nothing => {}
                Detail::BadRequest => {
                    let any = details.next().unwrap();
                    assert_eq!(any.type_url, "type.googleapis.com/google.rpc.BadRequest");
                    let told = BadRequest::decode(any.value.as_slice()).unwrap();
                    assert_eq!(told.field_violations, [FieldViolation { description: text.to_owned() }]);
                }
                Detail::RetryIn(seconds) => {
                    let any = details.next().unwrap();
                    assert_eq!(any.type_url, "type.googleapis.com/google.rpc.RetryInfo");
                    let told = RetryInfo::decode(any.value.as_slice()).unwrap();
                    assert_eq!(told.retry_delay, Some(Duration { seconds: seconds.into() }));
                }
            }
            assert_eq!(details.next(), None);
        }
    }
}

#[test]
fn json_reads_back_as_it_was_written() {
    for parts in MESSAGES {
        let text = parts.concat();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let shown = |detail| {
            let mut out = Vec::new();
            json(&mut out, Code::InvalidArgument, bytes(parts), detail);
            let status: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!((status["code"].as_u64(), status["message"].as_str()), (Some(3), Some(text)));
            status["details"][0].clone()
        };
        assert!(shown(Detail::Nothing).is_null());
        let told = shown(Detail::BadRequest);
        assert_eq!(told["@type"], "type.googleapis.com/google.rpc.BadRequest");
        assert_eq!(told["fieldViolations"][0]["description"], text);
        assert_eq!(shown(Detail::RetryIn(120))["retryDelay"], "120s");
    }
}
