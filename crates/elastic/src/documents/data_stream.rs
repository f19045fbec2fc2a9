//! Names of data streams: `<type>-<dataset>-<namespace>`, of what Elasticsearch allows in them.

use tidegate_wire::otlp::{AnyValue, Attributes};

/// The most bytes of a dataset or a namespace.
const MAX_PART_LEN: usize = 100;

/// The attributes that name a data stream.
pub(crate) const DATASET: &[u8] = b"data_stream.dataset";
/// See [`DATASET`].
pub(crate) const NAMESPACE: &[u8] = b"data_stream.namespace";
/// See [`DATASET`].
pub(crate) const KIND: &[u8] = b"data_stream.type";

/// A part of a data stream's name: lower case, without what index names may not have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamNamePart {
    bytes: [u8; MAX_PART_LEN],
    len: usize,
}

/// Which part of the name, which says what it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamePart {
    /// No hyphen, since that divides the parts.
    Dataset,
    /// Anything that an index name may have.
    Namespace,
}

impl StreamNamePart {
    /// `prefix`, then what of `text` is allowed, then `suffix`, cut to [`MAX_PART_LEN`] bytes before the suffix. `fallback`
    /// stands for a text of nothing.
    pub(crate) fn new(part: NamePart, prefix: &str, text: &[u8], suffix: &str, fallback: &str) -> Self {
        let mut name = Self { bytes: [0; MAX_PART_LEN], len: 0 };
        let text = if text.is_empty() { fallback.as_bytes() } else { text };
        name.push(prefix.as_bytes(), suffix.len());
        for letter in letters(text) {
            let letter = if part == NamePart::Dataset && letter == '-' { '_' } else { letter };
            if !name.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), suffix.len()) {
                break;
            }
        }
        name.push(suffix.as_bytes(), 0);
        name
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8], spare: usize) -> bool {
        let end = self.len + bytes.len();
        match self.bytes.get_mut(self.len..end) {
            Some(space) if end + spare <= MAX_PART_LEN => {
                space.copy_from_slice(bytes);
                self.len = end;
                true
            }
            _ => false,
        }
    }
}

/// A text as a name of an index may have it: in lower case, with `_` for what is not allowed.
pub(super) fn letters(text: &[u8]) -> impl Iterator<Item = char> {
    let is_allowed = |letter: &char| {
        !matches!(letter, '\\' | '/' | '*' | '?' | '"' | '<' | '>' | '|' | ',' | '#' | ':')
            && !letter.is_whitespace()
            && !letter.is_control()
    };
    let letters = text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).flat_map(char::to_lowercase);
    letters.map(move |letter| if is_allowed(&letter) { letter } else { '_' })
}

/// The data stream named by attributes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamOverride<'a> {
    pub(crate) dataset: Option<&'a [u8]>,
    pub(crate) namespace: Option<&'a [u8]>,
}

impl<'a> StreamOverride<'a> {
    /// The data stream named by `attributes`, which takes precedence over `self`.
    pub(crate) fn overruled(mut self, attributes: Attributes<'a>) -> Self {
        for attribute in attributes {
            if let AnyValue::Text(text) = attribute.value {
                self.hear(attribute.key, text);
            }
        }
        self
    }

    /// Takes one attribute into account.
    #[inline]
    pub(crate) fn hear(&mut self, key: &[u8], text: &'a [u8]) {
        if key.len() < DATASET.len() || text.is_empty() {
            return;
        }
        match key {
            DATASET => self.dataset = Some(text),
            NAMESPACE => self.namespace = Some(text),
            _ => {}
        }
    }
}

/// Whether an attribute says where the document goes, and so is no part of it.
pub(crate) fn is_routing(key: &[u8]) -> bool {
    key.starts_with(b"data_stream.") && matches!(key, DATASET | NAMESPACE | KIND)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name has only what Elasticsearch allows, in at most a hundred bytes, and always something.
    #[test]
    fn names_are_what_elasticsearch_allows() {
        let dataset = |text: &str| {
            let name =
                StreamNamePart::new(NamePart::Dataset, "apm.app.", text.as_bytes(), ".otel", "unknown");
            String::from_utf8(name.as_bytes().to_vec()).unwrap()
        };
        assert_eq!(dataset("Shop-Front/V2 "), "apm.app.shop_front_v2_.otel");
        assert_eq!(dataset("ÄRGER\\*?\"<>|,#:\n"), "apm.app.ärger___________.otel");
        assert_eq!(dataset(""), "apm.app.unknown.otel");
        let long = dataset(&"ü".repeat(200));
        assert!(long.len() <= 100 && long.len() > 96 && long.ends_with("ü.otel"), "{long}");
        let namespace = StreamNamePart::new(NamePart::Namespace, "", b"eu-West 1", "", "default");
        assert_eq!(namespace.as_bytes(), b"eu-west_1");
    }
}
