//! `${NAME}`, `${NAME:-default}` and `$$` in scalar values.

use std::ops::Range;

/// Where a variable's value comes from; usually the process's environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The longest value after substitution, in bytes.
pub(crate) const LONGEST_VALUE: usize = 64 << 10;

/// Why a value cannot be substituted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsubstituted {
    pub(crate) message: String,
    pub(crate) help: String,
    /// The reference at fault, as bytes of the value.
    pub(crate) at: Range<usize>,
}

/// The value with every reference replaced. What a variable holds is taken as it is: it is neither
/// searched for further references nor read as YAML.
pub(crate) fn substitute(value: &str, environment: Environment<'_>) -> Result<String, Unsubstituted> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(dollar) = rest.find('$') {
        let (plain, from_dollar) = rest.split_at(dollar);
        out.push_str(plain);
        let start = value.len() - from_dollar.len();
        if let Some(after) = from_dollar.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(inside) = from_dollar.strip_prefix("${") {
            let Some((reference, after)) = inside.split_once('}') else {
                return Err(unclosed(start..value.len()));
            };
            rest = after;
            resolve(reference, start..value.len() - rest.len(), environment, &mut out)?;
        } else {
            out.push('$');
            rest = from_dollar.strip_prefix('$').unwrap_or_default();
        }
        if out.len() > LONGEST_VALUE {
            return Err(too_long(start..value.len()));
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn resolve(
    reference: &str,
    at: Range<usize>,
    environment: Environment<'_>,
    out: &mut String,
) -> Result<(), Unsubstituted> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        let message = "this is not a reference to an environment variable".to_owned();
        let help = "write `${NAME}` or `${NAME:-default}`, with letters, digits and `_` in the name, \
                    or `$$` for a dollar sign";
        return Err(Unsubstituted { message, help: help.to_owned(), at });
    }
    match (environment(name), default) {
        (Some(held), None) => out.push_str(&held),
        // As in a shell, the default also stands in for a variable that is set to nothing.
        (Some(held), Some(_)) if !held.is_empty() => out.push_str(&held),
        (_, Some(default)) => out.push_str(default),
        (None, None) => {
            let message = format!("the environment variable `{name}` is not set");
            let help = format!("set it, or give a default: `${{{name}:-default}}`");
            return Err(Unsubstituted { message, help, at });
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn unclosed(at: Range<usize>) -> Unsubstituted {
    let message = "`${` has no closing `}`".to_owned();
    Unsubstituted { message, help: "close it, or write `$$` for a dollar sign".to_owned(), at }
}

fn too_long(at: Range<usize>) -> Unsubstituted {
    let message = format!("the value is longer than {LONGEST_VALUE} bytes after substitution");
    Unsubstituted { message, help: "set the variable to a shorter value".to_owned(), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("prometheus".to_owned()),
            "EMPTY" => Some(String::new()),
            "SLY" => Some("${HOST}: {a: b}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn replaces_references_and_leaves_the_rest() {
        for (value, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("http://${HOST}:9090", "http://prometheus:9090"),
            ("${HOST}${HOST}", "prometheusprometheus"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("$${HOST}", "${HOST}"),
            ("$$$$", "$$"),
            ("5$ and $HOST$", "5$ and $HOST$"),
            ("${SLY}", "${HOST}: {a: b}"),
            ("é${HOST}é", "éprometheusé"),
        ] {
            assert_eq!(substitute(value, &environment).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn says_which_reference_cannot_be_replaced() {
        for (value, at) in [("a${NONE}b", 1..8), ("${HOST", 0..6), ("x${}", 1..4), ("${1A}", 0..5)] {
            assert_eq!(substitute(value, &environment).map_err(|error| error.at), Err(at), "{value}");
        }
    }

    #[test]
    fn a_value_cannot_grow_beyond_its_bound() {
        let long = |_: &str| Some("x".repeat(LONGEST_VALUE / 2));
        assert!(substitute("${A}${A}", &long).is_ok());
        assert!(substitute("${A}${A}${A}", &long).is_err());
    }
}
