//! Columns that say of a row what its series has.

use super::{Keys, Series};
use crate::run::RowKey;
use crate::run::origins::Scope;
use crate::run::texts::Text;
use crate::table::{Column, flag, point_type, timestamp};
use arrow::array::{ArrayRef, Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use std::sync::Arc;

impl Keys {
    /// A column of the key, of these rows.
    pub(crate) fn column<'h>(
        &self,
        column: Column,
        heads: impl ExactSizeIterator<Item = &'h RowKey>,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match column {
            Column::MetricName => self.view(heads, |series| series.name)?,
            Column::Unit => self.view(heads, |series| series.unit)?,
            Column::Description => self.view(heads, |series| series.description)?,
            Column::Attributes => self.view(heads, |series| series.attributes)?,
            Column::ServiceName => {
                self.view(heads, |series| match self.origins.resource_of(series.scope) {
                    Some(resource) => resource.service,
                    None => {
                        series.promoted.first().copied().filter(|job| job.is_some()).unwrap_or(Text::EMPTY)
                    }
                })?
            }
            Column::Resource => self.view(heads, |series| {
                self.origins.resource_of(series.scope).map_or(self.no_resource, |resource| resource.json)
            })?,
            Column::ResourceSchemaUrl => self.view(heads, |series| {
                self.origins.resource_of(series.scope).map_or(Text::NONE, |resource| resource.schema_url)
            })?,
            Column::ScopeName => self.scope(heads, |scope| scope.name)?,
            Column::ScopeVersion => self.scope(heads, |scope| scope.version)?,
            Column::ScopeAttributes => self.scope(heads, |scope| scope.attributes)?,
            Column::ScopeSchemaUrl => self.scope(heads, |scope| scope.schema_url)?,
            Column::Promoted(place) => {
                self.view(heads, |series| series.promoted.get(place).copied().unwrap_or(Text::NONE))?
            }
            Column::Type => Arc::new(Int32Array::from_iter_values(
                heads.map(|head| self.at(head).map_or(point_type::UNKNOWN, |series| series.point_type)),
            )),
            Column::SeriesId => Arc::new(Int64Array::from_iter_values(
                heads.map(|head| self.at(head).map_or(0, |series| series.id)),
            )),
            Column::Time => Arc::new(
                TimestampMicrosecondArray::from_iter_values(heads.map(|head| head.time_us))
                    .with_data_type(timestamp()),
            ),
            Column::StartTime => Arc::new(
                TimestampMicrosecondArray::from_iter(heads.map(RowKey::start_us)).with_data_type(timestamp()),
            ),
            Column::StartNs => Arc::new(Int32Array::from_iter(heads.map(RowKey::start_ns))),
            Column::TimeNs => Arc::new(Int32Array::from_iter_values(heads.map(RowKey::time_ns))),
            Column::Flags => Arc::new(Int32Array::from_iter_values(
                heads.map(|head| i32::from(head.flags() & flag::SHOWN)),
            )),
            other => {
                return Err(ArrowError::SchemaError(format!("{other:?} is not a column of the key")));
            }
        })
    }

    fn scope<'h>(
        &self,
        heads: impl ExactSizeIterator<Item = &'h RowKey>,
        text: impl Fn(&Scope) -> Text,
    ) -> Result<ArrayRef, ArrowError> {
        self.view(heads, |series| self.origins.scope_at(series.scope).map_or(Text::NONE, &text))
    }

    fn view<'h>(
        &self,
        heads: impl ExactSizeIterator<Item = &'h RowKey>,
        text: impl Fn(&Series) -> Text,
    ) -> Result<ArrayRef, ArrowError> {
        self.texts.view(heads.map(|head| self.at(head).map_or(Text::NONE, &text)))
    }
}
