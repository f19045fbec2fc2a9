//! Values shared by rows: series, and the texts that describe them, each stored once per run.

mod columns;
mod otlp;

pub(crate) use otlp::MetricKey;

use super::origins::{Origins, keep_utf8, optional, write_utf8};
use super::texts::{Text, Texts};
use super::{RowKey, RowRejection};
use crate::labels::{SeriesLabels, write_json};
use crate::metadata::{FamilyMetadata, MetadataCache, kind};
use crate::pool::{Chunks, Pool};
use crate::table::{PROMOTED, flag, point_type};
use tidegate_wire::remote_write::Label;

/// An iterator over labels that can be walked again.
pub(crate) trait LabelIterator<'a>: Iterator<Item = Label<'a>> + Clone {}
impl<'a, T: Iterator<Item = Label<'a>> + Clone> LabelIterator<'a> for T {}

#[derive(Debug)]
pub(crate) struct Series {
    id: i64,
    name: Text,
    unit: Text,
    description: Text,
    attributes: Text,
    promoted: [Text; PROMOTED.len()],
    /// Where it comes from; [`NOWHERE`] for Prometheus, which has no scopes.
    scope: u32,
    point_type: i32,
    /// The bits of the quantile that its values are, of a summary.
    quantile: Option<u64>,
    /// Place among the run's series by name and number, once sorted.
    rank: u32,
    /// The last row of it in this run, `u32::MAX` before there is one.
    pub(crate) last_row: u32,
}

const NOWHERE: u32 = u32::MAX;

/// The series of one run and their texts.
pub(crate) struct Keys {
    pool: Pool,
    pub(crate) origins: Origins,
    pub(crate) texts: Texts,
    series: Chunks<Series>,
    most_series: usize,
    /// Open addressing from series number to place + 1.
    slots: Vec<u32>,
    /// The resource of what has none, as canonical JSON.
    no_resource: Text,
}

/// One series may fill at most this part of the pool.
const LARGEST_PART: usize = 2;

impl Keys {
    /// At most `most_series` at a time.
    pub(crate) fn new(pool: &Pool, most_series: usize) -> Self {
        Keys {
            pool: pool.clone(),
            origins: Origins::new(pool, &PROMOTED),
            texts: Texts::new(pool),
            series: Chunks::new(pool, size_of::<u32>()),
            most_series,
            slots: vec![0; (most_series * 2).next_power_of_two()],
            no_resource: Text::NONE,
        }
    }

    /// Bytes of the pool that they hold.
    pub(crate) fn held(&self) -> usize {
        self.texts.held() + self.series.held() + self.origins.held()
    }

    /// The place of the series with these labels, which is new when it was not there.
    pub(crate) fn series_of<'a>(
        &mut self,
        labels: impl LabelIterator<'a>,
        families: &MetadataCache,
    ) -> Result<u32, RowRejection> {
        let labelled = SeriesLabels::new(labels.clone());
        if labelled.text_len() > self.pool.total() / LARGEST_PART {
            return Err(RowRejection::TooLarge);
        }
        // A description and a unit may come with it.
        let family = std::str::from_utf8(labelled.name).ok().and_then(|name| families.of(name));
        let mark = self.texts.mark();
        let series = self
            .texts
            .write(labelled.json_len, |out| write_json(labels, out))
            .and_then(|attributes| self.find_or_add(&labelled, attributes, family));
        // The last text is that of the attributes, which a series that was there has already.
        if series.as_ref().map_or(true, |(_, new)| !new) {
            self.texts.truncate(mark);
        }
        series.map(|(place, _)| place)
    }

    /// The place of a series, and whether it is new.
    fn find_or_add(
        &mut self,
        labelled: &SeriesLabels<'_>,
        attributes: Text,
        family: Option<&FamilyMetadata>,
    ) -> Result<(u32, bool), RowRejection> {
        let known = self.find(labelled.id, |series| {
            series.scope == NOWHERE
                && self.texts.get(series.name) == labelled.name
                && self.texts.get(series.attributes) == self.texts.get(attributes)
                && series.promoted.iter().zip(&labelled.promoted).all(|(&text, &value)| {
                    value.map_or(!text.is_some(), |value| text.is_some() && self.texts.get(text) == value)
                })
        });
        if let Some(known) = known {
            return Ok((known, false));
        }
        if std::str::from_utf8(self.texts.get(attributes)).is_err() {
            return Err(RowRejection::Malformed);
        }
        if !self.no_resource.is_some() {
            self.no_resource = self.texts.add(b"{}")?;
        }
        let texts = &mut self.texts;
        let mut kept = [Text::NONE; PROMOTED.len()];
        for (kept, value) in kept.iter_mut().zip(labelled.promoted) {
            *kept = value.map_or(Ok(Text::NONE), |value| keep_utf8(texts, value))?;
        }
        let series = Series {
            id: labelled.id,
            name: keep_utf8(texts, labelled.name)?,
            unit: optional(texts, family.map_or(b"", |family| family.unit.as_bytes()))?,
            description: optional(texts, family.map_or(b"", |family| family.help.as_bytes()))?,
            attributes,
            promoted: kept,
            scope: NOWHERE,
            point_type: point_type_of(labelled, family),
            quantile: None,
            rank: 0,
            last_row: u32::MAX,
        };
        self.add(series).map(|place| (place, true))
    }

    fn add(&mut self, series: Series) -> Result<u32, RowRejection> {
        if self.series.len() == self.most_series {
            return Err(RowRejection::Full);
        }
        let added = place(self.series.len());
        let mut slot = self.slot(series.id);
        self.series.push(series)?;
        while self.slots.get(slot).is_some_and(|&taken| taken != 0) {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        if let Some(free) = self.slots.get_mut(slot) {
            *free = added + 1;
        }
        Ok(added)
    }

    /// The place of the series with this number of which `same` is true: numbers can be made to collide by
    /// whoever sends the labels, so the labels decide.
    fn find(&self, id: i64, same: impl Fn(&Series) -> bool) -> Option<u32> {
        let mut slot = self.slot(id);
        loop {
            let at = self.slots.get(slot)?.checked_sub(1)?;
            let series = self.series.get(at as usize)?;
            if series.id == id && same(series) {
                return Some(at);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn slot(&self, id: i64) -> usize {
        (id.cast_unsigned() as usize) & (self.slots.len() - 1)
    }

    /// Adds the text that `write` writes, at most `most` bytes, when there is room for that.
    pub(crate) fn write(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Text, RowRejection> {
        if most > self.pool.total() / LARGEST_PART {
            return Err(RowRejection::TooLarge);
        }
        write_utf8(&mut self.texts, most, write)
    }

    pub(crate) fn series_mut(&mut self, at: u32) -> Option<&mut Series> {
        self.series.get_mut(at as usize)
    }

    fn at(&self, head: &RowKey) -> Option<&Series> {
        self.series.get(head.series as usize)
    }

    /// The places of rows in the order of the file: by series, then by time, then as they came, once all is
    /// [sorted](Self::sort). `rows` are all heads, and `head` is the one at a place.
    ///
    /// The rows of a series nearly always come in order. So they are counted and put down series by series, and only
    /// what is out of order is sorted.
    pub(crate) fn order<'h>(
        &self,
        rows: impl Iterator<Item = &'h RowKey> + Clone,
        head: impl Fn(u32) -> &'h RowKey,
    ) -> Vec<u32> {
        let rank = |head: &RowKey| self.at(head).map_or(0, |series| series.rank as usize);
        // Paid with the series, as what `sort` needed was.
        let mut next = vec![0_u32; self.series.len().max(1)];
        for row in rows.clone() {
            if let Some(count) = next.get_mut(rank(row)) {
                *count += 1;
            }
        }
        let mut all = 0;
        for next in &mut next {
            all += std::mem::replace(next, all);
        }
        let mut order = vec![0; all as usize];
        for (at, row) in rows.enumerate() {
            if let Some(next) = next.get_mut(rank(row))
                && let Some(free) = order.get_mut(*next as usize)
            {
                (*free, *next) = (place(at), *next + 1);
            }
        }
        // Each is now where the rows of its series end.
        let mut start = 0;
        for end in next {
            let time = |at: &u32| (head(*at).time_us, head(*at).time_ns());
            let of_series = order.get_mut(start as usize..end as usize).unwrap_or_default();
            if !of_series.is_sorted_by_key(time) {
                of_series.sort_unstable_by_key(|at| (time(at), *at));
            }
            start = end;
        }
        order
    }

    /// The quantile that the values of a row are.
    pub(crate) fn quantile_of(&self, head: &RowKey) -> Option<u64> {
        self.at(head).and_then(|series| series.quantile)
    }

    /// Ranks the series and makes the texts ready to be shown.
    pub(crate) fn sort(&mut self) {
        let mut order: Vec<u32> = (0..place(self.series.len())).collect();
        let key = |at: u32| {
            let series = self.series.get(at as usize);
            series.map(|series| (self.texts.get(series.name), series.id, self.texts.get(series.attributes)))
        };
        order.sort_unstable_by(|&left, &right| key(left).cmp(&key(right)));
        for (rank, at) in order.into_iter().enumerate() {
            if let Some(series) = self.series.get_mut(at as usize) {
                series.rank = place(rank);
            }
        }
        self.texts.freeze();
    }

    /// Forgets all series and texts.
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
        self.origins.clear();
        self.series.clear();
        self.slots.fill(0);
        self.no_resource = Text::NONE;
    }
}

fn place(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The type of a series' values, as known from its family's metadata.
fn point_type_of(labelled: &SeriesLabels<'_>, family: Option<&FamilyMetadata>) -> i32 {
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
