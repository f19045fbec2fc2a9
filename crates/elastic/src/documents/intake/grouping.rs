//! The grouping key of errors, as in Elastic APM: a hash of the types of an exception and all its causes, the message
//! without its parameters, and all frames; of messages if there are none.

use super::frames::ExceptionProperties;
use tidegate_wire::intake::{Array, Object, Text, Value};
use xxhash_rust::xxh64::Xxh64;

/// The input of the hash.
struct GroupingHash {
    hash: Xxh64,
    is_empty: bool,
}

/// The key of an error.
pub(super) fn key(exception: Option<Object<'_>>, log: Option<Object<'_>>) -> u64 {
    let mut key = GroupingHash { hash: Xxh64::new(0), is_empty: true };
    let of_log = |name: &[u8]| log.and_then(|log| log.find(name));
    let text = |name: &[u8]| of_log(name).and_then(Value::text).unwrap_or(Text::EMPTY);
    if let Some(exception) = exception {
        key.tree(exception, &mut |key, one| key.text(one.kind));
    }
    key.text(text(b"param_message"));
    let before = std::mem::replace(&mut key.is_empty, true);
    if let Some(exception) = exception {
        key.tree(exception, &mut |key, one| key.frames(one.frames));
    }
    if key.is_empty {
        key.frames(of_log(b"stacktrace").and_then(Value::array));
    }
    key.is_empty &= before;
    if key.is_empty
        && let Some(exception) = exception
    {
        key.tree(exception, &mut |key, one| key.text(one.message));
    }
    if key.is_empty {
        key.text(text(b"message"));
    }
    key.hash.digest()
}

impl GroupingHash {
    /// Hashes an exception, then its causes with theirs. A body nests as deep as it may, no deeper.
    fn tree(
        &mut self,
        exception: Object<'_>,
        each: &mut dyn FnMut(&mut GroupingHash, ExceptionProperties<'_>),
    ) {
        let exception = ExceptionProperties::of(exception);
        each(self, exception);
        for cause in exception.causes() {
            self.tree(cause, each);
        }
    }

    fn frames(&mut self, frames: Option<Array<'_>>) {
        for frame in frames.into_iter().flat_map(Array::values).filter_map(Value::object) {
            let text = |name: &[u8]| frame.find(name).and_then(Value::text).filter(|text| !text.is_empty());
            let place = text(b"module").or_else(|| text(b"filename")).or_else(|| text(b"classname"));
            self.text(place.unwrap_or(Text::EMPTY));
            self.text(text(b"function").unwrap_or(Text::EMPTY));
        }
    }

    fn text(&mut self, text: Text<'_>) {
        self.is_empty &= text.is_empty();
        text.pieces(|piece| self.hash.update(piece));
    }
}
