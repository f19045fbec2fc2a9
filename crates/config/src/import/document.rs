//! YAML to print, with comments.

/// A value to print.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Text(String),
    /// A text that has quotes even where it could be read as a number.
    Quoted(String),
    /// A list on one line.
    Flow(Vec<String>),
    List(Vec<Yaml>),
    Map(Map),
}

/// A mapping to print.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Map {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    comments: Vec<String>,
    key: String,
    value: Yaml,
}

impl From<String> for Yaml {
    fn from(text: String) -> Yaml {
        Yaml::Text(text)
    }
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Yaml {
        Yaml::Text(text.to_owned())
    }
}

impl From<Map> for Yaml {
    fn from(map: Map) -> Yaml {
        Yaml::Map(map)
    }
}

impl Map {
    /// Sets `key`; a second value replaces the first.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Yaml>) {
        self.set_with(key, value, None);
    }

    /// Sets `key`, with a comment above it.
    pub(super) fn set_with(&mut self, key: &str, value: impl Into<Yaml>, comment: Option<&str>) {
        let comments = comment.map(str::to_owned).into_iter().collect();
        let value = value.into();
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => (entry.value, entry.comments) = (value, comments),
            None => self.entries.push(Entry { comments, key: key.to_owned(), value }),
        }
    }

    /// Sets `key` if there is a value.
    pub(super) fn set_some(&mut self, key: &str, value: Option<impl Into<Yaml>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets `key` to a group unless the group is empty.
    pub(super) fn set_group(&mut self, key: &str, group: Map) {
        if !group.is_empty() {
            self.set(key, group);
        }
    }

    /// The group at `key`, made if there is none.
    pub(super) fn group(&mut self, key: &str) -> &mut Map {
        let index = match self.entries.iter().position(|entry| entry.key == key) {
            Some(index) => index,
            None => {
                self.set(key, Map::default());
                self.entries.len() - 1
            }
        };
        let value = &mut self.entries[index].value;
        if !matches!(value, Yaml::Map(_)) {
            *value = Yaml::Map(Map::default());
        }
        match value {
            Yaml::Map(map) => map,
            _ => unreachable!("it was made a map above"),
        }
    }

    /// Adds the entries of another mapping, with their comments.
    pub(super) fn append(&mut self, other: &Map) {
        self.entries.extend(other.entries.iter().cloned());
    }

    /// The groups of a configuration in the order in which one reads them.
    pub(super) fn sorted(&self) -> Map {
        const ORDER: [&str; 9] =
            ["memory", "data", "listen", "tenants", "sources", "limits", "journal", "pipelines", "sinks"];
        let mut sorted = self.clone();
        sorted.entries.sort_by_key(|entry| ORDER.iter().position(|key| *key == entry.key));
        sorted
    }

    /// Removes `key`.
    pub(super) fn remove(&mut self, key: &str) {
        self.entries.retain(|entry| entry.key != key);
    }

    pub(super) fn get(&self, key: &str) -> Option<&Yaml> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends the lines of the mapping, indented by `indent` blanks.
    pub(super) fn render(&self, out: &mut String, indent: usize) {
        for (index, entry) in self.entries.iter().enumerate() {
            if indent == 0 && index > 0 {
                out.push('\n');
            }
            entry.render(out, indent, true);
        }
    }

    /// Appends the lines of the mapping as an element of a list, whose dash is there already.
    fn render_item(&self, out: &mut String, indent: usize) {
        for (index, entry) in self.entries.iter().enumerate() {
            entry.render(out, indent, index > 0);
        }
    }
}

impl Entry {
    fn render(&self, out: &mut String, indent: usize, is_indented: bool) {
        if is_indented {
            for text in &self.comments {
                comment(out, indent, text);
            }
            push_indent(out, indent);
        }
        out.push_str(&scalar(&self.key, false));
        out.push(':');
        match &self.value {
            Yaml::Text(text) => line(out, &scalar(text, false)),
            Yaml::Quoted(text) => line(out, &quoted(text)),
            Yaml::Flow(items) => {
                let items: Vec<String> = items.iter().map(|item| scalar(item, true)).collect();
                line(out, &format!("[{}]", items.join(", ")));
            }
            Yaml::Map(map) if map.is_empty() => line(out, "{}"),
            Yaml::List(items) if items.is_empty() => line(out, "[]"),
            Yaml::Map(map) => {
                out.push('\n');
                map.render(out, indent + 2);
            }
            Yaml::List(items) => {
                out.push('\n');
                items.iter().for_each(|item| item.render_item(out, indent + 2));
            }
        }
    }
}

impl Yaml {
    fn render_item(&self, out: &mut String, indent: usize) {
        if let Yaml::Map(Map { entries }) = self {
            // The dash takes the place where they would stand.
            let first = entries.first().into_iter().flat_map(|entry| &entry.comments);
            first.for_each(|text| comment(out, indent, text));
        }
        push_indent(out, indent);
        out.push('-');
        match self {
            Yaml::Text(text) => line(out, &scalar(text, false)),
            Yaml::Quoted(text) => line(out, &quoted(text)),
            Yaml::Map(map) if !map.is_empty() => {
                out.push(' ');
                map.render_item(out, indent + 2);
            }
            Yaml::Map(_) => line(out, "{}"),
            Yaml::Flow(items) => {
                let items: Vec<String> = items.iter().map(|item| scalar(item, true)).collect();
                line(out, &format!("[{}]", items.join(", ")));
            }
            Yaml::List(items) => {
                out.push('\n');
                items.iter().for_each(|item| item.render_item(out, indent + 2));
            }
        }
    }
}

fn line(out: &mut String, text: &str) {
    out.push(' ');
    out.push_str(text);
    out.push('\n');
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Appends a comment, wrapped; the continuation of an item of a list is indented like its text.
pub(super) fn comment(out: &mut String, indent: usize, text: &str) {
    const WIDTH: usize = 110;
    let hanging = if text.starts_with("- ") { "  " } else { "" };
    let mut current = String::new();
    let mut flush = |current: &mut String| {
        push_indent(out, indent);
        out.push_str(format!("# {current}").trim_end());
        out.push('\n');
        current.clear();
    };
    // Control characters would end the comment, and a terminal obeys some.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !current.trim().is_empty() && indent + current.chars().count() + word.chars().count() > WIDTH {
            flush(&mut current);
            current.push_str(hanging);
        } else if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    flush(&mut current);
}

/// A text as a YAML scalar, quoted where it has to be.
fn scalar(text: &str, is_flow: bool) -> String {
    if is_plain(text, is_flow) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn is_plain(text: &str, is_flow: bool) -> bool {
    let first = text.chars().next();
    let is_special = |c: char| "-?:,[]{}#&*!|>'\"%@`~=<".contains(c);
    first.is_some_and(|first| !is_special(first))
        && !text.starts_with([' ', '.'])
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.chars().any(|c| c.is_control() || (is_flow && ",[]{}:".contains(c)))
        && !matches!(text, "null" | "Null" | "NULL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCollector;
    use crate::yaml::{Value, read_verbatim};
    use proptest::prelude::*;

    fn read_back(text: &str) -> String {
        let mut map = Map::default();
        map.set("flow", Yaml::Flow(vec![text.to_owned(), "other".to_owned()]));
        map.set("list", Yaml::List(vec![text.into(), Yaml::Quoted(text.to_owned())]));
        map.set("quoted", Yaml::Quoted(text.to_owned()));
        map.set_with("key", text, Some(text));
        let mut out = String::new();
        map.render(&mut out, 0);
        let mut errors = ErrorCollector::new(&out);
        let root = read_verbatim(&out, &mut errors).unwrap_or_else(|| panic!("{out}"));
        let texts: Vec<String> = ["flow", "list", "quoted", "key"]
            .iter()
            .map(|key| {
                let mut node = root.find(&[(*key).to_owned()]).unwrap_or_else(|| panic!("{out}"));
                if let Value::Sequence(items) = &node.value {
                    node = &items[0];
                }
                match &node.value {
                    Value::Scalar(text) => text.clone(),
                    other => panic!("{other:?} in {out}"),
                }
            })
            .collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{out}");
        texts[0].clone()
    }

    proptest! {
        /// Any text reads back as it was printed.
        #[test]
        fn every_text_reads_back(text in "[ -~\n\té'\"\\\\:#\\[\\]{},&*!|>%@`~$-]{0,24}|\\PC{0,12}") {
            prop_assert_eq!(read_back(&text), text);
        }
    }

    #[test]
    fn comments_are_wrapped_and_hang() {
        let mut out = String::new();
        comment(&mut out, 2, &format!("- {}", "word ".repeat(40)));
        assert!(out.lines().count() == 2 && out.lines().all(|line| line.len() <= 116), "{out}");
        assert!(out.lines().nth(1).is_some_and(|line| line.starts_with("  #   word")), "{out}");
    }
}
