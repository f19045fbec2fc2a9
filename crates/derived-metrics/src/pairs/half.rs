//! A span as one half of an edge.

use super::PairSettings;
use crate::any_text;
use crate::attributes::ListedValues;
use tidegate_pipeline::{MeasureKey, MeasuredSpan};
use tidegate_wire::otlp::AnyValue;
use tidegate_wire::output::{Full, Output, SliceOutput};
use tidegate_wire::proto::write;

/// The most bytes of a tenant and of a half together. A half with more is cut: its edge is counted in the overflow series.
pub(crate) const HALF_MAX: usize = 512;

const SERVER: i64 = 2;
const CLIENT: i64 = 3;
const PRODUCER: i64 = 4;
const CONSUMER: i64 = 5;
const ERROR: i64 = 2;

/// The half of an edge that a span is. Names and dimensions are [listed values](ListedValues), as in the key of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Half<'a> {
    pub(crate) is_client: bool,
    pub(crate) has_failed: bool,
    /// There was no room for its names and dimensions.
    pub(crate) is_cut: bool,
    /// The nanoseconds that the span took.
    pub(crate) latency: f64,
    /// The name of the service.
    pub(crate) service: &'a [u8],
    pub(crate) dimensions: &'a [u8],
    /// Of a client: the name of the server, should no span of that come; nothing where it is not known.
    pub(crate) peer: &'a [u8],
}

/// A span that was just observed.
pub(crate) struct SpanHalf<'a> {
    pub(crate) half: Half<'a>,
    /// The id of the client's span.
    pub(crate) key_span: [u8; 8],
    /// The peer is a database, which sends no spans.
    pub(crate) is_database: bool,
    pub(crate) connection: &'static str,
}

impl Half<'_> {
    /// Whether its parts can be those of a half that was read from a span.
    pub(crate) fn is_valid(&self, settings: &PairSettings) -> bool {
        match self.is_cut {
            true => self.service.is_empty() && self.dimensions.is_empty() && self.peer.is_empty(),
            false => {
                has_values(self.service, 1)
                    && has_values(self.dimensions, settings.dimensions)
                    && (self.peer.is_empty() || has_values(self.peer, 1))
            }
        }
    }
}

impl<'a> SpanHalf<'a> {
    /// The half that a span is; its names and dimensions are put into `room`. `None` where it is none: it has another kind, or its service has
    /// an empty name.
    pub(crate) fn read(
        key: &MeasureKey,
        span: &MeasuredSpan,
        latency: f64,
        settings: &PairSettings,
        room: &'a mut [u8],
    ) -> Option<SpanHalf<'a>> {
        let (is_client, connection) = match span.kind {
            CLIENT => (true, ""),
            SERVER => (false, ""),
            PRODUCER => (true, "messaging_system"),
            CONSUMER => (false, "messaging_system"),
            _ => return None,
        };
        let key_span = if is_client { span.span_id } else { span.parent_span_id };
        let (has_failed, is_cut) = (span.status == ERROR, key.is_cut());
        let mut half =
            Half { is_client, has_failed, is_cut, latency, service: &[], dimensions: &[], peer: &[] };
        if is_cut {
            return Some(SpanHalf { half, key_span, is_database: false, connection });
        }
        let mut values = ListedValues(key.bytes());
        let service =
            values.next().flatten().and_then(AnyValue::read).filter(|it| !any_text::is_empty(*it))?;
        let mut behind = values;
        behind.by_ref().take(settings.dimensions).for_each(drop);
        let peer = first(behind.by_ref().take(settings.peers));
        let database = first(behind).filter(|it| is_client && !any_text::is_empty(*it));
        let peer = database.or(peer).filter(|_| is_client);
        let is_database = database.is_some();
        let dimensions = (0..settings.dimensions).map(|_| values.next().flatten());
        match write_parts(service, dimensions, peer, room) {
            Ok([service, dimensions, end]) => {
                let written = room.get(..end).unwrap_or_default();
                let (before, peer) = written.split_at_checked(dimensions).unwrap_or_default();
                (half.service, half.dimensions) = before.split_at_checked(service).unwrap_or_default();
                half.peer = peer;
            }
            Err(Full) => half.is_cut = true,
        }
        Some(SpanHalf { half, key_span, is_database, connection })
    }
}

/// The first value that is there. All are passed.
fn first<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Option<AnyValue<'a>> {
    values.fold(None, Option::or).and_then(AnyValue::read)
}

/// Writes the parts of a half. Returns the end of each.
fn write_parts<'v>(
    service: AnyValue<'_>,
    dimensions: impl Iterator<Item = Option<&'v [u8]>>,
    peer: Option<AnyValue<'_>>,
    room: &mut [u8],
) -> Result<[usize; 3], Full> {
    let mut out = SliceOutput::new(room);
    put_value(service, &mut out)?;
    let service = out.len();
    for dimension in dimensions {
        match dimension.and_then(AnyValue::read) {
            Some(value) => put_value(value, &mut out)?,
            None => out.put(&[0])?,
        }
    }
    let dimensions = out.len();
    peer.map_or(Ok(()), |peer| put_value(peer, &mut out))?;
    Ok([service, dimensions, out.len()])
}

/// Puts a value as a text, as a listed value.
fn put_value(value: AnyValue<'_>, out: &mut impl Output) -> Result<(), Full> {
    if let AnyValue::Text(text) = value {
        return put_text(text, out);
    }
    let mut room = [0; HALF_MAX];
    let mut text = SliceOutput::new(&mut room);
    any_text::put(value, &mut text)?;
    put_text(text.written(), out)
}

fn put_text(text: &[u8], out: &mut impl Output) -> Result<(), Full> {
    write::raw_varint(out, write::bytes_len(text.len() as u64) + 1)?;
    write::bytes(out, 1, text)
}

/// Whether a part is so many listed values, and nothing else.
fn has_values(part: &[u8], count: usize) -> bool {
    let mut values = ListedValues(part);
    values.by_ref().take(count).count() == count && values.0.is_empty()
}
