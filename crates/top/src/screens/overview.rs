//! The gateway on one page: rates, memory, journal, books, sinks.

use super::{Canvas, canvas, first_shown};
use crate::app::App;
use crate::frame::{Frame, Owner, Sink, SinkState};
use crate::history::History;
use crate::model::Model;
use crate::theme::Theme;
use crate::units;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Columns of the titles on the left.
const TITLE: u16 = 9;
/// Columns of an owner of memory.
const OWNER: u16 = 26;
/// Sinks get at least this many lines before memory gets more.
const LEAST_SINKS: u16 = 4;

pub(super) fn draw(app: &App, body: Rect, canvas: &mut Canvas<'_>) {
    let model = app.model();
    let mut rows = body.top()..body.bottom();
    let mut next = || rows.next().map(|y| Rect { y, height: 1, ..body });
    if let Some(row) = next() {
        let bytes = Some(&model.received_bytes);
        rate(canvas, row, "in", (&model.received, "items/s"), bytes, canvas.theme.graph());
    }
    if let Some(row) = next() {
        rate(
            canvas,
            row,
            "out",
            (&model.delivered, "items/s"),
            Some(&model.sent_bytes),
            canvas.theme.graph(),
        );
    }
    if let Some(row) = next() {
        let is_refusing = model.refused.rate().is_some_and(|rate| rate > 0.0);
        let style = if is_refusing { canvas.theme.bad() } else { canvas.theme.graph() };
        rate(canvas, row, "refused", (&model.refused, "requests/s"), None, style);
    }
    if let Some(row) = next() {
        memory(canvas, row, &model.frame);
    }
    let for_owners = body.height.saturating_sub(7 + LEAST_SINKS) / 2;
    let owners = model.frame.memory.owners();
    let beside = owners_beside(body.width);
    let for_owners = usize::from(for_owners).min(owners.len().div_ceil(beside));
    for owners in owners.chunks(beside).take(for_owners) {
        let Some(row) = next() else { break };
        owners_line(canvas, row, owners);
    }
    if let Some(row) = next() {
        journal(canvas, row, &model.frame);
    }
    if let Some(row) = next() {
        let facts = journal_facts(&model.frame);
        canvas.text((row.x + TITLE, row.y), row.width - TITLE, &facts, canvas.theme.dim());
    }
    if let Some(row) = next() {
        books(canvas, row, &model.frame);
    }
    sinks(app, Rect { y: rows.start, height: rows.end - rows.start, ..body }, canvas);
}

fn rate(
    canvas: &mut Canvas<'_>,
    row: Rect,
    title: &str,
    (history, unit): (&History, &str),
    bytes: Option<&History>,
    style: Style,
) {
    let Rect { x, y, width, .. } = row;
    canvas.text((x, y), TITLE, title, canvas.theme.title());
    canvas.right((x + TITLE, y), 6, 6, &units::maybe_count(history.rate()), Style::new());
    canvas.text((x + TITLE + 7, y), 11, unit, canvas.theme.dim());
    let mut used = TITLE + 18;
    if let Some(bytes) = bytes {
        let text = format!("{}/s", units::maybe_bytes(bytes.rate()));
        canvas.right((x + used - 3, y), 13, 13, &text, canvas.theme.dim());
    }
    used += 12;
    canvas.graph((x + used, y), width - used, history, style);
}

fn memory(canvas: &mut Canvas<'_>, row: Rect, frame: &Frame) {
    let memory = &frame.memory;
    let words = match &memory.resident {
        Some(resident) => format!(
            "{} of {}, peak {}",
            units::bytes(resident.now as f64),
            units::bytes(memory.limit as f64),
            units::bytes(resident.peak as f64)
        ),
        None => format!("limit {}", units::bytes(memory.limit as f64)),
    };
    let (now, peak) = memory.resident.as_ref().map_or((0, None), |known| (known.now, Some(known.peak)));
    gauge(canvas, row, "memory", &words, (now, peak, memory.limit));
}

/// A gauge, and words behind it.
fn gauge(
    canvas: &mut Canvas<'_>,
    row: Rect,
    title: &str,
    words: &str,
    (part, peak, whole): (u64, Option<u64>, u64),
) {
    let Rect { x, y, width, .. } = row;
    canvas.text((x, y), TITLE, title, canvas.theme.title());
    let room = width - TITLE;
    let words_take = canvas::columns(words).min(room);
    let bar = (room - words_take).saturating_sub(1).min(40);
    canvas.gauge((x + TITLE, y), bar, part, peak, whole);
    canvas.text((x + TITLE + bar + 1, y), room.saturating_sub(bar + 1), words, Style::new());
}

/// How many owners of memory stand in one line.
const fn owners_beside(width: u16) -> usize {
    let beside = (width - TITLE) / OWNER;
    if beside == 0 { 1 } else { beside as usize }
}

/// Owners of memory, with "used/most".
fn owners_line(canvas: &mut Canvas<'_>, row: Rect, owners: &[Owner<'_>]) {
    for (column, owner) in (0..).zip(owners) {
        let used = owner.used.map_or_else(|| "-".to_owned(), |used| units::bytes(used as f64));
        let numbers = format!("{used}/{}", units::bytes(owner.most as f64));
        let x = row.x + TITLE + column * OWNER;
        let style = if owner.is_short { canvas.theme.bad() } else { canvas.theme.dim() };
        let taken = canvas.right((x, row.y), OWNER - 2, OWNER - 2, &numbers, style);
        canvas.text((x, row.y), (OWNER - 3).saturating_sub(taken), owner.name, style);
    }
}

fn journal(canvas: &mut Canvas<'_>, row: Rect, frame: &Frame) {
    let journal = &frame.journal;
    let words = format!("{} of {}", units::bytes(journal.bytes as f64), units::bytes(journal.quota as f64));
    gauge(canvas, row, "journal", &words, (journal.bytes, None, journal.quota));
}

/// How old, and how long it lasts.
pub(crate) fn journal_facts(frame: &Frame) -> String {
    let journal = &frame.journal;
    let oldest = journal.oldest_age_seconds.map_or_else(|| "nothing".to_owned(), units::duration);
    let full = match journal.full_in_seconds {
        Some(seconds) => format!("full in {}", units::duration(seconds)),
        None => "not filling".to_owned(),
    };
    let trouble = match &journal.trouble {
        Some(trouble) => format!("; takes nothing: {trouble}"),
        None => String::new(),
    };
    format!("oldest {oldest}, {full}, {} a sync{trouble}", units::duration(journal.syncs.mean_seconds))
}

fn books(canvas: &mut Canvas<'_>, row: Rect, frame: &Frame) {
    canvas.text((row.x, row.y), TITLE, "books", canvas.theme.title());
    let (words, style) = match frame.books.difference {
        0 => ("they close: nothing is unaccounted for".to_owned(), canvas.theme.good()),
        items => (format!("{items} UNACCOUNTED FOR: a bug, please report it"), canvas.theme.bad()),
    };
    canvas.text((row.x + TITLE, row.y), row.width - TITLE, &words, style);
}

fn sinks(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let model = app.model();
    let sinks = &model.frame.sinks;
    if sinks.is_empty() {
        canvas.text((area.x, area.y), area.width, "no sink is configured", canvas.theme.dim());
        return;
    }
    let shown = usize::from(area.height);
    let chosen = app.chosen(sinks.len());
    let first = first_shown(chosen, shown, sinks.len());
    let rows = area.top()..area.bottom();
    for ((index, sink), y) in sinks.iter().enumerate().skip(first).zip(rows) {
        let row = Rect { y, height: 1, ..area };
        sink_line(canvas, row, model, sink);
        if index == chosen && sinks.len() > shown {
            // How many there are beyond.
            let place = format!("{}/{}", index + 1, sinks.len());
            canvas.right((row.x, y), 8, row.width, &place, canvas.theme.chosen());
        }
    }
}

/// How a sink's state looks.
pub(super) const fn state_style(state: SinkState, theme: Theme) -> Style {
    match state {
        SinkState::Fine => theme.good(),
        SinkState::Late => theme.warning(),
        SinkState::Failing => theme.bad(),
    }
}

fn sink_line(canvas: &mut Canvas<'_>, row: Rect, model: &Model, sink: &Sink) {
    let Rect { x, y, width, .. } = row;
    let state = sink.state();
    canvas.text((x, y), 8, state.word(), state_style(state, canvas.theme));
    canvas.text((x + TITLE, y), 15, &sink.name, canvas.theme.title());
    let rate = model.sink(&sink.name).and_then(|rates| rates.items.rate());
    canvas.right((x + 25, y), 8, 8, &format!("{}/s", units::maybe_count(rate)), Style::new());
    let lag = match sink.lag.age_seconds {
        Some(age) => format!("{} behind ({})", units::duration(age), units::count(sink.lag.items as f64)),
        None => "keeps up".to_owned(),
    };
    let used = canvas.text((x + 34, y), width - 34, &lag, Style::new()) + 36;
    let error = sink.error().filter(|_| state != SinkState::Fine);
    if let Some(error) = error {
        canvas.text((x + used, y), width.saturating_sub(used), &error.message, canvas.theme.bad());
    }
}
