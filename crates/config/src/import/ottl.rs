//! Finds the paths in OTTL texts, for imports.

use std::ops::Range;

use crate::model::Signal;

/// A word of a text outside of strings.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    /// A path with all its fields and keys.
    Path(&'a str),
    /// Any other word, with the operators as words.
    Word(&'a str),
    String,
}

/// The contexts, each with the signal that has it.
const CONTEXTS: [(&str, Option<Signal>); 10] = [
    ("resource", None),
    ("scope", None),
    ("instrumentation_scope", None),
    ("otelcol", None),
    ("span", Some(Signal::Traces)),
    ("spanevent", Some(Signal::Traces)),
    ("metric", Some(Signal::Metrics)),
    ("datapoint", Some(Signal::Metrics)),
    ("log", Some(Signal::Logs)),
    ("profile", Some(Signal::Profiles)),
];

const KEYWORDS: [&str; 7] = ["and", "or", "not", "where", "true", "false", "nil"];

/// The signal whose items a condition or statement is about, by the contexts of its paths and the functions that only one
/// signal has; none if it only names resources or scopes.
pub(super) fn signal_of(text: &str) -> Option<Signal> {
    tokens(text).into_iter().find_map(|(_, token)| match token {
        Token::Path(path) => context_of(path).and_then(|(_, signal)| signal),
        Token::Word(word) => match tidegate_pipeline::signal_of_function(word)? {
            tidegate_pipeline::Signal::Traces => Some(Signal::Traces),
            tidegate_pipeline::Signal::Metrics => Some(Signal::Metrics),
            tidegate_pipeline::Signal::Logs => Some(Signal::Logs),
            tidegate_pipeline::Signal::Profiles => None,
        },
        Token::String => None,
    })
}

/// The text with `context` in front of every path that has none.
pub(super) fn qualified(text: &str, context: &str) -> String {
    let mut out = String::new();
    let mut end = 0;
    for (at, token) in tokens(text) {
        if let Token::Path(path) = token {
            out.push_str(text.get(end..at.start).unwrap_or_default());
            end = at.start;
            if context_of(path).is_none() {
                out.push_str(context);
                out.push('.');
            }
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    one_line(&out)
}

/// The text on one line: line ends outside of strings are blanks.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::new();
    let mut end = 0;
    let push_code = |out: &mut String, code: &str| {
        for (index, part) in code.split(['\n', '\r']).enumerate() {
            out.push_str(if index > 0 { part.trim_start() } else { part });
            if !out.ends_with(' ') && index < code.matches(['\n', '\r']).count() {
                out.push(' ');
            }
        }
    };
    for (at, token) in tokens(text) {
        if token == Token::String {
            push_code(&mut out, text.get(end..at.start).unwrap_or_default());
            out.push_str(text.get(at.clone()).unwrap_or_default());
            end = at.end;
        }
    }
    push_code(&mut out, text.get(end..).unwrap_or_default());
    out.trim().to_owned()
}

/// The path that `set` copies from without a guard against its absence: since 0.163 the Collector stores an empty value
/// then, and before it did nothing.
pub(super) fn unguarded(statement: &str) -> Option<String> {
    let statement = statement.trim();
    let inner = statement.strip_prefix("set")?.trim_start().strip_prefix('(')?;
    let (arguments, rest) = arguments_of(inner)?;
    let [_, source] = arguments.as_slice() else { return None };
    let source = source.trim();
    let words = tokens(source);
    let Some((at, Token::Path(path))) = words.first() else { return None };
    // Fields that a record always has are never absent.
    let may_be_absent = path.contains('[') || path.ends_with("body");
    if at.len() != source.len() || !may_be_absent || rest.replace(' ', "").contains(&format!("{path}!=nil")) {
        return None;
    }
    Some((*path).to_owned())
}

/// The statement with a condition that `path` is there.
pub(super) fn guarded(statement: &str, path: &str) -> String {
    let place = tokens(statement).into_iter().find(|(_, token)| *token == Token::Word("where"));
    match place.and_then(|(at, _)| statement.get(..at.start).zip(statement.get(at.end..))) {
        Some((call, condition)) => {
            format!("{} where {path} != nil and ({})", call.trim_end(), condition.trim())
        }
        None => format!("{} where {path} != nil", statement.trim_end()),
    }
}

/// The condition in `route() where CONDITION`.
pub(super) fn condition_of(statement: &str) -> Option<&str> {
    let (at, _) = tokens(statement).into_iter().find(|(_, token)| *token == Token::Word("where"))?;
    statement.get(at.end..).map(str::trim)
}

/// A text as a literal, in our configuration's syntax.
pub(super) fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The arguments of a call up to its closing bracket, and the text behind it.
fn arguments_of(inner: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut start, mut arguments) = (0_usize, 0, Vec::new());
    let strings: Vec<Range<usize>> = tokens(inner)
        .into_iter()
        .filter_map(|(at, token)| matches!(token, Token::String | Token::Path(_)).then_some(at))
        .collect();
    for (at, c) in inner.char_indices() {
        if strings.iter().any(|range| range.contains(&at)) {
            continue;
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                arguments.push(inner.get(start..at)?);
                return Some((arguments, inner.get(at + 1..)?));
            }
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                arguments.push(inner.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

fn context_of(path: &str) -> Option<(&'static str, Option<Signal>)> {
    let (first, _) = path.split_once('.')?;
    CONTEXTS.into_iter().find(|(name, _)| *name == first)
}

/// The words of a text with their places. Keys in brackets belong to their path; paths inside keys are found too.
fn tokens(text: &str) -> Vec<(Range<usize>, Token<'_>)> {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let word_end = |from: usize| {
        let rest = bytes.iter().skip(from);
        from + rest.take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
    };
    let blanks_end =
        |from: usize| from + bytes.iter().skip(from).take_while(|b| b.is_ascii_whitespace()).count();
    let mut found = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let start = index;
        match at(index) {
            b'"' => {
                index = string_end(bytes, index);
                found.push((start..index, Token::String));
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                index = word_end(index);
                let word = text.get(start..index).unwrap_or_default();
                let behind = blanks_end(index);
                let is_call = at(behind) == b'(';
                let is_name = at(behind) == b'=' && at(behind + 1) != b'=';
                if !byte.is_ascii_lowercase() || is_call || is_name || KEYWORDS.contains(&word) {
                    found.push((start..index, Token::Word(word)));
                    continue;
                }
                let (end, keys) = path_end(bytes, index, &word_end);
                found.push((start..end, Token::Path(text.get(start..end).unwrap_or_default())));
                for key in keys {
                    let inner = tokens(text.get(key.clone()).unwrap_or_default());
                    found.extend(
                        inner
                            .into_iter()
                            .map(|(at, token)| (at.start + key.start..at.end + key.start, token)),
                    );
                }
                index = end;
            }
            _ => index += 1,
        }
    }
    found
}

/// The end of a path whose first field ends at `index`, and the insides of its brackets.
fn path_end(
    bytes: &[u8],
    mut index: usize,
    word_end: &impl Fn(usize) -> usize,
) -> (usize, Vec<Range<usize>>) {
    let mut keys = Vec::new();
    loop {
        match bytes.get(index) {
            Some(b'.') if bytes.get(index + 1).is_some_and(u8::is_ascii_lowercase) => {
                index = word_end(index + 1)
            }
            Some(b'[') => {
                let (mut depth, mut end) = (0_usize, index);
                while let Some(byte) = bytes.get(end) {
                    match byte {
                        b'"' => {
                            end = string_end(bytes, end);
                            continue;
                        }
                        b'[' => depth += 1,
                        b']' => depth -= 1,
                        _ => {}
                    }
                    end += 1;
                    if depth == 0 {
                        break;
                    }
                }
                // One without an end is an error, which is left to who reads the statement.
                if depth == 0 {
                    keys.push(index + 1..end - 1);
                }
                index = end;
            }
            _ => return (index, keys),
        }
    }
}

/// The end of the string that begins at `index`.
fn string_end(bytes: &[u8], index: usize) -> usize {
    let mut end = index + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_get_their_context() {
        for (text, expected) in [
            (r#"attributes["a"] == "b""#, r#"span.attributes["a"] == "b""#),
            (
                r#"name == "a" and not IsMatch(attributes["x"], "y")"#,
                r#"span.name == "a" and not IsMatch(span.attributes["x"], "y")"#,
            ),
            (
                r#"set(attributes["a"], resource.attributes["b"])"#,
                r#"set(span.attributes["a"], resource.attributes["b"])"#,
            ),
            (
                r#"set(status.code, STATUS_CODE_OK) where kind == SPAN_KIND_SERVER"#,
                "set(span.status.code, STATUS_CODE_OK) where span.kind == SPAN_KIND_SERVER",
            ),
            (r#"limit(attributes, 100, ["name", "b"])"#, r#"limit(span.attributes, 100, ["name", "b"])"#),
            (
                "truncate_all(target=attributes, limit = 10)",
                "truncate_all(target=span.attributes, limit = 10)",
            ),
            (r#"attributes[attributes["k"]] != nil"#, r#"span.attributes[span.attributes["k"]] != nil"#),
            (r#"set(cache["a"], "it said \"name\" [x]")"#, r#"set(span.cache["a"], "it said \"name\" [x]")"#),
            ("instrumentation_scope.name == nil or true", "instrumentation_scope.name == nil or true"),
            (
                "end_time_unix_nano - start_time_unix_nano > 0x10",
                "span.end_time_unix_nano - span.start_time_unix_nano > 0x10",
            ),
            ("name == \"a\"\n  and kind == 1\n", r#"span.name == "a" and span.kind == 1"#),
            (
                r#"set(trace_state["k"], Concat([name, "é"], "-"))"#,
                r#"set(span.trace_state["k"], Concat([span.name, "é"], "-"))"#,
            ),
        ] {
            assert_eq!(qualified(text, "span"), expected);
        }
    }

    #[test]
    fn the_signal_is_that_of_the_contexts() {
        assert_eq!(signal_of(r#"resource.attributes["span.name"] == "log.body""#), None);
        assert_eq!(signal_of(r#"resource.attributes["a"] == "b" and log.body == "c""#), Some(Signal::Logs));
        assert_eq!(signal_of("convert_sum_to_gauge()"), Some(Signal::Metrics));
        assert_eq!(signal_of(r#"attributes[datapoint.attributes["k"]] == 1"#), Some(Signal::Metrics));
    }

    #[test]
    fn copies_of_what_may_be_absent_are_guarded() {
        for (text, expected) in [
            (
                r#"set(log.attributes["a"], log.attributes["b"])"#,
                Some(r#"set(log.attributes["a"], log.attributes["b"]) where log.attributes["b"] != nil"#),
            ),
            (
                r#"set(log.body, log.attributes["msg"]) where log.severity_number > 9 or true"#,
                Some(
                    r#"set(log.body, log.attributes["msg"]) where log.attributes["msg"] != nil and (log.severity_number > 9 or true)"#,
                ),
            ),
            (r#"set(log.attributes["a"], log.attributes["b"]) where log.attributes["b"]  != nil"#, None),
            (r#"set(log.attributes["a"], log.severity_text)"#, None),
            (r#"set(log.attributes["a"], "log.attributes[b]")"#, None),
            (r#"set(log.attributes["a"], Concat([log.attributes["b"]], ""))"#, None),
            (r#"delete_key(log.attributes, "b")"#, None),
            ("set(log.attributes[", None),
        ] {
            let guarded = unguarded(text).map(|path| guarded(text, &path));
            assert_eq!(guarded.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        /// Nothing makes it panic, and a text with contexts stays as it is.
        #[test]
        fn any_text_is_read(text in r#"[a-z.\[\]()"\\ =,é\n]{0,40}"#) {
            let once = qualified(&text, "log");
            prop_assert_eq!(qualified(&once, "log"), once.clone());
            let _ = (signal_of(&text), unguarded(&text), condition_of(&text), guarded(&text, "log.body"));
        }
    }
}
