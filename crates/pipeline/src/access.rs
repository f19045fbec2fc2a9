//! The fields that programs read and change.

use crate::level::LEVELS;
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Argument, Call, Condition, Expression, Key, Path, Statement};
use crate::ottl::signature::Effect;

/// The fields that programs read and change, by level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Access {
    reads: [bool; LEVELS],
    writes: [bool; LEVELS],
    /// Attributes, or a metric's metadata.
    pub(crate) attributes: [bool; LEVELS],
    /// The schema of a resource or scope.
    pub(crate) schema_url: bool,
    pub(crate) cache: bool,
    /// Whether statements on metrics multiply the values of their points.
    pub(crate) multiplies: bool,
    /// Whether they read the fields of a metric's data that hold for all of its points.
    pub(crate) reads_data: bool,
    pub(crate) writes_data: bool,
    /// Whether they count the events of a span or the points of a metric.
    pub(crate) counts_members: bool,
}

impl Access {
    /// Whether they read or change a level.
    pub(crate) fn touches_level(&self, level: usize) -> bool {
        self.reads.get(level) == Some(&true) || self.writes_level(level)
    }

    /// Whether they change a level.
    pub(crate) fn writes_level(&self, level: usize) -> bool {
        self.writes.get(level) == Some(&true)
    }

    /// Whether they need more of a metric's data than some of its points.
    pub(crate) fn needs_data_fields(&self) -> bool {
        self.reads_data || self.writes_data || self.counts_members
    }

    /// Adds what others read and change.
    pub(crate) fn add(&mut self, other: &Access) {
        for level in 0..LEVELS {
            self.reads[level] |= other.reads[level];
            self.writes[level] |= other.writes[level];
            self.attributes[level] |= other.attributes[level];
        }
        self.schema_url |= other.schema_url;
        self.cache |= other.cache;
        self.multiplies |= other.multiplies;
        self.reads_data |= other.reads_data;
        self.writes_data |= other.writes_data;
        self.counts_members |= other.counts_members;
    }

    /// Adds changes of spans or log records, by their attributes.
    pub(crate) fn changes_item(&mut self) {
        let [_, _, reads, _] = &mut self.reads;
        let [_, _, writes, _] = &mut self.writes;
        let [_, _, attributes, _] = &mut self.attributes;
        (*reads, *writes, *attributes) = (true, true, true);
    }

    /// Adds a look at spans, and at the attributes of spans and resources where `attributes` says so.
    pub(crate) fn reads_item(&mut self, attributes: bool) {
        let [resource, _, item, _] = &mut self.reads;
        let [of_resource, _, of_item, _] = &mut self.attributes;
        *item = true;
        *resource |= attributes;
        *of_resource |= attributes;
        *of_item |= attributes;
    }

    /// Adds a look at the messages of a context, and at their attributes where `attributes` says so.
    pub(crate) fn reads_context(&mut self, context: Context, attributes: bool) {
        let level = context.level();
        self.reads[level] = true;
        self.attributes[level] |= attributes;
    }

    /// Adds a statement.
    pub(crate) fn statement(&mut self, statement: &Statement) {
        self.call(&statement.call);
        if let Some(condition) = &statement.condition {
            self.condition(condition);
        }
    }

    /// Adds a condition.
    pub(crate) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::All(all) | Condition::Any(all) => all.iter().for_each(|one| self.condition(one)),
            Condition::Not(one) => self.condition(one),
            Condition::Constant(_) => {}
            Condition::Compare(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            Condition::Holds(expression) => self.expression(expression),
        }
    }

    fn call(&mut self, call: &Call) {
        for effect in call.function.effects {
            match *effect {
                Effect::Reads(context, field) => self.field(context, field, false),
                Effect::Changes(context, field) => {
                    self.field(context, field, false);
                    self.field(context, field, true);
                }
                Effect::ReadsPoints => self.reads[Context::Metric.level()] = true,
                Effect::MultipliesPoints => {
                    self.multiplies = true;
                    self.writes[Context::DataPoint.level()] = true;
                }
            }
        }
        for argument in &call.arguments {
            match argument {
                Argument::Value(expression) => self.expression(expression),
                Argument::Target(path) => self.path(path, true),
                Argument::Values(all) => all.iter().for_each(|one| self.expression(one)),
                Argument::Absent | Argument::Function(_) | Argument::Prepared(_) => {}
            }
        }
    }

    /// Adds an expression.
    pub(crate) fn expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Literal(_) => {}
            Expression::Path(path) => self.path(path, false),
            Expression::Call(call) => self.call(call),
            Expression::Index(inner, keys) => {
                self.expression(inner);
                self.keys(keys);
            }
            Expression::Math(_, sides) => {
                self.expression(&sides.0);
                self.expression(&sides.1);
            }
            Expression::Negative(inner) => self.expression(inner),
            Expression::List(all) => all.iter().for_each(|one| self.expression(one)),
            Expression::Map(all) => all.iter().for_each(|(_, one)| self.expression(one)),
        }
    }

    fn keys(&mut self, keys: &[Key]) {
        for key in keys {
            if let Key::Dynamic(expression) = key {
                self.expression(expression);
            }
        }
    }

    fn path(&mut self, path: &Path, is_changed: bool) {
        self.keys(&path.keys);
        self.field(path.context, path.field, is_changed);
    }

    fn field(&mut self, context: Context, field: Field, is_changed: bool) {
        let level = context.level();
        match field {
            Field::Cache => {
                self.cache = true;
                return;
            }
            Field::Attributes | Field::Metadata => self.attributes[level] = true,
            Field::Events | Field::DataPoints => self.counts_members = true,
            Field::SchemaUrl => self.schema_url = true,
            Field::IsMonotonic | Field::AggregationTemporality => {
                self.reads_data = true;
                self.writes_data |= is_changed;
            }
            _ => {}
        }
        self.reads[level] |= !is_changed;
        self.writes[level] |= is_changed;
    }
}
