//! Series of remote write as Prometheus shows them: `up{job="a"} 1`.

use crate::items::ItemError;
use tidegate_wire::output::{Full, SliceOutput};
use tidegate_wire::proto::write;
use tidegate_wire::remote_write::{Series, v1, write_series};

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
    let series = v1::Request::new(body).series().map(|series| {
        let mut text = String::new();
        // A text has room for all.
        let _ = write_series(&Series::V1(series), &mut text);
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

/// A text in quotes, with the escapes of Go as Prometheus has them, and what is behind it.
fn string(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut value = String::new();
    loop {
        let at = rest.find(['"', '\\'])?;
        value.push_str(rest.get(..at)?);
        let escape = rest.get(at + 1..)?;
        if rest.get(at..)?.starts_with('"') {
            return Some((value, escape));
        }
        let letter = escape.chars().next()?;
        let digits = |digits: usize| {
            let code =
                escape.get(1..=digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            Some((char::from_u32(u32::from_str_radix(code, 16).ok()?)?, digits + 1))
        };
        let (letter, len) = match letter {
            'a' => ('\x07', 1),
            'b' => ('\x08', 1),
            'f' => ('\x0c', 1),
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            't' => ('\t', 1),
            'v' => ('\x0b', 1),
            // From 128 on it is a byte, which need not be a character.
            'x' => digits(2).filter(|(letter, _)| letter.is_ascii())?,
            'u' => digits(4)?,
            'U' => digits(8)?,
            other => (other, other.len_utf8()),
        };
        value.push(letter);
        rest = escape.get(len..)?;
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
            r#"x{a="\x01\t\r\n\u0085\u202e"}"#,
        ];
        let body = encode(texts).unwrap();
        assert_eq!(decode(&body), texts);
        let written_otherwise = r#"x{a="\a\b\f\v\u00e9\U0001f980\/"}"#;
        assert_eq!(decode(&encode([written_otherwise]).unwrap()), ["x{a=\"\\x07\\x08\\x0c\\x0bé🦀/\"}"]);
        assert_eq!(decode(&encode([r#" up { b = "2" , a="1", } 7.5"#]).unwrap()), [r#"up{a="1",b="2"}"#]);
        let samples: Vec<f64> = v1::Request::new(&encode(["up 7.5"]).unwrap())
            .series()
            .flat_map(|series| series.samples().map(|sample| sample.value()).collect::<Vec<_>>())
            .collect();
        assert_eq!(samples, [7.5]);
    }

    #[test]
    fn what_is_no_series_is_named() {
        for text in [
            "",
            "{}",
            "up{",
            "up{a}x",
            "up{a=b}",
            "up{a=\"b\"",
            "up seven",
            "up{a=\"\\x\"}",
            "up{a=\"\\xff\"}",
            "up{a=\"\\ud800\"}",
        ] {
            let refused = encode(["ok", text]);
            assert!(refused.as_ref().is_err_and(|error| error.item == 1), "{text}: {refused:?}");
        }
    }
}
