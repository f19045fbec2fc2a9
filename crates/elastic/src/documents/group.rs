//! Points that become one document: those of the same time, unit and attributes.

use super::objects::is_field;
use super::point::{AnyPoint, MOST_BELOW, MetricKind};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Points that are looked at together. What has the same time and attributes but is further apart than that becomes
/// two documents.
pub(super) const MAX_GROUPED_POINTS: usize = 4096;
/// Points of one document: indexes take a thousand fields.
const MAX_POINTS_PER_DOCUMENT: usize = 512;
/// About how long a document becomes by the points that share it, in bytes: what is longer is more documents, so that
/// one can always be made beside a body that there is memory for.
const MAX_GROUP_BYTES: usize = 128 << 10;

/// Points of one scope.
#[derive(Debug)]
pub(super) struct PointGroup<'a> {
    members: Vec<GroupedPoint<'a>>,
    pub(super) below: Vec<u64>,
    /// The first point that is looked at, and how many are, those included that cannot be said.
    pub(super) first: u64,
    pub(super) looked_at: u64,
    pub(super) unsayable: u64,
}

/// A point, and to what it belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupedPoint<'a> {
    hash: u64,
    pub(super) name: &'a [u8],
    pub(super) unit: &'a [u8],
    message: &'a [u8],
    pub(super) of: MetricKind,
    order: u16,
    is_done: bool,
    /// Its name has to be written otherwise: it gets a document of its own, lest another's is the same then.
    is_renamed: bool,
}

impl<'a> GroupedPoint<'a> {
    pub(super) fn point(&self) -> Option<AnyPoint<'a>> {
        AnyPoint::read(self.of, self.message)
    }

    /// About how long a document becomes by it.
    fn written_len(&self) -> usize {
        let controls = self.name.iter().filter(|byte| **byte < 0x20).count();
        let name = 2 * (self.name.len() + 5 * controls) + 64;
        name + match self.of {
            // Bounds and counts of eight bytes each become numbers of up to 25.
            MetricKind::Histogram { cumulative: false } => 4 * self.message.len(),
            // And those of one byte a middle beside.
            MetricKind::Exponential { cumulative: false } => 28 * self.message.len(),
            _ => 0,
        }
    }
}

/// Whether a document that has so many points and is so long takes another.
fn takes(points: usize, bytes: usize) -> bool {
    points < MAX_POINTS_PER_DOCUMENT && bytes < MAX_GROUP_BYTES
}

impl<'a> PointGroup<'a> {
    pub(super) const BYTES: usize =
        MAX_GROUPED_POINTS * size_of::<GroupedPoint<'_>>() + MOST_BELOW * size_of::<u64>();

    /// Room for `points`, but for [`MAX_GROUPED_POINTS`] at most.
    pub(super) fn new(points: u64) -> Self {
        let room = usize::try_from(points).unwrap_or(MAX_GROUPED_POINTS).min(MAX_GROUPED_POINTS);
        Self {
            members: Vec::with_capacity(room),
            below: Vec::with_capacity(if room > 0 { MOST_BELOW } else { 0 }),
            first: 0,
            looked_at: 0,
            unsayable: 0,
        }
    }

    pub(super) fn begin(&mut self, first: u64) {
        self.members.clear();
        (self.first, self.looked_at, self.unsayable) = (first, 0, 0);
    }

    pub(super) fn is_full(&self) -> bool {
        self.looked_at >= MAX_GROUPED_POINTS as u64
    }

    /// Takes a point of a metric.
    pub(super) fn push(&mut self, name: &'a [u8], unit: &'a [u8], of: MetricKind, point: &AnyPoint<'a>) {
        let order = u16::try_from(self.looked_at).unwrap_or(u16::MAX);
        self.looked_at += 1;
        if name.is_empty() || !point.is_sayable() {
            self.unsayable += 1;
            return;
        }
        let (hash, message) = (hash(point, unit), point.message());
        let is_renamed = !is_field(name);
        self.members.push(GroupedPoint { hash, name, unit, message, of, order, is_done: false, is_renamed });
    }

    /// Puts what belongs together next to each other, in an order that depends on the points alone.
    pub(super) fn sort(&mut self) {
        self.members.sort_unstable_by(|a, b| (a.hash, a.name, a.order).cmp(&(b.hash, b.name, b.order)));
    }

    /// The first point from `from` on that has no document yet.
    pub(super) fn leader(&self, from: usize) -> Option<usize> {
        let rest = self.members.get(from..)?;
        rest.iter().position(|member| !member.is_done).map(|offset| from + offset)
    }

    /// The fields that a document takes from the point at `leader`, and its unit.
    pub(super) fn shared(&self, leader: usize) -> Option<(AnyPoint<'a>, &'a [u8])> {
        let first = self.members.get(leader)?;
        Some((first.point()?, first.unit))
    }

    /// The point at a place.
    pub(super) fn at(&self, place: usize) -> Option<(MetricKind, AnyPoint<'a>)> {
        let member = self.members.get(place)?;
        Some((member.of, member.point()?))
    }

    /// The points that share the document of the one at `leader`, with their places, in the order of their names and
    /// each name once.
    pub(super) fn sharing(&self, leader: usize) -> impl Iterator<Item = (usize, &GroupedPoint<'a>)> {
        let shared = self.shared(leader).zip(self.members.get(leader));
        let rest = shared.map(|_| self.members.get(leader..).unwrap_or_default()).unwrap_or_default();
        let (mut last_name, mut count, mut bytes) = (None, 0, 0);
        rest.iter()
            .enumerate()
            .take_while(move |(_, member)| shared.is_some_and(|(_, first)| first.hash == member.hash))
            .filter(move |(_, member)| {
                let is_new = !member.is_done && last_name != Some(member.name);
                let shares =
                    is_new && shared.is_some_and(|((point, _), first)| shares(&point, first, member));
                if shares {
                    last_name = Some(member.name);
                }
                shares
            })
            .take_while(move |(_, member)| {
                let takes = takes(count, bytes);
                count += 1;
                bytes += member.written_len();
                takes
            })
            .map(move |(offset, member)| (leader + offset, member))
    }

    /// Those that share the document of the one at `leader` have it.
    pub(super) fn finish(&mut self, leader: usize) {
        let Some((point, _)) = self.shared(leader) else { return };
        let Some(&first) = self.members.get(leader) else { return };
        let (mut last_name, mut count, mut bytes) = (None, 0, 0);
        for member in self.members.get_mut(leader..).unwrap_or_default() {
            if member.hash != first.hash || !takes(count, bytes) {
                break;
            }
            if !member.is_done && last_name != Some(member.name) && shares(&point, &first, member) {
                last_name = Some(member.name);
                member.is_done = true;
                count += 1;
                bytes += member.written_len();
            }
        }
    }
}

/// Whether a point says the same beside its value.
fn shares(point: &AnyPoint<'_>, first: &GroupedPoint<'_>, other: &GroupedPoint<'_>) -> bool {
    first.message.as_ptr() == other.message.as_ptr()
        || !first.is_renamed
            && !other.is_renamed
            && other.unit == first.unit
            && other.point().is_some_and(|other| {
                other.times() == point.times() && other.encoded_attributes().eq(point.encoded_attributes())
            })
}

fn hash(point: &AnyPoint<'_>, unit: &[u8]) -> u64 {
    let (start, time) = point.times();
    let seed = xxh3_64_with_seed(unit, start ^ time.rotate_left(32));
    point.encoded_attributes().fold(seed, |seed, attribute| xxh3_64_with_seed(attribute, seed))
}
