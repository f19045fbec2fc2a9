//! Parameters of a request's URL that apply to all of its items: an index, a pipeline, and other action fields. The
//! journal stores bodies without URLs, so actions without these fields get them.

use super::request::{Request, decoded};
use tidegate_wire::bulk::{Action, Field};
use tidegate_wire::json::append_string;

/// The most of them.
const MOST: usize = 5;

/// The fields added to actions that lack them, each written as `"name":value`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    fields: [Option<(Field, Box<[u8]>)>; MOST],
    /// How long `"_index":` is, before the value.
    index_at: usize,
}

impl Defaults {
    pub(super) fn of(request: &Request<'_>) -> Defaults {
        let mut parts = request.parts();
        let first = parts.next();
        let index = first.filter(|first| *first != "_bulk").map(|index| decoded(index, false));
        let parameters = [
            (Field::Index, "_index", index),
            (Field::Pipeline, "pipeline", request.parameter("pipeline")),
            (Field::Routing, "routing", request.parameter("routing")),
            (Field::RequireAlias, "require_alias", request.parameter("require_alias")),
            (Field::RequireDataStream, "require_data_stream", request.parameter("require_data_stream")),
        ];
        let mut defaults = Defaults { index_at: b"\"_index\":".len(), ..Defaults::default() };
        for (place, (field, name, value)) in defaults.fields.iter_mut().zip(parameters) {
            let Some(value) = value else { continue };
            let mut text = Vec::new();
            append_string(&mut text, name.as_bytes());
            text.push(b':');
            match field {
                // A parameter without a value is one that is set.
                Field::RequireAlias | Field::RequireDataStream => {
                    text.extend_from_slice(if value == "false" { b"false" } else { b"true" });
                }
                _ => append_string(&mut text, value.as_bytes()),
            }
            *place = Some((field, text.into_boxed_slice()));
        }
        defaults
    }

    /// Whether the address says this.
    pub(super) fn has(&self, field: Field) -> bool {
        self.fields.iter().flatten().any(|(known, _)| *known == field)
    }

    /// The index of items that name none, as a JSON string.
    pub(super) fn index(&self) -> Option<&[u8]> {
        let [Some((Field::Index, text)), ..] = &self.fields else { return None };
        text.get(self.index_at..)
    }

    /// The fields that `action` lacks.
    pub(super) fn missing(&self, action: &Action<'_>) -> [&[u8]; MOST] {
        let mut missing = [&[][..]; MOST];
        for (place, field) in missing.iter_mut().zip(&self.fields) {
            if let Some((field, text)) = field
                && !action.has(*field)
            {
                *place = text;
            }
        }
        missing
    }

    /// How many bytes that takes in an action, with commas.
    pub(super) fn missing_len(&self, action: &Action<'_>) -> usize {
        self.missing(action).iter().filter(|text| !text.is_empty()).map(|text| text.len() + 1).sum()
    }
}
