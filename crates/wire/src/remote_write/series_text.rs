//! Series as text, as Prometheus writes them: `up{job="a"}`.

use super::view::Series;
use std::fmt::{self, Write};

const NAME: &[u8] = b"__name__";

/// Writes the labels of `series` to `out`: `up{job="a"}`, or `{"http.requests","k.1"="v"}` where names need quotes.
///
/// Texts are quoted as Go quotes them: control characters and those that change the direction of writing as `\x01` or
/// `\u202e`, so the text is one line. Bytes that are not UTF-8 become U+FFFD. It allocates nothing, and stops at the first
/// error of `out`: whoever has a limit has `out` refuse what exceeds it. One symbol of a 2.0 body can be the value of any
/// number of labels, so the text can be much longer than the body.
///
/// # Errors
/// Those of `out`.
pub fn write_series(series: &Series<'_>, out: &mut impl Write) -> fmt::Result {
    let name = series.label(NAME).unwrap_or_default();
    let mut separator = "{";
    if is_plain(name) {
        out.write_str(str::from_utf8(name).unwrap_or_default())?;
    } else if !name.is_empty() {
        out.write_str("{")?;
        write_quoted(name, out)?;
        separator = ",";
    }
    for label in series.labels().filter(|label| label.name != NAME) {
        out.write_str(separator)?;
        separator = ",";
        match str::from_utf8(label.name) {
            Ok(name) if is_plain(label.name) => out.write_str(name)?,
            _ => write_quoted(label.name, out)?,
        }
        out.write_str("=")?;
        write_quoted(label.value, out)?;
    }
    match separator {
        "{" if !name.is_empty() => Ok(()),
        "{" => out.write_str("{}"),
        _ => out.write_str("}"),
    }
}

/// Whether a name stands without quotes.
fn is_plain(name: &[u8]) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b':';
    name.first().is_some_and(|first| is_start(*first))
        && name.iter().all(|byte| is_start(*byte) || byte.is_ascii_digit())
}

fn write_quoted(text: &[u8], out: &mut impl Write) -> fmt::Result {
    out.write_str("\"")?;
    for chunk in text.utf8_chunks() {
        let (valid, mut written) = (chunk.valid(), 0);
        for (at, letter) in valid.char_indices().filter(|(_, letter)| needs_escape(*letter)) {
            out.write_str(valid.get(written..at).unwrap_or_default())?;
            write_escape(letter, out)?;
            written = at + letter.len_utf8();
        }
        out.write_str(valid.get(written..).unwrap_or_default())?;
        if !chunk.invalid().is_empty() {
            out.write_char(char::REPLACEMENT_CHARACTER)?;
        }
    }
    out.write_str("\"")
}

fn needs_escape(letter: char) -> bool {
    let is_direction =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(letter, '"' | '\\') || letter.is_control() || is_direction
}

fn write_escape(letter: char, out: &mut impl Write) -> fmt::Result {
    match letter {
        '"' => out.write_str("\\\""),
        '\\' => out.write_str("\\\\"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        // From 128 on, `\x` is a byte and not a character.
        letter if letter.is_ascii() => write!(out, "\\x{:02x}", u32::from(letter)),
        letter => write!(out, "\\u{:04x}", u32::from(letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::{Symbols, Version, v1, view};

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn text(labels: &[(&[u8], &[u8])]) -> String {
        let labels = labels.iter().map(|(name, value)| field(1, &[field(1, name), field(2, value)].concat()));
        let body = field(1, &labels.collect::<Vec<_>>().concat());
        let series = v1::Request::new(&body).series().next().unwrap();
        let mut out = String::new();
        write_series(&Series::V1(series), &mut out).unwrap();
        out
    }

    #[test]
    fn series_are_written_as_prometheus_writes_them() {
        for (labels, expected) in [
            (&[(NAME, b"up".as_slice()), (b"job", b"a")][..], r#"up{job="a"}"#),
            (&[(b"a", b"1"), (NAME, b"up"), (b"b.c", b"2")], r#"up{a="1","b.c"="2"}"#),
            (&[(NAME, b"up")], "up"),
            (&[(NAME, b"http.requests")], r#"{"http.requests"}"#),
            (&[(NAME, b"http.requests"), (b"k", b"")], r#"{"http.requests",k=""}"#),
            (&[(b"a", b"b")], r#"{a="b"}"#),
            (&[], "{}"),
            (&[(NAME, b"x"), (b"a", b"q\"uo\\te\n\r\t")], r#"x{a="q\"uo\\te\n\r\t"}"#),
            (
                &[(NAME, b"x"), (b"a", "\u{1}\u{7f}\u{85}\u{202e}\u{e9}\u{1f980}".as_bytes())],
                "x{a=\"\\x01\\x7f\\u0085\\u202e\u{e9}\u{1f980}\"}",
            ),
            (&[(NAME, b"x"), (b"a", b"a\xff\xe2\x82b")], "x{a=\"a\u{fffd}\u{fffd}b\"}"),
        ] {
            assert_eq!(text(labels), expected);
        }
    }

    /// The text of a 2.0 series may be a thousand times as long as its body: `out` ends it.
    #[test]
    fn a_writer_with_a_limit_ends_the_text() {
        struct Limited(usize);
        impl Write for Limited {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
                Ok(())
            }
        }
        let symbols = ["", "__name__", "m", "k", &"\u{1}".repeat(100)];
        let symbols = symbols.map(|symbol| field(4, symbol.as_bytes())).concat();
        let references = [&[1, 2][..], &[3, 4].repeat(50)].concat();
        let body = [symbols, field(5, &field(1, &references))].concat();
        let mut scratch = Symbols::new();
        let request = view(Version::V2, &body, &mut scratch).unwrap();
        let series = request.series().next().unwrap();
        assert_eq!(write_series(&series, &mut Limited(10_000)), Err(fmt::Error));
        let mut whole = Limited(100_000);
        write_series(&series, &mut whole).unwrap();
        assert_eq!(100_000 - whole.0, "m{}".len() + 50 * "k=\"\",".len() - 1 + 50 * 400);
    }
}
