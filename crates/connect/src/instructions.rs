//! The result: snippets, as data, as JSON and as text.

use serde_json::{Value, json};
use std::fmt;

/// What to do on the sending side, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// Files and commands. At least one.
    pub snippets: Vec<Snippet>,
}

/// A text to paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// What it is.
    pub title: String,
    /// The file that it belongs into; `None` for commands.
    pub file: Option<&'static str>,
    /// What it is written in.
    pub language: Language,
    /// The text itself. It ends with a line feed.
    pub content: String,
    /// What to know about it: one sentence or a few each.
    pub notes: Vec<String>,
}

/// What a snippet is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Commands for a POSIX shell.
    Shell,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// TOML.
    Toml,
    /// The language of Grafana Alloy.
    Alloy,
    /// The language of another program's configuration file.
    Conf,
}

impl Language {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Language::Shell => "sh",
            Language::Yaml => "yaml",
            Language::Json => "json",
            Language::Toml => "toml",
            Language::Alloy => "alloy",
            Language::Conf => "conf",
        }
    }
}

impl Snippet {
    /// A file's content.
    pub(crate) fn file(
        title: impl Into<String>,
        file: &'static str,
        language: Language,
        content: impl Into<String>,
    ) -> Snippet {
        let content = ended(content.into());
        Snippet { title: title.into(), file: Some(file), language, content, notes: Vec::new() }
    }

    /// Commands for a shell.
    pub(crate) fn commands(title: impl Into<String>, content: impl Into<String>) -> Snippet {
        let content = ended(content.into());
        Snippet { title: title.into(), file: None, language: Language::Shell, content, notes: Vec::new() }
    }

    /// The same with these notes besides.
    pub(crate) fn with(mut self, notes: impl IntoIterator<Item = String>) -> Snippet {
        self.notes.extend(notes);
        self
    }
}

fn ended(mut content: String) -> String {
    if !content.ends_with('\n') {
        content.push('\n');
    }
    content
}

impl Instructions {
    /// A list of objects with `title`, `file`, `language`, `content` and `notes`.
    pub fn json(&self) -> Value {
        let snippet = |snippet: &Snippet| {
            json!({
                "title": snippet.title, "file": snippet.file, "language": snippet.language.name(),
                "content": snippet.content, "notes": snippet.notes,
            })
        };
        Value::Array(self.snippets.iter().map(snippet).collect())
    }
}

/// For a terminal: what is around the snippets begins with `#`.
impl fmt::Display for Instructions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Snippet { title, file, content, notes, .. }) in self.snippets.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            match file {
                Some(file) => write!(out, "# {file}: {title}\n\n{content}")?,
                None => write!(out, "# {title}\n\n{content}")?,
            }
            for (number, note) in notes.iter().enumerate() {
                let before = if number == 0 { "\n" } else { "" };
                writeln!(out, "{before}# - {note}")?;
            }
        }
        Ok(())
    }
}
