//! Checks labels that are written as every known sender writes them.
//!
//! Nearly all labels are, so this walk is as short as it can be. It finds nothing out about others: [`super::v1`] walks over
//! those again, for all that may be there and all that may be wrong.

use super::Limits;
use crate::remote_write::v1::LABELS_TAG;
use crate::utf8::is_utf8;

const NAME_TAG: u8 = 0x0a;
const VALUE_TAG: u8 = 0x12;
/// The bytes that must follow a label's start: more than a label with such lengths has, whatever its lengths claim.
const WINDOW: usize = 144;
/// The beginning of a label with the metric's name, after its tag and length.
const METRIC_NAME: &[u8; 11] = b"\x0a\x08__name__\x12";

/// The first eight bytes of a name, zeros behind a shorter one, are this part of the eight bytes at its place.
#[allow(clippy::indexing_slicing, reason = "the compiler computes it")]
const NAME_MASKS: [u64; 128] = {
    let mut masks = [u64::MAX; 128];
    let mut len = 0;
    while len < 8 {
        masks[len] = !(u64::MAX >> (8 * len));
        len += 1;
    }
    masks
};

/// How long the labels are that `ahead` begins with, if they are plain: at least one, name and value alone, shorter than
/// 128 bytes, sorted, UTF-8, within the limits; and, where a metric's name is required, that comes first.
///
/// `ahead` goes on behind the series, up to the end of the body, so that one look at its length allows for all that is
/// read of a label. So the last labels of a body are never plain, and those that are may reach past their series. What is
/// behind them may be anything, other labels too.
#[inline(never)]
pub(super) fn plain_labels(ahead: &[u8], limits: &Limits) -> Option<usize> {
    if limits.require_metric_name {
        let (name, [value_len, ..]) = ahead.get(2..)?.split_first_chunk()? else { return None };
        if name != METRIC_NAME || *value_len == 0 {
            return None;
        }
    }
    let mut rest = ahead;
    let (mut labels, mut previous, mut previous_key) = (0, &[][..], 0);
    loop {
        // Each byte by itself: where the next label begins is known as soon as one byte is loaded. To load the four as one
        // word takes fewer instructions and a seventh more time.
        let [label_tag, len, name_tag, name_len, tail @ ..] = rest.first_chunk::<WINDOW>()?;
        let (len, name_len) = (usize::from(*len), usize::from(*name_len));
        if *label_tag != LABELS_TAG || len >= 128 || *name_tag != NAME_TAG || name_len >= 128 {
            break;
        }
        let (name, value) = tail.split_at(name_len);
        let &[value_tag, value_len] = value.first_chunk()?;
        let value_len = usize::from(value_len);
        if value_tag != VALUE_TAG || name_len + value_len + 4 != len {
            return None;
        }
        if name_len > limits.name_bytes || value_len > limits.value_bytes {
            return None;
        }
        let key = u64::from_be_bytes(*tail.first_chunk()?) & NAME_MASKS.get(name_len)?;
        // An empty name is not sorted, since it is not greater than even the empty beginning.
        if key < previous_key || (key == previous_key && !is_greater(name, previous)) {
            return None;
        }
        (previous, previous_key) = (name, key);
        labels += 1;
        rest = rest.get(len + 2..)?;
    }
    let len = ahead.len() - rest.len();
    (labels > 0 && labels <= limits.labels && is_utf8(ahead.get(..len)?)).then_some(len)
}

#[inline(never)]
fn is_greater(name: &[u8], previous: &[u8]) -> bool {
    name > previous
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

    use super::*;
    use crate::proto::Reader;
    use crate::remote_write::v1::plain_label;
    use proptest::prelude::*;

    fn label(name: &[u8], value: &[u8]) -> Vec<u8> {
        let byte = |len: usize| u8::try_from(len).unwrap();
        let len = byte(name.len() + value.len() + 4);
        [&[LABELS_TAG, len, 0x0a, byte(name.len())], name, &[VALUE_TAG, byte(value.len())], value].concat()
    }

    /// The labels, a sample, and enough behind them.
    fn body(labels: &[u8]) -> Vec<u8> {
        [labels, b"\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01", &[0; WINDOW]].concat()
    }

    /// The same by the book: label after label, nothing read ahead.
    fn expected(series: &[u8], limits: &Limits) -> Option<usize> {
        let mut reader = Reader::new(series);
        let mut names: Vec<&[u8]> = Vec::new();
        while let Some(field) = reader.take_short(LABELS_TAG) {
            let (label, _) = plain_label(field)?;
            let is_within = label.name.len() <= limits.name_bytes && label.value.len() <= limits.value_bytes;
            let is_text = std::str::from_utf8(label.name).and(std::str::from_utf8(label.value)).is_ok();
            let is_first = names.is_empty();
            let has_name = !is_first || (label.name == b"__name__" && !label.value.is_empty());
            if !is_within || !is_text || (limits.require_metric_name && !has_name) {
                return None;
            }
            names.push(label.name);
        }
        let is_sorted =
            names.iter().all(|name| !name.is_empty()) && names.windows(2).all(|two| two[0] < two[1]);
        let len = series.len() - reader.rest().len();
        (is_sorted && !names.is_empty() && names.len() <= limits.labels).then_some(len)
    }

    #[test]
    fn labels_as_senders_write_them_are_plain() {
        let names: [&[u8]; 5] = [b"__name__", b"a", b"instance", b"instance_id", "kühl".as_bytes()];
        let labels = names.map(|name| label(name, b"some value")).concat();
        assert_eq!(plain_labels(&body(&labels), &Limits::default()), Some(labels.len()));
        let longest = label(b"__name__", &[b'v'; 115]);
        assert_eq!(plain_labels(&body(&longest), &Limits::default()), Some(longest.len()));
    }

    proptest! {
        #[test]
        fn labels_are_plain_if_and_only_if_they_are_right(
            mut labels in prop::collection::vec(("(__name__|[a-c]{0,3}|instance[a-b]{0,2}|é)", "[x-z]{0,3}|ü|[a-z]{110}"), 0..8),
            sorted in prop::bool::weighted(0.9),
            damage in prop::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>())),
            [most, name_bytes, value_bytes] in [1usize..9, 1usize..20, 1usize..200],
            require_metric_name in any::<bool>(),
        ) {
            if sorted {
                labels.sort();
                labels.dedup_by(|one, other| one.0 == other.0);
            }
            let fields = labels.iter().map(|(name, value)| label(name.as_bytes(), value.as_bytes()));
            let mut series = fields.collect::<Vec<_>>().concat();
            if let Some((at, byte)) = damage && !series.is_empty() {
                let at = at.index(series.len());
                series[at] = byte;
            }
            let limits = Limits { labels: most, name_bytes, value_bytes, require_metric_name, ..Limits::default() };
            let body = body(&series);
            match plain_labels(&body, &limits) {
                // A label that is not plain may follow; that is for the caller to see.
                Some(len) => prop_assert_eq!(expected(&body[..len], &limits), Some(len)),
                // Texts are looked at together with their lengths, of which some are no ASCII.
                None => prop_assert!(expected(&body, &limits).is_none() || !series.is_ascii()),
            }
        }
    }
}
