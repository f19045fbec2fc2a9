//! The tenants, in the chosen order.

use super::{Canvas, first_shown};
use crate::app::{App, Sort};
use crate::frame::Tenant;
use crate::units;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Columns besides the name.
const NUMBERS: u16 = 44;

pub(super) fn draw(app: &App, body: Rect, canvas: &mut Canvas<'_>) {
    let Some(tenants) = &app.model().frame.tenants else {
        let words = "no tenants: the setting `tenants` separates them";
        canvas.text((body.x, body.y), body.width, words, canvas.theme.dim());
        return;
    };
    let shown = tenants.shown.len();
    let words =
        format!("{} of at most {} tenants, sorted by {}", tenants.known, tenants.most, app.sort.word());
    canvas.text((body.x, body.y), body.width, &words, canvas.theme.title());
    let name = i16::try_from(body.width.saturating_sub(NUMBERS).min(30)).unwrap_or(16);
    let mark =
        |sort: Sort, title: &str| if sort == app.sort { format!("{title}*") } else { title.to_owned() };
    let titles = [
        mark(Sort::Bytes, "bytes"),
        mark(Sort::Items, "items"),
        mark(Sort::Refused, "refused"),
        mark(Sort::Held, "held"),
    ];
    let [bytes, items, refused, held] = &titles;
    let cells = [
        ("TENANT", name),
        (bytes, -11),
        (items, -8),
        (refused, -9),
        (held, -11),
        ("open", -5),
        ("bytes/s", -13),
        (" mostly", 14),
    ];
    canvas.row((body.x, body.y + 1), &cells, canvas.theme.dim());
    let mut order: Vec<&Tenant> = tenants.shown.iter().collect();
    order.sort_by_key(|tenant| std::cmp::Reverse((key(tenant, app.sort), tenant.bytes)));
    let list = Rect { y: body.y + 2, height: body.height - 2, ..body };
    let chosen = app.chosen(shown);
    let first = first_shown(chosen, list.height.into(), shown);
    for ((index, tenant), y) in order.iter().enumerate().skip(first).zip(list.top()..list.bottom()) {
        let numbers = [
            units::bytes(tenant.bytes as f64),
            units::count(tenant.items as f64),
            units::count(tenant.refused as f64),
            units::bytes(tenant.held as f64),
            tenant.open.to_string(),
            units::maybe_bytes(app.model().tenant_rate(&tenant.name)),
        ];
        let [bytes, items, refused, held, open, rate] = &numbers;
        let mostly = format!(" {}", tenant.mostly.as_deref().unwrap_or_default());
        let cells = [
            (&*tenant.name, name),
            (bytes, -11),
            (items, -8),
            (refused, -9),
            (held, -11),
            (open, -5),
            (rate, -13),
            (&mostly, 14),
        ];
        let style = if tenant.refused > 0 && app.sort == Sort::Refused {
            canvas.theme.warning()
        } else {
            Style::new()
        };
        canvas.row((list.x, y), &cells, style);
        if index == chosen {
            canvas.mark(Rect { y, height: 1, ..list });
        }
    }
}

const fn key(tenant: &Tenant, sort: Sort) -> u64 {
    match sort {
        Sort::Bytes => tenant.bytes,
        Sort::Items => tenant.items,
        Sort::Refused => tenant.refused,
        Sort::Held => tenant.held,
    }
}
