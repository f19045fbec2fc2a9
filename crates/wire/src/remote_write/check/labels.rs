//! The rules for the labels of one series.

use super::Limits;
use crate::remote_write::fault::{Excerpt, Fault, Reason, Subject};
use crate::remote_write::item::Label;

const METRIC_NAME: u64 = u64::from_be_bytes(*b"__name__");

/// The labels of one series so far.
///
/// Names are compared by their first eight bytes as one number; only names that agree in those are compared
/// whole.
pub(super) struct Order<'a, 'l> {
    limits: &'l Limits,
    previous: &'a [u8],
    previous_key: u64,
    labels: usize,
    has_metric_name: bool,
}

impl<'a, 'l> Order<'a, 'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self { limits, previous: &[], previous_key: 0, labels: 0, has_metric_name: false }
    }

    /// Takes the next label. `tail` is any slice that begins with the name and goes on behind it, if there
    /// is one at hand: it lets the first eight bytes be read at once.
    #[inline(always)]
    pub(super) fn push(&mut self, label: Label<'a>, tail: &[u8], offset: usize) -> Result<(), Fault> {
        let Label { name, value } = label;
        let key = sort_key(name, tail);
        // An empty name is never sorted, since it is not greater than even the empty beginning.
        let sorted = key > self.previous_key || (key == self.previous_key && name > self.previous);
        let within = name.len() <= self.limits.name_bytes && value.len() <= self.limits.value_bytes;
        if !sorted || !within {
            return Err(self.fault(label, offset));
        }
        if key == METRIC_NAME && name.len() == 8 {
            self.has_metric_name = !value.is_empty();
        }
        self.previous = name;
        self.previous_key = key;
        self.labels += 1;
        Ok(())
    }

    /// Ends the series: its labels were complete.
    #[inline(always)]
    pub(super) fn finish(&self, offset: usize) -> Result<(), Fault> {
        if self.labels == 0 {
            return Err(Fault::new(offset, Reason::NoLabels));
        }
        if self.limits.require_metric_name && !self.has_metric_name {
            return Err(Fault::new(offset, Reason::NoMetricName));
        }
        if self.labels > self.limits.labels {
            let (given, limit) = (self.labels, self.limits.labels);
            return Err(Fault::new(offset, Reason::Limit { subject: Subject::Labels, given, limit }));
        }
        Ok(())
    }

    #[cold]
    fn fault(&self, Label { name, value }: Label<'_>, offset: usize) -> Fault {
        let Limits { name_bytes, value_bytes, .. } = *self.limits;
        let reason = if name.is_empty() {
            Reason::EmptyName { value: Excerpt::new(value) }
        } else if name.len() > name_bytes {
            Reason::Limit { subject: Subject::LabelName, given: name.len(), limit: name_bytes }
        } else if value.len() > value_bytes {
            Reason::Limit { subject: Subject::LabelValue, given: value.len(), limit: value_bytes }
        } else if name == self.previous {
            Reason::Repeated { name: Excerpt::new(name) }
        } else {
            Reason::Unsorted { name: Excerpt::new(name), before: Excerpt::new(self.previous) }
        };
        Fault::new(offset, reason)
    }
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

/// That the texts of `run`, a stretch of the message between the first byte of one text and the last of
/// another, are UTF-8, if that can be told from the run as a whole.
///
/// Between two texts there are a tag and a length, and what stands next to a text is below 128 (a tag of
/// this schema, or the last byte of a length). So if the whole run is UTF-8, each text is, by itself. The
/// reverse does not hold: a length above 127 is no UTF-8, and then the texts must be looked at one by one.
#[inline]
pub(super) fn is_utf8_run(run: &[u8]) -> bool {
    is_ascii(run) || simdutf8::basic::from_utf8(run).is_ok()
}

/// Whether all bytes are below 128: in blocks that compile to vectors, the last of which overlaps the one
/// before, so that no byte is looked at by itself but in the shortest of runs.
#[inline(always)]
fn is_ascii(run: &[u8]) -> bool {
    const BLOCK: usize = 32;
    let Some(last) = run.last_chunk::<BLOCK>() else { return run.is_ascii() };
    let mut seen = *last;
    let (blocks, _) = run.as_chunks::<BLOCK>();
    for block in blocks {
        for (seen, byte) in seen.iter_mut().zip(block) {
            *seen |= byte;
        }
    }
    seen.iter().fold(0, |all, byte| all | byte) < 0x80
}

/// That one text is UTF-8.
pub(super) fn check_text(subject: Subject, text: &[u8], offset: usize) -> Result<(), Fault> {
    if simdutf8::basic::from_utf8(text).is_ok() {
        return Ok(());
    }
    Err(Fault::new(offset, Reason::Utf8(subject, Excerpt::new(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_that_is_not_ascii_is_seen_wherever_it_stands() {
        for len in 0..100 {
            assert!(is_ascii(&vec![b'a'; len]));
            for at in 0..len {
                let run: Vec<u8> = (0..len).map(|n| if n == at { 0x80 } else { b'a' }).collect();
                assert!(!is_ascii(&run), "byte {at} of {len}");
            }
        }
    }
}
