//! What rows have in common: series, and the texts that describe them, each kept once per run.

use super::{Head, NO_START, NotTaken};
use crate::labels::{Labelled, write_json};
use crate::metadata::{Families, Family, kind};
use crate::shape;
use crate::table::{Column, PROMOTED, flag, point_type, timestamp};
use arrow::array::{ArrayRef, Int32Array, Int64Array, StringViewArray, TimestampMicrosecondArray, make_view};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use std::sync::Arc;
use tidegate_wire::remote_write::Label;
use xxhash_rust::xxh64::xxh64;

/// Where a text lies in the run's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    start: u32,
    len: u32,
}

impl Text {
    /// No text at all, NULL in the file.
    pub(crate) const NONE: Text = Text { start: u32::MAX, len: 0 };
}

/// An iterator over labels that can be walked again.
pub(crate) trait Exact<'a>: Iterator<Item = Label<'a>> + Clone {}
impl<'a, T: Iterator<Item = Label<'a>> + Clone> Exact<'a> for T {}

#[derive(Debug)]
pub(crate) struct Series {
    id: i64,
    name: Text,
    unit: Text,
    description: Text,
    attributes: Text,
    promoted: [Text; PROMOTED.len()],
    point_type: i32,
    /// Place among the run's series by name and number, once sorted.
    rank: u32,
    /// The last row of it in this run, `u32::MAX` before there is one.
    pub(crate) last_row: u32,
}

/// The series of one run and their texts. Nothing here grows beyond what was reserved.
pub(crate) struct Keys {
    bounds: shape::Keys,
    series: Vec<Series>,
    /// Open addressing from series number to place + 1.
    slots: Vec<u32>,
    /// Texts seen lately, by hash: names, units and jobs recur from series to series.
    recent: Vec<Text>,
    text: Vec<u8>,
    /// All texts, while they are shown as columns.
    frozen: Option<Buffer>,
}

const RECENT: usize = 512;
/// One series may fill at most this part of the text.
const LARGEST_PART: usize = 4;

impl Keys {
    pub(crate) fn new(bounds: shape::Keys) -> Self {
        Keys {
            bounds,
            series: Vec::with_capacity(bounds.series),
            slots: vec![0; (bounds.series * 2).next_power_of_two()],
            recent: vec![Text::NONE; RECENT],
            text: Vec::with_capacity(bounds.text),
            frozen: None,
        }
    }

    /// The place of the series with these labels, which is new when it was not there.
    pub(crate) fn series_of<'a>(
        &mut self,
        labels: impl Exact<'a>,
        families: &Families,
    ) -> Result<u32, NotTaken> {
        let labelled = Labelled::new(labels.clone());
        if labelled.text_len() > self.bounds.text / LARGEST_PART {
            return Err(NotTaken::TooLarge);
        }
        // A description and a unit may come with it.
        let family = std::str::from_utf8(labelled.name).ok().and_then(|name| families.of(name));
        let described = family.map_or(0, |family| family.unit.len() + family.help.len());
        if self.text.len() + labelled.text_len() + described + RESOURCE.len() > self.text.capacity() {
            return Err(NotTaken::Full);
        }
        let start = self.text.len();
        write_json(labels, &mut self.text);
        let attributes = Text { start: place(start), len: place(self.text.len() - start) };
        if let Some(known) = self.find(&labelled, attributes) {
            self.text.truncate(start);
            return Ok(known);
        }
        if self.series.len() == self.bounds.series {
            self.text.truncate(start);
            return Err(NotTaken::Full);
        }
        let texts = labelled.promoted.iter().flatten().chain([&labelled.name]);
        if texts.chain([&self.bytes(attributes)]).any(|text| std::str::from_utf8(text).is_err()) {
            self.text.truncate(start);
            return Err(NotTaken::Malformed);
        }
        Ok(self.add(&labelled, attributes, family))
    }

    fn add(&mut self, labelled: &Labelled<'_>, attributes: Text, family: Option<&Family>) -> u32 {
        let added = place(self.series.len());
        let name = self.keep(labelled.name);
        let promoted = labelled.promoted.map(|value| value.map_or(Text::NONE, |value| self.keep(value)));
        let optional = |keys: &mut Self, text: Option<&str>| match text {
            None | Some("") => Text::NONE,
            Some(text) => keys.keep(text.as_bytes()),
        };
        let unit = optional(self, family.map(|family| &*family.unit));
        let description = optional(self, family.map(|family| &*family.help));
        self.series.push(Series {
            id: labelled.id,
            name,
            unit,
            description,
            attributes,
            promoted,
            point_type: point_type_of(labelled, family),
            rank: 0,
            last_row: u32::MAX,
        });
        let mut slot = self.slot(labelled.id);
        while self.slots.get(slot).is_some_and(|&taken| taken != 0) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if let Some(free) = self.slots.get_mut(slot) {
            *free = added + 1;
        }
        added
    }

    fn find(&self, labelled: &Labelled<'_>, attributes: Text) -> Option<u32> {
        let mut slot = self.slot(labelled.id);
        loop {
            let at = self.slots.get(slot)?.checked_sub(1)?;
            let series = self.series.get(at as usize)?;
            // Numbers can be made to collide by whoever sends the labels, so the labels decide.
            let same = series.id == labelled.id
                && self.bytes(series.name) == labelled.name
                && self.bytes(series.attributes) == self.bytes(attributes)
                && series.promoted.iter().zip(&labelled.promoted).all(|(&text, &value)| {
                    value.map_or(text == Text::NONE, |value| text != Text::NONE && self.bytes(text) == value)
                });
            if same {
                return Some(at);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn slot(&self, id: i64) -> usize {
        (id.cast_unsigned() as usize) & (self.slots.len() - 1)
    }

    /// Adds a text, or finds it among the last ones. There must be room.
    fn keep(&mut self, text: &[u8]) -> Text {
        let slot = (xxh64(text, 0) % RECENT as u64) as usize;
        let known = self.recent.get(slot).copied().unwrap_or(Text::NONE);
        if known != Text::NONE && self.bytes(known) == text {
            return known;
        }
        let kept = Text { start: place(self.text.len()), len: place(text.len()) };
        self.text.extend_from_slice(text);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = kept;
        }
        kept
    }

    /// Adds the text that `write` writes, at most `most` bytes, when there is room for that.
    pub(crate) fn write(&mut self, most: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Text, NotTaken> {
        if most > self.bounds.text / LARGEST_PART {
            return Err(NotTaken::TooLarge);
        }
        if self.text.len() + most > self.text.capacity() {
            return Err(NotTaken::Full);
        }
        let start = self.text.len();
        write(&mut self.text);
        let written = Text { start: place(start), len: place(self.text.len() - start) };
        if std::str::from_utf8(self.bytes(written)).is_err() {
            self.text.truncate(start);
            return Err(NotTaken::Malformed);
        }
        Ok(written)
    }

    pub(crate) fn series_mut(&mut self, at: u32) -> Option<&mut Series> {
        self.series.get_mut(at as usize)
    }

    fn at(&self, head: &Head) -> Option<&Series> {
        self.series.get(head.series as usize)
    }

    /// Where a row stands in the order of the file.
    pub(crate) fn order_of(&self, head: &Head) -> (u32, i64, u16) {
        (self.at(head).map_or(0, |series| series.rank), head.time_us, head.time_ns)
    }

    /// Ranks the series and makes the texts ready to be shown.
    pub(crate) fn sort(&mut self) {
        let mut order: Vec<u32> = (0..place(self.series.len())).collect();
        let key = |&at: &u32| {
            let series = self.series.get(at as usize);
            series.map(|series| (self.bytes(series.name), series.id, self.bytes(series.attributes)))
        };
        order.sort_unstable_by(|left, right| key(left).cmp(&key(right)));
        for (rank, at) in order.into_iter().enumerate() {
            if let Some(series) = self.series.get_mut(at as usize) {
                series.rank = place(rank);
            }
        }
        // The last bytes, that every row of the table can point at.
        self.text.extend_from_slice(RESOURCE);
        self.frozen = Some(Buffer::from_vec(std::mem::take(&mut self.text)));
    }

    /// Forgets all series and texts and keeps the memory.
    pub(crate) fn clear(&mut self) {
        if let Some(frozen) = self.frozen.take() {
            self.text = frozen.into_vec().unwrap_or_else(|_| Vec::with_capacity(self.bounds.text));
        }
        self.text.clear();
        self.series.clear();
        self.slots.fill(0);
        self.recent.fill(Text::NONE);
    }

    fn bytes(&self, text: Text) -> &[u8] {
        let all = self.frozen.as_ref().map_or(&*self.text, |frozen| frozen.as_slice());
        let start = text.start as usize;
        all.get(start..start.saturating_add(text.len as usize)).unwrap_or(&[])
    }

    /// A column of the key, of these rows.
    pub(crate) fn column<'h>(
        &self,
        column: Column,
        heads: impl ExactSizeIterator<Item = &'h Head>,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match column {
            Column::MetricName => self.texts(heads, |series| series.name)?,
            Column::Unit => self.texts(heads, |series| series.unit)?,
            Column::Description => self.texts(heads, |series| series.description)?,
            Column::Attributes => self.texts(heads, |series| series.attributes)?,
            Column::ServiceName => {
                let nobody = self.tail(0, 0);
                self.texts(heads, |series| match series.promoted.first() {
                    Some(&job) if job != Text::NONE => job,
                    _ => nobody,
                })?
            }
            Column::Resource => {
                let none = self.tail(0, RESOURCE.len());
                self.texts(heads, |_| none)?
            }
            Column::Promoted(place) => {
                self.texts(heads, |series| series.promoted.get(place).copied().unwrap_or(Text::NONE))?
            }
            Column::Type => Arc::new(Int32Array::from_iter_values(
                heads.map(|head| self.at(head).map_or(point_type::UNKNOWN, |series| series.point_type)),
            )),
            Column::SeriesId => Arc::new(Int64Array::from_iter_values(
                heads.map(|head| self.at(head).map_or(0, |series| series.id)),
            )),
            Column::Time => Arc::new(
                TimestampMicrosecondArray::from_iter_values(heads.map(|head| head.time_us))
                    .with_data_type(timestamp()),
            ),
            Column::StartTime => Arc::new(
                TimestampMicrosecondArray::from_iter(
                    heads.map(|head| (head.start_us != NO_START).then_some(head.start_us)),
                )
                .with_data_type(timestamp()),
            ),
            Column::TimeNs => {
                Arc::new(Int32Array::from_iter_values(heads.map(|head| i32::from(head.time_ns))))
            }
            Column::Flags => Arc::new(Int32Array::from_iter_values(heads.map(|head| i32::from(head.flags)))),
            // Prometheus has no scopes.
            _ => self.texts(heads, |_| Text::NONE)?,
        })
    }

    fn tail(&self, from: usize, len: usize) -> Text {
        let end = self.frozen.as_ref().map_or(0, Buffer::len);
        Text { start: place(end.saturating_sub(RESOURCE.len()) + from), len: place(len) }
    }

    fn texts<'h>(
        &self,
        heads: impl ExactSizeIterator<Item = &'h Head>,
        text: impl Fn(&Series) -> Text,
    ) -> Result<ArrayRef, ArrowError> {
        self.view(heads.map(|head| self.at(head).map_or(Text::NONE, &text)))
    }

    /// A column of texts, without a copy of them.
    pub(crate) fn view(&self, texts: impl ExactSizeIterator<Item = Text>) -> Result<ArrayRef, ArrowError> {
        let mut views = Vec::with_capacity(texts.len());
        let mut valid = Vec::with_capacity(texts.len());
        for text in texts {
            valid.push(text != Text::NONE);
            views.push(if text == Text::NONE { 0 } else { make_view(self.bytes(text), 0, text.start) });
        }
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
        let buffers: Vec<Buffer> = self.frozen.iter().cloned().collect();
        Ok(Arc::new(StringViewArray::try_new(ScalarBuffer::from(views), buffers, nulls)?))
    }
}

/// The resource of what has none, as canonical JSON.
const RESOURCE: &[u8] = b"{}";

fn place(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// What a series' values are, as far as its family's metadata tells.
fn point_type_of(labelled: &Labelled<'_>, family: Option<&Family>) -> i32 {
    let ends_with = |suffix: &[u8]| labelled.name.ends_with(suffix);
    match family.map_or(0, |family| family.kind) {
        kind::COUNTER => point_type::COUNTER,
        kind::GAUGE | kind::INFO | kind::STATE_SET => point_type::GAUGE,
        // The parts of a classic histogram count up, the parts of a gauge histogram do not.
        kind::HISTOGRAM if [&b"_bucket"[..], b"_sum", b"_count"].into_iter().any(ends_with) => {
            point_type::COUNTER
        }
        kind::GAUGE_HISTOGRAM if [&b"_bucket"[..], b"_gsum", b"_gcount"].into_iter().any(ends_with) => {
            point_type::GAUGE
        }
        kind::HISTOGRAM => point_type::HISTOGRAM,
        kind::GAUGE_HISTOGRAM => point_type::GAUGE_HISTOGRAM,
        kind::SUMMARY if labelled.quantile => point_type::SUMMARY_QUANTILE,
        kind::SUMMARY if ends_with(b"_sum") => point_type::SUMMARY_SUM,
        kind::SUMMARY if ends_with(b"_count") => point_type::SUMMARY_COUNT,
        _ => point_type::UNKNOWN,
    }
}

/// Whether a row is the marker that its series is gone.
pub(crate) fn stale_flag(stale: bool) -> u8 {
    if stale { flag::STALE } else { 0 }
}
