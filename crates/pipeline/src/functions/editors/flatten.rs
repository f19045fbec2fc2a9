//! `flatten`.

use super::{editor, optional, required, run};
use crate::any_value::{DEEPEST, Elements, Pairs};
use crate::key_index::KeyIndex;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Signature, Type};
use crate::table::MapTable;
use crate::value::{Failure, Value};
use tidegate_wire::json::write;

/// `flatten(target, prefix, depth, resolve_conflicts)`: nested keys are joined by dots.
///
/// Output: the keys on the way to each value.
pub(super) static FLATTEN: Signature = Signature {
    complete: |arguments, _, _| match arguments.get(2) {
        Some(Argument::Value(Expression::Literal(Value::Int(..1)))) => {
            Err((2, "the depth is at least 1".into()))
        }
        _ => Ok(()),
    },
    ..editor(
        "flatten",
        &[
            required("target", Type::MapTarget),
            optional("prefix", Type::LiteralText),
            optional("depth", Type::LiteralInt),
            optional("resolve_conflicts", Type::LiteralBool),
        ],
        |machine, arguments| run(machine, arguments, flatten),
    )
};

fn flatten(machine: &mut Machine<'_>, [map, prefix, depth, resolve]: &[Argument; 4]) -> Result<(), Failure> {
    let prefix = match prefix {
        Argument::Absent => Slice::EMPTY,
        prefix => machine.text(prefix)?,
    };
    let depth = match depth {
        Argument::Absent => i64::MAX,
        depth => machine.int(depth)?,
    };
    let resolve = !matches!(resolve, Argument::Absent) && machine.bool(resolve)?;
    machine.edit_map(target(map)?, |machine, table| {
        machine.with_spare(|machine, flat| {
            machine.with_spare(|machine, conflicts| {
                machine.with_index(|machine, index| {
                    let prefix = with_dot(machine, prefix)?;
                    let mut state = Flattening { machine, flat, index, conflicts, depth, resolve };
                    for entry in table.entries() {
                        state.value(prefix, entry.key, entry.value, 0)?;
                    }
                    Ok(())
                })
            })?;
            table.replace(&machine.memory, flat.entries().iter().copied())
        })
    })
}

/// A map that is being flattened.
struct Flattening<'f, 'a> {
    machine: &'f mut Machine<'a>,
    flat: &'f mut MapTable,
    /// Of the keys of `flat`.
    index: &'f mut KeyIndex,
    /// For each entry of `flat`, how many values with its key were renamed.
    conflicts: &'f mut MapTable,
    depth: i64,
    resolve: bool,
}

impl Flattening<'_, '_> {
    /// Adds a value, or what is in it. `prefix` ends with a dot, but for lists in lists, where Go has none.
    fn value(&mut self, prefix: Slice, key: Slice, value: Value, depth: i64) -> Result<(), Failure> {
        match value {
            // Each map or list adds to the depth.
            Value::Map(_) | Value::List(_) if depth < self.depth && depth >= DEEPEST as i64 => {
                Err(Failure::Invalid("the map is nested too deeply"))
            }
            Value::Map(map) if depth < self.depth => {
                let prefix = self.join(prefix, key)?;
                self.map(prefix, map, depth + 1)
            }
            Value::List(list) if depth < self.depth => self.list(prefix, key, list, depth),
            value => {
                let key = self.join(prefix, key)?;
                self.add(key, value)
            }
        }
    }

    fn map(&mut self, prefix: Slice, map: Slice, depth: i64) -> Result<(), Failure> {
        let prefix = with_dot(self.machine, prefix)?;
        let mut pairs = Pairs::new(map);
        while let Some(pair) = pairs.next(&self.machine.memory) {
            self.value(prefix, pair.key, pair.value, depth)?;
        }
        Ok(())
    }

    fn list(&mut self, prefix: Slice, key: Slice, list: Slice, depth: i64) -> Result<(), Failure> {
        let key = self.join(prefix, key)?;
        let mut elements = Elements::new(list);
        let mut at = 0;
        while let Some(element) = elements.next(&self.machine.memory) {
            let is_inner = depth + 1 < self.depth;
            match element {
                Value::Map(map) if is_inner => {
                    let prefix = self.numbered(key, at)?;
                    self.map(prefix, map, depth + 2)?;
                }
                Value::List(list) if is_inner => {
                    let prefix = self.numbered(key, at)?;
                    self.inner_list(prefix, list, depth + 2)?;
                }
                value if self.resolve => self.add(key, value)?,
                value => {
                    let key = self.numbered(key, at)?;
                    self.add(key, value)?;
                }
            }
            at += 1;
        }
        Ok(())
    }

    fn inner_list(&mut self, prefix: Slice, list: Slice, depth: i64) -> Result<(), Failure> {
        let mut elements = Elements::new(list);
        let mut at = 0_u64;
        while let Some(element) = elements.next(&self.machine.memory) {
            let memory = &mut self.machine.memory;
            let key = memory.build(|memory| Ok(write::unsigned(at, &mut memory.split().1)?))?;
            self.value(prefix, key, element, depth + 1)?;
            at += 1;
        }
        Ok(())
    }

    /// Adds a value under its final key, or with a number behind it where that is taken.
    fn add(&mut self, key: Slice, value: Value) -> Result<(), Failure> {
        let at = self.find(key);
        if !self.resolve {
            return self.set(at, key, value);
        }
        let Some(at) = at else { return self.set(None, key, value) };
        let count = match self.conflicts.entries().get(at).map(|conflict| conflict.value) {
            Some(Value::Int(count)) => count,
            _ => 0,
        };
        self.conflicts.set_at(&self.machine.memory, at, Value::Int(count + 1));
        let key = self.numbered(key, count.cast_unsigned())?;
        let at = self.find(key);
        self.set(at, key, value)
    }

    /// The place of a key.
    fn find(&mut self, key: Slice) -> Option<usize> {
        self.index.find(&self.machine.memory, self.flat.entries(), key)
    }

    /// Sets the value of the entry at a place, or of a new one.
    fn set(&mut self, at: Option<usize>, key: Slice, value: Value) -> Result<(), Failure> {
        if let Some(at) = at {
            self.flat.set_at(&self.machine.memory, at, value);
            return Ok(());
        }
        self.flat.add_new(key, value)?;
        self.conflicts.add_new(key, Value::Int(0))
    }

    fn join(&mut self, prefix: Slice, key: Slice) -> Result<Slice, Failure> {
        if prefix.len == 0 {
            return Ok(key);
        }
        self.machine.memory.build(|memory| {
            memory.push_slice(prefix)?;
            memory.push_slice(key)
        })
    }

    fn numbered(&mut self, key: Slice, number: u64) -> Result<Slice, Failure> {
        self.machine.memory.build(|memory| {
            memory.push_slice(key)?;
            memory.push(b".")?;
            Ok(write::unsigned(number, &mut memory.split().1)?)
        })
    }
}

fn with_dot(machine: &mut Machine<'_>, prefix: Slice) -> Result<Slice, Failure> {
    if prefix.len == 0 {
        return Ok(prefix);
    }
    machine.memory.build(|memory| {
        memory.push_slice(prefix)?;
        memory.push(b".")
    })
}
