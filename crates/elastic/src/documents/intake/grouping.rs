//! What errors are grouped by, as Elastic APM has it: a hash of the types of an exception and all its causes, the
//! message without its parameters, and all frames; of messages where there is nothing of that.

use tidegate_wire::intake::{Object, Text, Value};
use xxhash_rust::xxh64::Xxh64;

/// What is hashed.
struct Key {
    hash: Xxh64,
    is_empty: bool,
}

/// The key of an error.
pub(super) fn key(exception: Option<Object<'_>>, log: Option<Object<'_>>) -> u64 {
    let mut key = Key { hash: Xxh64::new(0), is_empty: true };
    if let Some(exception) = exception {
        key.tree(exception, &mut |key, one| key.text(one.find(b"type")));
    }
    if let Some(log) = log {
        key.text(log.find(b"param_message"));
    }
    let before = std::mem::replace(&mut key.is_empty, true);
    if let Some(exception) = exception {
        key.tree(exception, &mut Key::frames);
    }
    if key.is_empty
        && let Some(log) = log
    {
        key.frames(log);
    }
    key.is_empty &= before;
    if key.is_empty
        && let Some(exception) = exception
    {
        key.tree(exception, &mut |key, one| key.text(one.find(b"message")));
    }
    if key.is_empty
        && let Some(log) = log
    {
        key.text(log.find(b"message"));
    }
    key.hash.digest()
}

impl Key {
    /// Hashes an exception, then its causes with theirs. A body nests as deep as it may, no deeper.
    fn tree(&mut self, exception: Object<'_>, each: &mut dyn FnMut(&mut Key, Object<'_>)) {
        each(self, exception);
        let causes = exception.find(b"cause").and_then(Value::array);
        for cause in causes.into_iter().flat_map(|causes| causes.values()).filter_map(Value::object) {
            self.tree(cause, each);
        }
    }

    fn frames(&mut self, of: Object<'_>) {
        let frames = of.find(b"stacktrace").and_then(Value::array);
        for frame in frames.into_iter().flat_map(|frames| frames.values()).filter_map(Value::object) {
            let text = |name: &[u8]| frame.find(name).and_then(Value::text).filter(|text| !text.is_empty());
            let place = text(b"module").or_else(|| text(b"filename")).or_else(|| text(b"classname"));
            self.text(place.map(Value::Text));
            self.text(frame.find(b"function"));
        }
    }

    fn text(&mut self, value: Option<Value<'_>>) {
        let text = value.and_then(Value::text).unwrap_or(Text::EMPTY);
        self.is_empty &= text.is_empty();
        text.pieces(|piece| self.hash.update(piece));
    }
}
