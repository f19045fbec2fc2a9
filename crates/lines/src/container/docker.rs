//! Lines of Docker's logging driver `json-file`:
//! `{"log":"message\n","stream":"stdout","attrs":{…},"time":"2016-10-06T00:17:09.669794202Z"}`.
//!
//! A `log` without `\n` at its end is a part of a line: Docker cuts lines at 16 KiB. Members may come in any order, and unknown
//! ones are ignored.
//!
//! Source: moby, `daemon/logger/jsonfilelog/jsonlog` and `daemon/logger/copier.go`.

use super::{Entry, Stream};
use tidegate_wire::json::{BadEscape, Cursor, RawString, ValueType, decode_escape};
use tidegate_wire::time::parse_rfc3339;

/// The deepest value of an unknown member.
const DEPTH: usize = 64;

/// The message of `line`, with its escapes undone in `unescaped`.
pub(crate) fn parse<'a>(line: &'a [u8], unescaped: &'a mut Vec<u8>) -> Option<Entry<'a>> {
    let members = members(line)?;
    let log = members.log?;
    let stream = members.stream?;
    let time_ns = parse_rfc3339(members.time?)?;
    // Most messages have one escape, that of their end.
    let (raw, is_partial) = match log.raw.strip_suffix(b"\\n") {
        Some(raw) if !ends_with_backslash(raw) => (raw, false),
        _ => (log.raw, true),
    };
    let text = if memchr::memchr(b'\\', raw).is_none() { raw } else { unescape(raw, unescaped) };
    // `\u000a` is a line end as well.
    let (text, is_partial) = match text.strip_suffix(b"\n") {
        Some(text) if is_partial => (text, false),
        _ => (text, is_partial),
    };
    Some(Entry { text, stream, time_ns, is_partial })
}

/// The members of a line that matter.
#[derive(Default)]
struct Members<'a> {
    log: Option<RawString<'a>>,
    stream: Option<Stream>,
    time: Option<&'a [u8]>,
}

#[inline]
fn members(line: &[u8]) -> Option<Members<'_>> {
    let mut json = Cursor::new(line);
    let mut members = Members::default();
    if !json.take(b'{') || json.take(b'}') {
        return None;
    }
    loop {
        let name = json.name().ok()?;
        match name.raw {
            b"log" => members.log = Some(json.loose_string().ok()?),
            b"stream" => {
                members.stream = Some(Stream::of_name(json.string().ok()?.raw).unwrap_or(Stream::None))
            }
            b"time" => members.time = Some(json.string().ok()?.raw),
            _ if json.value_type().ok()? == ValueType::String => _ = json.loose_string().ok()?,
            _ => json.loose_skip::<1>(DEPTH).ok()?,
        }
        if !json.take(b',') {
            break;
        }
    }
    json.expect(b'}').ok()?;
    json.end().ok()?;
    Some(members)
}

/// Whether the last character is a backslash that escapes what follows.
fn ends_with_backslash(raw: &[u8]) -> bool {
    raw.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// `raw` without its escapes. Those that stand for nothing become U+FFFD, as in Docker's own reader.
fn unescape<'a>(raw: &[u8], out: &'a mut Vec<u8>) -> &'a [u8] {
    out.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let (character, behind) = match decode_escape(escape) {
            Ok(decoded) => decoded,
            Err(BadEscape::Half(behind)) => (char::REPLACEMENT_CHARACTER, behind),
            Err(BadEscape::Unknown) => (char::REPLACEMENT_CHARACTER, escape),
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = behind;
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Option<(String, Stream, bool)> {
        let mut unescaped = Vec::new();
        let entry = parse(line.as_bytes(), &mut unescaped)?;
        assert_eq!(entry.time_ns, 1_475_713_029_000_000_001);
        Some((String::from_utf8(entry.text.to_vec()).unwrap(), entry.stream, entry.is_partial))
    }

    #[test]
    fn members_come_in_any_order_and_others_are_ignored() {
        let whole = Some(("a \"b\"\t😀".to_owned(), Stream::Stderr, false));
        for line in [
            r#"{"log":"a \"b\"\t\ud83d\ude00\n","stream":"stderr","time":"2016-10-06T00:17:09.000000001Z"}"#,
            r#"{"time":"2016-10-06T00:17:09.000000001Z","attrs":{"log":"x","n":[1,{}]},"tag":"\"","stream":"stderr","log":"a \"b\"\t😀\n"}"#,
            r#" { "n" : null , "log" : "a \"b\"\t😀\u000a" , "stream":"stderr" , "time" : "2016-10-06T00:17:09.000000001Z" } "#,
        ] {
            assert_eq!(parsed(line), whole, "{line}");
        }
    }

    #[test]
    fn a_part_has_no_line_end() {
        let line = |log: &str| {
            format!(r#"{{"log":"{log}","stream":"stdout","time":"2016-10-06T00:17:09.000000001Z"}}"#)
        };
        let text = |text: &str, is_partial| Some((text.to_owned(), Stream::Stdout, is_partial));
        assert_eq!(parsed(&line("part")), text("part", true));
        assert_eq!(parsed(&line(r"C:\\n")), text(r"C:\n", true));
        assert_eq!(parsed(&line(r"C:\\\n")), text(r"C:\", false));
        assert_eq!(parsed(&line(r"\n")), text("", false));
        assert_eq!(parsed(&line("")), text("", true));
        assert_eq!(parsed(&line(r"half \ud83d pair\n")), text("half \u{fffd} pair", false));
    }

    #[test]
    fn refuses_other_json() {
        for line in [
            "{}",
            r#"{"log":"x\n","stream":"stdout"}"#,
            r#"{"log":1,"stream":"stdout","time":"2016-10-06T00:17:09.000000001Z"}"#,
            r#"{"log":"x\n","stream":"stdout","time":"2016-10-06T00:17:09.000000001Z"} x"#,
            r#"{"log":"x\n","stream":"stdout","time":"2016-10-06T00:17:09.000000001Z""#,
            r#"{"level":"info","msg":"an application's own","time":"2016-10-06T00:17:09.000000001Z"}"#,
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    proptest! {
        /// A message is that of `serde_json`, without its line end.
        #[test]
        fn messages_are_those_of_serde_json(log in "([a-z\"\\\\\\n\\t\\x00é😀]{0,20})\\n?") {
            let json = serde_json::json!({"log": log, "stream": "stdout", "time": "2016-10-06T00:17:09.000000001Z"});
            let whole = log.strip_suffix('\n');
            let expected = (whole.unwrap_or(&log).to_owned(), Stream::Stdout, whole.is_none());
            prop_assert_eq!(parsed(&json.to_string()), Some(expected));
        }
    }
}
