//! References to the environment, from the syntax of others into ours.

use std::collections::BTreeMap;

/// A text of a Collector's configuration in our syntax: `${env:X}` and `${X}` become `${X}`, `$$` stays.
///
/// # Errors
/// A sentence about a reference that our syntax lacks; it stays in the text as plain text.
pub(super) fn collector(text: &str) -> (String, Option<String>) {
    let mut out = String::new();
    let mut problem = None;
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (plain, from_dollar) = rest.split_at(dollar);
        out.push_str(plain);
        let inside = from_dollar.strip_prefix("${").and_then(|inside| inside.split_once('}'));
        if let Some(after) = from_dollar.strip_prefix("$$") {
            out.push_str("$$");
            rest = after;
        } else if let Some((reference, after)) = inside {
            match reference_of(reference) {
                Some(ours) => out.push_str(&ours),
                None => {
                    let scheme = reference.split(':').next().unwrap_or_default();
                    problem.get_or_insert_with(|| {
                        format!("`${{{scheme}:…}}` cannot be resolved here; it was kept as plain text")
                    });
                    out.push_str(&format!("$${{{reference}}}"));
                }
            }
            rest = after;
        } else {
            out.push_str(if from_dollar.starts_with("${") { "$$" } else { "$" });
            rest = from_dollar.strip_prefix('$').unwrap_or_default();
        }
    }
    out.push_str(rest);
    (out, problem)
}

fn reference_of(reference: &str) -> Option<String> {
    if let Some(path) = reference.strip_prefix("file:") {
        return Some(format!("${{file:{path}}}"));
    }
    let name = reference.strip_prefix("env:").unwrap_or(reference);
    let (word, default) = name.split_once(":-").map_or((name, None), |(word, rest)| (word, Some(rest)));
    let is_name = word.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match default {
        _ if !is_name => None,
        Some(default) => Some(format!("${{{word}:-{default}}}")),
        // An unset variable is an empty text in the Collector, with a warning; here it is an error, which is safer.
        None => Some(format!("${{{word}}}")),
    }
}

/// A text without references, as Prometheus' rules have it, in our syntax: only what would be read as one is escaped.
pub(super) fn plain(text: &str) -> (String, Option<String>) {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '$' && matches!(chars.peek(), Some('$' | '{')) {
            out.push('$');
        }
    }
    (out, None)
}

/// A text of Vector's files in our syntax: `$X`, `${X}` and `${X-default}` become `${X}` and `${X:-default}`, `SECRET[a.b]`
/// becomes `${A_B}`, `$$` stays.
pub(super) fn vector(text: &str) -> (String, Option<String>) {
    let mut out = String::new();
    let mut problem = None;
    let mut rest = text;
    while let Some(at) = rest.find('$').into_iter().chain(rest.find("SECRET[")).min() {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(after) = from.strip_prefix("$$") {
            out.push_str("$$");
            rest = after;
        } else if let Some((inside, after)) =
            from.strip_prefix("${").and_then(|inside| inside.split_once('}'))
        {
            // `${X:?message}` and `${X?message}` refuse an unset variable, as ours do.
            let name = inside.find(|c| !is_word(c)).map_or(inside, |end| &inside[..end]);
            let default = inside[name.len()..].trim_start_matches(':');
            let default = default.strip_prefix('-').map(|default| format!(":-{default}"));
            match reference_of(&format!("{name}{}", default.unwrap_or_default())) {
                Some(ours) => out.push_str(&ours),
                None => out.push_str(&format!("$${{{inside}}}")),
            }
            rest = after;
        } else if let Some((secret, after)) =
            from.strip_prefix("SECRET[").and_then(|inside| inside.split_once(']'))
        {
            let name: String =
                secret.chars().map(|c| if is_word(c) { c.to_ascii_uppercase() } else { '_' }).collect();
            match reference_of(&name) {
                Some(ours) => out.push_str(&ours),
                None => out.push_str(&format!("SECRET[{secret}]")),
            }
            problem.get_or_insert_with(|| {
                format!("the secret is the environment variable {name} here; `${{file:PATH}}` reads a file")
            });
            rest = after;
        } else if let Some(after) = from.strip_prefix('$') {
            let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
            match reference_of(&after[..end]).filter(|_| end > 0) {
                Some(ours) => out.push_str(&ours),
                None if after.starts_with('{') => out.push_str("$$"),
                None => out.push_str(&format!("${}", &after[..end])),
            }
            rest = &after[end..];
        } else {
            out.push_str("SECRET[");
            rest = from.strip_prefix("SECRET[").unwrap_or_default();
        }
    }
    out.push_str(rest);
    (out, problem)
}

/// A text of vmagent's files in our syntax: `%{X}` becomes `${X}`.
pub(super) fn vmagent(text: &str) -> (String, Option<String>) {
    replaced(text, "%{", '}')
}

/// A text of a Kubernetes manifest in our syntax: `$(X)` becomes `${X}`. Thanos expands the same in some files.
pub(super) fn kubernetes(text: &str) -> (String, Option<String>) {
    replaced(text, "$(", ')')
}

/// A text in our syntax whose references to the environment stand between `open` and `close`.
fn replaced(text: &str, open: &str, close: char) -> (String, Option<String>) {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        out.push_str(&plain(before).0);
        match after.split_once(close).and_then(|(name, after)| reference_of(name).map(|ours| (ours, after))) {
            Some((ours, after)) => {
                out.push_str(&ours);
                rest = after;
            }
            None => {
                out.push_str(open);
                rest = after;
            }
        }
    }
    out.push_str(&plain(rest).0);
    (out, None)
}

/// A text of Fluent Bit in our syntax: `${X}` stays, unless `variables` has a value for it, which is in our syntax already.
pub(super) fn fluent_bit(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(&plain(before).0);
        if before.ends_with('$') {
            out.push('$');
        }
        match after.split_once('}') {
            Some((name, behind)) if variables.contains_key(name.trim()) => {
                out.push_str(variables.get(name.trim()).map_or("", String::as_str));
                rest = behind;
            }
            Some((name, behind)) if !name.contains([':', '\n']) && reference_of(name.trim()).is_some() => {
                out.push_str(&format!("${{{}}}", name.trim()));
                rest = behind;
            }
            _ => {
                out.push_str("$${");
                rest = after;
            }
        }
    }
    out.push_str(&plain(rest).0);
    out
}

/// Whether a text in our syntax holds a reference, so that its value is not known here.
pub(super) fn has_reference(text: &str) -> bool {
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let from_dollar = &rest[dollar..];
        if let Some(after) = from_dollar.strip_prefix("$$") {
            rest = after;
        } else if from_dollar.starts_with("${") {
            return true;
        } else {
            rest = &from_dollar[1..];
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_a_collector_become_ours() {
        for (theirs, ours) in [
            ("plain", "plain"),
            ("${env:HOST}:4317", "${HOST}:4317"),
            ("${HOST}", "${HOST}"),
            ("${env:HOST:-localhost}", "${HOST:-localhost}"),
            ("Bearer ${file:/run/token}", "Bearer ${file:/run/token}"),
            ("$$1-$$2", "$$1-$$2"),
            ("$${1}", "$${1}"),
            ("a$b", "a$b"),
            ("${yaml:a: b}", "$${yaml:a: b}"),
            ("${open", "$${open"),
        ] {
            assert_eq!(collector(theirs).0, ours, "{theirs}");
        }
        assert!(collector("${yaml:a}").1.is_some_and(|problem| problem.contains("${yaml:…}")));
        assert!(collector("${env:A}$$").1.is_none());
    }

    #[test]
    fn groups_of_a_replacement_are_no_references() {
        assert_eq!(plain("${1}-$1-$$").0, "$${1}-$1-$$$");
        assert_eq!(vmagent("%{ZONE}-${1}-%x").0, "${ZONE}-$${1}-%x");
        let variables = BTreeMap::from([("dir".to_owned(), "/var/${X}".to_owned())]);
        assert_eq!(fluent_bit("${dir}/${HOST}-$$-${a b}$", &variables), "/var/${X}/${HOST}-$$$-$${a b}$");
        assert!(has_reference("a${B}") && !has_reference("$${1}$1") && !has_reference("é$"));
    }
}
