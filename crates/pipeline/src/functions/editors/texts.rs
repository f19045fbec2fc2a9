//! `stringify_all` and `truncate_all`.

use super::{editor, optional, required, run};
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// `stringify_all(target)`. Output: each value as JSON, at most six times its length.
pub(super) static STRINGIFY_ALL: Signature =
    editor("stringify_all", &[required("target", Type::MapTarget)], |machine, arguments| {
        run(machine, arguments, stringify_all)
    });

fn stringify_all(machine: &mut Machine<'_>, [map]: &[Argument; 1]) -> Result<(), Failure> {
    machine.edit_map(target(map)?, |machine, table| {
        for at in 0..table.len() {
            let Some(entry) = table.entries().get(at) else { break };
            let text = match machine.as_text(entry.value) {
                // A value that JSON cannot express is an empty text in Go.
                Err(Failure::Invalid(_)) => Slice::EMPTY,
                text => text?,
            };
            table.set_at(&machine.memory, at, Value::Text(text));
        }
        Ok(())
    })
}

/// `truncate_all(target, limit, utf8_safe, truncation_marker)`.
///
/// Texts are cut between characters even where `utf8_safe` is false: OTLP has no texts that are not UTF-8.
pub(super) static TRUNCATE_ALL: Signature = Signature {
    complete: |arguments, _, _| {
        let Some(Argument::Value(Expression::Literal(Value::Int(limit)))) = arguments.get(1) else {
            return Ok(());
        };
        let marker = match arguments.get(3) {
            Some(Argument::Value(Expression::Literal(Value::Text(marker)))) => marker.len,
            _ => 0,
        };
        if *limit < 0 {
            return Err((1, "the limit is negative".into()));
        }
        if i64::from(marker) > *limit {
            return Err((3, "the marker is longer than the limit".into()));
        }
        Ok(())
    },
    ..editor(
        "truncate_all",
        &[
            required("target", Type::MapTarget),
            required("limit", Type::LiteralInt),
            optional("utf8_safe", Type::LiteralBool),
            optional("truncation_marker", Type::LiteralText),
        ],
        |machine, arguments| run(machine, arguments, truncate_all),
    )
};

fn truncate_all(machine: &mut Machine<'_>, [map, limit, _, marker]: &[Argument; 4]) -> Result<(), Failure> {
    let limit = usize::try_from(machine.int(limit)?).unwrap_or(0);
    let marker = match marker {
        Argument::Absent => Slice::EMPTY,
        marker => machine.text(marker)?,
    };
    machine.edit_map(target(map)?, |machine, table| {
        for at in 0..table.len() {
            let Some(Value::Text(text)) = table.entries().get(at).map(|entry| entry.value) else { continue };
            if text.len as usize > limit {
                let text = truncated(machine, text, limit, marker)?;
                table.set_at(&machine.memory, at, Value::Text(text));
            }
        }
        Ok(())
    })
}

/// As much of `text` as fits before `marker` into `limit` bytes, with the marker.
fn truncated(machine: &mut Machine<'_>, text: Slice, limit: usize, marker: Slice) -> Result<Slice, Failure> {
    let bytes = machine.memory.get(text);
    let mut len = limit.saturating_sub(marker.len as usize);
    // Bytes within a character are 10xxxxxx.
    while len > 0 && bytes.get(len).is_some_and(|byte| byte & 0xc0 == 0x80) {
        len -= 1;
    }
    let kept = text.part(0, len);
    if marker.len == 0 {
        return Ok(kept);
    }
    machine.memory.build(|memory| {
        memory.push_slice(kept)?;
        memory.push_slice(marker)
    })
}
