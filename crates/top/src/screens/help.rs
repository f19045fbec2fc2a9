//! What the keys do, and what the words mean.

use super::Canvas;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

const LINES: [(&str, &str); 9] = [
    ("1 2 3, Tab", "overview, flow, tenants"),
    ("j k, arrows", "choose a line; PgUp PgDn Home End too"),
    ("s", "sort tenants by bytes, items, refused, held"),
    ("p", "pause; the graphs go on behind it"),
    ("rates", "mean of the last 5 s; graphs: a second a column"),
    ("lag", "what a sink has not completed: age, items"),
    ("flying", "requests in flight, of those allowed now"),
    ("held", "memory that a tenant's requests hold now"),
    ("books", "they close when nothing is unaccounted for"),
];

pub(super) fn draw(body: Rect, canvas: &mut Canvas<'_>) {
    for ((key, meaning), row) in LINES.iter().zip(body.top()..body.bottom()) {
        canvas.text((body.x, row), 13, key, canvas.theme.title());
        canvas.text((body.x + 13, row), body.width - 13, meaning, Style::new());
    }
}
