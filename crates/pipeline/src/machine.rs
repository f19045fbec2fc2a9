//! Runs compiled statements over the current record.

pub(crate) mod arguments;
mod compare;
mod index;
mod math;
mod path;
mod render;
#[cfg(test)]
mod tests;
mod trace_state;

use crate::any_value::{self, Entry};
use crate::key_index::KeyIndex;
use crate::measures::Measurements;
use crate::memory::{Memory, Slice};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Condition, Expression, Statement};
use crate::record::data::Data;
use crate::table::MapTable;
use crate::traces::TraceSampler;
use crate::value::{Failure, Kind, Value};

/// The fields of the current record, and of what encloses it.
pub(crate) trait Fields {
    /// The value of a field that is not a table.
    fn get(&mut self, memory: &mut Memory<'_>, context: Context, field: Field) -> Result<Value, Failure>;

    /// Sets a field that is not a table. The value is storable when the field takes any.
    fn set(
        &mut self,
        memory: &mut Memory<'_>,
        context: Context,
        field: Field,
        value: Value,
    ) -> Result<(), Failure>;

    /// The table of attributes, cache or metadata, loaded.
    fn table(
        &mut self,
        memory: &mut Memory<'_>,
        context: Context,
        field: Field,
    ) -> Result<&mut MapTable, Failure>;

    /// How many messages a field has that can only be counted; `None` where the record has no such field.
    fn count(&mut self, _memory: &Memory<'_>, _context: Context, _field: Field) -> Option<usize> {
        None
    }

    /// The data of the current metric; `None` where records have none.
    fn data(&mut self) -> Option<&mut Data> {
        None
    }
}

/// The state that statements read and change.
pub(crate) struct Machine<'a> {
    pub(crate) memory: Memory<'a>,
    pub(crate) record: &'a mut dyn Fields,
    /// Search state of regular expressions.
    pub(crate) regexes: &'a mut crate::regex::Caches,
    pub(crate) spare: &'a mut Spare,
    /// Nanoseconds since the Unix epoch: one reading for each run.
    pub(crate) now_ns: i64,
    /// Decides about traces, where a step asks.
    pub(crate) traces: Option<&'a mut (dyn TraceSampler + Send)>,
    /// Sums up what steps measure.
    pub(crate) measurements: Option<&'a mut (dyn Measurements + Send)>,
}

/// Working memory of functions: a constant amount, made once.
#[derive(Debug)]
pub(crate) struct Spare {
    /// Tables for nested maps.
    pub(crate) tables: Vec<MapTable>,
    /// Values of lists under construction. Whoever pushes pops.
    stack: Vec<Value>,
    /// Pairs of maps that are written with sorted keys. Whoever pushes pops.
    sorted: Vec<Entry>,
    /// For lookups in a table. Whoever takes it puts it back.
    index: Option<KeyIndex>,
    /// The pairs of the map that was made last, where the function that made it says so.
    pub(crate) pairs: Vec<Entry>,
}

impl Spare {
    const TABLES: usize = 3;
    const STACK: usize = 4096;
    /// The most pairs of a map that are kept when it is made.
    pub(crate) const PAIRS: usize = 256;

    /// The bytes that it takes.
    pub(crate) const BYTES: usize = (Self::TABLES + 1) * MapTable::BYTES
        + Self::STACK * size_of::<Value>()
        + Self::PAIRS * size_of::<Entry>()
        + KeyIndex::BYTES;

    /// Visits entries in the order of their keys, which `key` gives. At most as many as a table has.
    pub(crate) fn with_sorted<'k>(
        &mut self,
        entries: &[Entry],
        key: impl Fn(&Entry) -> &'k [u8],
        each: impl FnMut(&Entry),
    ) {
        let base = self.sorted.len();
        self.sorted.extend(entries.iter().take(MapTable::CAPACITY - base));
        if let Some(sorted) = self.sorted.get_mut(base..) {
            // Those with one key in the order in which they came.
            sorted.sort_unstable_by(|one, other| {
                key(one).cmp(key(other)).then(one.raw.start.cmp(&other.raw.start))
            });
            sorted.iter().for_each(each);
        }
        self.sorted.truncate(base);
    }

    pub(crate) fn new() -> Spare {
        Spare {
            tables: (0..Self::TABLES).map(|_| MapTable::new()).collect(),
            stack: Vec::with_capacity(Self::STACK),
            sorted: Vec::with_capacity(MapTable::CAPACITY),
            index: Some(KeyIndex::new()),
            pairs: Vec::with_capacity(Self::PAIRS),
        }
    }
}

impl Machine<'_> {
    /// Runs a statement. Returns whether its condition held.
    ///
    /// # Errors
    /// When the condition or the editor fails on the record.
    pub(crate) fn run(&mut self, statement: &Statement) -> Result<bool, Failure> {
        if let Some(condition) = &statement.condition
            && !self.holds(condition)?
        {
            return Ok(false);
        }
        let call = &statement.call;
        (call.function.run)(self, &call.arguments)?;
        Ok(true)
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// When an expression in it fails on the record. What the left side decides, the right side cannot fail.
    pub(crate) fn holds(&mut self, condition: &Condition) -> Result<bool, Failure> {
        match condition {
            Condition::All(all) => {
                for condition in all {
                    if !self.holds(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(any) => {
                for condition in any {
                    if self.holds(condition)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Not(condition) => Ok(!self.holds(condition)?),
            Condition::Constant(constant) => Ok(*constant),
            Condition::Compare(comparison, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                Ok(self.compare(*comparison, left, right))
            }
            Condition::Holds(expression) => match self.value(expression)? {
                Value::Bool(holds) => Ok(holds),
                other => Err(Failure::Type { wanted: Kind::Bool, found: other.kind() }),
            },
        }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// When it has none for the record.
    #[inline]
    pub(crate) fn value(&mut self, expression: &Expression) -> Result<Value, Failure> {
        match expression {
            Expression::Literal(value) => Ok(*value),
            Expression::Path(path) => self.get(path),
            other => self.computed(other),
        }
    }

    /// The value of an expression that is neither a literal nor a path.
    fn computed(&mut self, expression: &Expression) -> Result<Value, Failure> {
        match expression {
            Expression::Literal(_) | Expression::Path(_) => self.value(expression),
            Expression::Call(call) => (call.function.run)(self, &call.arguments),
            Expression::Index(expression, keys) => {
                let value = self.value(expression)?;
                self.index(value, keys)
            }
            Expression::Math(operator, sides) => {
                let left = self.value(&sides.0)?;
                let right = self.value(&sides.1)?;
                math::calculate(*operator, left, right)
            }
            Expression::Negative(expression) => math::negative(self.value(expression)?),
            Expression::List(elements) => self.list(elements),
            Expression::Map(pairs) => self.map(pairs),
        }
    }

    /// A list of the values of `elements`.
    pub(crate) fn list(&mut self, elements: &[Expression]) -> Result<Value, Failure> {
        self.with_values(elements.iter(), |machine, base| {
            let Machine { memory, spare, .. } = machine;
            let mut values = spare.stack.iter().skip(base);
            memory
                .build(|memory| values.try_for_each(|value| any_value::write_element(*value, memory)))
                .map(Value::List)
        })
    }

    fn map(&mut self, pairs: &[(Slice, Expression)]) -> Result<Value, Failure> {
        self.with_values(pairs.iter().map(|(_, expression)| expression), |machine, base| {
            let Machine { memory, spare, .. } = machine;
            let values = spare.stack.iter().skip(base);
            let mut pairs_and_values = pairs.iter().zip(values).enumerate();
            memory
                .build(|memory| {
                    pairs_and_values.try_for_each(|(at, ((key, _), value))| {
                        let same = |other: Slice| memory.get(other) == memory.get(*key);
                        if pairs.iter().skip(at + 1).any(|(other, _)| same(*other)) {
                            return Ok(());
                        }
                        any_value::write_pair(1, *key, *value, memory)
                    })
                })
                .map(Value::Map)
        })
    }

    /// Evaluates `expressions` onto the stack, from place `base`, for `finish`.
    pub(crate) fn with_values<'e>(
        &mut self,
        expressions: impl Iterator<Item = &'e Expression>,
        finish: impl FnOnce(&mut Self, usize) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let base = self.spare.stack.len();
        let result = self.push_values(expressions).and_then(|()| finish(self, base));
        self.spare.stack.truncate(base);
        result
    }

    fn push_values<'e>(&mut self, expressions: impl Iterator<Item = &'e Expression>) -> Result<(), Failure> {
        for expression in expressions {
            let value = self.value(expression)?;
            self.push_value(value)?;
        }
        Ok(())
    }

    /// Pushes a value onto the stack.
    pub(crate) fn push_value(&mut self, value: Value) -> Result<(), Failure> {
        if self.spare.stack.len() >= Spare::STACK {
            return Err(Failure::TooLarge);
        }
        self.spare.stack.push(value);
        Ok(())
    }

    /// Lends the index of keys, without any.
    pub(crate) fn with_index<R>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut KeyIndex) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut index = self.spare.index.take().ok_or(Failure::TooLarge)?;
        index.begin();
        let result = work(self, &mut index);
        self.spare.index = Some(index);
        result
    }

    /// The values on the stack from place `base`.
    pub(crate) fn values_since(&self, base: usize) -> &[Value] {
        self.spare.stack.get(base..).unwrap_or_default()
    }
}
