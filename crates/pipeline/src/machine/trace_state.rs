//! Members of a W3C `tracestate`, by key. <https://www.w3.org/TR/trace-context/#tracestate-header>

use super::Machine;
use crate::memory::Slice;
use crate::ottl::program::Key;
use crate::value::{Failure, Kind, Value};

/// The most members that a trace state has.
const MEMBERS: usize = 32;

impl Machine<'_> {
    /// The value of a member: an empty text when it is missing, `nil` when the trace state is malformed.
    pub(crate) fn trace_state_get(&mut self, state: Value, key: &Key) -> Result<Value, Failure> {
        let name = self.name(key)?;
        let Value::Text(state) = state else { return Ok(Value::Nil) };
        let text = self.memory.get(state);
        if !is_valid(text) {
            return Ok(Value::Nil);
        }
        let name = self.memory.get(name);
        let found = members(text).find(|member| member.key == name);
        Ok(Value::Text(found.map_or(Slice::EMPTY, |member| state.part(member.value, member.end))))
    }

    /// The trace state with a member in front; `None` when the old one, the key or the value is malformed.
    pub(super) fn trace_state_set(
        &mut self,
        state: Value,
        key: &Key,
        value: Value,
    ) -> Result<Option<Slice>, Failure> {
        let Value::Text(value) = value else {
            return Err(Failure::Type { wanted: Kind::Text, found: value.kind() });
        };
        let name = self.name(key)?;
        let state = if let Value::Text(state) = state { state } else { Slice::EMPTY };
        let memory = &mut self.memory;
        if !is_valid(memory.get(state)) || !is_key(memory.get(name)) || !is_value(memory.get(value)) {
            return Ok(None);
        }
        let mark = memory.mark();
        memory.push_slice(name)?;
        memory.push(b"=")?;
        memory.push_slice(value)?;
        let (mut from, mut count) = (0, 1);
        while let Some(member) = next_member(memory.get(state), from) {
            let (start, end, next) = (member.start, member.end, member.next);
            if member.key != memory.get(name) && count < MEMBERS {
                count += 1;
                memory.push(b",")?;
                memory.push_slice(state.part(start, end))?;
            }
            from = next;
        }
        Ok(Some(memory.since(mark)))
    }
}

/// `key=value` from `start` to `end`; `value` is where its value begins, `next` where the next member may.
struct Member<'t> {
    key: &'t [u8],
    start: usize,
    value: usize,
    end: usize,
    next: usize,
}

fn members(text: &[u8]) -> impl Iterator<Item = Member<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let member = next_member(text, from)?;
        from = member.next;
        Some(member)
    })
}

/// The member that begins at or behind `from`. Without `=` the key is empty.
fn next_member(text: &[u8], from: usize) -> Option<Member<'_>> {
    let mut from = from;
    loop {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b',', rest).unwrap_or(rest.len());
        let whole = rest.get(..len).unwrap_or_default();
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let lead = whole.iter().take_while(|byte| blank(byte)).count();
        let trail = whole.iter().rev().take_while(|byte| blank(byte)).count();
        if lead == len {
            from += len + 1;
            continue;
        }
        let member = whole.get(lead..len - trail).unwrap_or_default();
        let equals = memchr::memchr(b'=', member);
        let key = member.get(..equals.unwrap_or(0)).unwrap_or_default();
        let start = from + lead;
        return Some(Member {
            key,
            start,
            value: start + equals.map_or(0, |at| at + 1),
            end: start + member.len(),
            next: from + len + 1,
        });
    }
}

fn is_valid(text: &[u8]) -> bool {
    let mut count = 0;
    for (at, member) in members(text).enumerate() {
        count += 1;
        let value = text.get(member.value..member.end).unwrap_or_default();
        let again = members(text).take(at).any(|other| other.key == member.key);
        if count > MEMBERS || !is_key(member.key) || !is_value(value) || again {
            return false;
        }
    }
    true
}

fn is_key(key: &[u8]) -> bool {
    let is_part = |part: &[u8], most: usize, digit_first: bool| {
        let first = part.first().copied().unwrap_or(0);
        part.len() <= most
            && (first.is_ascii_lowercase() || digit_first && first.is_ascii_digit())
            && part
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(byte))
    };
    match key.iter().position(|byte| *byte == b'@') {
        None => is_part(key, 256, false),
        Some(at) => {
            is_part(key.get(..at).unwrap_or_default(), 241, true)
                && is_part(key.get(at + 1..).unwrap_or_default(), 14, false)
        }
    }
}

fn is_value(value: &[u8]) -> bool {
    value.len() <= 256
        && value.last().is_some_and(|last| *last != b' ')
        && value.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'='))
}
