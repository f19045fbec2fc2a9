//! Marks on the items of a body, by which they are found again behind a pipeline.
//!
//! A mark is a field that no message has and that no statement can reach: the engine takes it along as it does with all that it does
//! not know. So an item is the one that it was, whatever was changed in it and whichever items before it were dropped.

use tidegate_pipeline::Format;
use tidegate_wire::otlp::Signal;
use tidegate_wire::proto::write::Varint;

/// The highest number that a field may have.
const MARK: u64 = (1 << 29) - 1;

/// The fields that lead from a request to its items, level by level.
fn path(format: Format) -> &'static [&'static [u64]] {
    match format {
        Format::Otlp(Signal::Metrics) => &[&[1], &[2], &[2], &[5, 7, 9, 10, 11], &[1]],
        Format::Otlp(_) => &[&[1], &[2], &[2]],
        Format::RemoteWrite(_) => &[&[1]],
    }
}

/// The body with a mark on each item: its position.
pub(crate) fn mark(format: Format, body: &[u8]) -> Vec<u8> {
    let mut next = 0;
    marked(body, path(format), &mut next)
}

/// The marks of the items, in their order; `None` for one that has none.
pub(crate) fn marks(format: Format, body: &[u8]) -> Vec<Option<usize>> {
    let mut found = Vec::new();
    collect(body, path(format), &mut found);
    found
}

fn marked(message: &[u8], path: &[&[u64]], next: &mut u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 16);
    let Some((fields, inner)) = path.split_first() else {
        out.extend_from_slice(message);
        out.extend_from_slice(Varint::new(MARK << 3).as_bytes());
        out.extend_from_slice(Varint::new(*next).as_bytes());
        *next += 1;
        return out;
    };
    for field in Fields(message) {
        match field.message.filter(|_| fields.contains(&field.number)) {
            Some(message) => {
                let message = marked(message, inner, next);
                out.extend_from_slice(Varint::new(field.number << 3 | 2).as_bytes());
                out.extend_from_slice(Varint::new(message.len() as u64).as_bytes());
                out.extend_from_slice(&message);
            }
            None => out.extend_from_slice(field.whole),
        }
    }
    out
}

fn collect(message: &[u8], path: &[&[u64]], found: &mut Vec<Option<usize>>) {
    let Some((fields, inner)) = path.split_first() else {
        let mark = Fields(message).find(|field| field.number == MARK).and_then(|field| field.value);
        found.push(mark.and_then(|mark| usize::try_from(mark).ok()));
        return;
    };
    for message in Fields(message).filter(|field| fields.contains(&field.number)).filter_map(|it| it.message)
    {
        collect(message, inner, found);
    }
}

/// A field of a message.
struct Field<'a> {
    number: u64,
    whole: &'a [u8],
    /// Where it has a length, what is in it.
    message: Option<&'a [u8]>,
    /// Where it is a varint, its value.
    value: Option<u64>,
}

/// The fields of a message, up to one that is malformed.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let start = self.0;
        let (key, rest) = varint(start)?;
        let (mut message, mut value) = (None, None);
        let rest = match key & 7 {
            0 => {
                let (number, rest) = varint(rest)?;
                value = Some(number);
                rest
            }
            1 => rest.get(8..)?,
            2 => {
                let (len, rest) = varint(rest)?;
                let (inner, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                message = Some(inner);
                rest
            }
            5 => rest.get(4..)?,
            _ => return None,
        };
        self.0 = rest;
        let whole = start.get(..start.len() - rest.len())?;
        Some(Field { number: key >> 3, whole, message, value })
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{apply, decode, decode_series, encode, encode_series};
    use serde_json::json;
    use tidegate_pipeline::{Definition, ErrorMode, Pipeline, StepDefinition, StepKind};
    use tidegate_wire::remote_write::Version;

    fn pipeline(kinds: Vec<StepKind>) -> Pipeline {
        let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
        Pipeline::compile(&Definition { steps: kinds.into_iter().map(step).collect() }).unwrap().0
    }

    /// Items that were changed and that stand behind dropped ones are found again, and read as if they had no marks.
    #[test]
    fn items_are_found_again_behind_a_pipeline() {
        let pipeline = pipeline(vec![
            StepKind::Edit(vec![
                "set(resource.attributes[\"r\"], \"x\") where log.body == \"b\"".into(),
                "keep_keys(log.attributes, [\"new\"])".into(),
                "set(log.attributes[\"new\"], log.body)".into(),
            ]),
            StepKind::Drop(vec!["log.body == \"a\"".into(), "log.body == \"c\"".into()]),
        ]);
        let format = Format::Otlp(Signal::Logs);
        let items = ["a", "b", "c", "d"].map(|body| json!({"body": body, "attributes": {"old": 1}}));
        let body = encode(Signal::Logs, &items).unwrap();
        let marked = mark(format, &body);
        assert_eq!(marks(format, &marked), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(decode(Signal::Logs, &marked), decode(Signal::Logs, &body));
        let out = apply(&pipeline, format, &marked, 0).body.unwrap();
        assert_eq!(marks(format, &out), [Some(1), Some(3)]);
        let bodies: Vec<_> = decode(Signal::Logs, &out).iter().map(|item| item["body"].clone()).collect();
        assert_eq!(bodies, ["b", "d"]);
    }

    #[test]
    fn points_and_series_are_found_again() {
        let metrics = pipeline(vec![
            StepKind::Edit(vec!["set(metric.unit, \"s\") where metric.name == \"b\"".into()]),
            StepKind::Drop(vec!["datapoint.value_int == 1".into()]),
        ]);
        let format = Format::Otlp(Signal::Metrics);
        let item = |name: &str, value: u32| json!({"type": "sum", "name": name, "value": value, "aggregation_temporality": "delta"});
        let body =
            encode(Signal::Metrics, &[item("a", 1), item("b", 1), item("b", 2), item("c", 3)]).unwrap();
        let out = apply(&metrics, format, &mark(format, &body), 0).body.unwrap();
        assert_eq!(marks(format, &out), [Some(2), Some(3)]);

        let rule = tidegate_pipeline::RuleDefinition {
            source_labels: vec!["job".into()],
            regex: vec!["a|c".into()],
            action: Some("keep".into()),
            ..Default::default()
        };
        let set = tidegate_pipeline::RuleDefinition {
            target_label: Some("env".into()),
            replacement: Some("prod".into()),
            ..Default::default()
        };
        let format = Format::RemoteWrite(Version::V1);
        let body = encode_series(["up{job=\"a\"}", "up{job=\"b\"}", "up{job=\"c\"}"]).unwrap();
        let out = apply(&pipeline(vec![StepKind::Relabel(vec![rule, set])]), format, &mark(format, &body), 0);
        let out = out.body.unwrap();
        assert_eq!(marks(format, &out), [Some(0), Some(2)]);
        assert_eq!(decode_series(&out), ["up{env=\"prod\",job=\"a\"}", "up{env=\"prod\",job=\"c\"}"]);
    }

    #[test]
    fn damaged_bodies_have_the_marks_of_what_can_be_read() {
        for body in [&b"\x0a"[..], b"\x0a\x05\x12", b"\xff\xff", b"\x0b\x0b"] {
            assert!(marks(Format::Otlp(Signal::Logs), body).is_empty());
            assert!(mark(Format::Otlp(Signal::Logs), body).len() <= body.len());
        }
    }
}
