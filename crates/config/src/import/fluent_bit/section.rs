//! Sections of a configuration, in either format.

use std::ops::Range;

/// A section: a plugin, a parser or the service.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) kind: SectionKind,
    /// The position of its file in the list of files.
    pub(super) file: usize,
    pub(super) at: Range<usize>,
    pub(super) properties: Vec<Property>,
}

/// A property: a key may occur several times.
#[derive(Debug, Clone)]
pub(super) struct Property {
    /// The key in lower case.
    pub(super) key: String,
    pub(super) key_at: Range<usize>,
    /// The value as written.
    pub(super) value: String,
    pub(super) at: Range<usize>,
}

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    Service,
    Input,
    Filter,
    Output,
    Parser,
    MultilineParser,
    Other,
}

impl SectionKind {
    /// The names of sections in the classic format.
    pub(super) const CLASSIC: [&str; 11] = [
        "service",
        "input",
        "filter",
        "output",
        "parser",
        "multiline_parser",
        "custom",
        "plugins",
        "stream_task",
        "upstream",
        "node",
    ];

    /// The kind that a name in the classic format stands for.
    pub(super) fn classic(name: &str) -> Option<SectionKind> {
        Some(match name.to_ascii_lowercase().as_str() {
            "service" => SectionKind::Service,
            "input" => SectionKind::Input,
            "filter" => SectionKind::Filter,
            "output" => SectionKind::Output,
            "parser" => SectionKind::Parser,
            "multiline_parser" => SectionKind::MultilineParser,
            "custom" | "plugins" | "stream_task" | "upstream" | "node" => SectionKind::Other,
            _ => return None,
        })
    }

    /// The group of settings in notes.
    pub(super) fn group(self) -> &'static str {
        match self {
            SectionKind::Service => "service",
            SectionKind::Input => "inputs",
            SectionKind::Filter => "filters",
            SectionKind::Output => "outputs",
            SectionKind::Parser => "parsers",
            SectionKind::MultilineParser => "multiline_parsers",
            SectionKind::Other => "other",
        }
    }
}

impl Section {
    /// The last value of a property, as written.
    pub(super) fn raw(&self, key: &str) -> Option<&Property> {
        self.properties.iter().rev().find(|property| property.key == key)
    }
}
