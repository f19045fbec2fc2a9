//! The YAML format.

use std::ops::Range;
use std::rc::Rc;

use super::report::Report;
use super::section::{Property, Section, SectionKind};
use crate::error::{ErrorCollector, quote};
use crate::suggest::nearest;
use crate::yaml::{Entry, Node, Value, read_verbatim};

const TOP: [&str; 11] = [
    "env",
    "includes",
    "service",
    "pipeline",
    "parsers",
    "multiline_parsers",
    "customs",
    "plugins",
    "stream_processor",
    "upstream_servers",
    "parsers_file",
];

/// The sections and includes of a file.
#[derive(Default)]
pub(super) struct Document {
    pub(super) sections: Vec<Section>,
    pub(super) includes: Vec<(String, Range<usize>)>,
}

struct YamlReader<'r> {
    file: usize,
    report: &'r mut Report,
    document: Document,
}

/// Reads the file at position `file`.
pub(super) fn read(file: usize, text: &str, report: &mut Report) -> Document {
    let mut errors = ErrorCollector::new(text);
    let root = read_verbatim(text, &mut errors);
    let name = report.name_of(file).to_owned();
    if let Some(errors) = errors.into_errors(&name) {
        for problem in errors.problems() {
            let at = problem.place.as_ref().map_or(0, |place| offset(text, place.line, place.column));
            report.error(file, &(at..at), problem.message.clone(), problem.help.clone());
        }
        return Document::default();
    }
    let mut reader = YamlReader { file, report, document: Document::default() };
    match root.as_deref() {
        Some(Node { value: Value::Mapping(entries), .. }) => reader.top(entries),
        _ => {
            let help = "is this the configuration of a Fluent Bit? It has `pipeline:`, or sections such as `[INPUT]`";
            reader.report.error(file, &(0..0), "there is no section", help);
        }
    }
    reader.document
}

/// The offset of a line and a column, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column.saturating_sub(1)).map_or(0, |(at, _)| at)
}

impl YamlReader<'_> {
    fn top(&mut self, entries: &[Entry]) {
        // Variables apply to what stands before them, too.
        for entry in entries.iter().filter(|entry| entry.key == "env") {
            for variable in self.entries(entry) {
                if let Value::Scalar(value) = &variable.node.value {
                    let value = self.report.translate(value);
                    self.report.variables.insert(variable.key.clone(), value);
                }
            }
        }
        for entry in entries {
            match entry.key.as_str() {
                "env" => {}
                "includes" => {
                    let paths = self.scalars(entry);
                    self.document.includes.extend(paths);
                }
                "service" => {
                    let properties = self.entries(entry).to_vec();
                    self.section(SectionKind::Service, &entry.key_at, &properties);
                }
                "pipeline" => self.pipeline(entry),
                "parsers" => self.list(SectionKind::Parser, entry),
                "multiline_parsers" => self.list(SectionKind::MultilineParser, entry),
                known if TOP.contains(&known) => {
                    let message = "left out: tidegate has no counterpart of this section";
                    self.report.note(self.file, &entry.key_at, &entry.key, message);
                }
                _ => self.unknown(entry, &TOP),
            }
        }
    }

    fn pipeline(&mut self, entry: &Entry) {
        for part in self.entries(entry) {
            match part.key.as_str() {
                "inputs" => self.list(SectionKind::Input, part),
                "filters" => self.list(SectionKind::Filter, part),
                "outputs" => self.list(SectionKind::Output, part),
                _ => self.unknown(part, &["inputs", "filters", "outputs"]),
            }
        }
    }

    fn unknown(&mut self, entry: &Entry, known: &[&'static str]) {
        let help = match nearest(&entry.key, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of `{}`", known.join("`, `")),
        };
        let message = format!("there is no section {}", quote(&entry.key));
        self.report.error(self.file, &entry.key_at, message, help);
    }

    fn entries<'t>(&mut self, entry: &'t Entry) -> &'t [Entry] {
        match &entry.node.value {
            Value::Mapping(entries) => entries,
            Value::Null | Value::Broken => &[],
            Value::Scalar(_) | Value::Sequence(_) => {
                let message = format!("{} is a group of settings", quote(&entry.key));
                self.report.error(
                    self.file,
                    &entry.key_at,
                    message,
                    "write `name: value` lines, indented below it",
                );
                &[]
            }
        }
    }

    fn scalars(&mut self, entry: &Entry) -> Vec<(String, Range<usize>)> {
        let of = |node: &Node| match &node.value {
            Value::Scalar(text) => Some((text.clone(), node.at.clone())),
            _ => None,
        };
        match &entry.node.value {
            Value::Sequence(items) => items.iter().filter_map(|item| of(item)).collect(),
            _ => of(&entry.node).into_iter().collect(),
        }
    }

    fn list(&mut self, kind: SectionKind, entry: &Entry) {
        let items: &[Rc<Node>] = match &entry.node.value {
            Value::Sequence(items) => items,
            Value::Null | Value::Broken => return,
            Value::Scalar(_) | Value::Mapping(_) => {
                let message = format!("{} is a list", quote(&entry.key));
                return self.report.error(self.file, &entry.key_at, message, "begin each element with `- `");
            }
        };
        for item in items {
            match &item.value {
                Value::Mapping(entries) => self.section(kind, &item.at, entries),
                Value::Null | Value::Broken => {}
                Value::Scalar(_) | Value::Sequence(_) => {
                    let message = format!("an element of {} is a group of settings", quote(&entry.key));
                    self.report.error(self.file, &item.at, message, "write `- name: PLUGIN`");
                }
            }
        }
    }

    fn section(&mut self, kind: SectionKind, at: &Range<usize>, entries: &[Entry]) {
        let name = entries.iter().find(|entry| entry.key.eq_ignore_ascii_case("name"));
        let name = match name.map(|entry| &entry.node.value) {
            Some(Value::Scalar(name)) => format!("{}.{name}", kind.group()),
            _ => kind.group().to_owned(),
        };
        let mut properties = Vec::new();
        for entry in entries {
            let path = format!("{name}.{}", entry.key);
            self.property(entry, &entry.node, kind, &path, &mut properties);
        }
        // The place of a group that begins a list element is that of its first key.
        let at = entries.first().map_or(at, |entry| &entry.key_at).clone();
        self.document.sections.push(Section { kind, file: self.file, at, properties });
    }

    /// Adds a property, one for each element of a list.
    fn property(
        &mut self,
        entry: &Entry,
        node: &Node,
        kind: SectionKind,
        path: &str,
        properties: &mut Vec<Property>,
    ) {
        let key = entry.key.to_ascii_lowercase();
        match &node.value {
            Value::Scalar(value) => {
                let (key_at, at) = (entry.key_at.clone(), node.at.clone());
                properties.push(Property { key, key_at, value: value.clone(), at });
            }
            Value::Null => {
                // The name of a plugin, not the absence of a value.
                let text = self.report.text(self.file, &node.at).trim();
                if text.eq_ignore_ascii_case("null") {
                    let (key_at, at) = (entry.key_at.clone(), node.at.clone());
                    properties.push(Property { key, key_at, value: "null".to_owned(), at });
                }
            }
            Value::Broken => {}
            Value::Sequence(items) => {
                for item in items {
                    if matches!(item.value, Value::Sequence(_)) {
                        let message = "left out: it is a list of lists";
                        self.report.note(self.file, &entry.key_at, path, message);
                    } else {
                        self.property(entry, item, kind, path, properties);
                    }
                }
            }
            Value::Mapping(parts) if kind == SectionKind::MultilineParser && key == "rules" => {
                let part = |name: &str| {
                    let value = parts.iter().find(|part| part.key == name).map(|part| &part.node.value);
                    match value {
                        Some(Value::Scalar(text)) => text.replace('"', "\\\""),
                        _ => String::new(),
                    }
                };
                // As the classic format writes it.
                let value = format!("\"{}\" \"{}\" \"{}\"", part("state"), part("regex"), part("next_state"));
                let (key_at, at) = (entry.key_at.clone(), node.at.clone());
                properties.push(Property { key: "rule".to_owned(), key_at, value, at });
            }
            Value::Mapping(_) => {
                let message = if key == "processors" {
                    "left out: processors are not converted; write their steps into a pipeline"
                } else {
                    "left out: it is a group of settings, which has no counterpart"
                };
                self.report.note(self.file, &entry.key_at, path, message);
            }
        }
    }
}
