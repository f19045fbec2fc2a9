//! Objects as attributes, by their tables.

use super::tables::{Table, To};
use super::writer::{Name, Writer};
use tidegate_wire::intake::{Object, Text, Value};

/// Writes the members of `object` as attributes in field `field`.
pub(super) fn table(out: &mut Writer<'_>, field: u8, object: Object<'_>, table: &'static Table) {
    for (name, value) in object.members() {
        member(out, field, name, value, table);
    }
}

/// Writes one member of an object.
pub(super) fn member(
    out: &mut Writer<'_>,
    field: u8,
    name: Text<'_>,
    value: Value<'_>,
    known: &'static Table,
) {
    let to = name.plain().and_then(|name| known.of(name));
    match (to, value) {
        (Some(To::Skip), _) => {}
        (Some(To::As(name)), value) => out.attribute(field, Name::fixed(name), value),
        (Some(To::Into(inner)), Value::Object(object)) => table(out, field, object, inner),
        (Some(To::Labels), Value::Object(labels)) => {
            for (name, value) in labels.members() {
                out.attribute(field, Name { prefix: "labels.", path: &[name] }, value);
            }
        }
        (Some(To::Texts(name)), Value::Array(array))
            if array.values().next().is_some() && array.values().all(|value| value.text().is_some()) =>
        {
            out.with_value(field, Name::fixed(name), |out| {
                let list = out.open(5);
                for value in array.values() {
                    let item = out.open(1);
                    out.plain(value);
                    out.close(item);
                }
                out.close(list);
            });
        }
        (_, value) => out.attribute(field, Name { prefix: known.rest, path: &[name] }, value),
    }
}
