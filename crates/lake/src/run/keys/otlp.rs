//! Series of OpenTelemetry, found by what is said of them.

use super::{Keys, Series};
use crate::json::Stack;
use crate::labels::promoted;
use crate::run::RowRejection;
use crate::run::origins::{Resource, Scope, keep_utf8, optional, write_attributes};
use crate::table::PROMOTED;
use tidegate_wire::otlp::{AnyValue, Attributes, KeyValue};
use xxhash_rust::xxh64::Xxh64;

/// The properties that all points of an OpenTelemetry metric share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricKey<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) unit: &'a [u8],
    pub(crate) description: &'a [u8],
    pub(crate) point_type: i32,
}

impl Keys {
    /// The place of the series of an OpenTelemetry metric with these attributes.
    pub(crate) fn otlp_series_of<'a>(
        &mut self,
        metric: &MetricKey<'a>,
        scope: u32,
        attributes: Attributes<'a>,
        quantile: Option<u64>,
        stack: &mut Stack<'a>,
    ) -> Result<u32, RowRejection> {
        let mark = self.texts.mark();
        let series = self.find_or_add_otlp(metric, scope, attributes, quantile, stack);
        if series.as_ref().map_or(true, |(_, new)| !new) {
            self.texts.truncate(mark);
        }
        series.map(|(place, _)| place)
    }

    fn find_or_add_otlp<'a>(
        &mut self,
        metric: &MetricKey<'a>,
        scope: u32,
        attributes: Attributes<'a>,
        quantile: Option<u64>,
        stack: &mut Stack<'a>,
    ) -> Result<(u32, bool), RowRejection> {
        let no_origin = RowRejection::Malformed;
        let &Scope { name: scope_name, version, resource, .. } =
            self.origins.scope_at(scope).ok_or(no_origin)?;
        let &Resource { promoted: from_resource, has, hash, .. } =
            self.origins.resource_at(resource).ok_or(no_origin)?;
        let mut own = [None; PROMOTED.len()];
        // An attribute that the resource has, too, stays in the JSON: otherwise its owner would be ambiguous.
        let mut rest = |attribute: &KeyValue<'a>| match (promoted(attribute.key), attribute.value) {
            (Some(place), AnyValue::Text(text)) if has & 1 << place == 0 => match own.get_mut(place) {
                Some(own) => !std::ptr::eq(*own.get_or_insert(text), text),
                None => true,
            },
            _ => true,
        };
        let text = write_attributes(&mut self.texts, attributes, &mut rest, stack)?;
        let mut id = Xxh64::new(0);
        id.update(&hash.to_le_bytes());
        let texts = &self.texts;
        for part in [texts.get(scope_name), texts.get(version), metric.name, texts.get(text)] {
            id.update(part);
            id.update(&[0xff]);
        }
        for value in own {
            id.update(value.unwrap_or_default());
            id.update(&[0xff]);
        }
        let id = id.digest().cast_signed();
        let known = self.find(id, |series| {
            series.scope == scope
                && series.quantile == quantile
                && series.point_type == metric.point_type
                && self.texts.get(series.name) == metric.name
                && self.texts.get(series.unit) == metric.unit
                && self.texts.get(series.description) == metric.description
                && self.texts.get(series.attributes) == self.texts.get(text)
                && series.promoted.iter().zip(own.iter().zip(from_resource)).all(
                    |(&kept, (&own, resource))| {
                        own.map_or(kept == resource, |own| kept.is_some() && self.texts.get(kept) == own)
                    },
                )
        });
        if let Some(known) = known {
            return Ok((known, false));
        }
        let texts = &mut self.texts;
        let mut kept = from_resource;
        for (kept, own) in kept.iter_mut().zip(own) {
            if let Some(own) = own {
                *kept = keep_utf8(texts, own)?;
            }
        }
        let [job, instance, namespace, pod, host, ..] = kept;
        let series = Series {
            id,
            name: keep_utf8(texts, metric.name)?,
            unit: optional(texts, metric.unit)?,
            description: optional(texts, metric.description)?,
            attributes: text,
            promoted: [job, instance, namespace, pod, host],
            scope,
            point_type: metric.point_type,
            quantile,
            rank: 0,
            last_row: u32::MAX,
        };
        self.add(series).map(|place| (place, true))
    }
}
