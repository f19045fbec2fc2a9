//! The positions of Promtail (`positions.yaml`) and of Alloy (`positions.yml`), which are YAML.
//!
//! Promtail maps paths to offsets. Alloy, and Promtail for paths of more than 128 bytes, writes keys with `? `; Alloy's are maps
//! of a path and labels. Offsets are texts. Keys that begin with `cursor-` or `journal-` are not files.

use crate::bounded::{self, ReadError, of_file};
use crate::checkpoint::{Checkpoint, Checkpoints};
use granit_parser::{Event, Parser};
use std::path::Path;

/// The deepest nesting; a positions file has three levels.
const DEEPEST: usize = 8;

/// The checkpoints in a positions file.
///
/// # Errors
/// When the file cannot be read, or is no positions file.
pub fn promtail(path: &Path) -> Result<Checkpoints, ReadError> {
    let bytes = bounded::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ReadError::format(path, "it is not UTF-8, so it is no positions file"))?;
    let mut found = of_file(path, positions(&text))?;
    let stored_at = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    found.files.iter_mut().for_each(|file| file.stored_at = stored_at);
    Ok(found)
}

fn positions(text: &str) -> Result<Checkpoints, String> {
    let not_positions =
        || "it has no mapping `positions`, so it is no positions file of Promtail or Alloy".to_owned();
    let Some(Node::Mapping(root)) = parse(text)? else { return Err(not_positions()) };
    let positions = root.into_iter().find(|(key, _)| key.text() == Some("positions"));
    let (_, positions) = positions.ok_or_else(not_positions)?;
    let entries = match positions {
        Node::Mapping(entries) => entries,
        // Without positions, it is `positions:` or `positions: {}`.
        Node::Text(text) if text.is_empty() || text == "null" || text == "~" => Vec::new(),
        _ => return Err(not_positions()),
    };
    let mut found = Checkpoints::default();
    let (mut cursors, mut broken) = (0_usize, 0_usize);
    for (key, value) in entries {
        let Some(path) = key.path() else {
            broken += 1;
            continue;
        };
        if path.starts_with("cursor-") || path.starts_with("journal-") {
            cursors += 1;
            continue;
        }
        match value.text().and_then(|text| text.parse().ok()) {
            Some(offset) => {
                found.files.push(Checkpoint { path: Some(path.into()), offset, ..Checkpoint::default() });
            }
            None => broken += 1,
        }
    }
    if cursors > 0 {
        found.notes.push(format!(
            "{cursors} positions are not of files, but cursors of journald or other targets: they are left out"
        ));
    }
    if broken > 0 {
        found.notes.push(format!("{broken} positions have no path or no number: they are left out"));
    }
    Ok(found)
}

enum Node {
    Text(String),
    Mapping(Vec<(Node, Node)>),
    Other,
}

impl Node {
    fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The path in a key: the key itself, or the member `path` of Alloy's.
    fn path(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            Node::Mapping(entries) => {
                entries.iter().find(|(key, _)| key.text() == Some("path")).and_then(|(_, value)| value.text())
            }
            Node::Other => None,
        }
    }
}

/// A collection whose end has not come yet.
struct Open {
    is_mapping: bool,
    entries: Vec<(Node, Node)>,
    key: Option<Node>,
}

fn parse(text: &str) -> Result<Option<Node>, String> {
    let options = granit_parser::options! {
        disallow_directives: false,
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut stack: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, _) = event.map_err(|error| format!("it is not YAML: {error}"))?;
        let node = match event {
            Event::Scalar(text, ..) => Node::Text(text.into_owned()),
            Event::Alias(_) | Event::UnresolvedAlias(_) => Node::Other,
            Event::MappingStart(..) => {
                stack.push(Open { is_mapping: true, entries: Vec::new(), key: None });
                continue;
            }
            Event::SequenceStart(..) => {
                stack.push(Open { is_mapping: false, entries: Vec::new(), key: None });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match stack.pop() {
                Some(Open { is_mapping: true, entries, .. }) => Node::Mapping(entries),
                _ => Node::Other,
            },
            _ => continue,
        };
        match stack.last_mut() {
            None => root = Some(node),
            Some(open) if open.is_mapping => match open.key.take() {
                None => open.key = Some(node),
                Some(key) => open.entries.push((key, node)),
            },
            Some(_) => {}
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (Vec<(String, u64)>, usize) {
        let Checkpoints { files, notes } = positions(text).unwrap();
        let shown = |file: Checkpoint| (file.path.unwrap().display().to_string(), file.offset);
        (files.into_iter().map(shown).collect(), notes.len())
    }

    /// Promtail's file, with a long key as its library writes it, a cursor, and a value that is no text.
    #[test]
    fn promtail_positions() {
        let long = format!("/var/log/pods/{}/0.log", "x".repeat(150));
        let text = format!(
            "positions:\n  /var/log/a.log: \"1234\"\n  '/var/log/with space.log': 7\n  cursor-journal: s=1;i=2\n  ? {long}\n  : \"5\"\n"
        );
        let (files, notes) = shown(&text);
        let expected = [("/var/log/a.log", 1234), ("/var/log/with space.log", 7), (&long, 5)];
        assert_eq!(files, expected.map(|(path, offset)| (path.to_owned(), offset)));
        assert_eq!(notes, 1);
    }

    /// Alloy's file has maps for keys.
    #[test]
    fn alloy_positions() {
        let text = "positions:\n    ? path: /var/log/a.log\n      labels: '{job=\"x\"}'\n    : \"12\"\n";
        assert_eq!(shown(text), (vec![("/var/log/a.log".to_owned(), 12)], 0));
    }

    /// Without positions there are none; what is not such a file is refused.
    #[test]
    fn other_files() {
        assert_eq!(shown("positions: {}\n"), (vec![], 0));
        assert_eq!(shown("positions:\n"), (vec![], 0));
        for text in ["", "a: 1", "[1, 2]", "positions: [1]", "positions: {", "\u{1}"] {
            assert!(positions(text).is_err(), "{text:?}");
        }
        assert_eq!(shown("positions: {/a: x, /b: '-1', [c]: '1'}"), (vec![], 1));
    }
}
