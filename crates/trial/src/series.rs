//! Series of remote write as Prometheus shows them: `up{job="a"} 1`.

use crate::items::ItemError;
use tidegate_wire::output::{Full, SliceOutput};
use tidegate_wire::proto::write;
use tidegate_wire::remote_write::v1;

/// The body of a 1.0 request with these series, each with one sample; its value is 0 where none is written. Labels are in order
/// of their names, as the protocol has them.
///
/// # Errors
/// [`ItemError`]: the first text that is no series.
pub fn encode<'a>(series: impl IntoIterator<Item = &'a str>) -> Result<Vec<u8>, ItemError> {
    let mut body = Vec::new();
    for (item, text) in series.into_iter().enumerate() {
        let (mut labels, value) = parsed(text).ok_or_else(|| ItemError {
            item,
            why: format!("`{text}` is no series; write `up{{job=\"a\"}}`"),
        })?;
        labels.sort();
        let mut space = vec![0; text.len() * 2 + labels.len() * 24 + 64];
        let mut message = SliceOutput::new(&mut space);
        let written = labels.iter().try_for_each(|label| write_label(&mut message, label));
        let written = written.and_then(|()| write_sample(&mut message, value)).map(|()| message.len());
        let len = written.map_err(|Full| ItemError { item, why: "it is too long".into() })?;
        let message = space.get(..len).unwrap_or_default();
        body.push(0x0a);
        body.extend(write::Varint::new(len as u64).as_bytes());
        body.extend(message);
    }
    Ok(body)
}

/// The series of a 1.0 request, without their values.
#[must_use]
pub fn decode(body: &[u8]) -> Vec<String> {
    decode_with_values(body).into_iter().map(|(series, _)| series).collect()
}

/// The series of a 1.0 request, each with its samples.
#[must_use]
pub fn decode_with_values(body: &[u8]) -> Vec<(String, Vec<f64>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let series = v1::Request::new(body).series().map(|series| {
        let (mut name, mut labels) = (String::new(), Vec::new());
        for label in series.labels() {
            match label.name {
                b"__name__" => name = text(label.value),
                _ => labels.push(format!("{}={:?}", quoted(&text(label.name)), text(label.value))),
            }
        }
        if quoted(&name) != name {
            labels.insert(0, format!("{name:?}"));
            name.clear();
        }
        let text = if labels.is_empty() && !name.is_empty() {
            name
        } else {
            format!("{name}{{{}}}", labels.join(","))
        };
        (text, series.samples().map(|sample| sample.value()).collect())
    });
    series.collect()
}

fn write_label(out: &mut SliceOutput<'_>, (name, value): &(String, String)) -> Result<(), Full> {
    let len = write::bytes_len(name.len() as u64) + write::bytes_len(value.len() as u64);
    write::length(out, 1, len)?;
    write::bytes(out, 1, name.as_bytes())?;
    write::bytes(out, 2, value.as_bytes())
}

fn write_sample(out: &mut SliceOutput<'_>, value: f64) -> Result<(), Full> {
    write::length(out, 2, 9)?;
    write::fixed64(out, 1, value.to_bits())
}

/// A name as it stands without quotes where it may.
fn quoted(name: &str) -> String {
    let is_start = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    let is_plain =
        name.starts_with(is_start) && name.chars().all(|letter| is_start(letter) || letter.is_ascii_digit());
    if is_plain || name.is_empty() { name.to_owned() } else { format!("{name:?}") }
}

type Labels = Vec<(String, String)>;

fn parsed(text: &str) -> Option<(Labels, f64)> {
    let text = text.trim();
    let end = text.find(|letter: char| letter == '{' || letter.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut labels = Vec::new();
    if !name.is_empty() {
        labels.push(("__name__".to_owned(), name.to_owned()));
    }
    let mut rest = rest.trim_start();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            inner = inner.trim_start().trim_start_matches(',').trim_start();
            if let Some(after) = inner.strip_prefix('}') {
                rest = after;
                break;
            }
            let (name, after) = if inner.starts_with('"') {
                string(inner)?
            } else {
                let end = inner.find(['=', ' ', '}', ','])?;
                (inner.get(..end)?.to_owned(), inner.get(end..)?)
            };
            let after = after.trim_start();
            if let Some(value) = after.strip_prefix('=') {
                let (value, after) = string(value.trim_start())?;
                labels.push((name, value));
                inner = after;
            } else {
                // `{"a.name", …}`
                labels.push(("__name__".to_owned(), name));
                inner = after;
            }
        }
    }
    let value = match rest.split_whitespace().next() {
        None => 0.0,
        Some(number) => number.parse().ok()?,
    };
    (!labels.is_empty()).then_some((labels, value))
}

/// A text in quotes, and what is behind it.
fn string(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let (mut value, mut letters) = (String::new(), inner.char_indices());
    loop {
        match letters.next()? {
            (at, '"') => return Some((value, inner.get(at + 1..)?)),
            (_, '\\') => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            (_, letter) => value.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_what_they_were() {
        let texts = [
            r#"up{job="a",replica="0"}"#,
            "up",
            r#"{"http.requests","k.1"="v"}"#,
            r#"x{a="q\"uo\\te"}"#,
            r#"{a="b"}"#,
        ];
        let body = encode(texts).unwrap();
        assert_eq!(decode(&body), texts);
        assert_eq!(decode(&encode([r#" up { b = "2" , a="1", } 7.5"#]).unwrap()), [r#"up{a="1",b="2"}"#]);
        let samples: Vec<f64> = v1::Request::new(&encode(["up 7.5"]).unwrap())
            .series()
            .flat_map(|series| series.samples().map(|sample| sample.value()).collect::<Vec<_>>())
            .collect();
        assert_eq!(samples, [7.5]);
    }

    #[test]
    fn what_is_no_series_is_named() {
        for text in ["", "{}", "up{", "up{a}x", "up{a=b}", "up{a=\"b\"", "up seven"] {
            let refused = encode(["ok", text]);
            assert!(refused.as_ref().is_err_and(|error| error.item == 1), "{text}: {refused:?}");
        }
    }
}
