//! The screens: from what is known to the cells of a terminal, and nothing else.

mod canvas;
mod flow;
mod help;
mod overview;
mod tenants;

use crate::app::{App, Screen};
use crate::model::Model;
use crate::theme::Theme;
use crate::units;
use canvas::Canvas;
pub(crate) use overview::journal_facts;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use std::time::Instant;

/// The smallest terminal that is drawn on.
const LEAST: (u16, u16) = (60, 15);
/// Lines above the body, and below.
const HEAD: u16 = 5;

/// Draws what `app` has, at `now`.
pub(crate) fn draw(app: &App, now: Instant, area: Rect, buffer: &mut Buffer) {
    buffer.set_style(area, Style::reset());
    let mut canvas = Canvas::new(buffer, app.theme);
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let lines = ["too small:", &format!("{} by {} at least,", LEAST.0, LEAST.1), "q quits"];
        for (row, line) in (area.y..area.bottom()).zip(lines) {
            canvas.text((area.x, row), area.width, line, app.theme.bad());
        }
        return;
    }
    head(app, now, area, &mut canvas);
    let body = Rect { y: area.y + HEAD, height: area.height - HEAD - 1, ..area };
    let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
    if app.is_helping {
        help::draw(body, &mut canvas);
        canvas.text((foot.x, foot.y), foot.width, "any key goes back  q quit", app.theme.dim());
        return;
    }
    match app.screen {
        Screen::Overview => overview::draw(app, body, &mut canvas),
        Screen::Flow => flow::draw(app, body, &mut canvas),
        Screen::Tenants => tenants::draw(app, body, &mut canvas),
    }
    canvas.text((foot.x, foot.y), foot.width, &keys(app), app.theme.dim());
}

/// Two lines of what and where, three of how it is.
fn head(app: &App, now: Instant, area: Rect, canvas: &mut Canvas<'_>) {
    let Rect { x, y, width, .. } = area;
    let frame = &app.model().frame;
    let about = format!("v{}  up {}", frame.version, units::duration(frame.uptime_seconds));
    let used = canvas.right((x, y), width / 2, width, &about, app.theme.dim());
    canvas.text((x, y), width - used - 1, &format!("tidegate  {}", app.address), app.theme.title());
    let mut at = x;
    for (number, screen) in (1..).zip(Screen::ALL) {
        let tab = format!(" {number} {} ", screen.title());
        let style = if screen == app.screen { app.theme.chosen() } else { Style::new() };
        at += canvas.text((at, y + 1), width.saturating_sub(at - x), &tab, style);
    }
    if app.is_paused() {
        canvas.right((x, y + 1), 8, width, "PAUSED", app.theme.warning());
    }
    let mut rows = (y + 2)..(y + HEAD);
    if let Some(lost) = &app.lost {
        let ago = units::duration(now.saturating_duration_since(lost.since).as_secs_f64());
        let words = format!("NO ANSWER for {ago}: {}; asking again every second", lost.reason);
        for (line, row) in canvas::wrapped(&app.theme.clean(&words), width, 2).iter().zip(&mut rows) {
            canvas.text((x, row), width, line, app.theme.bad());
        }
    }
    let (word, style) = state(app.model(), app.theme);
    let words = format!("{word}: {}", frame.reason);
    let left = rows.len();
    for (index, line) in canvas::wrapped(&app.theme.clean(&words), width, left).iter().enumerate() {
        let Some(row) = rows.next() else { break };
        canvas.text((x, row), width, line, Style::new());
        if index == 0 {
            canvas.text((x, row), width, word, style);
        }
    }
}

/// The state's word as `/status` has it, and how it looks.
fn state(model: &Model, theme: Theme) -> (&'static str, Style) {
    match model.frame.state.as_str() {
        "flowing" => ("flowing", theme.good()),
        "draining" => ("draining", theme.warning()),
        "spilling" => ("spilling", theme.warning()),
        "pushing_back" => ("pushing back", theme.bad()),
        "stopping" => ("stopping", theme.warning()),
        _ => ("unknown state", theme.warning()),
    }
}

fn keys(app: &App) -> String {
    let sort = if app.screen == Screen::Tenants { "  s sort" } else { "" };
    let pause = if app.is_paused() { "p go on" } else { "p pause" };
    format!("1-3/Tab screen  j/k choose{sort}  {pause}  ? help  q quit")
}

/// The first of `lines` that is shown where `rows` fit and `chosen` has to be among them.
fn first_shown(chosen: usize, rows: usize, lines: usize) -> usize {
    chosen.saturating_sub(rows.saturating_sub(1)).min(lines.saturating_sub(rows))
}

#[cfg(test)]
mod tests;
