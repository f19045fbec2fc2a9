//! The classic format: `[SECTION]` lines with indented `Key Value` lines below.

use std::ops::Range;

use super::report::Report;
use super::section::{Property, Section, SectionKind};
use crate::error::quote;
use crate::suggest::nearest;

/// An entry of a file; entries keep their order.
#[derive(Debug)]
pub(super) enum Item {
    Section(Section),
    /// `@INCLUDE PATH`
    Include {
        path: String,
        at: Range<usize>,
    },
}

/// Whether a text is in the classic format: its first line that says something is a section or a command.
pub(super) fn is_classic(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        line.starts_with('@') || (line.starts_with('[') && line.ends_with(']') && !line.contains(','))
    })
}

/// Reads the file at position `file`. Mistakes go to `report`, and the rest of the file is read.
pub(super) fn read(file: usize, text: &str, report: &mut Report) -> Vec<Item> {
    let mut items = Vec::new();
    let mut section: Option<Section> = None;
    // Behind a section that is not known, its properties are no mistakes.
    let mut is_skipping = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let from = start + line.len() - line.trim_start().len();
        let at = from..from + trimmed.len();
        start += line.len();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Some(command) = trimmed.strip_prefix('@') {
            items.extend(section.take().map(Item::Section));
            items.extend(self::command(file, command, at, report));
        } else if let Some(name) = trimmed.strip_prefix('[') {
            items.extend(section.take().map(Item::Section));
            section = header(file, name, at, report);
            is_skipping = section.is_none();
        } else {
            match (property(file, trimmed, at.clone(), report), &mut section) {
                (Some(property), Some(section)) => section.properties.push(property),
                (Some(_), None) if !is_skipping => {
                    let message = format!("{} is in no section", quote(trimmed));
                    report.error(file, &at, message, "write it below a line such as `[INPUT]`");
                }
                _ => {}
            }
        }
    }
    items.extend(section.map(Item::Section));
    items
}

fn header(file: usize, name: &str, at: Range<usize>, report: &mut Report) -> Option<Section> {
    let Some(name) = name.strip_suffix(']') else {
        report.error(file, &at, "a section has no closing bracket", "write `[INPUT]`");
        return None;
    };
    let name = name.trim();
    let Some(kind) = SectionKind::classic(name) else {
        let help = match nearest(name, SectionKind::CLASSIC) {
            Some(meant) => format!("did you mean `[{}]`?", meant.to_uppercase()),
            None => {
                "write `[SERVICE]`, `[INPUT]`, `[FILTER]`, `[OUTPUT]`, `[PARSER]` or `[MULTILINE_PARSER]`"
                    .to_owned()
            }
        };
        report.error(file, &at, format!("there is no section {}", quote(name)), help);
        return None;
    };
    if kind == SectionKind::Other {
        let message = "left out: tidegate has no counterpart of this section";
        report.note(file, &at, &name.to_ascii_lowercase(), message);
    }
    Some(Section { kind, file, at, properties: Vec::new() })
}

fn property(file: usize, line: &str, at: Range<usize>, report: &mut Report) -> Option<Property> {
    let Some((key, rest)) = line.split_once(char::is_whitespace) else {
        let message = format!("{} has no value", quote(line));
        report.error(file, &at, message, "write `Key Value`");
        return None;
    };
    let value = rest.trim();
    let key_at = at.start..at.start + key.len();
    let at = at.end - value.len()..at.end;
    Some(Property { key: key.to_ascii_lowercase(), key_at, value: value.to_owned(), at })
}

fn command(file: usize, command: &str, at: Range<usize>, report: &mut Report) -> Option<Item> {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match name.to_ascii_lowercase().as_str() {
        "include" if !rest.is_empty() => Some(Item::Include { path: rest.to_owned(), at }),
        "set" => {
            match rest.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    let value = report.translate(value.trim());
                    report.variables.insert(name.trim().to_owned(), value);
                }
                _ => report.error(file, &at, "`@SET` sets no variable", "write `@SET name=value`"),
            }
            None
        }
        "include" => {
            report.error(file, &at, "`@INCLUDE` names no file", "write `@INCLUDE PATH`");
            None
        }
        _ => {
            let message = format!("there is no command {}", quote(&format!("@{name}")));
            report.error(file, &at, message, "write `@INCLUDE PATH` or `@SET name=value`");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> (Vec<Item>, Option<String>) {
        let mut report = Report::default();
        let file = report.add_file("f.conf", text);
        let items = read(file, text, &mut report);
        (items, report.finish().err().map(|errors| errors.to_string()))
    }

    #[test]
    fn sections_have_their_properties_in_order() {
        let text = "# a comment\n@SET dir=/var/log\n\n[INPUT]\n    Name   tail\n    # another\n\tPath ${dir}/*.log  \n[ filter ]\n  Name modify\n  Set a  b c\n  SET d e\n@INCLUDE out.conf\n";
        let (items, errors) = items(text);
        assert!(errors.is_none(), "{errors:?}");
        let [Item::Section(input), Item::Section(filter), Item::Include { path, .. }] = items.as_slice()
        else {
            panic!("{items:?}")
        };
        assert_eq!(
            (input.kind, filter.kind, path.as_str()),
            (SectionKind::Input, SectionKind::Filter, "out.conf")
        );
        let pairs = |section: &Section| -> Vec<(String, String)> {
            section.properties.iter().map(|it| (it.key.clone(), it.value.clone())).collect()
        };
        let owned = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs(input), [owned("name", "tail"), owned("path", "${dir}/*.log")]);
        assert_eq!(pairs(filter), [owned("name", "modify"), owned("set", "a  b c"), owned("set", "d e")]);
        for property in &input.properties {
            assert_eq!(text.get(property.at.clone()), Some(property.value.as_str()));
        }
    }

    #[test]
    fn mistakes_have_their_places() {
        let text =
            "Name tail\n[INPTU]\n  Name tail\n[INPUT\n  x y\n[INPUT]\n  Name\n@INCLUDE\n@SET x\n@FOO y\n";
        let (_, errors) = items(text);
        let errors = errors.unwrap_or_default();
        for expected in [
            "f.conf:1:1",
            "f.conf:2:1",
            "did you mean `[INPUT]`",
            "f.conf:4:1",
            "f.conf:7:3",
            "`@INCLUDE` names no file",
            "`@SET` sets no variable",
            "there is no command `@FOO`",
        ] {
            assert!(errors.contains(expected), "{expected}\n{errors}");
        }
        assert!(!errors.contains("f.conf:3:") && !errors.contains("f.conf:5:"), "{errors}");
    }

    #[test]
    fn the_format_is_told_by_the_content() {
        assert!(is_classic("\n# x\n[SERVICE]\n") && is_classic("@SET a=b"));
        assert!(!is_classic("service:\n  flush: 1") && !is_classic("[a, b]") && !is_classic(""));
    }
}
