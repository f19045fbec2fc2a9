//! Builds the tree from parser events.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{Entry, Node, Value};
use crate::error::{ErrorCollector, quote};
use crate::setting_names::is_setting;
use crate::substitute::{Substituted, Substitutions, substitute};

/// The deepest nesting; the settings need six levels. What is dropped recursively is no deeper.
const DEEPEST: usize = 32;
/// The most nodes and merged entries in a file.
const MOST_NODES: usize = 20_000;
/// The most bytes that all values together may have after substitution.
const MOST_SUBSTITUTED: usize = 4 << 20;

/// Reads the whole text. None when it is not YAML at all; what is merely wrong with parts of it (a key
/// set twice, a variable that is not set) is noted, and the tree is still good for finding more.
pub(crate) fn read(
    text: &str,
    outside: Substitutions<'_>,
    flaws: &mut ErrorCollector<'_>,
) -> Option<Rc<Node>> {
    build(text, Some(outside), flaws)
}

/// Reads the whole text as [`read`] does, and leaves `$` in values as it is: for files that are not ours.
pub(crate) fn read_verbatim(text: &str, flaws: &mut ErrorCollector<'_>) -> Option<Rc<Node>> {
    build(text, None, flaws)
}

fn build(text: &str, outside: Option<Substitutions<'_>>, flaws: &mut ErrorCollector<'_>) -> Option<Rc<Node>> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut builder = Builder {
        outside,
        flaws,
        stack: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        nodes: 0,
        substituted: 0,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.event(event, span)?,
            Err(error) => {
                builder.syntax(&error);
                return None;
            }
        }
    }
    Some(builder.root.unwrap_or_else(|| Node::new(0..0, Value::Null)))
}

struct Builder<'b, 'a> {
    /// None: values stay as they are.
    outside: Option<Substitutions<'b>>,
    flaws: &'b mut ErrorCollector<'a>,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    nodes: usize,
    substituted: usize,
}

/// A collection whose end has not come yet.
struct Frame {
    start: usize,
    anchor: usize,
    open: Open,
}

enum Open {
    Sequence(Vec<Rc<Node>>),
    Mapping { entries: Vec<Entry>, places: HashMap<String, Range<usize>>, merges: Vec<Rc<Node>>, key: Key },
}

enum Key {
    /// The next node is a key.
    Awaited,
    Read(String, Range<usize>),
    /// The next node is the value of something that cannot be a key.
    Unusable,
}

impl Builder<'_, '_> {
    /// Takes one event; none means that reading ends here.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = span.byte_range().unwrap_or(0..0);
        if let Some(tag) = event.tag() {
            self.tag(tag, span.tag_span().and_then(|tag| tag.byte_range()).unwrap_or(at.clone()));
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = self.scalar(&text, style, &at);
                let node = match style {
                    ScalarStyle::Plain => Node::new(at, value),
                    _ => Node::quoted(at, value),
                };
                self.complete(node, anchor)?;
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.complete(node, 0)?,
                None => {
                    self.flaws.note(&at, "this alias refers to a value that contains it", "remove it");
                    self.complete(Node::new(at, Value::Broken), 0)?;
                }
            },
            // Its name may be a secret that begins with a star.
            Event::UnresolvedAlias(_) => {
                let help = "define the anchor with `&` and its name above this line; quote a value that begins with `*`";
                self.flaws.note(&at, "this alias refers to nothing", help);
                self.complete(Node::new(at, Value::Broken), 0)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.stack.push(Frame { start: at.start, anchor, open: Open::Sequence(Vec::new()) });
            }
            Event::MappingStart(_, anchor, _) => {
                let open = Open::Mapping {
                    entries: Vec::new(),
                    places: HashMap::new(),
                    merges: Vec::new(),
                    key: Key::Awaited,
                };
                self.stack.push(Frame { start: at.start, anchor, open });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Frame { start, anchor, open } = self.stack.pop()?;
                let value = match open {
                    Open::Sequence(items) => Value::Sequence(items),
                    Open::Mapping { entries, places, merges, .. } => {
                        Value::Mapping(self.merge(entries, &places, &merges)?)
                    }
                };
                let node = Node::new(start..at.end.max(start), value);
                self.complete(node, anchor)?;
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                self.flaws.note(&at, "a second document starts here", "a configuration is one document");
                return None;
            }
            _ => {}
        }
        Some(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: &Range<usize>) -> Value {
        if self.awaits_key() {
            return Value::Scalar(text.to_owned());
        }
        let mut inserted = Substituted::default();
        let substituted = match self.outside {
            Some(outside) => substitute(text, outside, &mut inserted),
            None => Ok(text.to_owned()),
        };
        let file = inserted.files.last().cloned();
        self.flaws.add_substituted(inserted);
        let value = match substituted {
            Ok(value) => value,
            Err(error) => {
                // An escape before the reference moves it away from its place in the source; then the
                // whole value is underlined.
                let reference = text.get(error.at).unwrap_or(text);
                let source = self.flaws.text().get(at.clone()).unwrap_or_default();
                let place = match source.find(reference) {
                    Some(offset) => at.start + offset..at.start + offset + reference.len(),
                    None => at.clone(),
                };
                self.flaws.note(&place, error.message, error.help);
                return Value::Broken;
            }
        };
        if let Some(file) = file {
            self.flaws.hide(at.clone(), file);
        }
        self.substituted += value.len();
        if self.substituted > MOST_SUBSTITUTED {
            self.flaws.note(at, "the values are too long after substitution", "set the variables to less");
            return Value::Broken;
        }
        let plain = matches!(style, ScalarStyle::Plain);
        if plain && matches!(value.as_str(), "" | "~" | "null" | "Null" | "NULL") {
            return Value::Null;
        }
        Value::Scalar(value)
    }

    fn awaits_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { open: Open::Mapping { key: Key::Awaited, .. }, .. }))
    }

    /// Puts a finished node where it belongs.
    fn complete(&mut self, node: Rc<Node>, anchor: usize) -> Option<()> {
        self.count(1, &node.at)?;
        if node.depth > DEEPEST {
            self.flaws.note(
                &node.at,
                "the nesting is too deep here",
                "a configuration needs no more than six levels",
            );
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        let (entries, places, merges, key) = match &mut frame.open {
            Open::Sequence(items) => {
                items.push(node);
                return Some(());
            }
            Open::Mapping { entries, places, merges, key } => (entries, places, merges, key),
        };
        *key = match std::mem::replace(key, Key::Awaited) {
            Key::Awaited => match &node.value {
                Value::Scalar(text) => Key::Read(text.clone(), node.at.clone()),
                _ => {
                    self.flaws.note(&node.at, "a key must be a word", "write `name: value`");
                    Key::Unusable
                }
            },
            Key::Unusable => Key::Awaited,
            Key::Read(name, _) if name == "<<" => {
                merges.push(node);
                Key::Awaited
            }
            Key::Read(name, at) => {
                if let Some(first) = places.get(&name) {
                    let line =
                        self.flaws.text().get(..first.start).map_or(0, |before| before.matches('\n').count());
                    let help = format!("it is already set in line {}; keep one of the two", line + 1);
                    let is_known = is_setting(&name);
                    let what = if is_known { quote(&name) } else { "this".to_owned() };
                    self.flaws.note(&at, format!("{what} is set twice"), help);
                } else {
                    places.insert(name.clone(), at.clone());
                    entries.push(Entry { key: name, key_at: at, node });
                }
                Key::Awaited
            }
        };
        Some(())
    }

    /// Adds what `<<` brings: entries whose keys the mapping does not set itself; of several, the first.
    fn merge(
        &mut self,
        mut entries: Vec<Entry>,
        places: &HashMap<String, Range<usize>>,
        merges: &[Rc<Node>],
    ) -> Option<Vec<Entry>> {
        let mut brought = HashMap::new();
        let sources = merges.iter().flat_map(|node| match &node.value {
            Value::Sequence(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        });
        for source in sources {
            match &source.value {
                Value::Mapping(others) => {
                    self.count(others.len(), &source.at)?;
                    for entry in others {
                        if !places.contains_key(&entry.key) && brought.insert(entry.key.clone(), ()).is_none()
                        {
                            entries.push(entry.clone());
                        }
                    }
                }
                Value::Broken => {}
                _ => self.flaws.note(&source.at, "`<<` takes a group of settings", "write `<<: *anchor`"),
            }
        }
        Some(entries)
    }

    fn count(&mut self, more: usize, at: &Range<usize>) -> Option<()> {
        self.nodes += more;
        if self.nodes > MOST_NODES {
            let message = format!("the file has more than {MOST_NODES} values up to here");
            self.flaws.note(at, message, "a configuration is not that large; use fewer aliases and merges");
            return None;
        }
        Some(())
    }

    fn tag(&mut self, tag: &Tag, at: Range<usize>) {
        // The core tags only repeat what the setting's own type says.
        if !tag.is_yaml_core_schema() {
            self.flaws.note(&at, "tags are not supported", "remove it; the setting knows its own type");
        }
    }

    fn syntax(&mut self, error: &ScanError) {
        let at = error.marker().byte_offset().unwrap_or(0);
        let help = match error.kind() {
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
                "indent with spaces: YAML does not allow tabs"
            }
            ErrorKind::RecursionLimitExceeded => "a configuration needs no more than six levels",
            ErrorKind::DirectiveDisallowed => "remove the line that starts with `%`",
            _ => "check the indentation, and look for unclosed quotes and brackets here or above",
        };
        self.flaws.note(&(at..at), format!("this is not valid YAML: {}", error.info()), help);
    }
}
