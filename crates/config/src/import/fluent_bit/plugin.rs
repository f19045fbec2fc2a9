//! Reading the properties of a section: every one is either taken or noted.

use std::ops::Range;

use super::report::Report;
use super::section::{Property, Section, SectionKind};
use crate::error::quote;
use crate::import::references::has_reference;
use crate::suggest::nearest;
use crate::values::Bytes;

/// Properties without a counterpart: each with the reason.
pub(super) type Lacking = [(&'static str, &'static str)];

/// A value in our syntax, with its place.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

impl Value {
    /// Whether the value depends on the environment.
    pub(super) fn is_open(&self) -> bool {
        has_reference(&self.text)
    }
}

/// A section whose properties are being taken.
pub(super) struct Plugin<'t> {
    section: &'t Section,
    /// The name of the plugin, in lower case.
    pub(super) name: String,
    taken: Vec<bool>,
}

impl<'t> Plugin<'t> {
    /// The plugin of a section; an error if it has no name.
    pub(super) fn new(section: &'t Section, report: &mut Report) -> Option<Plugin<'t>> {
        let taken = vec![false; section.properties.len()];
        let mut plugin = Plugin { section, name: String::new(), taken };
        let name = plugin.text("name", report);
        if section.kind == SectionKind::Service {
            return Some(plugin);
        }
        match name {
            Some(name) => {
                let is_plugin =
                    matches!(section.kind, SectionKind::Input | SectionKind::Filter | SectionKind::Output);
                plugin.name = if is_plugin { name.text.to_ascii_lowercase() } else { name.text };
                Some(plugin)
            }
            None => {
                let message = format!("a section of `{}` has no `name`", section.kind.group());
                report.error(section.file, &section.at, message, "add `Name PLUGIN`");
                None
            }
        }
    }

    /// The place of the name, or of the section.
    pub(super) fn at(&self) -> &Range<usize> {
        self.section.raw("name").map_or(&self.section.at, |name| &name.at)
    }

    pub(super) fn file(&self) -> usize {
        self.section.file
    }

    /// The path of a property in notes.
    pub(super) fn path_of(&self, key: &str) -> String {
        match (self.name.is_empty(), key.is_empty()) {
            (true, _) => format!("{}.{key}", self.section.kind.group()),
            (false, true) => format!("{}.{}", self.section.kind.group(), self.name),
            (false, false) => format!("{}.{}.{key}", self.section.kind.group(), self.name),
        }
    }

    /// Notes what became of the plugin.
    pub(super) fn note(&self, message: impl Into<String>, report: &mut Report) {
        report.note(self.section.file, self.at(), &self.path_of(""), message);
    }

    /// Notes what became of a value.
    pub(super) fn note_value(&self, value: &Value, message: impl Into<String>, report: &mut Report) {
        report.note(self.section.file, &value.at, &self.path_of(&value.key), message);
    }

    /// Notes a mistake in a value.
    pub(super) fn error(
        &self,
        value: &Value,
        message: impl Into<String>,
        help: impl Into<String>,
        report: &mut Report,
    ) {
        report.error(self.section.file, &value.at, message, help);
    }

    /// Takes all values of a property, in their order.
    pub(super) fn all(&mut self, key: &str, report: &Report) -> Vec<Value> {
        self.take_where(|of| of == key, report)
    }

    /// Takes all properties whose keys meet the condition, in their order.
    pub(super) fn take_where(&mut self, is_wanted: impl Fn(&str) -> bool, report: &Report) -> Vec<Value> {
        let mut values = Vec::new();
        for (property, taken) in self.section.properties.iter().zip(&mut self.taken) {
            if !*taken && is_wanted(&property.key) {
                *taken = true;
                values.push(value_of(property, report));
            }
        }
        values
    }

    /// Takes a property; of several values the last one counts.
    pub(super) fn text(&mut self, key: &str, report: &Report) -> Option<Value> {
        self.all(key, report).pop().filter(|value| !value.text.is_empty())
    }

    /// Takes the values of a list that is divided by commas.
    pub(super) fn list(&mut self, key: &str, report: &Report) -> Vec<Value> {
        let mut list = Vec::new();
        for value in self.all(key, report) {
            for part in value.text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                list.push(Value { text: part.to_owned(), ..value.clone() });
            }
        }
        list
    }

    /// Takes a switch.
    pub(super) fn flag(&mut self, key: &str, report: &mut Report) -> Option<bool> {
        let value = self.text(key, report)?;
        match value.text.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Some(true),
            "off" | "false" | "no" | "0" => Some(false),
            _ if value.is_open() => {
                self.note_value(&value, "its value is not known here; the default was assumed", report);
                None
            }
            _ => {
                let message = format!("{} is `on` or `off`", quote(&self.path_of(key)));
                self.error(&value, message, "write one of the two", report);
                None
            }
        }
    }

    /// Takes a whole number.
    pub(super) fn number(&mut self, key: &str, report: &mut Report) -> Option<u64> {
        let value = self.text(key, report)?;
        if let Ok(number) = value.text.parse() {
            return Some(number);
        }
        if value.is_open() {
            self.note_value(&value, "its value is not known here; it was left out", report);
        } else {
            let message = format!("{} is a whole number", quote(&self.path_of(key)));
            self.error(&value, message, "write digits only", report);
        }
        None
    }

    /// Takes a size, such as `32k` or `5MB`.
    pub(super) fn size(&mut self, key: &str, report: &mut Report) -> Option<Bytes> {
        let value = self.text(key, report)?;
        let size = size(&value.text);
        if size.is_none() {
            self.note_value(&value, "left out: not a size that is known here", report);
        }
        size
    }

    /// Notes those of `properties` that are set, each with its reason.
    pub(super) fn lacks(&mut self, properties: &Lacking, report: &mut Report) {
        for (key, reason) in properties {
            for value in self.all(key, report) {
                self.note_value(&value, *reason, report);
            }
        }
    }

    /// Notes all properties that begin with `prefix`.
    pub(super) fn lacks_prefix(&mut self, prefix: &str, reason: &str, report: &mut Report) {
        for value in self.take_where(|key| key.starts_with(prefix), report) {
            self.note_value(&value, reason, report);
        }
    }

    /// Takes everything that is left.
    pub(super) fn take_all(&mut self) {
        self.taken.fill(true);
    }

    /// Notes everything that was not taken. A misspelt name of a property is likely where `known` has one near.
    pub(super) fn finish(&mut self, known: &[&'static str], report: &mut Report) {
        for (property, _) in self.section.properties.iter().zip(&self.taken).filter(|(_, taken)| !**taken) {
            let meant = nearest(&property.key, known.iter().copied())
                .map_or_else(String::new, |meant| format!(" (did you mean `{meant}`?)"));
            let message = format!("left out: it has no counterpart{meant}");
            report.note(self.section.file, &property.key_at, &self.path_of(&property.key), message);
        }
    }
}

fn value_of(property: &Property, report: &Report) -> Value {
    Value { key: property.key.clone(), text: report.translate(&property.value), at: property.at.clone() }
}

/// A size as Fluent Bit writes it: `32k`, `5MB`, `1G`, `1048576`.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).map(Bytes::new)
}

/// A time as Fluent Bit writes it: seconds, or a number with `s`, `m`, `h` or `d`.
pub(super) fn seconds(text: &str) -> Option<String> {
    let text = text.trim();
    let is_number = text.parse::<f64>().is_ok_and(|number| number >= 0.0 && number.is_finite());
    if is_number && text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(['e', 'E']) {
        return crate::import::otelcol::duration(&format!("{text}s"));
    }
    crate::import::otelcol::duration(text)
}

/// The words of a value: divided by blanks, or in double quotes.
pub(super) fn words(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if words.len() + 1 == most {
            let whole = rest.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'));
            words.push(whole.filter(|inner| !inner.contains('"')).unwrap_or(rest).to_owned());
            break;
        }
        let (word, behind) = match rest.strip_prefix('"').and_then(quoted) {
            Some(found) => found,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}

/// Splits at the quote that ends a text. A quote behind a backslash ends nothing.
fn quoted(inner: &str) -> Option<(&str, &str)> {
    let is_end = |at: &usize| !inner.get(..*at).is_some_and(|before| before.ends_with('\\'));
    let end = inner.match_indices('"').map(|(at, _)| at).find(is_end)?;
    Some((inner.get(..end)?, inner.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        for (text, bytes) in
            [("32k", Some(32 << 10)), ("5MB", Some(5 << 20)), ("1024", Some(1024)), ("x", None)]
        {
            assert_eq!(size(text).map(Bytes::get), bytes, "{text}");
        }
        for (text, ours) in [("5", Some("5s")), ("0.5", Some("500ms")), ("1m", Some("1m")), ("soon", None)] {
            assert_eq!(seconds(text).as_deref(), ours, "{text}");
        }
    }

    #[test]
    fn words_may_be_in_quotes() {
        assert_eq!(words(r#""a b"  c d "#, 2), ["a b", "c d"]);
        assert_eq!(words(r#"key "a value""#, 2), ["key", "a value"]);
        assert_eq!(words(r#""a \"b\" c" d"#, 2), [r#"a \"b\" c"#, "d"]);
        assert_eq!(words("a", 2), ["a"]);
        assert_eq!(words(r#""a"#, 3), ["\"a"]);
        assert!(words("  ", 2).is_empty());
    }
}
