//! The columns of a batch, with the types that they have in the tables.
//!
//! Files that were written before the lake had a column do not have it: its rows are NULL then.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, ListArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use std::ops::Range;

/// A column has another type than in the tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the column `{0}` has another type than the lake's")]
pub(super) struct ColumnTypeError(String);

/// Columns that are found by their names.
pub(super) trait Columns {
    fn column(&self, name: &str) -> Option<&ArrayRef>;
}

impl Columns for RecordBatch {
    fn column(&self, name: &str) -> Option<&ArrayRef> {
        self.column_by_name(name)
    }
}

impl Columns for StructArray {
    fn column(&self, name: &str) -> Option<&ArrayRef> {
        self.column_by_name(name)
    }
}

fn typed<T: Clone + 'static>(
    columns: &impl Columns,
    name: &str,
    of: impl Fn(&ArrayRef) -> Option<&T>,
) -> Result<Option<T>, ColumnTypeError> {
    let Some(column) = columns.column(name) else { return Ok(None) };
    of(column).cloned().map(Some).ok_or_else(|| ColumnTypeError(name.to_owned()))
}

/// Texts.
#[derive(Debug)]
pub(super) enum Texts {
    Views(StringViewArray),
    /// Within lists they are not views.
    Plain(StringArray),
    Missing,
}

impl Texts {
    pub(super) fn of(columns: &impl Columns, name: &str) -> Result<Texts, ColumnTypeError> {
        let Some(column) = columns.column(name) else { return Ok(Texts::Missing) };
        if let Some(views) = column.as_string_view_opt() {
            return Ok(Texts::Views(views.clone()));
        }
        let plain = column.as_string_opt::<i32>().cloned().map(Texts::Plain);
        plain.ok_or_else(|| ColumnTypeError(name.to_owned()))
    }

    pub(super) fn at(&self, row: usize) -> Option<&str> {
        match self {
            Texts::Views(views) => (row < views.len() && views.is_valid(row)).then(|| views.value(row)),
            Texts::Plain(plain) => (row < plain.len() && plain.is_valid(row)).then(|| plain.value(row)),
            Texts::Missing => None,
        }
    }
}

/// Numbers.
#[derive(Debug)]
pub(super) struct Numbers<T: ArrowPrimitiveType>(Option<PrimitiveArray<T>>);

/// 32-bit integers.
pub(super) type Ints = Numbers<Int32Type>;
/// 64-bit integers.
pub(super) type Longs = Numbers<Int64Type>;
/// Doubles.
pub(super) type Doubles = Numbers<Float64Type>;

impl<T: ArrowPrimitiveType> Numbers<T> {
    pub(super) fn of(columns: &impl Columns, name: &str) -> Result<Self, ColumnTypeError> {
        typed(columns, name, |column| column.as_primitive_opt::<T>()).map(Numbers)
    }

    pub(super) fn at(&self, row: usize) -> Option<T::Native> {
        let numbers = self.0.as_ref()?;
        (row < numbers.len() && numbers.is_valid(row)).then(|| numbers.value(row))
    }

    /// Those of these rows.
    pub(super) fn of_rows(&self, rows: Range<usize>) -> &[T::Native] {
        self.0.as_ref().and_then(|numbers| numbers.values().get(rows)).unwrap_or_default()
    }
}

impl Doubles {
    /// The bits of a double.
    pub(super) fn bits_at(&self, row: usize) -> Option<u64> {
        self.at(row).map(f64::to_bits)
    }
}

impl Longs {
    /// A number of 32 bits without a sign, as counts of dropped items are.
    pub(super) fn count_at(&self, row: usize) -> u64 {
        self.at(row).and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }
}

/// Ids of a fixed length.
#[derive(Debug)]
pub(super) struct Ids(Option<FixedSizeBinaryArray>);

impl Ids {
    pub(super) fn of(columns: &impl Columns, name: &str) -> Result<Ids, ColumnTypeError> {
        typed(columns, name, |column| column.as_fixed_size_binary_opt()).map(Ids)
    }

    /// Empty where there is none.
    pub(super) fn at(&self, row: usize) -> &[u8] {
        match &self.0 {
            Some(ids) if row < ids.len() && ids.is_valid(row) => ids.value(row),
            _ => &[],
        }
    }
}

/// Times in microseconds and the nanoseconds beyond them.
#[derive(Debug)]
pub(super) struct Times {
    micros: Numbers<TimestampMicrosecondType>,
    nanos: Ints,
}

impl Times {
    pub(super) fn of(columns: &impl Columns, micros: &str, nanos: &str) -> Result<Times, ColumnTypeError> {
        Ok(Times { micros: Numbers::of(columns, micros)?, nanos: Ints::of(columns, nanos)? })
    }

    /// Nanoseconds since the Unix epoch, in 64 bits there and back.
    pub(super) fn at(&self, row: usize) -> Option<u64> {
        let nanos = i64::from(self.nanos.at(row).unwrap_or_default());
        let micros = self.micros.at(row)?;
        Some(micros.wrapping_mul(1000).wrapping_add(nanos).cast_unsigned())
    }

    /// Milliseconds since the Unix epoch.
    pub(super) fn millis_at(&self, row: usize) -> Option<i64> {
        self.micros.at(row).map(|micros| micros.div_euclid(1000))
    }
}

/// Lists: the rows of their elements.
#[derive(Debug)]
pub(super) struct Lists(Option<ListArray>);

impl Lists {
    pub(super) fn of(columns: &impl Columns, name: &str) -> Result<Lists, ColumnTypeError> {
        typed(columns, name, |column| column.as_list_opt::<i32>()).map(Lists)
    }

    /// The rows of a row's elements; `None` where it has no list.
    pub(super) fn rows_of(&self, row: usize) -> Option<Range<usize>> {
        let lists = self.0.as_ref().filter(|lists| row < lists.len() && lists.is_valid(row))?;
        let offset = |at: usize| lists.value_offsets().get(at).and_then(|&at| usize::try_from(at).ok());
        Some(offset(row)?..offset(row + 1)?)
    }

    /// The elements, as structs.
    pub(super) fn structs(&self) -> Result<Option<&StructArray>, ColumnTypeError> {
        let Some(lists) = &self.0 else { return Ok(None) };
        lists.values().as_struct_opt().map(Some).ok_or_else(|| ColumnTypeError("element".to_owned()))
    }
}

/// Lists of numbers.
#[derive(Debug)]
pub(super) struct NumberLists<T: ArrowPrimitiveType> {
    lists: Lists,
    numbers: Numbers<T>,
}

impl<T: ArrowPrimitiveType> NumberLists<T> {
    pub(super) fn of(columns: &impl Columns, name: &str) -> Result<Self, ColumnTypeError> {
        let lists = Lists::of(columns, name)?;
        let numbers = lists.0.as_ref().map(|lists| lists.values().as_primitive_opt::<T>().cloned());
        let numbers = match numbers {
            Some(None) => return Err(ColumnTypeError(name.to_owned())),
            Some(numbers) => Numbers(numbers),
            None => Numbers(None),
        };
        Ok(NumberLists { lists, numbers })
    }

    /// The numbers of a row; `None` where it has no list.
    pub(super) fn at(&self, row: usize) -> Option<&[T::Native]> {
        Some(self.numbers.of_rows(self.lists.rows_of(row)?))
    }
}

/// A struct in each row, as its own columns.
pub(super) fn structs(columns: &impl Columns, name: &str) -> Result<Option<StructArray>, ColumnTypeError> {
    typed(columns, name, |column| column.as_struct_opt())
}
