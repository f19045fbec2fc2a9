//! Writes OTLP logs as a `logproto.PushRequest`, stretch by stretch, so that a caller can find memory for each and let
//! others run in between.
//!
//! A stretch is one stream with up to [`MAX_ENTRIES`] entries of one resource and scope. So a resource with many records
//! becomes several streams of the same labels, which Loki stores as one.
//!
//! The names and the order of metadata are those of Loki's own OTLP endpoint
//! (<https://grafana.com/docs/loki/latest/send-data/otel/>), except that arrays and maps are JSON in one value.

mod entry;
mod stream_labels;
mod value;

pub use stream_labels::LabelRules;

use super::SCOPE;
use crate::otlp::{Item, LogRecord, ResourceGroup, ScopeGroup};
use crate::output::{Counter, Full, Output};
use crate::proto::{Messages, write};
use entry::Entry;
use stream_labels::StreamLabels;

/// The most entries of a stretch.
const MAX_ENTRIES: usize = if cfg!(any(test, fuzzing)) { 3 } else { 256 };
/// A stretch ends behind the entry with which it has so many bytes.
const ENOUGH_BYTES: u64 = 64 << 10;

/// Most heap bytes of an [`Encoder`].
pub const ENCODER_BYTES: usize = MAX_ENTRIES * size_of::<u64>() + StreamLabels::BYTES;

/// How many times longer than in OTLP an item with its envelope is at most, beside the names of its own fields: the worst
/// byte is a control character in a nested text.
pub const GROWTH: usize = 9;

/// The most bytes beyond [`GROWTH`]: names of fields, and the label of a stream that has none.
pub const OVERHEAD: usize = 512;

/// An encoder of one request.
pub struct Encoder<'a> {
    rules: &'a LabelRules,
    now_ns: u64,
    resources: Messages<'a>,
    scopes: Messages<'a>,
    items: Messages<'a>,
    resource: Option<ResourceGroup<'a, LogRecord<'a>>>,
    scope: Option<ScopeGroup<'a, LogRecord<'a>>>,
    labels: StreamLabels<'a>,
    /// Whether the labels, if they are those of the resource, are of a scope of the source `loki`.
    labels_are_of_stream: Option<bool>,
    /// The lengths of the entries of the current stretch, and its first item.
    lengths: Vec<u64>,
    start: Messages<'a>,
    labels_len: u64,
}

impl<'a> Encoder<'a> {
    /// An encoder of the checked OTLP request `raw`. Records without a time get `now_ns`.
    #[must_use]
    pub fn new(raw: &'a [u8], rules: &'a LabelRules, now_ns: u64) -> Self {
        let none = Messages::new(&[], 1);
        Self {
            rules,
            now_ns,
            resources: Messages::new(raw, 1),
            scopes: none.clone(),
            items: none.clone(),
            resource: None,
            scope: None,
            labels: StreamLabels::default(),
            labels_are_of_stream: None,
            lengths: Vec::with_capacity(MAX_ENTRIES),
            start: none,
            labels_len: 0,
        }
    }

    /// The exact length of the next stretch in bytes; `None` behind the last.
    ///
    /// # Errors
    /// [`Full`] when it does not fit in 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it lends nothing")]
    pub fn next(&mut self) -> Result<Option<u64>, Full> {
        loop {
            self.start = self.items.clone();
            self.lengths.clear();
            if let (Some(resource), Some(scope)) = (&self.resource, &self.scope) {
                let mut bytes = 0u64;
                while self.lengths.len() < MAX_ENTRIES && bytes < ENOUGH_BYTES {
                    let Some(message) = self.items.next() else { break };
                    let Some(record) = LogRecord::read(message) else { break };
                    let entry = Entry { resource, scope, record, labels: &self.labels, now_ns: self.now_ns };
                    let len = write::Encode::encoded_len(&entry)?;
                    self.lengths.push(len);
                    bytes = bytes.saturating_add(len);
                }
            }
            if !self.lengths.is_empty() {
                let mut counter = Counter::default();
                self.labels.write(&mut counter)?;
                self.labels_len = counter.bytes();
                let len = self.stream_len();
                return Ok(Some(write::varint_len(len) + 1 + len));
            }
            if !self.next_scope() {
                return Ok(None);
            }
        }
    }

    /// Writes the stretch of which [`next`](Self::next) gave the length.
    ///
    /// # Errors
    /// [`Full`] when the output is.
    pub fn write(&self, out: &mut impl Output) -> Result<(), Full> {
        let (Some(resource), Some(scope)) = (&self.resource, &self.scope) else { return Ok(()) };
        write::length(out, 1, self.stream_len())?;
        write::length(out, 1, self.labels_len)?;
        self.labels.write(out)?;
        for (message, len) in self.start.clone().zip(&self.lengths) {
            let Some(record) = LogRecord::read(message) else { break };
            let entry = Entry { resource, scope, record, labels: &self.labels, now_ns: self.now_ns };
            write::length(out, 2, *len)?;
            write::Encode::encode(&entry, out)?;
        }
        Ok(())
    }

    /// How many entries the stretch has.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.lengths.len()
    }

    fn stream_len(&self) -> u64 {
        let entries = self.lengths.iter().map(|len| write::bytes_len(*len));
        entries.fold(write::bytes_len(self.labels_len), u64::saturating_add)
    }

    /// Goes on with the next scope that there is. Whether there is one.
    fn next_scope(&mut self) -> bool {
        loop {
            if let (Some(resource), Some(message)) = (&self.resource, self.scopes.next()) {
                let Some(scope) = ScopeGroup::read(message) else { continue };
                self.items = Messages::new(message, 2);
                if self.items.clone().next().is_none() {
                    continue;
                }
                // Scopes are cheap to write and labels dear to find: they are found once for a resource.
                let is_stream = scope.scope.name == SCOPE.as_bytes();
                if self.labels_are_of_stream != Some(is_stream) {
                    self.labels.set(resource.resource, &scope.scope, self.rules);
                    self.labels_are_of_stream = Some(is_stream);
                }
                self.scope = Some(scope);
                return true;
            }
            let Some(message) = self.resources.next() else { return false };
            self.resource = ResourceGroup::read(message);
            self.labels_are_of_stream = None;
            self.scopes = Messages::new(message, 2);
        }
    }
}
