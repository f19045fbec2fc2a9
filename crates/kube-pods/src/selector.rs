//! Label selectors of pods.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` (`labels.Parse`), without `>` and `<`, which only node affinity uses.

/// The most requirements of a selector: one bit each.
const MOST_REQUIREMENTS: usize = 64;

/// A selector: a pod must meet all its requirements. Without any it selects every pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: Box<str>,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
}

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A part that is no requirement.
    #[error(
        "`{0}` is no requirement; write `key`, `!key`, `key=value`, `key!=value`, `key in (a, b)` or `key notin (a, b)`"
    )]
    Requirement(String),
    /// Too many of them.
    #[error("there are more than {MOST_REQUIREMENTS} requirements")]
    TooMany,
}

/// The requirements that the labels of one pod have met so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    seen: u64,
    met: u64,
}

impl Selector {
    /// Reads a selector in the notation of `kubectl --selector`. An empty text selects every pod.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Selector::default());
        }
        let requirements: Vec<Requirement> = parts(text).map(Requirement::parse).collect::<Result<_, _>>()?;
        if requirements.len() > MOST_REQUIREMENTS {
            return Err(SelectorError::TooMany);
        }
        Ok(Selector { requirements })
    }

    /// Whether a requirement asks for this label.
    pub(crate) fn asks_for(&self, key: &str) -> bool {
        self.requirements.iter().any(|requirement| *requirement.key == *key)
    }

    /// Notes a label.
    pub(crate) fn label(&self, matched: &mut Matched, key: &str, value: &str) {
        for (number, requirement) in self.requirements.iter().enumerate() {
            if *requirement.key == *key {
                matched.seen |= 1 << number;
                if requirement.operator.takes(value) {
                    matched.met |= 1 << number;
                }
            }
        }
    }

    /// Whether a pod with these labels is selected.
    pub(crate) fn selects(&self, matched: Matched) -> bool {
        self.requirements.iter().enumerate().all(|(number, requirement)| {
            let bit = 1 << number;
            if matched.seen & bit == 0 {
                requirement.operator.takes_absence()
            } else {
                matched.met & bit != 0
            }
        })
    }
}

impl Operator {
    fn takes(&self, value: &str) -> bool {
        let is_in = |values: &[Box<str>]| values.iter().any(|wanted| **wanted == *value);
        match self {
            Operator::Exists => true,
            Operator::Absent => false,
            Operator::In(values) => is_in(values),
            Operator::NotIn(values) => !is_in(values),
        }
    }

    fn takes_absence(&self) -> bool {
        matches!(self, Operator::Absent | Operator::NotIn(_))
    }
}

impl Requirement {
    fn parse(part: &str) -> Result<Requirement, SelectorError> {
        let text = part.trim();
        let found = if let Some(key) = text.strip_prefix('!') {
            Some((key.trim(), Operator::Absent))
        } else if let Some((key, value)) = text.split_once("!=") {
            one(value).map(|value| (key.trim(), Operator::NotIn(value)))
        } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            one(value).map(|value| (key.trim(), Operator::In(value)))
        } else if let Some((key, set)) = text.split_once(char::is_whitespace) {
            let set = set.trim();
            let values = |word: &str| set.strip_prefix(word).and_then(several);
            let not_in = values("notin").map(Operator::NotIn);
            not_in.or_else(|| values("in").map(Operator::In)).map(|operator| (key, operator))
        } else {
            Some((text, Operator::Exists))
        };
        found
            .filter(|(key, _)| is_key(key))
            .map(|(key, operator)| Requirement { key: key.into(), operator })
            .ok_or_else(|| SelectorError::Requirement(text.to_owned()))
    }
}

/// The parts between commas that are not in parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
}

/// The value of an equation.
fn one(text: &str) -> Option<Vec<Box<str>>> {
    let text = text.trim();
    is_value(text).then(|| vec![text.into()])
}

/// The values in parentheses.
fn several(text: &str) -> Option<Vec<Box<str>>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values = inner.split(',').map(str::trim);
    values.map(|value| is_value(value).then(|| value.into())).collect()
}

/// Whether a text may be the key of a label: a name, perhaps with a domain before it.
fn is_key(text: &str) -> bool {
    let name = text.split_once('/').map_or(text, |(_, name)| name);
    !name.is_empty() && is_value(name) && text.matches('/').count() <= 1 && is_value(&text.replace('/', "."))
}

fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector = Selector::parse(selector).unwrap();
        let mut matched = Matched::default();
        for (key, value) in labels {
            selector.label(&mut matched, key, value);
        }
        selector.selects(matched)
    }

    #[test]
    fn requirements_mean_what_they_mean_to_kubectl() {
        let web = [("app", "web"), ("tier", "front"), ("example.com/team", "a")];
        for (selector, expected) in [
            ("", true),
            ("  ", true),
            ("app", true),
            ("!app", false),
            ("debug", false),
            ("!debug", true),
            ("app=web", true),
            ("app == web", true),
            ("app=api", false),
            ("app!=api", true),
            ("app != web", false),
            ("debug!=1", true),
            ("debug=", false),
            ("tier in (front, back)", true),
            ("tier in(front)", true),
            ("tier notin (front,back)", false),
            ("zone notin (a)", true),
            ("zone in (a)", false),
            ("app=web,tier in (back,front),!debug,example.com/team=a", true),
            ("app=web,tier in (back,middle)", false),
        ] {
            assert_eq!(selects(selector, &web), expected, "{selector}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            ",",
            "app,",
            "=web",
            "app=a b",
            "app in front",
            "app in (a",
            "app is b",
            "a/b/c",
            "!",
            "app>3",
            "app=(a)",
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
        let many = vec!["a"; 65].join(",");
        assert_eq!(Selector::parse(&many), Err(SelectorError::TooMany));
    }
}
