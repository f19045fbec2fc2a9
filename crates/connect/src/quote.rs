//! Quotes values for the languages of snippets.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// As a word of a POSIX shell.
pub(crate) fn shell(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As a string of JSON, which YAML, TOML, Alloy, rsyslog and syslog-ng read as well: no control characters come here.
pub(crate) fn double(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As [`double`], for a file in which `$` begins a variable that `$$` escapes.
pub(crate) fn dollars(text: &str) -> String {
    double(&text.replace('$', "$$"))
}

/// As a value in W3C baggage, as in `OTEL_EXPORTER_OTLP_HEADERS`.
pub(crate) fn baggage(text: &str) -> String {
    const LEFT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, LEFT).to_string()
}

/// As the path of a URL. The gateway compares paths as they are written, so all stays as it is but what `sources.http.path` cannot have.
pub(crate) fn path(text: &str) -> String {
    const ENCODED: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'\\')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}');
    let path = utf8_percent_encode(text.trim_matches('/'), ENCODED).to_string();
    if path.is_empty() { path } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_has_no_meaning_of_its_own() {
        assert_eq!(shell("http://[::1]:1/$x"), "'http://[::1]:1/$x'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell("/etc/ca.pem"), "/etc/ca.pem");
        assert_eq!(shell(""), "''");
        assert_eq!(double(r#"a"\b"#), r#""a\"\\b""#);
        assert_eq!(dollars("$a"), r#""$$a""#);
        assert_eq!(baggage("a b=c,d\"$`"), "a%20b%3Dc%2Cd%22%24%60");
        assert_eq!((path("/elasticsearch/"), path("/")), ("/elasticsearch".to_owned(), String::new()));
        assert_eq!(path("a b'\"$%41{"), "/a%20b'%22$%41%7B");
        assert_eq!(path("/a/!$&'()*+,-.:;=@[0-9]_~%2f"), "/a/!$&'()*+,-.:;=@[0-9]_~%2f");
    }
}
