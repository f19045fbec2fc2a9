//! Labels as the tables keep them: the series' number, the canonical JSON, the promoted ones.

use crate::table::PROMOTED;
use tidegate_wire::json;
use tidegate_wire::remote_write::Label;
use xxhash_rust::xxh64::Xxh64;

pub(crate) const METRIC_NAME: &[u8] = b"__name__";

/// The properties of a series, found in one pass over its labels.
#[derive(Debug)]
pub(crate) struct SeriesLabels<'a> {
    /// xxh64, seed 0, over name, 0xFF, value, 0xFF of every label in order. Equal labels give equal numbers;
    /// the converse is likely and no more.
    pub(crate) id: i64,
    /// The value of `__name__`, empty when there is none.
    pub(crate) name: &'a [u8],
    /// The values of the promoted labels.
    pub(crate) promoted: [Option<&'a [u8]>; PROMOTED.len()],
    /// Bytes that [`write_json`] writes for the rest.
    pub(crate) json_len: usize,
    /// Whether there is a `quantile`, as series of summaries have.
    pub(crate) quantile: bool,
}

impl<'a> SeriesLabels<'a> {
    pub(crate) fn new(labels: impl Iterator<Item = Label<'a>>) -> Self {
        let mut hash = Xxh64::new(0);
        let mut labelled =
            SeriesLabels { id: 0, name: &[], promoted: [None; PROMOTED.len()], json_len: 2, quantile: false };
        let mut rest = 0;
        for label in labels {
            hash.update(label.name);
            hash.update(&[0xff]);
            hash.update(label.value);
            hash.update(&[0xff]);
            if label.name == METRIC_NAME {
                labelled.name = label.value;
            } else if let Some(place) = promoted(label.name) {
                if let Some(promoted) = labelled.promoted.get_mut(place) {
                    *promoted = Some(label.value);
                }
            } else {
                labelled.quantile |= label.name == b"quantile";
                labelled.json_len += json::escaped_len_of(label.name) + json::escaped_len_of(label.value) + 5;
                rest += 1;
            }
        }
        if rest > 0 {
            labelled.json_len += rest - 1;
        }
        labelled.id = hash.digest().cast_signed();
        labelled
    }

    /// Bytes of all its texts.
    pub(crate) fn text_len(&self) -> usize {
        let promoted: usize = self.promoted.iter().flatten().map(|value| value.len()).sum();
        self.name.len() + promoted + self.json_len
    }
}

/// The place of a promoted label.
pub(crate) fn promoted(name: &[u8]) -> Option<usize> {
    PROMOTED.iter().position(|promoted| promoted.as_bytes() == name)
}

/// Writes `{"name":"value",…}` of the labels that have no column of their own, in order.
pub(crate) fn write_json<'a>(labels: impl Iterator<Item = Label<'a>>, out: &mut Vec<u8>) {
    write_object(labels.filter(|label| label.name != METRIC_NAME && promoted(label.name).is_none()), out);
}

/// Writes `{"name":"value",…}` of all these labels, in order.
pub(crate) fn write_object<'a>(labels: impl Iterator<Item = Label<'a>>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (place, label) in labels.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        json::append_string(out, label.name);
        out.push(b':');
        json::append_string(out, label.value);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(pairs: &[(String, String)]) -> impl Iterator<Item = Label<'_>> + Clone {
        pairs.iter().map(|(name, value)| Label { name: name.as_bytes(), value: value.as_bytes() })
    }

    proptest! {
        /// The JSON is what serde_json writes, and exactly as long as was said before it was written.
        #[test]
        fn json_is_canonical(pairs in proptest::collection::vec(
            (any::<String>(), any::<String>()), 0..8)) {
            let pairs: Vec<_> = pairs.into_iter().filter(|(name, _)| {
                name != "__name__" && promoted(name.as_bytes()).is_none()
            }).collect();
            let mut written = Vec::new();
            write_json(labels(&pairs), &mut written);
            prop_assert_eq!(written.len(), SeriesLabels::new(labels(&pairs)).json_len);
            let parts: Vec<String> = pairs.iter().map(|(name, value)| {
                format!("{}:{}", serde_json::to_string(name).unwrap(), serde_json::to_string(value).unwrap())
            }).collect();
            prop_assert_eq!(String::from_utf8(written).unwrap(), format!("{{{}}}", parts.join(",")));
        }
    }

    #[test]
    fn name_and_promoted_labels_become_columns() {
        let pairs = [("__name__", "up"), ("a", "1"), ("instance", "i"), ("job", "j")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let labelled = SeriesLabels::new(labels(&pairs));
        assert_eq!(labelled.name, b"up");
        assert_eq!(labelled.promoted[..2], [Some(&b"j"[..]), Some(&b"i"[..])]);
        let mut written = Vec::new();
        write_json(labels(&pairs), &mut written);
        assert_eq!(written, b"{\"a\":\"1\"}");
        assert_eq!(
            labelled.id,
            xxhash_rust::xxh64::xxh64(b"__name__\xffup\xffa\xff1\xffinstance\xffi\xffjob\xffj\xff", 0)
                .cast_signed()
        );
    }
}
