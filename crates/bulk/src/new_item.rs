//! A submitted item: its action and its body, written into a batch's window.

use crate::lane::Lane;
use crate::outcome::BulkSubmitError;
use crate::target::{MAX_ID_BYTES, MAX_INDEX_BYTES, Refresh, Search, Target, check_index};
use memchr::memchr_iter;
use std::convert::Infallible;
use tidegate_wire::bulk::{self, Item};
use tidegate_wire::json;
use tidegate_wire::output::SliceOutput;

/// The operation of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Create,
    Index,
    Update,
    Delete,
    Get,
}

/// An item to be written.
#[derive(Clone, Copy)]
pub(crate) enum NewItem<'a> {
    Document(Action, Target<'a>, &'a [u8]),
    Search(Search<'a>),
    Forwarded(ForwardedItem<'a>),
}

/// An item of a `_bulk` body, to be sent as it stands.
#[derive(Clone, Copy)]
pub(crate) struct ForwardedItem<'a> {
    pub(crate) item: &'a Item<'a>,
    /// Fields that its action lacks, each as `"name":value`.
    pub(crate) extra_fields: &'a [&'a [u8]],
    /// The index, as a JSON string: the action's own, or the one among `more`.
    pub(crate) index: &'a [u8],
    pub(crate) refresh: Refresh,
}

/// More than the fixed parts of any action, numbers included.
pub(crate) const FIXED_BYTES: usize = 192;

impl<'a> NewItem<'a> {
    /// A write or a read of one document.
    pub(crate) fn document(
        action: Action,
        target: Target<'a>,
        body: &'a [u8],
    ) -> Result<NewItem<'a>, BulkSubmitError> {
        target.check()?;
        match action {
            Action::Create if target.if_unchanged.is_some() => {
                return Err(BulkSubmitError::Invalid("a document that is created has no earlier state"));
            }
            Action::Update | Action::Delete | Action::Get if target.id.is_none() => {
                return Err(BulkSubmitError::Invalid(
                    "only a document that is created or indexed may have no id",
                ));
            }
            Action::Update if target.if_unchanged.is_some() && target.retry_on_conflict > 0 => {
                return Err(BulkSubmitError::Invalid(
                    "an update of a certain state cannot be tried on another",
                ));
            }
            _ => {}
        }
        if !matches!(action, Action::Delete | Action::Get) {
            check_object(body)?;
        }
        Ok(NewItem::Document(action, target, body))
    }

    /// A search.
    pub(crate) fn search(search: Search<'a>) -> Result<NewItem<'a>, BulkSubmitError> {
        check_index(search.index)?;
        check_object(search.query)?;
        Ok(NewItem::Search(search))
    }

    pub(crate) fn lane(&self) -> Lane {
        match self {
            NewItem::Document(Action::Get, ..) => Lane::Get,
            NewItem::Document(_, target, _) => target.refresh.lane(),
            NewItem::Search(_) => Lane::Search,
            NewItem::Forwarded(forwarded) => forwarded.refresh.lane(),
        }
    }

    /// The document whose order has to be kept.
    pub(crate) fn with_document_key<T>(&self, with: impl FnOnce(&[u8], &[u8]) -> T) -> Option<T> {
        match self {
            NewItem::Document(Action::Get, ..) | NewItem::Search(_) => None,
            NewItem::Document(_, target, _) => {
                target.id.map(|id| with(target.index.as_bytes(), id.as_bytes()))
            }
            NewItem::Forwarded(ForwardedItem { item, index, .. }) => {
                // The same document, however its name is escaped.
                let (mut index_space, mut id_space) = ([0; MAX_INDEX_BYTES], [0; MAX_ID_BYTES]);
                let index = bulk::unescape(index, &mut index_space).unwrap_or(index);
                item.action.id.map(|id| with(index, bulk::unescape(id, &mut id_space).unwrap_or(id)))
            }
        }
    }

    /// Whether the server chooses the id, and the caller may want to know it.
    pub(crate) fn has_auto_id(&self) -> bool {
        matches!(self, NewItem::Document(_, Target { id: None, .. }, _))
    }

    /// No less than what [`write`](Self::write) writes.
    pub(crate) fn max_len(&self) -> usize {
        FIXED_BYTES
            + match self {
                NewItem::Document(_, target, body) => {
                    let names = [Some(target.index), target.id, target.routing];
                    names
                        .into_iter()
                        .flatten()
                        .map(|name| json::escaped_len_of(name.as_bytes()))
                        .sum::<usize>()
                        + body.len()
                }
                NewItem::Search(search) => json::escaped_len_of(search.index.as_bytes()) + search.query.len(),
                NewItem::Forwarded(ForwardedItem { item, extra_fields: more, .. }) => {
                    item.written_len(more.iter().map(|field| field.len() + 1).sum())
                }
            }
    }

    /// Writes the item to the start of `buffer`; returns the number of bytes.
    pub(crate) fn write(&self, buffer: &mut [u8]) -> usize {
        if let NewItem::Forwarded(ForwardedItem { item, extra_fields: more, .. }) = self {
            let mut output = SliceOutput::new(buffer);
            // The buffer is long enough: `max_len` is an upper bound.
            let _ = item.write(more, &mut output);
            return output.len();
        }
        let mut out = ItemWriter { buffer, at: 0 };
        match self {
            NewItem::Document(action, target, body) => {
                out.put(match action {
                    Action::Create => b"{\"create\":{\"_index\":\"",
                    Action::Index => b"{\"index\":{\"_index\":\"",
                    Action::Update => b"{\"update\":{\"_index\":\"",
                    Action::Delete => b"{\"delete\":{\"_index\":\"",
                    Action::Get => b"{\"_index\":\"",
                });
                out.target(*action, target);
                match action {
                    // Two bytes that can become the end of the body: see `Batch::close`.
                    Action::Get => out.put(b"} ,"),
                    Action::Delete => out.put(b"}}\n"),
                    _ => {
                        out.put(b"}}\n");
                        out.line(body);
                    }
                }
            }
            NewItem::Search(search) => {
                out.put(b"{\"index\":\"");
                out.escaped(search.index);
                out.put(b"\"}\n");
                out.line(search.query);
            }
            NewItem::Forwarded(_) => {}
        }
        out.at
    }
}

/// Empty or cut bodies would shift the lines of all others.
fn check_object(body: &[u8]) -> Result<(), BulkSubmitError> {
    let body = body.trim_ascii();
    match (body.first(), body.last()) {
        (Some(b'{'), Some(b'}')) if body.len() > 1 => Ok(()),
        _ => Err(BulkSubmitError::Invalid("its body is not a JSON object")),
    }
}

struct ItemWriter<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl ItemWriter<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        if let Some(room) = self.buffer.get_mut(self.at..end) {
            room.copy_from_slice(bytes);
        }
        self.at = end;
    }

    fn target(&mut self, action: Action, target: &Target<'_>) {
        self.escaped(target.index);
        if let Some(id) = target.id {
            self.put(b"\",\"_id\":\"");
            self.escaped(id);
        }
        if let Some(routing) = target.routing {
            self.put(b"\",\"routing\":\"");
            self.escaped(routing);
        }
        self.put(b"\"");
        if let (Some(revision), true) = (target.if_unchanged, action != Action::Get) {
            self.put(b",\"if_seq_no\":");
            self.number(revision.seq_no);
            self.put(b",\"if_primary_term\":");
            self.number(revision.primary_term);
        }
        if action == Action::Update && target.retry_on_conflict > 0 {
            self.put(b",\"retry_on_conflict\":");
            self.number(u64::from(target.retry_on_conflict));
        }
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        self.put(digits.get(first..).unwrap_or_default());
    }

    fn escaped(&mut self, text: &str) {
        let Ok(()) = json::escape_into(text.as_bytes(), |piece| {
            self.put(piece);
            Ok::<_, Infallible>(())
        });
    }

    /// A body as one line. In JSON a line feed can only stand between tokens, so it can become a space.
    fn line(&mut self, body: &[u8]) {
        let start = self.at;
        self.put(body);
        for at in memchr_iter(b'\n', body) {
            if let Some(byte) = self.buffer.get_mut(start + at) {
                *byte = b' ';
            }
        }
        self.put(b"\n");
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
