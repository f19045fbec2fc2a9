//! Parsers: how lines become records, and how lines are joined.

use super::plugin::{Plugin, words};
use super::record;
use super::report::Report;
use super::section::{Section, SectionKind};
use crate::error::quote;
use crate::suggest::nearest;

/// The format of the lines that a parser reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Format {
    /// A format that `parse` of a source knows.
    Preset(&'static str),
    /// A format of container runtimes, which a source of files knows.
    Container(&'static str),
    /// A regular expression with named groups.
    Regex(String),
    /// Labelled tab-separated values.
    Ltsv,
    /// A format of syslog messages.
    Syslog(&'static str),
    /// One that is not known here.
    Unknown,
}

/// A parser.
#[derive(Debug, Clone)]
pub(super) struct Parser {
    pub(super) format: Format,
    pub(super) time_key: Option<String>,
    pub(super) time_format: Option<String>,
    pub(super) keeps_time: bool,
    /// Names with their types.
    pub(super) types: Vec<(String, String)>,
}

/// A way to join lines.
#[derive(Debug, Clone)]
pub(super) struct Multiline {
    /// A regular expression that matches the first line of a record.
    pub(super) start: String,
    pub(super) timeout: Option<String>,
}

/// The parsers of a configuration, and the well-known ones.
#[derive(Debug, Default)]
pub(super) struct Parsers {
    parsers: Vec<(String, Parser)>,
    multiline: Vec<(String, Multiline)>,
    lacks_some: bool,
}

/// Parsers that come with Fluent Bit.
const WELL_KNOWN: [(&str, Format); 15] = [
    ("json", Format::Preset("json")),
    ("logfmt", Format::Preset("logfmt")),
    ("nginx", Format::Preset("nginx")),
    ("k8s-nginx-ingress", Format::Preset("nginx")),
    ("apache", Format::Preset("apache")),
    ("apache2", Format::Preset("apache")),
    ("apache_error", Format::Preset("apache")),
    ("glog", Format::Preset("klog")),
    ("docker", Format::Container("docker")),
    ("docker-daemon", Format::Preset("logfmt")),
    ("cri", Format::Container("cri")),
    ("containerd", Format::Container("cri")),
    ("syslog-rfc5424", Format::Syslog("rfc5424")),
    ("syslog-rfc3164", Format::Syslog("rfc3164")),
    ("syslog-rfc3164-local", Format::Syslog("rfc3164")),
];

impl Parsers {
    /// Reads the sections of parsers.
    pub(super) fn read(sections: &[Section], lacks_some: bool, report: &mut Report) -> Parsers {
        let mut parsers = Parsers { lacks_some, ..Parsers::default() };
        for section in sections {
            match section.kind {
                SectionKind::Parser => {
                    let read = Plugin::new(section, report).and_then(|plugin| parser(plugin, report));
                    parsers.parsers.extend(read);
                }
                SectionKind::MultilineParser => {
                    let read = Plugin::new(section, report).and_then(|plugin| multiline(plugin, report));
                    parsers.multiline.extend(read);
                }
                _ => {}
            }
        }
        parsers
    }

    /// The parser of this name; a mistake is noted if there is none.
    pub(super) fn find(
        &self,
        name: &str,
        plugin: &Plugin<'_>,
        value: &super::plugin::Value,
        report: &mut Report,
    ) -> Option<Parser> {
        let own = self.parsers.iter().find(|(of, _)| of == name).map(|(_, parser)| parser);
        // Of the well-known ones more is known than a file says.
        let known = WELL_KNOWN.iter().find(|(of, _)| *of == name).map(|(_, format)| format);
        match (own, known) {
            (Some(own @ Parser { format: Format::Regex(_), .. }), Some(Format::Preset(_))) => {
                Some(own.clone())
            }
            (own, Some(format)) if !matches!(own, Some(Parser { format: Format::Preset(_), .. })) => {
                let plain = Parser {
                    format: format.clone(),
                    time_key: None,
                    time_format: None,
                    keeps_time: false,
                    types: Vec::new(),
                };
                Some(plain)
            }
            (Some(own), _) => Some(own.clone()),
            (None, _) if self.lacks_some || value.is_open() => {
                let message = format!("left out: the parser {} is not known here", quote(name));
                plugin.note_value(value, message, report);
                None
            }
            (None, _) => {
                let names = self.parsers.iter().map(|(name, _)| name.as_str());
                let help = match nearest(name, names.chain(WELL_KNOWN.iter().map(|(name, _)| *name))) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => {
                        "define it in a section `[PARSER]`, or name its file in `parsers_file`".to_owned()
                    }
                };
                plugin.error(value, format!("there is no parser {}", quote(name)), help, report);
                None
            }
        }
    }

    /// The multiline parser of this name, unless it comes with Fluent Bit.
    pub(super) fn multiline(&self, name: &str) -> Option<&Multiline> {
        self.multiline.iter().find(|(of, _)| of == name).map(|(_, multiline)| multiline)
    }
}

fn parser(mut plugin: Plugin<'_>, report: &mut Report) -> Option<(String, Parser)> {
    let name = plugin.name.clone();
    let regex = plugin.text("regex", report).map(|value| record::pattern(&value.text));
    let format = plugin.text("format", report);
    let kind = format.as_ref().map(|value| value.text.to_ascii_lowercase()).unwrap_or_default();
    let known = match (kind.as_str(), regex) {
        ("regex", Some(regex)) => Format::Regex(regex),
        ("json", _) => Format::Preset("json"),
        ("logfmt", _) => Format::Preset("logfmt"),
        ("ltsv", _) => Format::Ltsv,
        ("regex", None) => {
            let message = format!("the parser {} has no `Regex`", quote(&name));
            report.error(plugin.file(), plugin.at(), message, "add `Regex PATTERN`");
            Format::Unknown
        }
        ("", _) => {
            let message = format!("the parser {} has no `Format`", quote(&name));
            report.error(
                plugin.file(),
                plugin.at(),
                message,
                "add `Format regex`, `json`, `logfmt` or `ltsv`",
            );
            Format::Unknown
        }
        _ => {
            let help = "write `json`, `regex`, `ltsv` or `logfmt`";
            let message = format!("there is no format {}", quote(&kind));
            if let Some(format) = &format {
                plugin.error(format, message, help, report);
            }
            Format::Unknown
        }
    };
    let time_key = plugin.text("time_key", report).map(|value| value.text);
    let time_format = plugin.text("time_format", report).map(|value| value.text);
    let keeps_time = plugin.flag("time_keep", report) == Some(true);
    let types = plugin.text("types", report).map_or_else(Vec::new, |value| {
        let pairs = value.text.split_ascii_whitespace().filter_map(|pair| pair.split_once(':'));
        pairs.map(|(name, kind)| (name.to_owned(), kind.to_ascii_lowercase())).collect()
    });
    plugin.lacks(
        &[
            ("time_offset", "left out: times without a zone are UTC"),
            ("time_system_timezone", "left out: times without a zone are UTC"),
            ("time_strict", "not needed: a time that cannot be read leaves the record as it is"),
            ("skip_empty_values", "left out: empty values are attributes"),
            ("logfmt_no_bare_keys", "left out: keys without values are ignored"),
        ],
        report,
    );
    for value in plugin.take_where(|key| key.starts_with("decode_field"), report) {
        let message = "left out: write `merge_maps(log.attributes, ParseJSON(…), \"upsert\")` in `edit` for a member that is text with JSON";
        plugin.note_value(&value, message, report);
    }
    plugin.finish(&["format", "regex", "time_key", "time_format", "time_keep", "types"], report);
    Some((name, Parser { format: known, time_key, time_format, keeps_time, types }))
}

fn multiline(mut plugin: Plugin<'_>, report: &mut Report) -> Option<(String, Multiline)> {
    let name = plugin.name.clone();
    let kind = plugin.text("type", report);
    let timeout = plugin
        .number("flush_timeout", report)
        .map(|ms| crate::values::Duration::milliseconds(ms).to_string());
    let rules = plugin.all("rule", report);
    let mut starts: Vec<String> = Vec::new();
    let mut others = 0;
    for rule in &rules {
        let parts = words(&rule.text, 3);
        match parts.as_slice() {
            [state, regex, ..] if state.split(',').any(|state| state.trim() == "start_state") => {
                starts.push(record::pattern(&regex.replace("\\\"", "\"")));
            }
            [_, _, _] => others += 1,
            _ => {
                let help = "write `Rule \"STATE\" \"/REGEX/\" \"NEXT\"`";
                plugin.error(rule, "a rule has no three parts", help, report);
            }
        }
    }
    let pattern = plugin.text("match_string", report);
    plugin.lacks(
        &[
            ("key_content", "not needed: the lines are joined as they are read"),
            ("key_group", "not needed: the outputs of a container are joined apart"),
            ("key_pattern", "not needed: the lines are joined as they are read"),
            ("negate", "left out: see `multiline.start_pattern` of the input"),
            ("parser", "left out: set `parse` of the input"),
        ],
        report,
    );
    let file = plugin.file();
    let at = plugin.at().clone();
    let path = plugin.path_of("");
    plugin.finish(&["type", "rule", "flush_timeout"], report);
    let is_regex = kind.is_none_or(|kind| kind.text.eq_ignore_ascii_case("regex"));
    if !is_regex || pattern.is_some() {
        report.note(
            file,
            &at,
            &path,
            "left out: only the type `regex` is converted; set `multiline` of the input",
        );
        return None;
    }
    let start = match starts.as_slice() {
        [] => {
            let message = format!("the multiline parser {} has no rule for `start_state`", quote(&name));
            report.error(file, &at, message, "add `Rule \"start_state\" \"/REGEX/\" \"NEXT\"`");
            return None;
        }
        [one] => one.clone(),
        several => several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|"),
    };
    if others > 0 {
        let message = "every line that does not begin a record continues it: the rules for other states are not looked at";
        report.note(file, &at, &path, message);
    }
    Some((name, Multiline { start, timeout }))
}
