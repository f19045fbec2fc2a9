//! Keys of Fluent Bit's records as paths of OTTL.

use crate::import::ottl::literal;
use tidegate_pipeline::LinePattern;

/// Keys that hold the text of a record: tidegate has it in the body.
pub(super) const BODY_KEYS: [&str; 4] = ["log", "message", "msg", "MESSAGE"];

/// Why a key has no path.
pub(super) type NoPath = &'static str;

/// The path of a key, or of a record accessor such as `$kubernetes['labels']['app']`.
///
/// # Errors
/// The reason why there is none.
pub(super) fn path(accessor: &str) -> Result<String, NoPath> {
    let parts = parts(accessor).ok_or("it is not a key or a record accessor that is known here")?;
    let names: Vec<&str> = parts.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] | [""] => Err("it names no key"),
        [body] if BODY_KEYS.contains(body) => Ok("log.body".to_owned()),
        ["stream"] => Ok(r#"log.attributes["log.iostream"]"#.to_owned()),
        ["kubernetes", rest @ ..] => kubernetes(rest),
        [first, rest @ ..] if BODY_KEYS.contains(first) => Ok(indexed("log.body", rest)),
        all => Ok(indexed("log.attributes", all)),
    }
}

/// The attribute that holds the metadata of a pod.
fn kubernetes(names: &[&str]) -> Result<String, NoPath> {
    let attribute = match names {
        ["namespace_name"] => "k8s.namespace.name".to_owned(),
        ["pod_name"] => "k8s.pod.name".to_owned(),
        ["pod_id"] => "k8s.pod.uid".to_owned(),
        ["host"] => "k8s.node.name".to_owned(),
        ["container_name"] => "k8s.container.name".to_owned(),
        ["docker_id"] => "container.id".to_owned(),
        ["container_image"] => "container.image.name".to_owned(),
        ["labels", label] => format!("k8s.pod.label.{label}"),
        ["annotations", ..] => return Err("annotations of pods are no attributes"),
        _ => return Err("the metadata of pods are attributes `k8s.…` of the resource, one for each part"),
    };
    Ok(format!("resource.attributes[{}]", literal(&attribute)))
}

/// The attribute of the resource that a record accessor stands for; none if there is none.
pub(super) fn resource_attribute(accessor: &str) -> Option<String> {
    let path = path(accessor).ok()?;
    let name = path.strip_prefix("resource.attributes[\"")?.strip_suffix("\"]")?;
    Some(name.to_owned())
}

/// A path of a member of a map.
pub(super) fn indexed(path: &str, names: &[impl AsRef<str>]) -> String {
    let keys: String = names.iter().map(|name| format!("[{}]", literal(name.as_ref()))).collect();
    format!("{path}{keys}")
}

/// The keys of a record accessor; one that begins with no `$` is a single key.
pub(super) fn parts(accessor: &str) -> Option<Vec<String>> {
    let Some(inner) = accessor.strip_prefix('$') else { return Some(vec![accessor.to_owned()]) };
    let end = inner.find('[').unwrap_or(inner.len());
    let (first, mut rest) = inner.split_at(end);
    let mut parts = vec![first.to_owned()];
    while let Some(behind) = rest.strip_prefix('[') {
        let quote = behind.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (name, behind) = behind.strip_prefix(quote)?.split_once(quote)?;
        parts.push(name.to_owned());
        rest = behind.strip_prefix(']')?;
    }
    rest.is_empty().then_some(parts)
}

/// A regular expression, which Fluent Bit may have between slashes with options behind.
pub(super) fn pattern(text: &str) -> String {
    let text = text.trim();
    if let Some((inner, options)) = text.strip_prefix('/').and_then(|inner| inner.rsplit_once('/'))
        && options.chars().all(|c| matches!(c, 'i' | 'm' | 'x' | 'o'))
    {
        let mut flags = String::new();
        for c in options.chars() {
            match c {
                // With it, a dot matches the end of a line.
                'm' if !flags.contains('s') => flags.push('s'),
                'i' | 'x' if !flags.contains(c) => flags.push(c),
                _ => {}
            }
        }
        return if flags.is_empty() { inner.to_owned() } else { format!("(?{flags}){inner}") };
    }
    text.to_owned()
}

/// Whether a regular expression matches a part of a text; none if it is refused.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    LinePattern::compile(pattern).ok().map(|pattern| pattern.is_match(text.as_bytes()))
}

/// A regular expression for the texts that a wildcard pattern matches, whole.
pub(super) fn glob(pattern: &str) -> String {
    format!("^{}$", escaped(pattern).replace("\\*", ".*"))
}

/// A text as a regular expression that matches it alone.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The names of the groups of a regular expression.
pub(super) fn groups(pattern: &str) -> Vec<&str> {
    let starts = pattern.match_indices("(?").filter_map(|(at, _)| {
        let rest = pattern.get(at + 2..)?;
        let rest = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<'))?;
        let (name, _) = rest.split_once('>')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then_some(name)
    });
    starts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_paths() {
        for (key, expected) in [
            ("log", "log.body"),
            ("stream", r#"log.attributes["log.iostream"]"#),
            ("a.b", r#"log.attributes["a.b"]"#),
            ("$a['b'][\"c\"]", r#"log.attributes["a"]["b"]["c"]"#),
            ("$message['x']", r#"log.body["x"]"#),
            ("$kubernetes['namespace_name']", r#"resource.attributes["k8s.namespace.name"]"#),
            ("$kubernetes['labels']['app']", r#"resource.attributes["k8s.pod.label.app"]"#),
        ] {
            assert_eq!(path(key).as_deref(), Ok(expected), "{key}");
        }
        for key in ["kubernetes", "$kubernetes['annotations']['x']", "$a[", "$a['b'", "$a['b']x", ""] {
            assert!(path(key).is_err(), "{key}");
        }
        assert_eq!(resource_attribute("$kubernetes['host']").as_deref(), Some("k8s.node.name"));
    }

    #[test]
    fn patterns_lose_their_slashes() {
        assert_eq!(pattern("/^a.b/"), "^a.b");
        assert_eq!(pattern("/a/im"), "(?is)a");
        assert_eq!(pattern("/a/b"), "/a/b");
        assert_eq!(pattern("/"), "/");
        assert_eq!(groups(r"^(?<time>[^ ]*) (?P<level>\w+)(?:x)(?<=y)$"), ["time", "level"]);
        assert_eq!(glob("kube.*"), r"^kube\..*$");
    }
}
