//! Items of `_bulk` bodies: documents, and what else is to be done, as they were sent.

use super::{Items, RemainingItems, enough};
use tidegate_journal::Meta;
use tidegate_wire::bulk::{self, Item};
use tidegate_wire::intake::Value;

/// The longest document that is shown in its own JSON; of longer ones the beginning is shown, as a text.
const LONGEST: usize = 8 << 10;
/// The longest name of an index, and the longest id.
const LONGEST_NAME: usize = 1 << 10;

pub(super) fn walk(items: &mut Items<'_>, meta: &Meta, raw: &[u8]) -> RemainingItems {
    enough(bulk::items(raw).map_while(Result::ok).try_for_each(|item| self::item(items, meta, &item)))
}

fn item(items: &mut Items<'_>, meta: &Meta, item: &Item<'_>) -> Option<()> {
    let document = item.document.filter(|_| item.check().is_ok());
    let fields = document.and_then(|document| Value::of(document).object());
    let text = |raw: Option<&[u8]>| match raw.map(Value::of) {
        Some(Value::Text(text)) => {
            let mut shown = Vec::new();
            text.pieces(|piece| {
                let room = LONGEST_NAME.saturating_sub(shown.len());
                shown.extend_from_slice(piece.get(..room).unwrap_or(piece));
            });
            shown
        }
        Some(Value::Number(number)) => number.raw().to_vec(),
        _ => Vec::new(),
    };
    let service = fields.and_then(|fields| {
        fields.find(b"service.name").or_else(|| fields.at(&[b"service", b"name"]))?.text()?.plain()
    });
    let (service, index) = (service.unwrap_or_default(), text(item.action.index));
    items.item(service, &index, |line| {
        line.time("time", meta.received_at_ns);
        line.text("action", item.action.kind.name().as_bytes());
        line.text("index", &index);
        let id = text(item.action.id);
        if !id.is_empty() {
            line.text("id", &id);
        }
        match (item.document, document.and_then(|document| str::from_utf8(document).ok())) {
            (_, Some(json)) if json.len() <= LONGEST && !json.contains('\r') => {
                line.plain("document", json.trim())
            }
            (Some(other), _) => line.text("document", other),
            (None, _) => {}
        }
    })
}
