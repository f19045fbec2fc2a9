//! The files of a configuration, as one text: places in it tell the file.

use std::rc::Rc;

use super::toml;
use crate::error::{ErrorCollector, Errors};
use crate::load::{LONGEST_FILE, bounded};
use crate::yaml::{Node, read_verbatim};

/// The files, one behind the other.
pub(super) struct Files<'a> {
    pub(super) text: String,
    /// Where each begins, and its name.
    pub(super) starts: Vec<(usize, &'a str)>,
}

impl<'a> Files<'a> {
    /// Joins files, each a name and a text.
    ///
    /// # Errors
    /// If they are too long.
    pub(super) fn join(files: &'a [(String, String)]) -> Result<Files<'a>, Errors> {
        let mut joined = Files { text: String::new(), starts: Vec::new() };
        for (name, text) in files {
            joined.starts.push((joined.text.len(), name));
            joined.text.push_str(bounded(name, text)?);
            joined.text.push('\n');
            if joined.text.len() > 2 * LONGEST_FILE {
                let message = format!("the files together are longer than {} bytes", 2 * LONGEST_FILE);
                return Err(Errors::of_file(name, message, "are these really a configuration?"));
            }
        }
        Ok(joined)
    }

    /// The trees of the files that can be read.
    pub(super) fn read(&self, errors: &mut ErrorCollector<'_>) -> Vec<Rc<Node>> {
        let mut roots = Vec::new();
        for (index, (start, name)) in self.starts.iter().enumerate() {
            let end = self.starts.get(index + 1).map_or(self.text.len(), |(next, _)| *next);
            let text = self.text.get(*start..end).unwrap_or_default();
            let root = if is_toml(name, text) {
                toml::read(text, *start, errors)
            } else if *start == 0 {
                read_verbatim(text, errors)
            } else {
                // Blank lines give everything its place in the whole.
                read_verbatim(&format!("{}{text}", "\n".repeat(*start)), errors)
            };
            roots.extend(root);
        }
        roots
    }

    /// The line in which each file begins, counted from 0.
    pub(super) fn lines(&self) -> Vec<(usize, String)> {
        let line = |start: usize| self.text.get(..start).map_or(0, |before| before.matches('\n').count());
        self.starts.iter().map(|(start, name)| (line(*start), (*name).to_owned())).collect()
    }
}

/// Whether a file is TOML: by its name, or else by its first line that says something.
fn is_toml(name: &str, text: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "toml" => true,
        "yaml" | "yml" | "json" => false,
        _ => {
            let mut lines =
                text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.\"' ".contains(c);
            lines.next().is_some_and(|line| {
                (line.starts_with('[') && line.ends_with(']'))
                    || line.split_once('=').is_some_and(|(key, _)| !key.is_empty() && key.chars().all(is_key))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_toml;

    #[test]
    fn the_format_is_that_of_the_name_or_of_the_first_line() {
        for (name, text, expected) in [
            ("a.toml", "a: b", true),
            ("a.yaml", "a = 1", false),
            ("vector", "# x\n\n[sources.a]", true),
            ("vector", "data_dir = \"/a\"", true),
            ("vector", "sources:\n  a: {}", false),
            ("vector", "{\"sources\": {}}", false),
            ("vector", "", false),
        ] {
            assert_eq!(is_toml(name, text), expected, "{name} {text}");
        }
    }
}
