//! Items of Elastic APM's intake: events, as their agents wrote them.

use super::{Items, LOOKED_AT, RemainingItems, enough};
use tidegate_journal::{Meta, Signal};
use tidegate_wire::intake::{Event, EventKind, Object, Text, Value, events};
use tidegate_wire::otlp;

/// The longest event that is shown in its own JSON; of longer ones the beginning is shown, as a text.
const LONGEST: usize = 8 << 10;

pub(super) fn walk(items: &mut Items<'_>, meta: &Meta, raw: &[u8]) -> RemainingItems {
    let mut events = events(raw);
    let metadata = events.next().filter(|event| event.kind == EventKind::Metadata);
    let mut service = Vec::new();
    if let Some(Value::Text(name)) = metadata.and_then(|event| event.fields().at(&[b"service", b"name"])) {
        put(name, &mut service);
    }
    enough(events.try_for_each(|event| self::event(items, meta, &service, event)))
}

fn event(items: &mut Items<'_>, meta: &Meta, service: &[u8], event: Event<'_>) -> Option<()> {
    let signal = signal_of(event.kind);
    let is_wanted = items.look.signal.is_none_or(|wanted| !meta.is_mixed() || signal == Some(wanted));
    if !is_wanted && items.looked_at < LOOKED_AT {
        items.looked_at += 1;
        return Some(());
    }
    let fields = event.fields();
    let mut name = Vec::new();
    if let Some(text) = name_of(event.kind, fields) {
        put(text, &mut name);
    }
    items.item(service, &name, |line| {
        let micros = fields.find(b"timestamp").and_then(Value::number).and_then(|number| number.integer());
        let ns = micros.and_then(|micros| u64::try_from(micros).ok()?.checked_mul(1000));
        if let Some(signal) = signal.filter(|_| meta.is_mixed()) {
            line.text("signal", signal.name().as_bytes());
        }
        line.time("time", ns.unwrap_or(meta.received_at_ns));
        line.text("event", event.kind.name().as_bytes());
        line.text("name", &name);
        line.text("service", service);
        match str::from_utf8(fields.raw()) {
            Ok(json) if json.len() <= LONGEST && !json.contains(['\r', '\n']) => line.plain("fields", json),
            _ => line.text("fields", fields.raw()),
        }
    })
}

/// The signal of an event.
fn signal_of(kind: EventKind) -> Option<Signal> {
    kind.signal().map(|signal| match signal {
        otlp::Signal::Traces => Signal::Traces,
        otlp::Signal::Metrics => Signal::Metrics,
        otlp::Signal::Logs => Signal::Logs,
        otlp::Signal::Profiles => Signal::Profiles,
    })
}

/// By what an event goes.
fn name_of<'a>(kind: EventKind, fields: Object<'a>) -> Option<Text<'a>> {
    let text = |path: &[&[u8]]| fields.at(path).and_then(Value::text);
    match kind {
        EventKind::Transaction | EventKind::Span => text(&[b"name"]),
        EventKind::Error => text(&[b"exception", b"type"]).or_else(|| text(&[b"log", b"logger_name"])),
        EventKind::Metricset => fields.find(b"samples")?.object()?.members().next().map(|(name, _)| name),
        EventKind::Log | EventKind::Metadata => None,
    }
}

/// Appends a text, which is at most as long as a keyword may be, or is cut.
fn put(text: Text<'_>, out: &mut Vec<u8>) {
    const MOST: usize = 4 << 10;
    text.pieces(|piece| {
        let room = MOST.saturating_sub(out.len());
        out.extend_from_slice(piece.get(..room).unwrap_or(piece));
    });
}
