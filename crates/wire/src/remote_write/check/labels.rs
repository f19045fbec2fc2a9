//! The rules for the labels of one series.

use super::Limits;
use crate::remote_write::error::{ErrorSubject, Excerpt, RemoteWriteError, RemoteWriteErrorKind};
use crate::remote_write::item::Label;
use crate::utf8::is_utf8;

const METRIC_NAME: u64 = u64::from_be_bytes(*b"__name__");

/// The labels of one series so far.
///
/// Names are compared by their first eight bytes as one number; only names that agree in those are compared
/// whole.
pub(super) struct LabelOrder<'a, 'l> {
    limits: &'l Limits,
    previous: &'a [u8],
    previous_key: u64,
    labels: usize,
    has_metric_name: bool,
    /// Where the first label ends that comes too late; zero when none does. The walk over the labels of a series stays in
    /// registers, so there is no more of it here, and nothing that is not inlined gets a reference to this.
    unsorted: usize,
}

/// The labels of a series, when they are to be sorted.
#[derive(Clone, Copy)]
pub(super) struct Unsorted<'a> {
    labels: usize,
    last: &'a [u8],
    offset: usize,
}

/// A label that is to be sorted among those of its series.
#[derive(Debug, Clone, Copy)]
pub(in crate::remote_write) struct Entry<'a> {
    pub(in crate::remote_write) label: Label<'a>,
    /// The symbols of its name and value in a 2.0 body.
    pub(in crate::remote_write) references: [u32; 2],
}

impl Entry<'_> {
    pub(super) const BYTES: usize = size_of::<Entry<'static>>();
}

impl<'a, 'l> LabelOrder<'a, 'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self { limits, previous: &[], previous_key: 0, labels: 0, has_metric_name: false, unsorted: 0 }
    }

    /// Takes the next label. `tail` is any slice that begins with the name and goes on behind it, if there
    /// is one at hand: it lets the first eight bytes be read at once.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        label: Label<'a>,
        tail: &[u8],
        offset: usize,
    ) -> Result<(), RemoteWriteError> {
        if !self.take(label, tail) {
            irregular(label, self.previous, offset, self.limits)?;
            self.note_unsorted(offset);
            self.note(label.name, sort_key(label.name, tail), label.value);
        }
        Ok(())
    }

    /// Takes the next label if it is larger than those before it, and within the limits.
    #[inline(always)]
    pub(super) fn take(&mut self, label: Label<'a>, tail: &[u8]) -> bool {
        let Label { name, value } = label;
        let key = sort_key(name, tail);
        // An empty name is never sorted, since it is not greater than even the empty beginning.
        let sorted = key > self.previous_key || (key == self.previous_key && name > self.previous);
        let within = name.len() <= self.limits.name_bytes && value.len() <= self.limits.value_bytes;
        if sorted && within {
            self.note(name, key, value);
        }
        sorted && within
    }

    #[inline(always)]
    fn note(&mut self, name: &'a [u8], key: u64, value: &[u8]) {
        if key == METRIC_NAME && name.len() == 8 {
            self.has_metric_name = !value.is_empty();
        }
        self.previous = name;
        self.previous_key = key;
        self.labels += 1;
    }

    /// The last label comes too late: behind a larger one, or behind values of its series. Whoever wants the labels would
    /// have to look for more of them behind every value, so they are to be written anew like those that are not sorted.
    #[inline(always)]
    pub(super) fn note_unsorted(&mut self, offset: usize) {
        if self.unsorted == 0 {
            self.unsorted = offset;
        }
    }

    /// Ends the series: its labels were complete. Says so if they are to be sorted.
    #[inline(always)]
    pub(super) fn finish(&self, offset: usize) -> Result<Option<Unsorted<'a>>, RemoteWriteError> {
        if self.labels == 0 {
            return Err(RemoteWriteError::new(offset, RemoteWriteErrorKind::NoLabels));
        }
        if self.limits.require_metric_name && !self.has_metric_name {
            return Err(RemoteWriteError::new(offset, RemoteWriteErrorKind::NoMetricName));
        }
        if self.labels > self.limits.labels {
            let (given, limit) = (self.labels, self.limits.labels);
            return Err(RemoteWriteError::new(
                offset,
                RemoteWriteErrorKind::Limit { subject: ErrorSubject::Labels, given, limit },
            ));
        }
        let LabelOrder { previous: last, labels, unsorted: offset, .. } = *self;
        Ok((offset > 0).then_some(Unsorted { labels, last, offset }))
    }
}

impl<'a> Unsorted<'a> {
    /// Whether the labels are a set. `labels` are those of the series; they are left sorted in `entries`. The error that is
    /// returned is for those who want them sorted.
    #[cold]
    pub(super) fn sorted(
        self,
        labels: impl Iterator<Item = Entry<'a>>,
        entries: &mut Vec<Entry<'a>>,
    ) -> Result<RemoteWriteError, RemoteWriteError> {
        let Unsorted { labels: number, last, offset } = self;
        entries.clear();
        entries.reserve_exact(number);
        entries.extend(labels.take(number));
        let late = entries.windows(2).find_map(|pair| match pair {
            [first, second] if first.label.name > second.label.name => {
                Some((second.label.name, first.label.name))
            }
            _ => None,
        });
        entries.sort_unstable_by(|one, other| one.label.name.cmp(other.label.name));
        let repeated = entries.windows(2).find_map(|pair| match pair {
            [first, second] if first.label.name == second.label.name => Some(first.label.name),
            _ => None,
        });
        if let Some(name) = repeated {
            return Err(RemoteWriteError::new(
                offset,
                RemoteWriteErrorKind::Repeated { name: Excerpt::new(name) },
            ));
        }
        let (name, before) = late.unwrap_or((last, last));
        let reason =
            RemoteWriteErrorKind::Unsorted { name: Excerpt::new(name), before: Excerpt::new(before) };
        Ok(RemoteWriteError::new(offset, reason))
    }
}

/// Refuses a label that is out of order and not right besides.
#[cold]
fn irregular(
    Label { name, value }: Label<'_>,
    previous: &[u8],
    offset: usize,
    limits: &Limits,
) -> Result<(), RemoteWriteError> {
    let Limits { name_bytes, value_bytes, .. } = *limits;
    let reason = if name.is_empty() {
        RemoteWriteErrorKind::EmptyName { value: Excerpt::new(value) }
    } else if name.len() > name_bytes {
        RemoteWriteErrorKind::Limit { subject: ErrorSubject::LabelName, given: name.len(), limit: name_bytes }
    } else if value.len() > value_bytes {
        RemoteWriteErrorKind::Limit {
            subject: ErrorSubject::LabelValue,
            given: value.len(),
            limit: value_bytes,
        }
    } else if name == previous {
        RemoteWriteErrorKind::Repeated { name: Excerpt::new(name) }
    } else {
        return Ok(());
    };
    Err(RemoteWriteError::new(offset, reason))
}

/// The first eight bytes of `name`, zeros behind a shorter one, as a number that sorts as they do.
#[inline(always)]
fn sort_key(name: &[u8], tail: &[u8]) -> u64 {
    let Some(head) = tail.first_chunk() else { return padded(name) };
    let shorter = u32::try_from(name.len()).ok().and_then(|len| u64::MAX.checked_shr(len.saturating_mul(8)));
    u64::from_be_bytes(*head) & !shorter.unwrap_or(0)
}

#[cold]
fn padded(name: &[u8]) -> u64 {
    let mut head = [0; 8];
    for (to, from) in head.iter_mut().zip(name) {
        *to = *from;
    }
    u64::from_be_bytes(head)
}

/// That one text is UTF-8.
pub(super) fn check_text(subject: ErrorSubject, text: &[u8], offset: usize) -> Result<(), RemoteWriteError> {
    if is_utf8(text) {
        return Ok(());
    }
    Err(RemoteWriteError::new(offset, RemoteWriteErrorKind::Utf8(subject, Excerpt::new(text))))
}
