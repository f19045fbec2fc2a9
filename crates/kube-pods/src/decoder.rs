//! Decodes the responses to LIST and WATCH of pods as they arrive.
//!
//! Source: `k8s.io/api/core/v1` (`Pod`, `PodList`), `k8s.io/apimachinery/pkg/apis/meta/v1` (`WatchEvent`, `Status`).

mod builder;
mod node;

use crate::pod::{Fields, Pod};
use builder::Builder;
use node::Node;
use tidegate_json_api::{SyntaxError, Text, Token, Tokenizer};

/// One event of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A pod, and what happened to it. In a list everything is [`Change::Applied`].
    Pod(Change, Box<Pod>),
    /// The watch has come to this version; nothing happened to any pod.
    Bookmark,
    /// The end of a page of a list.
    Page {
        /// The version of the list.
        version: String,
        /// The token for the next page, if there is one.
        next: Option<String>,
    },
    /// The watch has failed.
    Failed(Failure),
}

/// A change of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is there, in this state.
    Applied,
    /// It was deleted, from this state.
    Deleted,
}

/// The API's `Status` of a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// The status as of HTTP; 410 where the version is too old.
    pub code: u16,
    /// The explanation for people.
    pub message: String,
}

/// A response cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// It ended within a value.
    #[error("the response ended within an object")]
    Truncated,
    /// A token or version that is needed is longer than any.
    #[error("`{0}` is too long")]
    TooLong(&'static str),
}

/// Reads one response, to a LIST or to a WATCH.
///
/// The memory it takes is bounded: that of one pod within `pod_bytes`, and of one string.
#[derive(Debug)]
pub struct Decoder<'f> {
    tokenizer: Tokenizer,
    reader: Reader<'f>,
}

/// The part of the decoder that takes tokens.
#[derive(Debug)]
struct Reader<'f> {
    is_watch: bool,
    /// The objects and arrays around the next value, the outermost first.
    around: Vec<Node>,
    /// The next value.
    next: Node,
    /// How many objects and arrays are open that are not looked into.
    skipped: u32,
    /// The key of a label or annotation.
    key: Option<String>,
    builder: Builder<'f>,
    change: Option<Change>,
    is_bookmark: bool,
    is_error: bool,
    failure: Failure,
    version: String,
    page: Option<String>,
    ended: bool,
}

impl<'f> Decoder<'f> {
    /// For the response to a LIST.
    #[must_use]
    pub fn list(fields: &'f Fields, pod_bytes: usize) -> Decoder<'f> {
        Decoder::new(false, fields, pod_bytes)
    }

    /// For the response to a WATCH.
    #[must_use]
    pub fn watch(fields: &'f Fields, pod_bytes: usize) -> Decoder<'f> {
        Decoder::new(true, fields, pod_bytes)
    }

    fn new(is_watch: bool, fields: &'f Fields, pod_bytes: usize) -> Decoder<'f> {
        let reader = Reader {
            is_watch,
            around: Vec::new(),
            next: Node::root(is_watch),
            skipped: 0,
            key: None,
            builder: Builder::new(fields, pod_bytes),
            change: None,
            is_bookmark: false,
            is_error: false,
            failure: Failure::default(),
            version: String::new(),
            page: None,
            ended: false,
        };
        Decoder { tokenizer: Tokenizer::default(), reader }
    }

    /// Passes the events of a chunk to `take`.
    ///
    /// # Errors
    /// [`DecodeError`]: events before it were passed on.
    pub fn feed(&mut self, chunk: &[u8], mut take: impl FnMut(Event)) -> Result<(), DecodeError> {
        let reader = &mut self.reader;
        self.tokenizer.feed(chunk, |token| {
            if let Some(event) = reader.token(token)? {
                take(event);
            }
            Ok(())
        })
    }

    /// The version that the events so far lead to; empty before the first.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.reader.version
    }

    /// How many labels, annotations and containers were left out since a pod was too large.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.reader.builder.left_out
    }

    /// The response has ended.
    ///
    /// # Errors
    /// When it ended within a value, or a list without its end.
    pub fn end(&self) -> Result<(), DecodeError> {
        let is_whole = self.tokenizer.is_between_values() && (self.reader.is_watch || self.reader.ended);
        if is_whole { Ok(()) } else { Err(DecodeError::Truncated) }
    }
}

impl Reader<'_> {
    fn token(&mut self, token: Token<'_>) -> Result<Option<Event>, DecodeError> {
        match token {
            Token::ObjectStart | Token::ArrayStart => {
                self.open(token == Token::ObjectStart);
                Ok(None)
            }
            Token::ObjectEnd | Token::ArrayEnd => self.close(),
            Token::Key(key) => {
                if self.skipped == 0 {
                    self.key(key);
                }
                Ok(None)
            }
            Token::String(text) => {
                if self.skipped == 0 {
                    self.string(text)?;
                    self.after_value();
                }
                Ok(None)
            }
            Token::Scalar(scalar) => {
                if self.skipped == 0 {
                    self.scalar(scalar);
                    self.after_value();
                }
                Ok(None)
            }
        }
    }

    fn open(&mut self, is_object: bool) {
        if self.skipped > 0 || self.next.is_object() != Some(is_object) {
            self.skipped += 1;
            return;
        }
        if matches!(self.next, Node::Object | Node::Pod) {
            self.builder.begin();
        }
        self.around.push(self.next);
        self.next = self.next.element();
    }

    fn close(&mut self) -> Result<Option<Event>, DecodeError> {
        if self.skipped > 0 {
            self.skipped -= 1;
            if self.skipped == 0 {
                self.after_value();
            }
            return Ok(None);
        }
        let closed = self.around.pop();
        self.after_value();
        Ok(match closed {
            Some(Node::Owner) => {
                self.builder.end_owner();
                None
            }
            Some(Node::Container | Node::ContainerStatus) => {
                self.builder.end_container();
                None
            }
            Some(Node::Pod) => Some(Event::Pod(Change::Applied, self.builder.end())),
            Some(Node::WatchEvent) => self.end_of_event(),
            Some(Node::List) => {
                self.ended = true;
                let next = self.page.take().filter(|token| !token.is_empty());
                Some(Event::Page { version: self.version.clone(), next })
            }
            _ => None,
        })
    }

    fn end_of_event(&mut self) -> Option<Event> {
        let (is_bookmark, is_error) = (self.is_bookmark, self.is_error);
        (self.is_bookmark, self.is_error) = (false, false);
        let change = self.change.take();
        let failure = std::mem::take(&mut self.failure);
        if is_error {
            return Some(Event::Failed(failure));
        }
        let version = self.builder.take_version();
        if !version.is_empty() {
            self.version = version;
        }
        match change {
            Some(change) => Some(Event::Pod(change, self.builder.end())),
            None => is_bookmark.then_some(Event::Bookmark),
        }
    }

    /// The value after this one: in an array it is of the same sort, in an object the key will tell.
    fn after_value(&mut self) {
        self.next = match self.around.last() {
            Some(around) => around.element(),
            None => Node::root(self.is_watch),
        };
    }

    fn key(&mut self, key: Text<'_>) {
        let around = self.around.last().copied().unwrap_or(Node::Skip);
        self.next = if key.is_cut { Node::Skip } else { around.field(key.text) };
        if matches!(self.next, Node::Label | Node::Annotation) {
            self.key = self.builder.wants(self.next, key.text).then(|| key.text.to_owned());
        }
    }

    fn string(&mut self, value: Text<'_>) -> Result<(), DecodeError> {
        let Text { text, is_cut } = value;
        match self.next {
            Node::EventType => {
                self.change = match text {
                    "ADDED" | "MODIFIED" => Some(Change::Applied),
                    "DELETED" => Some(Change::Deleted),
                    _ => None,
                };
                (self.is_bookmark, self.is_error) = (text == "BOOKMARK", text == "ERROR");
            }
            Node::Message => text.clone_into(&mut self.failure.message),
            Node::ListVersion | Node::Version if is_cut => {
                return Err(DecodeError::TooLong("resourceVersion"));
            }
            Node::Continue if is_cut => return Err(DecodeError::TooLong("continue")),
            Node::ListVersion => text.clone_into(&mut self.version),
            Node::Continue => self.page = Some(text.to_owned()),
            Node::Label | Node::Annotation => {
                if let Some(key) = self.key.take() {
                    self.builder.pair(self.next, &key, text);
                }
            }
            // Names have lengths that never need a cut: a field that is longer is not what it seems to be.
            _ if is_cut => {}
            other => self.builder.text(other, text),
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: &str) {
        match self.next {
            Node::Code => self.failure.code = scalar.parse().unwrap_or_default(),
            other => self.builder.scalar(other, scalar),
        }
    }
}

#[cfg(test)]
mod tests;
