//! Writes text, gauges and graphs into cells. Everything that is shown goes through here, and is cleaned here.

use crate::history::History;
use crate::theme::Theme;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::Span;

/// The cells of a terminal.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    pub(super) theme: Theme,
}

/// A column and a row.
type Place = (u16, u16);

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, theme: Theme) -> Canvas<'a> {
        Canvas { buffer, theme }
    }

    /// Writes as much of `text` as fits `width`, and says so when it is not all. The columns that it took.
    pub(super) fn text(&mut self, (x, y): Place, width: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if y < area.top() || y >= area.bottom() || x >= area.right() {
            return 0;
        }
        let (width, text) = (width.min(area.right() - x), self.theme.clean(text));
        if columns(&text) <= width {
            return self.buffer.set_stringn(x, y, text, width.into(), style).0 - x;
        }
        let Some(room) = width.checked_sub(1) else { return 0 };
        let end = self.buffer.set_stringn(x, y, text, room.into(), style).0;
        self.buffer.set_stringn(end, y, self.theme.ellipsis(), 1, style).0 - x
    }

    /// Writes `text` at the right end of `width`, in at most `most` columns. The columns that it took.
    pub(super) fn right(&mut self, (x, y): Place, most: u16, width: u16, text: &str, style: Style) -> u16 {
        let text = self.theme.clean(text).into_owned();
        let needed = columns(&text).min(most).min(width);
        self.text((x + width - needed, y), needed, &text, style)
    }

    /// Writes cells beside one another, each in its columns: to the right when they are numbers.
    pub(super) fn row(&mut self, (mut x, y): Place, cells: &[(&str, i16)], style: Style) {
        for (text, width) in cells {
            let columns = width.unsigned_abs();
            // A column stays free between two.
            let room = columns.saturating_sub(1);
            if *width < 0 {
                // Half a number is another number.
                if x + room > self.buffer.area.right() {
                    break;
                }
                self.right((x, y), room, room, text, style);
            } else {
                self.text((x, y), room, text, style);
            }
            x += columns;
        }
    }

    /// Shows that a line is the chosen one.
    pub(super) fn mark(&mut self, row: Rect) {
        self.buffer.set_style(row.intersection(self.buffer.area), self.theme.chosen());
    }

    /// A bar of `part` in `whole`, with a mark at `peak`.
    pub(super) fn gauge(&mut self, (x, y): Place, width: u16, part: u64, peak: Option<u64>, whole: u64) {
        let (full, empty, mark) = self.theme.gauge();
        let position = |value: u64| (share(value, whole) * f64::from(width)).round() as u16;
        let filled = position(part).min(width);
        let style = match share(part, whole) {
            0.95.. => self.theme.bad(),
            0.8.. => self.theme.warning(),
            _ => self.theme.good(),
        };
        let bar = |character: char, count: u16| character.to_string().repeat(count.into());
        self.text((x, y), width, &bar(full, filled), style);
        self.text((x + filled, y), width - filled, &bar(empty, width - filled), self.theme.dim());
        let peak = peak.map(|peak| position(peak).clamp(1, width.max(1)) - 1).filter(|at| *at >= filled);
        if let Some(at) = peak.filter(|at| *at < width) {
            self.text((x + at, y), 1, &mark.to_string(), Style::new());
        }
    }

    /// A graph of the newest rates, the present on the right; what is not known stays empty.
    pub(super) fn graph(&mut self, (x, y): Place, width: u16, history: &History, style: Style) {
        let points: Vec<Option<f64>> = history.newest(width.into()).collect();
        let most = points.iter().flatten().fold(0.0_f64, |most, rate| most.max(*rate));
        let column = |point: &Option<f64>| match point {
            Some(rate) if most > 0.0 && *rate > 0.0 => {
                self.theme.column(((rate / most * 8.0).ceil() as usize).clamp(1, 8))
            }
            _ => self.theme.column(0),
        };
        let line: String = points.iter().map(column).collect();
        let used = u16::try_from(points.len()).unwrap_or(width).min(width);
        self.text((x + width - used, y), used, &line, style);
    }
}

/// The part of a whole, from 0 to 1.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// Breaks a text at its spaces into at most `most` lines of `width`; the last has all the rest.
pub(super) fn wrapped(text: &str, width: u16, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_last = lines.len() >= most;
        match lines.last_mut() {
            Some(line)
                if is_last || columns(line).saturating_add(1).saturating_add(columns(word)) <= width =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.truncate(most);
    lines
}
