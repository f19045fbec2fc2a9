//! Reads and sets paths.

use super::Machine;
use crate::any_value;
use crate::memory::Slice;
use crate::ottl::field::Field;
use crate::ottl::program::{Key, Path};
use crate::table::MapTable;
use crate::value::{Failure, Kind, Value};

/// Whether a field is a map that lives in a table.
#[inline]
fn is_table(field: Field) -> bool {
    matches!(field, Field::Attributes | Field::Cache | Field::Metadata)
}

impl<'a> Machine<'a> {
    /// The value of a path; `nil` for a missing key.
    pub(crate) fn get(&mut self, path: &Path) -> Result<Value, Failure> {
        if is_table(path.field) {
            return self.get_from_table(path);
        }
        let value = self.record.get(&mut self.memory, path.context, path.field)?;
        match (path.field, &*path.keys) {
            (Field::BodyText, []) => self.as_text(value).map(Value::Text),
            (_, []) => Ok(value),
            (Field::TraceState, [key]) => self.trace_state_get(value, key),
            (_, keys) => self.nested(value, keys),
        }
    }

    fn get_from_table(&mut self, path: &Path) -> Result<Value, Failure> {
        let Some((key, keys)) = path.keys.split_first() else {
            let Machine { memory, record, .. } = self;
            return record.table(memory, path.context, path.field)?.to_map(memory).map(Value::Map);
        };
        let name = self.name(key)?;
        let table = self.record.table(&mut self.memory, path.context, path.field)?;
        match table.get(&self.memory, name) {
            Some(value) if keys.is_empty() => Ok(value),
            Some(value) => self.nested(value, keys),
            None => Ok(Value::Nil),
        }
    }

    /// Sets a path.
    ///
    /// # Errors
    /// When the field does not take the value. As in `pkg/ottl`, a key that was new is there with an empty value then.
    pub(crate) fn set(&mut self, path: &Path, value: Value) -> Result<(), Failure> {
        match (path.field, &*path.keys) {
            (field, keys) if is_table(field) => self.set_in_table(path, keys, value),
            (Field::TraceState, [key]) => {
                let current = self.record.get(&mut self.memory, path.context, path.field)?;
                match self.trace_state_set(current, key, value)? {
                    Some(state) => self.set_field(path, Value::Text(state)),
                    None => Ok(()),
                }
            }
            (_, []) => {
                if path.field == Field::Body {
                    any_value::storable(&self.memory, value)?;
                }
                self.set_field(path, value)
            }
            (_, keys) => {
                let current = self.record.get(&mut self.memory, path.context, path.field)?;
                if !matches!(current, Value::Map(_) | Value::List(_)) {
                    return Err(Failure::Invalid("only a body that is a map or a list takes keys"));
                }
                let (value, outcome) = self.storable_or_nil(value);
                let rebuilt = self.rebuilt(current, keys, value)?;
                if outcome.is_ok() || self.leaves_empty(current, keys) {
                    self.set_field(path, rebuilt)?;
                }
                outcome
            }
        }
    }

    fn set_field(&mut self, path: &Path, value: Value) -> Result<(), Failure> {
        self.record.set(&mut self.memory, path.context, path.field, value)
    }

    fn set_in_table(&mut self, path: &Path, keys: &[Key], value: Value) -> Result<(), Failure> {
        let Some((key, keys)) = keys.split_first() else {
            let map = match value {
                Value::Nil => Slice::EMPTY,
                Value::Map(map) => map,
                other => return Err(Failure::Type { wanted: Kind::Map, found: other.kind() }),
            };
            any_value::storable(&self.memory, value)?;
            let table = self.record.table(&mut self.memory, path.context, path.field)?;
            return table.assign(&self.memory, map);
        };
        let name = self.name(key)?;
        let outcome = any_value::storable(&self.memory, value);
        let table = self.record.table(&mut self.memory, path.context, path.field)?;
        let at = table.find(&self.memory, name);
        if keys.is_empty() {
            match (at, outcome) {
                (Some(at), Ok(())) => table.set_at(&self.memory, at, value),
                (Some(_), Err(_)) => {}
                (None, Ok(())) => table.add_new(name, value)?,
                (None, Err(_)) => table.add_new(name, Value::Nil)?,
            }
            return outcome;
        }
        let value = if outcome.is_ok() { value } else { Value::Nil };
        let current = at.and_then(|at| table.entries().get(at)).map(|entry| entry.value);
        if outcome.is_err() && current.is_some_and(|current| !self.leaves_empty(current, keys)) {
            return outcome;
        }
        let rebuilt = self.rebuilt(current.unwrap_or(Value::Nil), keys, value);
        let table = self.record.table(&mut self.memory, path.context, path.field)?;
        match rebuilt {
            Ok(rebuilt) => table.set(&self.memory, name, rebuilt)?,
            Err(failure) => {
                if current.is_none() {
                    table.set(&self.memory, name, Value::Nil)?;
                }
                return Err(failure);
            }
        }
        outcome
    }

    /// Whether a failed `set` leaves an empty value behind `keys`: where nothing was, with what is missing around it.
    fn leaves_empty(&mut self, value: Value, keys: &[Key]) -> bool {
        let is_nil = |value| matches!(value, Ok(Value::Nil));
        (0..=keys.len()).any(|len| is_nil(self.nested(value, keys.get(..len).unwrap_or_default())))
    }

    /// The value, or `nil` in place of one that no attribute can have, with the failure.
    fn storable_or_nil(&self, value: Value) -> (Value, Result<(), Failure>) {
        match any_value::storable(&self.memory, value) {
            Ok(()) => (value, Ok(())),
            Err(failure) => (Value::Nil, Err(failure)),
        }
    }

    /// Reads the map at `path` into a table, lets `edit` change it, and stores the result. The path itself cannot be read
    /// meanwhile.
    ///
    /// # Errors
    /// When there is no map, or what `edit` returns. A changed map is stored before, as maps in Go change in place.
    pub(crate) fn edit_map(
        &mut self,
        path: &Path,
        edit: impl FnOnce(&mut Machine<'a>, &mut MapTable) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if is_table(path.field) && path.keys.is_empty() {
            let Machine { memory, record, .. } = &mut *self;
            let mut table = std::mem::take(record.table(memory, path.context, path.field)?);
            let result = edit(self, &mut table);
            let Machine { memory, record, .. } = &mut *self;
            *record.table(memory, path.context, path.field)? = table;
            return result;
        }
        let map = match self.get(path)? {
            Value::Map(map) => map,
            other => return Err(Failure::Type { wanted: Kind::Map, found: other.kind() }),
        };
        self.with_spare(|machine, table| {
            table.load(&machine.memory, map, 1)?;
            let result = edit(machine, table);
            if table.is_changed() {
                let map = table.to_map(&mut machine.memory)?;
                machine.set(path, Value::Map(map))?;
            }
            result
        })
    }

    /// Lends a spare table.
    pub(crate) fn with_spare<R>(
        &mut self,
        work: impl FnOnce(&mut Machine<'a>, &mut MapTable) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut table = self.spare.tables.pop().ok_or(Failure::TooLarge)?;
        table.begin(0);
        let result = work(self, &mut table);
        self.spare.tables.push(table);
        result
    }
}
