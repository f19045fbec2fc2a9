//! `redact` steps, as statements of OTTL with the editor `redact`.

use crate::definition::{Preset, Redaction};
use crate::ottl::field::Context;
use std::fmt::Write as _;

/// Where attributes are, outermost first, and the body of log records.
const TARGETS: [(Context, &str); 7] = [
    (Context::Resource, "resource.attributes"),
    (Context::Scope, "scope.attributes"),
    (Context::Span, "span.attributes"),
    (Context::SpanEvent, "spanevent.attributes"),
    (Context::DataPoint, "datapoint.attributes"),
    (Context::Log, "log.attributes"),
    (Context::Log, "log.body"),
];

impl Preset {
    /// The regular expression.
    pub(crate) const fn pattern(self) -> &'static str {
        match self {
            Preset::Email => r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
            Preset::CreditCard => {
                r"\b(?:4[0-9]{3}|5[1-5][0-9]{2}|6(?:011|5[0-9]{2}))[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{1,4}\b|\b3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}\b"
            }
            Preset::Ipv4 => {
                r"\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\b"
            }
            Preset::Jwt => r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
            Preset::BearerToken => r"(?i)\bbearer +[a-z0-9._~+/-]+=*",
            Preset::AwsAccessKey => r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
            Preset::UsSsn => r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b",
            Preset::Iban => r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
        }
    }
}

/// The statement for each place that may hold secrets, with the context that it runs in.
pub(crate) fn statements(redaction: &Redaction) -> Vec<(Context, String)> {
    let presets = redaction.presets.iter().map(|preset| preset.pattern());
    let values = any_of(presets.chain(redaction.block_values.iter().map(String::as_str)));
    let keys = any_of(redaction.block_keys.iter().map(String::as_str));
    let statement = |target: &str, allows: bool| {
        let mut text = format!("redact({target}, {}", quoted(&redaction.mask));
        for (name, pattern) in [("values", &values), ("keys", &keys)] {
            if !pattern.is_empty() {
                let _ = write!(text, ", {name}={}", quoted(pattern));
            }
        }
        let allowed = redaction.allow_keys.as_deref().filter(|_| allows);
        let ignored = Some(redaction.ignore_keys.as_slice()).filter(|keys| !keys.is_empty());
        for (name, keys) in [("allowed_keys", allowed), ("ignored_keys", ignored)] {
            if let Some(keys) = keys {
                let keys: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
                let _ = write!(text, ", {name}=[{}]", keys.join(", "));
            }
        }
        text.push(')');
        text
    };
    // The keys of a body are no attributes, so the list of allowed ones is not for them.
    TARGETS.iter().map(|(context, target)| (*context, statement(target, *target != "log.body"))).collect()
}

/// One expression for several; empty for none.
fn any_of<'a>(patterns: impl Iterator<Item = &'a str>) -> String {
    patterns.map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>().join("|")
}

/// A text as a literal of OTTL.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ottl::check::{Scope, statements as check};
    use crate::ottl::literals::Literals;
    use crate::regex::Regexes;

    #[test]
    fn every_statement_compiles_in_its_context() {
        let redaction = Redaction {
            mask: "\"*\\\n".into(),
            presets: Preset::ALL.to_vec(),
            block_values: vec!["a\"b".into(), r"\d+".into()],
            block_keys: vec!["(?i)password".into()],
            allow_keys: Some(vec!["x\\y".into()]),
            ignore_keys: vec!["\"".into()],
        };
        for (context, text) in statements(&redaction) {
            let checked = check(&[&text], Scope::ALL, &mut Literals::default());
            assert_eq!(checked.map(|checked| checked.context), Ok(context), "{text}");
        }
    }

    #[test]
    fn presets_match_what_they_are_for() {
        for (preset, matching, other) in [
            (Preset::Email, "write to a.b+c@example.co.uk now", "a@b, @x.org"),
            (Preset::CreditCard, "4111 1111 1111 1111", "9111 1111 1111 1111"),
            (Preset::CreditCard, "378282246310005", "1234567890123"),
            (Preset::Ipv4, "from 10.0.255.1:80", "1.2.3, 300.1.1.256"),
            (Preset::Jwt, "eyJhbGciOiJ.eyJzdWIi.SflKxw", "eyJhbG.x"),
            (Preset::BearerToken, "Authorization: Bearer abc.def==", "bearer"),
            (Preset::AwsAccessKey, "AKIAIOSFODNN7EXAMPLE", "AKIA123"),
            (Preset::UsSsn, "078-05-1120", "078-051-120"),
            (Preset::Iban, "DE89 3704 0044 0532 0130 00", "DE8937"),
        ] {
            let mut regexes = Regexes::default();
            let regex = regexes.compile(preset.pattern()).unwrap();
            let mut caches = regexes.caches();
            assert!(regex.is_match(&mut caches, matching.as_bytes()), "{preset:?}: {matching}");
            assert!(!regex.is_match(&mut caches, other.as_bytes()), "{preset:?}: {other}");
        }
    }
}
