//! Lists of attributes, nested values among them.

use crate::output::Full;
use crate::proto::write::{Varint, bytes_len, varint_len};

/// Encodes attributes into a buffer that is used again and again, up to a bound: a list of `KeyValue` fields as a
/// `Resource` and a `KeyValueList` have them. [`LogsEncoder`](super::LogsEncoder) gives a record's their own tag.
///
/// A method that gives back [`Full`] has written nothing. What was written since a [`len`](Self::len) can be taken
/// [back](Self::truncate).
#[derive(Debug)]
pub struct Attributes<'b> {
    out: &'b mut Vec<u8>,
    most: usize,
    /// The most bytes that closing the open maps and lists adds.
    closing: usize,
}

/// The value of an attribute, or an element of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Empty,
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An integer.
    Int(i64),
    /// A number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
}

/// A map or a list that is open. It ends with [`Attributes::close`].
#[derive(Debug)]
#[must_use = "a map or a list that is not closed makes the attributes invalid"]
pub struct OpenValue {
    /// Where its `KeyValue`, or as an element of a list its `AnyValue`, begins.
    start: usize,
    /// The length of the key with its tag and length; `None` for an element of a list.
    key_len: Option<usize>,
}

/// The bytes of the bound that a map or a list reserves: three lengths, of which one byte each is written already.
const CLOSING: usize = 3 * 4;

const MAP: u8 = 0x32;
const LIST: u8 = 0x2a;

impl<'b> Attributes<'b> {
    /// Begins with an empty list in `out`, which never becomes longer than `most` bytes.
    pub fn new(out: &'b mut Vec<u8>, most: usize) -> Attributes<'b> {
        out.clear();
        Attributes { out, most, closing: 0 }
    }

    /// The encoded attributes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.out
    }

    /// Their length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back what was written since the list was `len` bytes long. Maps and lists that were opened since must
    /// not be closed.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        self.closing = 0;
    }

    /// Adds a text.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    #[inline]
    pub fn text(&mut self, key: &str, value: &str) -> Result<(), Full> {
        self.put(key, Value::Text(value))
    }

    /// Adds bytes as a text in which U+FFFD replaces invalid UTF-8.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn text_lossy(&mut self, key: &str, value: &[u8]) -> Result<(), Full> {
        match std::str::from_utf8(value) {
            Ok(value) => self.text(key, value),
            Err(_) => self.replaced_text(key, value),
        }
    }

    /// Adds an integer.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    #[inline]
    pub fn int(&mut self, key: &str, value: i64) -> Result<(), Full> {
        self.put(key, Value::Int(value))
    }

    /// Adds a number.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    #[inline]
    pub fn double(&mut self, key: &str, value: f64) -> Result<(), Full> {
        self.put(key, Value::Double(value))
    }

    /// Adds a boolean.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    #[inline]
    pub fn bool(&mut self, key: &str, value: bool) -> Result<(), Full> {
        self.put(key, Value::Bool(value))
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// [`Full`] when there is no room for them.
    #[inline]
    pub fn bytes(&mut self, key: &str, value: &[u8]) -> Result<(), Full> {
        self.put(key, Value::Bytes(value))
    }

    /// Adds an attribute, or a member of the open map.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn put(&mut self, key: &str, value: Value<'_>) -> Result<(), Full> {
        let any = value.encoded_len();
        let pair = key_len(key) + bytes_len(any);
        self.reserve(bytes_len(pair))?;
        self.length(0x0a, pair);
        self.key(key);
        self.length(0x12, any);
        self.value(value);
        Ok(())
    }

    /// Adds an element to the open list.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn push(&mut self, value: Value<'_>) -> Result<(), Full> {
        let any = value.encoded_len();
        self.reserve(bytes_len(any))?;
        self.length(0x0a, any);
        self.value(value);
        Ok(())
    }

    /// Opens a map: what is [put](Self::put) next are its members. Receivers refuse more than
    /// [`MAX_DEPTH`](crate::otlp::MAX_DEPTH) levels of maps and lists.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn open_map(&mut self, key: &str) -> Result<OpenValue, Full> {
        self.open_member(key, MAP)
    }

    /// Opens a list: what is [pushed](Self::push) next are its elements.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn open_list(&mut self, key: &str) -> Result<OpenValue, Full> {
        self.open_member(key, LIST)
    }

    /// Opens a map as an element of the open list.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn push_map(&mut self) -> Result<OpenValue, Full> {
        self.open_element(MAP)
    }

    /// Opens a list as an element of the open list.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    pub fn push_list(&mut self) -> Result<OpenValue, Full> {
        self.open_element(LIST)
    }

    /// Closes the map or the list that was opened last.
    pub fn close(&mut self, open: OpenValue) {
        self.closing = self.closing.saturating_sub(CLOSING);
        let OpenValue { start, key_len } = open;
        // [tag length key] tag length tag length contents
        let key_start = start + key_len.map_or(0, |_| 2);
        let contents = key_start + key_len.unwrap_or(0) + 4;
        let len = self.out.len().saturating_sub(contents) as u64;
        let any = bytes_len(len);
        let pair = key_len.map_or(0, |key| key as u64) + bytes_len(any);
        let widths = [varint_len(pair), varint_len(any), varint_len(len)];
        let [pair_width, any_width, len_width] = widths.map(|width| usize::try_from(width).unwrap_or(10));
        let pair_more = if key_len.is_some() { pair_width - 1 } else { 0 };
        let more = pair_more + any_width - 1 + len_width - 1;
        let (old_len, list_tag) = (self.out.len(), self.out.get(contents - 2).copied().unwrap_or(MAP));
        if more > 0 {
            self.out.resize(old_len + more, 0);
            self.out.copy_within(contents..old_len, contents + more);
            self.out.copy_within(key_start..contents - 4, key_start + pair_more);
        }
        let mut at = start;
        if let Some(key_len) = key_len {
            self.overwrite(&mut at, 0x0a, pair);
            at += key_len;
        }
        self.overwrite(&mut at, if key_len.is_some() { 0x12 } else { 0x0a }, any);
        self.overwrite(&mut at, list_tag, len);
    }

    fn open_member(&mut self, key: &str, tag: u8) -> Result<OpenValue, Full> {
        self.reserve(2 + key_len(key) + 4 + CLOSING as u64)?;
        let start = self.out.len();
        self.out.extend_from_slice(&[0x0a, 0]);
        self.key(key);
        self.out.extend_from_slice(&[0x12, 0, tag, 0]);
        self.closing += CLOSING;
        Ok(OpenValue { start, key_len: Some(usize::try_from(key_len(key)).unwrap_or(usize::MAX)) })
    }

    fn open_element(&mut self, tag: u8) -> Result<OpenValue, Full> {
        self.reserve(4 + CLOSING as u64)?;
        let start = self.out.len();
        self.out.extend_from_slice(&[0x0a, 0, tag, 0]);
        self.closing += CLOSING;
        Ok(OpenValue { start, key_len: None })
    }

    #[cold]
    fn replaced_text(&mut self, key: &str, value: &[u8]) -> Result<(), Full> {
        const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
        let pieces = || {
            value.utf8_chunks().flat_map(|chunk| {
                let invalid = if chunk.invalid().is_empty() { &[][..] } else { REPLACEMENT };
                [chunk.valid().as_bytes(), invalid]
            })
        };
        let text = pieces().map(|piece| piece.len() as u64).sum();
        let any = bytes_len(text);
        let pair = key_len(key) + bytes_len(any);
        self.reserve(bytes_len(pair))?;
        self.length(0x0a, pair);
        self.key(key);
        self.length(0x12, any);
        self.length(0x0a, text);
        pieces().for_each(|piece| self.out.extend_from_slice(piece));
        Ok(())
    }

    /// Makes room for so many bytes within the bound.
    #[inline]
    fn reserve(&mut self, bytes: u64) -> Result<(), Full> {
        let bytes = usize::try_from(bytes).map_err(|_| Full)?;
        let needed = self.out.len().saturating_add(self.closing).saturating_add(bytes);
        if needed > self.most {
            return Err(Full);
        }
        if needed > self.out.capacity() {
            // Twice as much each time, but not more than the bound.
            let capacity = needed.saturating_mul(2).min(self.most);
            self.out.reserve_exact(capacity - self.out.len());
        }
        Ok(())
    }

    fn length(&mut self, tag: u8, len: u64) {
        self.out.push(tag);
        self.out.extend_from_slice(Varint::new(len).as_bytes());
    }

    fn key(&mut self, key: &str) {
        if !key.is_empty() {
            self.length(0x0a, key.len() as u64);
            self.out.extend_from_slice(key.as_bytes());
        }
    }

    fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Empty => {}
            Value::Text(text) => {
                self.length(0x0a, text.len() as u64);
                self.out.extend_from_slice(text.as_bytes());
            }
            Value::Bool(value) => self.out.extend_from_slice(&[0x10, value.into()]),
            Value::Int(value) => self.length(0x18, value.cast_unsigned()),
            Value::Double(value) => {
                self.out.push(0x21);
                self.out.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            Value::Bytes(bytes) => {
                self.length(0x3a, bytes.len() as u64);
                self.out.extend_from_slice(bytes);
            }
        }
    }

    fn overwrite(&mut self, at: &mut usize, tag: u8, len: u64) {
        let len = Varint::new(len);
        let bytes = [tag].into_iter().chain(len.as_bytes().iter().copied());
        for (to, from) in self.out.iter_mut().skip(*at).zip(bytes) {
            *to = from;
            *at += 1;
        }
    }
}

impl Value<'_> {
    /// The length of its `AnyValue`.
    fn encoded_len(self) -> u64 {
        match self {
            Value::Empty => 0,
            Value::Text(text) => bytes_len(text.len() as u64),
            Value::Bytes(bytes) => bytes_len(bytes.len() as u64),
            Value::Int(value) => 1 + varint_len(value.cast_unsigned()),
            Value::Double(_) => 9,
            Value::Bool(_) => 2,
        }
    }
}

/// The length of a key with its tag and length.
fn key_len(key: &str) -> u64 {
    if key.is_empty() { 0 } else { bytes_len(key.len() as u64) }
}
