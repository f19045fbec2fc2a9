//! Objects as attributes, by their tables.

use super::tables::{AttributeMapping, MemberTable};
use super::writer::{AttributeName, MessageWriter};
use tidegate_wire::intake::{Object, Text, Value};

/// Writes the members of `object` as attributes in field `field`.
pub(super) fn table(out: &mut MessageWriter<'_>, field: u8, object: Object<'_>, known: &'static MemberTable) {
    members(out, field, object, known, |_, _| {});
}

/// The same, and shows each of them. Of members with a known name the last that is not `null` counts; what was shown
/// before it did not.
pub(super) fn members<'a>(
    out: &mut MessageWriter<'_>,
    field: u8,
    object: Object<'a>,
    known: &'static MemberTable,
    mut see: impl FnMut(&[u8], Value<'a>),
) {
    let start = out.mark();
    let mut seen = 0u64;
    for (name, value) in object.members().filter(|(_, value)| *value != Value::Null) {
        let found = name.plain().and_then(|name| known.of(name));
        if let Some((place, _)) = found {
            let bit = 1u64.checked_shl(place).unwrap_or(0);
            if seen & bit != 0 {
                out.back_to(start);
                return last_of_each(out, field, object, known, see);
            }
            seen |= bit;
        }
        see(name.plain().unwrap_or_default(), value);
        member(out, field, name, value, found.map(|(_, to)| to), known);
    }
}

/// The unknown ones, and then the last of each known name.
#[cold]
fn last_of_each<'a>(
    out: &mut MessageWriter<'_>,
    field: u8,
    object: Object<'a>,
    known: &'static MemberTable,
    mut see: impl FnMut(&[u8], Value<'a>),
) {
    let is_known = |name: Text<'_>| name.plain().is_some_and(|name| known.of(name).is_some());
    for (name, value) in object.members().filter(|(name, _)| !is_known(*name)) {
        member(out, field, name, value, None, known);
    }
    for (known_name, to) in known.known {
        let is_it = |name: Text<'_>| name.plain() == Some(known_name.as_bytes());
        let last = object.members().filter(|(name, value)| is_it(*name) && *value != Value::Null).last();
        if let Some((name, value)) = last {
            see(known_name.as_bytes(), value);
            member(out, field, name, value, Some(*to), known);
        }
    }
}

/// Writes one member of an object.
fn member(
    out: &mut MessageWriter<'_>,
    field: u8,
    name: Text<'_>,
    value: Value<'_>,
    to: Option<AttributeMapping>,
    known: &'static MemberTable,
) {
    match (to, value) {
        (Some(AttributeMapping::Skip), _) => {}
        (Some(AttributeMapping::As(name)), value) => out.attribute(field, AttributeName::fixed(name), value),
        (Some(AttributeMapping::Into(inner)), Value::Object(object)) => table(out, field, object, inner),
        (Some(AttributeMapping::Labels), Value::Object(labels)) => {
            for (name, value) in labels.members() {
                out.attribute(field, AttributeName { prefix: "labels.", path: &[name] }, value);
            }
        }
        (Some(AttributeMapping::Texts(name)), Value::Array(array))
            if array.values().next().is_some() && array.values().all(|value| value.text().is_some()) =>
        {
            out.with_value(field, AttributeName::fixed(name), |out| {
                let list = out.open(5);
                for value in array.values() {
                    let item = out.open(1);
                    out.plain(value);
                    out.close(item);
                }
                out.close(list);
            });
        }
        (_, value) => out.attribute(field, AttributeName { prefix: known.rest, path: &[name] }, value),
    }
}
