//! In which form an answer is wanted.

use tidegate_http1::Head;

/// A form of `/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A page, for browsers.
    Html,
    /// JSON, for programs.
    Json,
    /// Aligned text, for terminals.
    Text,
}

impl Form {
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Form::Html => "text/html; charset=utf-8",
            Form::Json => "application/json",
            Form::Text => "text/plain; charset=utf-8",
        }
    }

    /// The format that `head` requests: `?format=` takes precedence over `Accept`. `None` for an unknown format.
    pub(crate) fn wanted(head: &Head<'_>) -> Option<Form> {
        let format = head.query().into_iter().flat_map(|query| query.split('&'));
        match format.filter_map(|pair| pair.strip_prefix("format=")).next_back() {
            Some("html") => Some(Form::Html),
            Some("json") => Some(Form::Json),
            Some("text") => Some(Form::Text),
            Some(_) => None,
            None => Some(Form::accepted(head.values("accept"))),
        }
    }

    /// The form that the values of `Accept` like best. Who says nothing, or `*/*` as curl does, gets text;
    /// so does who accepts none of them, which is kinder than 406.
    pub(crate) fn accepted<'a>(values: impl Iterator<Item = &'a [u8]>) -> Form {
        let mut best = (0, Form::Text);
        let ranges = values.filter_map(|value| str::from_utf8(value).ok()).flat_map(|value| value.split(','));
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let form = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "text/html" | "application/xhtml+xml" => Form::Html,
                "application/json" | "application/*" => Form::Json,
                "text/plain" | "text/*" | "*/*" => Form::Text,
                _ => continue,
            };
            let quality = parts.find_map(quality).unwrap_or(1000);
            if (quality, form.rank()) > (best.0, best.1.rank()) && quality > 0 {
                best = (quality, form);
            }
        }
        best.1
    }

    /// Which of two forms that are liked equally is given: the one that has to be asked for by name.
    const fn rank(self) -> u8 {
        match self {
            Form::Html => 2,
            Form::Json => 1,
            Form::Text => 0,
        }
    }
}

/// `q=0.8` in thousandths (RFC 9110, section 12.4.2); what is malformed counts as not said.
fn quality(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    let value: f32 = value.trim().parse().ok()?;
    (name.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&value)).then_some((value * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &str) -> Form {
        Form::accepted([value.as_bytes()].into_iter())
    }

    /// Browsers get the page, programs what they ask for, terminals text.
    #[test]
    fn everyone_gets_what_they_like_best() {
        let firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        let table = [
            ("*/*", Form::Text),
            ("", Form::Text),
            (firefox, Form::Html),
            ("text/html", Form::Html),
            ("TEXT/HTML", Form::Html),
            ("application/json", Form::Json),
            ("application/json, text/plain, */*", Form::Json),
            ("application/json;q=0.5, text/html", Form::Html),
            ("text/html;q=0.4, application/json;q=0.6", Form::Json),
            ("text/html;q=0, */*", Form::Text),
            ("text/html; q=0", Form::Text),
            ("text/plain", Form::Text),
            ("text/plain, text/html;q=0.9", Form::Text),
            ("image/png", Form::Text),
            ("application/json;q=nonsense", Form::Json),
            ("application/json;q=7", Form::Json),
            (";;;,,,=q;", Form::Text),
        ];
        for (value, form) in table {
            assert_eq!(accepted(value), form, "Accept: {value}");
        }
    }

    #[test]
    fn several_headers_count_as_one() {
        let values = [b"text/plain;q=0.2".as_slice(), b"\xff\xfe", b"application/json;q=0.3"];
        assert_eq!(Form::accepted(values.into_iter()), Form::Json);
    }
}
