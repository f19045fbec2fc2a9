//! The labels of a series in a body: loaded into the table, and written from it.

use super::chunk::Chunk;
use crate::memory::{Slice, Space};
use crate::relabel::apply::Evaluation;
use crate::relabel::fields::{Field, field};
use crate::relabel::labels::Text;
use crate::relabel::symbols::{self, Index};
use crate::value::Failure;
use tidegate_wire::proto::write::{Varint, varint_len};
use tidegate_wire::remote_write::{v1, v2};

/// The tag of labels in 1.0, and of packed references in 2.0.
pub(super) const LABELS_TAG: u8 = 0x0a;

/// The parts of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series {
    field: Field,
    /// The end of its labels, when nothing but labels is before that.
    labels_end: usize,
    /// Whether there are labels behind.
    scattered: bool,
    /// Where the first exemplar or metadata of 2.0 begins, or the series ends.
    pub(super) more: usize,
    pub(super) items: u64,
    /// The bytes of its labels, with tags and lengths.
    label_bytes: usize,
}

impl Chunk<'_, '_, '_> {
    /// Loads the labels of a series, and looks at what else it has.
    pub(super) fn load(&mut self, whole: Field) -> (Series, Result<(), Failure>) {
        let body = self.on.memory.body;
        let mut series = Series {
            field: whole,
            labels_end: whole.payload,
            scattered: false,
            more: whole.end,
            items: 0,
            label_bytes: 0,
        };
        let mut loaded = Ok(());
        let mut name = None;
        let mut at = whole.payload;
        while let Some(field) = field(body, at, whole.end) {
            at = field.end;
            if matches!(field.number, v2::field::EXEMPLARS | v2::field::METADATA) {
                series.more = series.more.min(field.start);
            }
            match field.number {
                // The number is the same in both versions.
                v1::field::LABELS => {
                    series.scattered |= field.start != series.labels_end;
                    if !series.scattered {
                        series.labels_end = field.end;
                    }
                    series.label_bytes += field.end - field.start;
                    loaded = loaded.and(match &self.cursor.index {
                        None => self.on.load_label(field),
                        Some(index) => self.on.load_references(index, field, &mut name),
                    });
                }
                2..=4 => series.items += 1,
                v2::field::METADATA if self.cursor.index.is_some() => series.items += 1,
                _ => {}
            }
        }
        (series, loaded)
    }

    /// Notes the edits that give the series its new labels. Returns their references in 2.0.
    pub(super) fn write(&mut self, series: Series) -> Result<Option<Slice>, Failure> {
        let Series { field: whole, labels_end, scattered, label_bytes, .. } = series;
        let new = match &self.cursor.index {
            None => self.label_bytes(),
            Some(index) => {
                let count = index.count;
                self.build_references(count)?
            }
        };
        let (new_bytes, references) = new;
        let len = (whole.end - whole.payload + new_bytes).saturating_sub(label_bytes);
        let edits = &mut self.cursor.edits;
        edits.keep(whole.length - whole.start);
        if len != whole.end - whole.payload {
            edits.leave(whole.payload - whole.length)?;
            edits.put_number(len as u64)?;
        } else {
            edits.keep(whole.payload - whole.length);
        }
        // Labels that are behind something else are written before it, from where they cannot be kept.
        let labels_end = if scattered { whole.payload } else { labels_end };
        match references {
            Some(references) => {
                let references = self.on.memory.get(references);
                edits.put(&[LABELS_TAG])?;
                edits.put_number(references.len() as u64)?;
                edits.put(references)?;
                edits.leave(labels_end - whole.payload)?;
            }
            None => self.write_labels(whole.payload, labels_end)?,
        }
        self.write_rest(labels_end, whole.end, scattered)?;
        Ok(references)
    }

    /// Keeps what is behind the labels, without labels that are scattered there.
    fn write_rest(&mut self, from: usize, to: usize, scattered: bool) -> Result<(), Failure> {
        let body = self.on.memory.body;
        let edits = &mut self.cursor.edits;
        if !scattered {
            edits.keep(to - from);
            return Ok(());
        }
        let mut at = from;
        while let Some(field) = field(body, at, to) {
            match field.number {
                v1::field::LABELS => edits.leave(field.end - field.start)?,
                _ => edits.keep(field.end - field.start),
            }
            at = field.end;
        }
        edits.keep(to - at);
        Ok(())
    }

    /// The bytes of the new labels of a 1.0 series.
    fn label_bytes(&self) -> (usize, Option<Slice>) {
        let labels = self.on.state.labels.iter().map(|label| match label.raw {
            Some((start, end)) => (end - start) as usize,
            None => {
                let payload = text_bytes(label.name) + text_bytes(label.value);
                1 + varint_len(payload as u64) as usize + payload
            }
        });
        (labels.sum(), None)
    }

    /// Notes the labels of a 1.0 series, sorted: those that came, in their order, are kept in their place.
    fn write_labels(&mut self, from: usize, to: usize) -> Result<(), Failure> {
        let memory = &self.on.memory;
        let edits = &mut self.cursor.edits;
        let mut at = from;
        for label in self.on.state.labels.sorted(memory) {
            match label.raw.map(|(start, end)| (start as usize, end as usize)) {
                Some((start, end)) if start >= at && end <= to => {
                    if start > at {
                        edits.leave(start - at)?;
                    }
                    edits.keep(end - start);
                    at = end;
                }
                Some((start, end)) => edits.put(memory.body.get(start..end).unwrap_or_default())?,
                None => {
                    edits.put(&[LABELS_TAG])?;
                    edits.put_number((text_bytes(label.name) + text_bytes(label.value)) as u64)?;
                    for (tag, text) in [(0x0a, label.name), (0x12, label.value)] {
                        edits.put(&[tag])?;
                        edits.put_number(u64::from(text.slice.len))?;
                        edits.put(memory.get(text.slice))?;
                    }
                }
            }
        }
        if to > at { edits.leave(to - at) } else { Ok(()) }
    }

    /// The references of the new labels of a 2.0 series, and the bytes of their field.
    fn build_references(&mut self, count: usize) -> Result<(usize, Option<Slice>), Failure> {
        // New values are read only when they are written, so that the labels can be read meanwhile.
        let mark = self.on.memory.mark();
        self.on.state.labels.sort(&self.on.memory);
        for place in 0.. {
            let Some(label) = self.on.state.labels.nth_sorted(place) else { break };
            for text in [label.name, label.value] {
                let reference = match text.symbol {
                    Text::NO_SYMBOL => {
                        self.added.reference(&mut self.cursor.edits, count, self.on.memory.get(text.slice))?
                    }
                    symbol => symbol,
                };
                self.on.memory.push(Varint::new(u64::from(reference)).as_bytes())?;
            }
        }
        let references = self.on.memory.since(mark);
        let len = references.len as usize;
        Ok((1 + varint_len(len as u64) as usize + len, Some(references)))
    }
}

/// The name and the value of a label that is encoded as all senders do it: both shorter than 128 bytes, and nothing else.
#[inline(always)]
fn plain_label(body: &[u8], whole: &Field) -> Option<(Slice, Slice)> {
    let (&[0x0a, name_len @ 0..0x80], rest) = body.get(whole.payload..whole.end)?.split_first_chunk()? else {
        return None;
    };
    let (&[0x12, value_len @ 0..0x80], rest) = rest.get(usize::from(name_len)..)?.split_first_chunk()? else {
        return None;
    };
    if rest.len() != usize::from(value_len) {
        return None;
    }
    // Bodies are smaller than 4 GiB.
    let start = whole.payload as u32 + 2;
    let (name_len, value_len) = (u32::from(name_len), u32::from(value_len));
    let name = Slice { start, len: name_len, space: Space::Body };
    Some((name, Slice { start: start + name_len + 2, len: value_len, space: Space::Body }))
}

/// The bytes of a text with its tag and length.
fn text_bytes(text: Text) -> usize {
    let len = text.slice.len as usize;
    1 + varint_len(len as u64) as usize + len
}

impl Evaluation<'_, '_> {
    /// Loads a label of a 1.0 series.
    #[inline]
    pub(in crate::relabel) fn load_label(&mut self, whole: Field) -> Result<(), Failure> {
        let body = self.memory.body;
        let raw = (whole.start as u32, whole.end as u32);
        if let Some((name, value)) = plain_label(body, &whole) {
            return self.state.labels.load(Text::of(name), Text::of(value), Some(raw));
        }
        let (mut name, mut value) = (Slice::EMPTY, Slice::EMPTY);
        let mut at = whole.payload;
        while let Some(field) = field(body, at, whole.end) {
            // Bodies are smaller than 4 GiB.
            let (start, len) = (field.payload as u32, (field.end - field.payload) as u32);
            let slice = Slice { start, len, space: Space::Body };
            match field.number {
                1 => name = slice,
                2 => value = slice,
                _ => {}
            }
            at = field.end;
        }
        self.state.labels.load(Text::of(name), Text::of(value), Some(raw))
    }

    /// Loads the labels that a field of references of a 2.0 series is about. `name` is a name whose value is still to come.
    fn load_references(
        &mut self,
        index: &Index<'_>,
        whole: Field,
        name: &mut Option<Text>,
    ) -> Result<(), Failure> {
        let body = self.memory.body;
        for symbol in symbols::references(body, whole.payload, whole.end) {
            let slice = index.get(body, symbol).unwrap_or(Slice::EMPTY);
            let text = Text { slice, symbol };
            match name.take() {
                None => *name = Some(text),
                Some(name) => self.state.labels.load(name, text, None)?,
            }
        }
        Ok(())
    }
}
