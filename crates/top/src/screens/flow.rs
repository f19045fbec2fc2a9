//! Sources, journal, sinks: what passes each of them, and the details of one.

use super::overview::{journal_facts, state_style};
use super::{Canvas, canvas, first_shown};
use crate::app::App;
use crate::frame::{Destination, Frame, Sink, SourceBook};
use crate::model::Model;
use crate::units;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use std::collections::BTreeMap;

/// A line of the list.
enum Line<'a> {
    Title(Vec<(&'a str, i16)>),
    Source(&'a SourceBook),
    Journal,
    Sink(&'a Sink),
}

/// Columns of a name.
const NAME: i16 = 22;

pub(super) fn draw(app: &App, body: Rect, canvas: &mut Canvas<'_>) {
    let model = app.model();
    summary(canvas, body, model);
    let lines = lines(&model.frame);
    let choices = lines.iter().filter(|line| !matches!(line, Line::Title(_))).count();
    let chosen = app.chosen(choices);
    // Among all lines, titles too.
    let chosen = lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Title(_))).nth(chosen);
    let chosen = chosen.map_or(0, |(index, _)| index);
    let most = body.height - 1 - (body.height / 3).max(4);
    let list = Rect { y: body.y + 1, height: most.min(u16::try_from(lines.len()).unwrap_or(most)), ..body };
    // A title above the first choice is shown with it.
    let first = match first_shown(chosen, list.height.into(), lines.len()) {
        1 => 0,
        first => first,
    };
    for ((index, line), y) in lines.iter().enumerate().skip(first).zip(list.top()..list.bottom()) {
        let row = Rect { y, height: 1, ..list };
        draw_line(canvas, row, model, line);
        if index == chosen {
            canvas.mark(row);
        }
    }
    let rest = Rect { y: list.bottom(), height: body.bottom() - list.bottom(), ..body };
    if let Some(line) = lines.get(chosen) {
        draw_details(canvas, rest, model, line);
    }
}

/// `12.3k/s in → journal 128 MiB → 12.0k/s out`
fn summary(canvas: &mut Canvas<'_>, body: Rect, model: &Model) {
    let journal = &model.frame.journal;
    let words = format!(
        "{}/s in → journal {} of {} → {}/s out to {} sinks",
        units::maybe_count(model.received.rate()),
        units::bytes(journal.bytes as f64),
        units::bytes(journal.quota as f64),
        units::maybe_count(model.delivered.rate()),
        model.frame.sinks.len(),
    );
    canvas.text((body.x, body.y), body.width, &words, canvas.theme.title());
}

fn lines(frame: &Frame) -> Vec<Line<'_>> {
    let mut lines = vec![Line::Title(vec![
        ("SOURCES", NAME),
        ("items/s", -10),
        ("bytes/s", -13),
        ("refused/s", -10),
        ("open", -5),
    ])];
    lines.extend(frame.books.sources.iter().map(Line::Source));
    lines.push(Line::Journal);
    lines.push(Line::Title(vec![
        ("SINKS", NAME),
        ("items/s", -9),
        ("lag", 12),
        ("flying", -8),
        (" state", 9),
        ("last error", 60),
    ]));
    lines.extend(frame.sinks.iter().map(Line::Sink));
    lines
}

fn draw_line(canvas: &mut Canvas<'_>, row: Rect, model: &Model, line: &Line<'_>) {
    let at = (row.x, row.y);
    match line {
        Line::Title(cells) => canvas.row(at, cells, canvas.theme.dim()),
        Line::Source(source) => {
            let rates = model.source(&source.name);
            let items = units::maybe_count(rates.and_then(|rates| rates.items.rate()));
            let bytes = units::maybe_bytes(rates.and_then(|rates| rates.bytes.rate()));
            let refused = rates.and_then(|rates| rates.refused.rate());
            let open = source.open.to_string();
            canvas.row(at, &[(&source.name, NAME), (&items, -10), (&bytes, -13)], Style::new());
            let style =
                if refused.is_some_and(|rate| rate > 0.0) { canvas.theme.bad() } else { Style::new() };
            canvas.row((row.x + 45, row.y), &[(&units::maybe_count(refused), -10)], style);
            canvas.row((row.x + 55, row.y), &[(&open, -5)], Style::new());
            if let Some(rates) = rates.filter(|_| row.width > 70) {
                canvas.graph((row.x + 62, row.y), row.width - 62, &rates.items, canvas.theme.graph());
            }
        }
        Line::Journal => {
            canvas.text(at, 22, "JOURNAL", canvas.theme.dim());
            canvas.text((row.x + 22, row.y), row.width - 22, &journal_facts(&model.frame), Style::new());
        }
        Line::Sink(sink) => sink_line(canvas, row, model, sink),
    }
}

fn sink_line(canvas: &mut Canvas<'_>, row: Rect, model: &Model, sink: &Sink) {
    let rate = units::maybe_count(model.sink(&sink.name).and_then(|rates| rates.items.rate()));
    let lag = sink.lag.age_seconds.map_or_else(|| "none".to_owned(), units::duration);
    let flying = flying(sink);
    canvas.row((row.x, row.y), &[(&sink.name, NAME), (&rate, -9), (&lag, 12), (&flying, -8)], Style::new());
    let state = sink.state();
    canvas.text((row.x + 52, row.y), 8, state.word(), state_style(state, canvas.theme));
    if let Some(error) = sink.error() {
        let style = state_style(state, canvas.theme);
        canvas.text((row.x + 60, row.y), row.width.saturating_sub(60), &error.message, style);
    }
}

/// Requests in flight, and how many may be: `3/8`.
fn flying(sink: &Sink) -> String {
    match sink.concurrency_limit {
        Some(limit) => format!("{}/{}", sink.in_flight, units::count(limit.floor())),
        None => sink.in_flight.to_string(),
    }
}

fn draw_details(canvas: &mut Canvas<'_>, area: Rect, model: &Model, line: &Line<'_>) {
    let (title, words) = match line {
        Line::Title(_) => return,
        Line::Source(source) => (source.name.clone(), source_details(source, model)),
        Line::Journal => ("journal".to_owned(), journal_details(&model.frame)),
        Line::Sink(sink) => (format!("{} ({})", sink.name, sink.kind), sink_details(sink, model)),
    };
    let rule = "─".repeat(area.width.into());
    canvas.text((area.x, area.y), area.width, &rule, canvas.theme.dim());
    canvas.text((area.x + 2, area.y), area.width - 4, &format!(" {title} "), canvas.theme.title());
    let mut rows = area.top() + 1..area.bottom();
    for text in words {
        let left = rows.len();
        for line in canvas::wrapped(&canvas.theme.clean(&text), area.width, left) {
            let Some(y) = rows.next() else { return };
            canvas.text((area.x, y), area.width, &line, Style::new());
        }
    }
}

fn source_details(source: &SourceBook, model: &Model) -> Vec<String> {
    let requests = model.source(&source.name).and_then(|rates| rates.requests.rate());
    let mut words = vec![format!(
        "{} requests ({}/s), {} accepted, {} open, {} received",
        units::count(source.received as f64),
        units::maybe_count(requests),
        units::count(source.accepted as f64),
        source.open,
        units::bytes(source.bytes as f64),
    )];
    words.push(format!("items: {}", by_name(&source.items)));
    words.push(format!("requests refused: {}", by_name(&source.refused)));
    if !source.items_refused.is_empty() {
        words.push(format!("items refused: {}", by_name(&source.items_refused)));
    }
    if let Some(destination) = model.frame.destination.as_ref().filter(|to| to.source == source.name) {
        words.push(forwarded(source, destination, &model.frame));
    }
    words
}

fn forwarded(source: &SourceBook, destination: &Destination, frame: &Frame) -> String {
    let mut words = format!(
        "{} items forwarded to `{}`: {} requests, {} failed, {} in flight",
        units::count(source.forwarded as f64),
        destination.sink,
        units::count(destination.requests as f64),
        units::count(destination.failures as f64),
        destination.in_flight,
    );
    if let Some(seconds) = destination.failing_since.as_ref().and_then(|since| frame.seconds_since(since)) {
        words.push_str(&format!("; failing for {}", units::duration(seconds)));
    }
    if let Some(error) = &destination.last_error {
        words.push_str(&format!("; last error: {}", error.message));
    }
    words
}

fn journal_details(frame: &Frame) -> Vec<String> {
    let journal = &frame.journal;
    let mut words = vec![
        format!(
            "{}, acknowledged after {}; {} of {} in {} segments",
            journal.dir,
            journal.durability,
            units::bytes(journal.bytes as f64),
            units::bytes(journal.quota as f64),
            journal.segments
        ),
        format!(
            "{} items ever, next record {}; {} syncs",
            units::count(journal.items_total as f64),
            journal.head,
            units::count(journal.syncs.count as f64)
        ),
    ];
    if journal.damage.records > 0 {
        let bytes = units::bytes(journal.damage.bytes as f64);
        words.push(format!("DAMAGED: {} records, {bytes} skipped", journal.damage.records));
    }
    for left in frame.left_behind.iter().filter(|left| left.items > 0) {
        words.push(format!(
            "`{}` is not configured and holds back {} items, {}: {}",
            left.name,
            units::count(left.items as f64),
            units::bytes(left.bytes as f64),
            left.command
        ));
    }
    words
}

fn sink_details(sink: &Sink, model: &Model) -> Vec<String> {
    let rates = model.sink(&sink.name);
    let mut words = Vec::new();
    if let Some(error) = sink.error() {
        let ago = model.frame.seconds_since(&error.at);
        let ago = ago.map_or_else(String::new, |seconds| format!(" {} ago", units::duration(seconds)));
        words.push(format!("last error{ago}: {}", error.message));
    }
    if let Some(seconds) = sink.retry_at.as_ref().and_then(|at| model.frame.seconds_since(at)) {
        words.push(format!("next attempt in {}", units::duration(-seconds)));
    }
    for waiting in &sink.waiting {
        let documents = units::count(waiting.documents as f64);
        words.push(format!("{documents} documents wait for index {}: {}", waiting.index, waiting.reason));
    }
    for member in sink.members.iter().filter(|member| member.behind) {
        let bytes = units::bytes(member.handed_off_bytes as f64);
        let error = member.last_error.as_ref().map_or("", |error| &error.message);
        words.push(format!("member {} is behind, {bytes} on disk: {error}", member.address));
    }
    words.push(format!(
        "to {}; {} items and {} behind, cursor's age {}",
        sink.target,
        units::count(sink.lag.items as f64),
        units::bytes(sink.lag.bytes as f64),
        sink.lag.age_seconds.map_or_else(|| "none".to_owned(), units::duration),
    ));
    words.push(format!(
        "{} requests ({}/s), {} failed ({}/s), {} sent ({}/s), {} in flight",
        units::count(sink.requests as f64),
        units::maybe_count(rates.and_then(|rates| rates.requests.rate())),
        units::count(sink.failures as f64),
        units::maybe_count(rates.and_then(|rates| rates.failures.rate())),
        units::bytes(sink.bytes as f64),
        units::maybe_bytes(rates.and_then(|rates| rates.bytes.rate())),
        flying(sink),
    ));
    let success = sink.last_success.as_ref().and_then(|at| model.frame.seconds_since(at));
    words.push(format!(
        "{} delivered, dropped: {}, sent again: {}; last success {}",
        units::count(sink.delivered as f64),
        by_name(&sink.dropped),
        units::count(sink.resent as f64),
        success.map_or_else(|| "never".to_owned(), |seconds| format!("{} ago", units::duration(seconds))),
    ));
    if sink.restarts > 0 {
        words.push(format!("it ended unexpectedly {} times", sink.restarts));
    }
    words
}

/// `memory 3, timeout 4`
fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} {}", units::count(*count as f64))).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}
