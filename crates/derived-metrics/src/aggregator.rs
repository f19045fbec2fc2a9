//! The aggregator: adds observations to series.

use crate::blob::Blob;
use crate::exemplar::Exemplar;
use crate::flush::Flush;
use crate::pairs::EdgeStore;
use crate::resources::{CurrentResource, Resources};
use crate::series::{Owner, SeriesMut, SeriesTable};
use crate::settings::{Group, Settings, TENANT_MAX, Temporality};
use std::hash::{BuildHasher, RandomState};
use tidegate_pipeline::{MEASURE_KEY_MAX, MeasureKey, Measurements, Number, Observation};

/// A record that was received so much earlier than the one before, in milliseconds, says that the clock was set back. Others may have waited for
/// memory or for the disk.
const SET_BACK_MS: u64 = 600_000;

/// Sums up observations in series.
#[derive(Debug)]
pub struct Aggregator {
    pub(crate) settings: Settings,
    pub(crate) resources: Resources,
    pub(crate) series: SeriesTable,
    /// The keys of series, and the tenants and attributes of resources.
    pub(crate) blob: Blob,
    /// By measure: the spans of those that are pairs.
    pub(crate) edges: Vec<Option<EdgeStore>>,
    /// The series in the order of the flush under way.
    pub(crate) order: Vec<u32>,
    pub(crate) flush: Option<Flush>,
    /// The number of the last flush that ended, and its time.
    pub(crate) flushed: Flush,
    /// The latest time of a record, in milliseconds since 1970.
    pub(crate) clock_ms: u64,
    pub(crate) counts: Counts,
    /// Something was counted behind the last flush.
    pub(crate) has_news: bool,
    pub(crate) key: MeasureKey,
    pub(crate) tenant: Tenant,
    pub(crate) received_at_ms: u64,
    /// By measure.
    pub(crate) current: Vec<CurrentResource>,
    /// The resource of the tenant's overflow series, when it was looked up.
    pub(crate) overflow: Option<u32>,
}

/// The work of an aggregator since it was made. A restart begins with zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Observations.
    pub observations: u64,
    /// Of them, those that went to an overflow series.
    pub overflowed: u64,
    /// Of them, those that are in no series: an overflow series had no room either, the measure is unknown, or a flush was under way.
    pub lost: u64,
    /// Observations with attributes that are too long for a key. They are overflowed or lost.
    pub cut: u64,
    /// Series that were forgotten because they were not seen for long.
    pub expired: u64,
    /// Edges of pairs that expired with one span, also those that were counted with a virtual node.
    pub expired_edges: u64,
    /// Spans of pairs that were not taken, because too many others waited for their halves.
    pub dropped_spans: u64,
}

/// The tenant of a record.
#[derive(Debug)]
pub(crate) struct Tenant {
    bytes: [u8; TENANT_MAX],
    len: u8,
}

impl Tenant {
    /// The tenant; of a longer one the beginning.
    pub(crate) fn new(tenant: &[u8]) -> Tenant {
        let mut bytes = [0; TENANT_MAX];
        bytes.iter_mut().zip(tenant).for_each(|(to, from)| *to = *from);
        Tenant { bytes, len: tenant.len().min(TENANT_MAX) as u8 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

impl Aggregator {
    /// An aggregator that has observed nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Aggregator {
        let sizes = settings.sizes();
        // Senders choose attributes, and must not be able to choose ones that clash.
        let seed = RandomState::new().hash_one(0);
        Aggregator {
            resources: Resources::new(&sizes, seed),
            series: SeriesTable::new(&sizes, settings.exemplars, seed),
            blob: Blob::new(sizes.blob, sizes.overflow_blob),
            edges: settings
                .measures
                .iter()
                .map(|it| it.pairs.as_ref().map(|it| EdgeStore::new(it, seed)))
                .collect(),
            order: Vec::with_capacity(settings.order_len()),
            flush: None,
            flushed: Flush::default(),
            clock_ms: 0,
            counts: Counts::default(),
            has_news: false,
            key: MeasureKey::default(),
            tenant: Tenant::new(&[]),
            received_at_ms: 0,
            current: settings.measures.iter().map(|_| CurrentResource::new(MEASURE_KEY_MAX)).collect(),
            overflow: None,
            settings,
        }
    }

    /// A record begins: of this tenant, of at most 255 bytes, and received then. It forgets the resources of the record before.
    ///
    /// The times of records are the clock by which series expire, and spans that wait for others. An owner that waits for records can move it on with an empty one.
    pub fn begin(&mut self, tenant: &[u8], received_at_ms: u64) {
        self.received_at_ms = received_at_ms;
        if received_at_ms.saturating_add(SET_BACK_MS) < self.clock_ms && self.flush.is_none() {
            self.set_clock_back(received_at_ms);
        }
        self.clock_ms = self.clock_ms.max(received_at_ms);
        self.expire_edges();
        self.become_tenant(Tenant::new(tenant));
        self.current.iter_mut().for_each(CurrentResource::clear);
    }

    /// Counts for this tenant from now on.
    pub(crate) fn become_tenant(&mut self, tenant: Tenant) {
        if tenant.bytes() != self.tenant.bytes() {
            (self.tenant, self.overflow) = (tenant, None);
        }
    }

    /// The latest time of a record, in milliseconds since 1970.
    #[must_use]
    pub fn clock_ms(&self) -> u64 {
        self.clock_ms
    }

    /// Whether something was counted of which no flush has ended. One that was read again with series says so, since it does not know.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Follows a clock that was set back: what happened later, by the clock before, happened now.
    fn set_clock_back(&mut self, to_ms: u64) {
        self.clock_ms = to_ms;
        self.flushed.at_ms = self.flushed.at_ms.min(to_ms);
        for series in self.series.all_mut() {
            series.set_start_ms(series.start_ms().min(to_ms));
            series.seen_at_most((to_ms / 1000) as u32);
        }
        self.edges.iter_mut().flatten().for_each(|edges| edges.created_at_most(to_ms));
    }

    /// The settings that it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The series in the table, with overflow series.
    #[must_use]
    pub fn series(&self) -> usize {
        self.series.len()
    }

    /// The resources in the table, with those of overflow series.
    #[must_use]
    pub fn resources(&self) -> usize {
        self.resources.len()
    }

    /// The work since it was made.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Resources have other numbers from now on.
    pub(crate) fn forget_numbers(&mut self) {
        self.overflow = None;
        self.current.iter_mut().for_each(|current| current.number = None);
    }

    /// When a series begins that is seen first now.
    fn start_ms(&self) -> u64 {
        match self.settings.temporality {
            Temporality::Delta if self.flushed.at_ms > 0 => self.flushed.at_ms,
            _ => self.received_at_ms,
        }
    }

    /// The series of an observation, by the key under construction. That `is_cut` where a part of it had no room.
    pub(crate) fn series_of(&mut self, measure: usize, is_cut: bool) -> Option<u32> {
        let measure_number = u16::try_from(measure).ok()?;
        let current = self.current.get_mut(measure)?;
        if self.flush.is_some() {
            return None;
        }
        if is_cut || current.is_cut {
            self.counts.cut += 1;
            return self.overflow_series(measure_number);
        }
        if current.number.is_none() {
            let (tenant, attributes) = (self.tenant.bytes(), &current.attributes);
            current.number = self.resources.intern(tenant, attributes, false, &mut self.blob);
        }
        let number = current.number.and_then(|resource| {
            let owner = Owner { resource, measure: measure_number, is_overflow: false };
            let start_ms = self.start_ms();
            self.series.intern(owner, self.key.bytes(), start_ms, &mut self.blob)
        });
        number.or_else(|| self.overflow_series(measure_number))
    }

    /// The series of all observations of a tenant and measure that have no series of their own.
    #[cold]
    fn overflow_series(&mut self, measure: u16) -> Option<u32> {
        if self.overflow.is_none() {
            self.overflow = self.resources.intern(self.tenant.bytes(), &[], true, &mut self.blob);
        }
        let owner = Owner { resource: self.overflow?, measure, is_overflow: true };
        let start_ms = self.start_ms();
        let number = self.series.intern(owner, &[], start_ms, &mut self.blob)?;
        self.counts.overflowed += 1;
        Some(number)
    }
}

impl Measurements for Aggregator {
    fn key(&mut self) -> &mut MeasureKey {
        &mut self.key
    }

    fn resource(&mut self, measure: usize) {
        if let Some(current) = self.current.get_mut(measure) {
            current.set(self.key.bytes(), self.key.is_cut());
        }
        self.key.clear();
    }

    fn observe(&mut self, measure: usize, observation: &Observation) {
        if self.has_pairs(measure) {
            self.observe_half(measure, observation);
            self.key.clear();
            return;
        }
        self.counts.observations += 1;
        let found = self.series_of(measure, self.key.is_cut());
        self.key.clear();
        let Some((number, group)) = found.zip(self.settings.measures.get(measure)) else {
            self.counts.lost += 1;
            return;
        };
        self.has_news = true;
        self.series.at_mut(number).see((self.received_at_ms / 1000) as u32);
        let value = divided(observation.value, group.divisor);
        let SeriesMut { words, exemplar } = self.series.change(number);
        fold(group, words, value, observation.count);
        if let Some((exemplar, span)) = exemplar.zip(observation.span)
            && span.trace_id != [0; 16]
        {
            *exemplar = Exemplar::new(&span, value, self.received_at_ms);
        }
    }
}

pub(crate) fn divided(value: Number, divisor: f64) -> Number {
    if divisor == 1.0 { value } else { Number::Double(value.as_f64() / divisor) }
}

fn fold(group: &Group, mut words: &mut [u64], value: Number, count: u64) {
    for instrument in &group.instruments {
        let Some((own, rest)) = words.split_at_mut_checked(instrument.kind.words()) else { return };
        instrument.kind.fold(own, value, count);
        words = rest;
    }
}
