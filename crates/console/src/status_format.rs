//! In which form an answer is wanted.

use tidegate_http1::Head;

/// A form of `/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StatusFormat {
    /// A page, for browsers.
    Html,
    /// JSON, for programs.
    Json,
    /// Aligned text, for terminals.
    Text,
}

impl StatusFormat {
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            StatusFormat::Html => "text/html; charset=utf-8",
            StatusFormat::Json => "application/json",
            StatusFormat::Text => "text/plain; charset=utf-8",
        }
    }

    /// The format that `head` requests: `?format=` takes precedence over `Accept`. `None` for an unknown format.
    pub(crate) fn wanted(head: &Head<'_>) -> Option<StatusFormat> {
        let format = head.query().into_iter().flat_map(|query| query.split('&'));
        match format.filter_map(|pair| pair.strip_prefix("format=")).next_back() {
            Some("html") => Some(StatusFormat::Html),
            Some("json") => Some(StatusFormat::Json),
            Some("text") => Some(StatusFormat::Text),
            Some(_) => None,
            None => Some(StatusFormat::accepted(head.values("accept"))),
        }
    }

    /// The form that the values of `Accept` like best. Who says nothing, or `*/*` as curl does, gets text;
    /// so does who accepts none of them, which is kinder than 406.
    pub(crate) fn accepted<'a>(values: impl Iterator<Item = &'a [u8]>) -> StatusFormat {
        let mut best = (0, StatusFormat::Text);
        let ranges = values.filter_map(|value| str::from_utf8(value).ok()).flat_map(|value| value.split(','));
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let form = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "text/html" | "application/xhtml+xml" => StatusFormat::Html,
                "application/json" | "application/*" => StatusFormat::Json,
                "text/plain" | "text/*" | "*/*" => StatusFormat::Text,
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
            StatusFormat::Html => 2,
            StatusFormat::Json => 1,
            StatusFormat::Text => 0,
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

    fn accepted(value: &str) -> StatusFormat {
        StatusFormat::accepted([value.as_bytes()].into_iter())
    }

    /// Browsers get the page, programs what they ask for, terminals text.
    #[test]
    fn clients_get_their_preferred_format() {
        let firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        let table = [
            ("*/*", StatusFormat::Text),
            ("", StatusFormat::Text),
            (firefox, StatusFormat::Html),
            ("text/html", StatusFormat::Html),
            ("TEXT/HTML", StatusFormat::Html),
            ("application/json", StatusFormat::Json),
            ("application/json, text/plain, */*", StatusFormat::Json),
            ("application/json;q=0.5, text/html", StatusFormat::Html),
            ("text/html;q=0.4, application/json;q=0.6", StatusFormat::Json),
            ("text/html;q=0, */*", StatusFormat::Text),
            ("text/html; q=0", StatusFormat::Text),
            ("text/plain", StatusFormat::Text),
            ("text/plain, text/html;q=0.9", StatusFormat::Text),
            ("image/png", StatusFormat::Text),
            ("application/json;q=nonsense", StatusFormat::Json),
            ("application/json;q=7", StatusFormat::Json),
            (";;;,,,=q;", StatusFormat::Text),
        ];
        for (value, form) in table {
            assert_eq!(accepted(value), form, "Accept: {value}");
        }
    }

    #[test]
    fn several_headers_count_as_one() {
        let values = [b"text/plain;q=0.2".as_slice(), b"\xff\xfe", b"application/json;q=0.3"];
        assert_eq!(StatusFormat::accepted(values.into_iter()), StatusFormat::Json);
    }
}
