//! `_bulk` bodies of Elasticsearch and OpenSearch: lines of JSON, an action and then, where it has one, its
//! document.
//!
//! Reference: <https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk>. [`items`] walks over a
//! body in place: an action is read strictly, since a bad one has the peer refuse the whole request; a document
//! is only looked at when [`Item::check`] is asked, since a bad one spoils nothing but itself. What one item is
//! written as with more fields in its action says [`Item::write`]. Bodies that end with a line feed, as all must,
//! join by concatenation.

mod action;
mod error;
mod json;
mod split;
#[cfg(test)]
mod tests;
mod unescape;

pub use action::{Action, Field, Kind};
pub use error::{BulkError, BulkErrorKind, LineError};
pub use split::{Piece, Split};
pub use unescape::unescape;

use crate::output::{Full, Output};
use crate::utf8::is_utf8;
use memchr::memchr;

/// The items of a body, in order. After an error there is nothing more.
pub fn items(body: &[u8]) -> Items<'_> {
    Items { rest: body, line: 0, utf8: is_utf8(body) }
}

/// The items of a body that was checked before, so that the quick way to see that it is UTF-8 need not be gone
/// again.
pub fn checked_items(body: &[u8]) -> Items<'_> {
    Items { rest: body, line: 0, utf8: true }
}

/// An iterator over the items of a body.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
    /// Lines that were taken.
    line: u64,
    /// Whether all of the body is UTF-8, which is quicker to see at once.
    utf8: bool,
}

/// An action, with its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// The operation.
    pub action: Action<'a>,
    /// The line that says so, without its end.
    pub line: &'a [u8],
    /// The document, or for an update what is to be changed; a deletion has none.
    pub document: Option<&'a [u8]>,
    /// Both lines with their ends.
    pub bytes: &'a [u8],
    /// The number of the action's line, from 1.
    pub number: u64,
    utf8: bool,
}

/// The accepted part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Items.
    pub items: u64,
    /// How many bytes they are written as, at most.
    pub bytes: usize,
    /// The bytes of the largest of them: its action and its document.
    pub largest_item: usize,
}

impl Counts {
    /// Counts an item whose action gets fields of `more` bytes.
    #[inline]
    pub fn count(&mut self, item: &Item<'_>, more: usize) {
        let len = item.written_len(more);
        self.items += 1;
        self.bytes = self.bytes.saturating_add(len);
        self.largest_item = self.largest_item.max(len);
    }
}

impl<'a> Items<'a> {
    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<&'a [u8]>, BulkError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let Some(end) = memchr(b'\n', self.rest) else {
            return Err(BulkError::new(self.line, BulkErrorKind::NotTerminated));
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(Some(line))
    }

    fn item(&mut self) -> Result<Option<Item<'a>>, BulkError> {
        let mut begin = self.rest;
        let line = loop {
            match self.line()? {
                None => return Ok(None),
                // Passed over by Elasticsearch too.
                Some(line) if line.trim_ascii().is_empty() => begin = self.rest,
                Some(line) => break line,
            }
        };
        let number = self.line;
        if !self.utf8 && !is_utf8(line) {
            return Err(BulkError::new(
                number,
                BulkErrorKind::Action(LineError::new(0, "bytes that are not UTF-8")),
            ));
        }
        let action =
            action::read(line).map_err(|error| BulkError::new(number, BulkErrorKind::Action(error)))?;
        let document = match action.kind {
            Kind::Delete => None,
            kind => match self.line()? {
                // Blanks behind it mean nothing, and one of them may be half of a line's end.
                Some(document) => Some(document.trim_ascii_end()),
                None => return Err(BulkError::new(number, BulkErrorKind::NoDocument(kind))),
            },
        };
        let bytes = begin.get(..begin.len().saturating_sub(self.rest.len())).unwrap_or_default();
        Ok(Some(Item { action, line, document, bytes, number, utf8: self.utf8 }))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, BulkError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.item();
        if item.is_err() {
            self.rest = &[];
        }
        item.transpose()
    }
}

impl Item<'_> {
    /// Whether the document is one JSON object, and nothing else.
    ///
    /// # Errors
    /// The first [`LineError`].
    #[inline]
    pub fn check(&self) -> Result<(), LineError> {
        let Some(document) = self.document else { return Ok(()) };
        json::object(document)?;
        if self.utf8 || is_utf8(document) {
            Ok(())
        } else {
            Err(LineError::new(0, "bytes that are not UTF-8"))
        }
    }

    /// Whether the document, which was [checked](Self::check), has a field at its top whose name begins with `script`:
    /// then an update runs a script. Escapes in names are undone.
    pub fn has_script(&self) -> bool {
        self.document
            .is_some_and(|document| unescape::has_name_with_prefix(document, b"script").unwrap_or(true))
    }

    /// Writes the item with `more` fields in its action, each as `"name":value`, and without a type.
    ///
    /// # Errors
    /// [`Full`].
    pub fn write(&self, more: &[&[u8]], output: &mut impl Output) -> Result<(), Full> {
        let (before, behind) = self.line.split_at_checked(self.action.fields_at).ok_or(Full)?;
        output.put(before)?;
        let mut first = true;
        for field in more.iter().filter(|field| !field.is_empty()) {
            if !first {
                output.put(b",")?;
            }
            output.put(field)?;
            first = false;
        }
        if !first && self.action.has_fields {
            output.put(b",")?;
        }
        match self.action.type_at {
            None => output.put(behind)?,
            Some((from, to)) => {
                output.put(self.line.get(self.action.fields_at..from).ok_or(Full)?)?;
                output.put(self.line.get(to..).ok_or(Full)?)?;
            }
        }
        output.put(b"\n")?;
        match self.document {
            Some(document) => {
                output.put(document)?;
                output.put(b"\n")
            }
            None => Ok(()),
        }
    }

    /// How many bytes [`write`](Self::write) writes at most.
    pub fn written_len(&self, more: usize) -> usize {
        let document = self.document.map_or(0, |document| document.len() + 1);
        self.line.len() + 1 + document + more + 1
    }
}
