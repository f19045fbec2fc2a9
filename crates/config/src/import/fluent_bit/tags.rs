//! Tags: which records a filter or an output takes.

use super::containers;
use super::keys::SourceKeys;
use super::plugin::Plugin;
use super::record;
use super::report::Report;
use crate::import::ottl::literal;
use crate::model::Signal;

/// The attribute that tells apart records of different tags.
pub(super) const TAG: &str = "fluent.tag";
/// A longer tag or pattern is not compared.
const LONGEST: usize = 128;

/// Records of one tag.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The tags that the records have, each up to a position among the filters; the last one is for good. A `*` stands for
    /// what is not known.
    pub(super) tags: Vec<(String, usize)>,
    pub(super) signals: Vec<Signal>,
    pub(super) mark: Mark,
    /// Conditions that the records meet besides.
    pub(super) conditions: Vec<String>,
    /// The kind of path that a tag such as `kube.*` ends in.
    pub(super) path: Option<FilePath>,
    pub(super) keys: SourceKeys,
    /// The position of the origin that rules have divided, or its own.
    pub(super) root: usize,
}

/// The kind of files that records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilePath {
    /// Links in /var/log/containers.
    Container,
    /// Any other files.
    File,
}

/// How records of an origin are known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mark {
    /// By the resource attribute [`TAG`] with this value.
    Resource(String),
    /// By the tag that clients send, behind this prefix.
    Forward(String),
}

/// The records that a filter or an output matches.
#[derive(Debug, Clone)]
pub(super) enum Selector {
    All,
    /// Those of one origin, by its position.
    Origin(usize),
    Glob(String),
    Regex(String),
}

/// The records that a selector takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Selected {
    All,
    None,
    /// Those that meet one of these conditions.
    Some(Vec<String>),
}

/// How a pattern relates to the tags of an origin.
#[derive(Debug, PartialEq)]
enum Relation {
    Whole,
    Disjoint,
    /// It depends on the part of the tag that is not known.
    Partly,
}

impl Origin {
    /// The tag at a position among the filters.
    fn tag_at(&self, position: usize) -> &str {
        self.tags.iter().find(|(_, until)| position < *until).map_or("", |(tag, _)| tag)
    }

    /// The tag behind all filters.
    pub(super) fn tag(&self) -> &str {
        self.tags.last().map_or("", |(tag, _)| tag)
    }

    /// The origin before any rule, if none has changed its tag: what tells its records from others is the tag alone.
    pub(super) fn without_rules(&self) -> Origin {
        let conditions = if self.tags.len() > 1 { self.conditions.clone() } else { Vec::new() };
        Origin { conditions, ..self.clone() }
    }

    /// The conditions for records of this origin.
    fn own_conditions(&self) -> Vec<String> {
        let mark = match &self.mark {
            Mark::Resource(value) => format!("{} == {}", tag_path(), literal(value)),
            Mark::Forward(_) => format!("log.attributes[{}] != nil", literal(TAG)),
        };
        std::iter::once(mark).chain(self.conditions.iter().cloned()).collect()
    }

    /// A condition on the path of a file, which is the end of its tag with dots for slashes: `kube.*` and `kube.var.log.app*`.
    fn by_path(&self, glob: &str, position: usize) -> Option<String> {
        let prefix = known_prefix(self.tag_at(position))?;
        let rest = glob.strip_prefix(prefix);
        match self.path? {
            FilePath::Container => {
                let name = rest.and_then(|rest| rest.strip_prefix("var.log.containers."));
                Some(match name {
                    Some(name) => containers::condition(name),
                    None => containers::tag_matches(prefix, &record::glob(glob)),
                })
            }
            FilePath::File => {
                let rest = rest?;
                let regex = record::escaped(rest).replace("\\.", "[./]").replace("\\*", ".*");
                let path = r#"resource.attributes["log.file.path"]"#;
                Some(format!("IsMatch({path}, {})", literal(&format!("^/?{regex}$"))))
            }
        }
    }

    /// The conditions for records whose tag, which is `tag` as far as it is known, matches a regular expression. Where rules
    /// have changed tags (`is_divided`), records of other tags have the same mark.
    fn matching(&self, regex: &str, tag: &str, is_divided: bool) -> Vec<String> {
        if let (Some(FilePath::Container), Some(prefix)) = (self.path, known_prefix(tag)) {
            let mut own = self.own_conditions();
            own.insert(1, containers::tag_matches(prefix, regex));
            return own;
        }
        let regex = literal(regex);
        let condition = match &self.mark {
            Mark::Resource(_) if is_divided => {
                let constant = format!("IsMatch({}, {regex})", literal(tag));
                let mut own = self.own_conditions();
                own.insert(1, constant);
                return own;
            }
            Mark::Resource(_) => format!("IsMatch({}, {regex})", tag_path()),
            Mark::Forward(prefix) if prefix.is_empty() => {
                format!("IsMatch(log.attributes[{}], {regex})", literal(TAG))
            }
            Mark::Forward(prefix) => {
                let (prefix, tag) = (literal(prefix), literal(TAG));
                format!("IsMatch(Concat([{prefix}, log.attributes[{tag}]], \"\"), {regex})")
            }
        };
        std::iter::once(condition).chain(self.conditions.iter().cloned()).collect()
    }
}

/// The known beginning of a tag whose end is unknown.
fn known_prefix(tag: &str) -> Option<&str> {
    tag.strip_suffix('*').filter(|prefix| !prefix.contains('*'))
}

fn tag_path() -> String {
    format!("resource.attributes[{}]", literal(TAG))
}

impl Selector {
    /// Takes `match` and `match_regex`; none if there is neither.
    pub(super) fn read(plugin: &mut Plugin<'_>, report: &mut Report) -> Option<Selector> {
        let glob = plugin.text("match", report);
        let regex = plugin.text("match_regex", report);
        for value in [&glob, &regex].into_iter().flatten().filter(|value| value.is_open()) {
            let message =
                "left open: a pattern with a variable of the environment matches nothing; write its value";
            plugin.note_value(value, message, report);
        }
        match (glob, regex) {
            (_, Some(regex)) => {
                let text = record::pattern(&regex.text);
                Some(if text == ".*" { Selector::All } else { Selector::Regex(text) })
            }
            (Some(glob), None) if glob.text == "*" => Some(Selector::All),
            (Some(glob), None) => Some(Selector::Glob(glob.text)),
            (None, None) => None,
        }
    }

    /// Its records among those of `origins`, at a position among the filters.
    pub(super) fn of(&self, origins: &[(usize, &Origin)], position: usize) -> Selected {
        let mut is_whole = true;
        let is_divided = origins.iter().any(|(_, origin)| !origin.conditions.is_empty());
        let mut conditions: Vec<String> = Vec::new();
        for (_, origin) in origins {
            let is_forward = matches!(origin.mark, Mark::Forward(_));
            let own = match self {
                Selector::All => origin.own_conditions(),
                Selector::Origin(of) if *of == origin.root => origin.own_conditions(),
                Selector::Origin(_) => {
                    is_whole = false;
                    continue;
                }
                Selector::Regex(regex) => {
                    is_whole = false;
                    origin.matching(regex, origin.tag_at(position), is_divided)
                }
                Selector::Glob(glob) => match relation(glob, origin.tag_at(position)) {
                    Relation::Whole => origin.own_conditions(),
                    Relation::Disjoint => {
                        is_whole = false;
                        continue;
                    }
                    Relation::Partly if is_forward => {
                        is_whole = false;
                        origin.matching(&record::glob(glob), "", false)
                    }
                    Relation::Partly => {
                        is_whole = false;
                        let mut conditions = origin.own_conditions();
                        conditions.extend(origin.by_path(glob, position));
                        conditions
                    }
                },
            };
            let condition = joined(&own);
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        match (is_whole, conditions.is_empty()) {
            (true, false) => Selected::All,
            (_, true) => Selected::None,
            (false, false) => Selected::Some(conditions),
        }
    }

    /// Whether it may take records of a tag.
    pub(super) fn may_take(&self, tag: &str) -> bool {
        match self {
            Selector::Glob(glob) => relation(glob, tag) != Relation::Disjoint,
            Selector::Regex(regex) if !tag.contains('*') => record::matches(regex, tag).unwrap_or(true),
            Selector::All | Selector::Origin(_) | Selector::Regex(_) => true,
        }
    }

    /// Whether it surely takes all records of an origin, at a position among the filters.
    pub(super) fn takes_all(&self, origin: &Origin, position: usize) -> bool {
        let tag = origin.tag_at(position);
        match self {
            Selector::All => true,
            Selector::Origin(_) => false,
            Selector::Glob(glob) => relation(glob, tag) == Relation::Whole,
            Selector::Regex(regex) => !tag.contains('*') && record::matches(regex, tag) == Some(true),
        }
    }

    /// Whether it depends on a part of a tag that only the path of a file tells, and the path cannot be asked.
    pub(super) fn is_vague(&self, origins: &[(usize, &Origin)], position: usize) -> bool {
        let Selector::Glob(glob) = self else {
            let is_open = |it: &Origin| {
                let tag = it.tag_at(position);
                tag.contains('*') && (it.path != Some(FilePath::Container) || known_prefix(tag).is_none())
            };
            return matches!(self, Selector::Regex(_)) && origins.iter().any(|(_, it)| is_open(it));
        };
        origins.iter().any(|(_, origin)| {
            let tag = origin.tag_at(position);
            matches!(origin.mark, Mark::Resource(_))
                && relation(glob, tag) == Relation::Partly
                && origin.by_path(glob, position).is_none()
        })
    }
}

/// Conditions that all have to be met, as one.
fn joined(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        several => several
            .iter()
            .map(|one| if one.contains(" or ") { format!("({one})") } else { one.clone() })
            .collect::<Vec<_>>()
            .join(" and "),
    }
}

/// Conditions of which one has to be met, as one.
pub(super) fn either(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        several => several
            .iter()
            .map(|one| if one.contains(" and ") { format!("({one})") } else { one.clone() })
            .collect::<Vec<_>>()
            .join(" or "),
    }
}

fn relation(glob: &str, tag: &str) -> Relation {
    if glob.len() > LONGEST || tag.len() > LONGEST {
        return Relation::Partly;
    }
    if covers(glob, tag, false) {
        Relation::Whole
    } else if covers(glob, tag, true) {
        Relation::Partly
    } else {
        Relation::Disjoint
    }
}

/// Whether a pattern matches all texts that `tag` stands for; or, if `is_any`, at least one.
fn covers(glob: &str, tag: &str, is_any: bool) -> bool {
    let tag: Vec<char> = tag.chars().collect();
    // Whether the pattern so far matches the first characters of the tag.
    let mut row: Vec<bool> = vec![false; tag.len() + 1];
    row[0] = true;
    // An unknown part may be empty.
    let spread = |row: &mut Vec<bool>| {
        for (at, c) in tag.iter().enumerate() {
            if *c == '*' && is_any && row[at] {
                row[at + 1] = true;
            }
        }
    };
    spread(&mut row);
    for p in glob.chars() {
        let mut next = vec![false; tag.len() + 1];
        for at in 0..=tag.len() {
            if p == '*' {
                next[at] = row[at] || (at > 0 && next[at - 1]);
            } else {
                let is_met = at > 0 && row[at - 1] && (tag[at - 1] == p || (is_any && tag[at - 1] == '*'));
                // The unknown part may be longer than one character.
                let goes_on = is_any && at < tag.len() && tag[at] == '*' && row[at];
                next[at] = is_met || goes_on;
            }
        }
        spread(&mut next);
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_compared_with_tags_that_are_known_in_part() {
        for (glob, tag, expected) in [
            ("kube.*", "kube.*", Relation::Whole),
            ("kube.*", "kube.app", Relation::Whole),
            ("*", "", Relation::Whole),
            ("k*", "kube.*", Relation::Whole),
            ("host.*", "kube.*", Relation::Disjoint),
            ("kube.var.log.*", "kube.*", Relation::Partly),
            ("*.log", "kube.*", Relation::Partly),
            ("kube", "kube.*", Relation::Disjoint),
            ("kube.", "kube.*", Relation::Partly),
            ("a*b", "a*b", Relation::Whole),
            ("tail.0", "tail.0", Relation::Whole),
            ("tail.1", "tail.0", Relation::Disjoint),
        ] {
            assert_eq!(relation(glob, tag), expected, "{glob} {tag}");
        }
    }
}
