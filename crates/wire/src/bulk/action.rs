//! The action of an item: what is to be done, where, and what it says besides.

use super::LineError;
use super::json::{expect, goes_on, value};
use crate::json::Cursor;

/// The operation on a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Put it in place of what is there.
    Index,
    /// Put it where nothing is.
    Create,
    /// Change a part of it.
    Update,
    /// Remove it.
    Delete,
}

/// A field of an action that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `_index`
    Index,
    /// `_id`
    Id,
    /// `pipeline`
    Pipeline,
    /// `routing`
    Routing,
    /// `require_alias`
    RequireAlias,
    /// `require_data_stream`
    RequireDataStream,
    /// `_type`, which Elasticsearch 8 and OpenSearch 2 refuse: [`Item::write`](super::Item::write) leaves it out.
    Type,
}

/// The contents of an action line. Other fields are checked to be JSON, and kept unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action<'a> {
    /// The operation.
    pub kind: Kind,
    /// `_index` as it stands there: a string with its quotes.
    pub index: Option<&'a [u8]>,
    /// `_id` as it stands there: a string with its quotes, or a number.
    pub id: Option<&'a [u8]>,
    /// Whether it names a pipeline: `pipeline` is there, and not null.
    pub pipeline: bool,
    /// A bit for each [`Field`] that is there, were it null.
    fields: u8,
    /// Where in the line the fields begin.
    pub(super) fields_at: usize,
    /// Whether there are any but a type.
    pub(super) has_fields: bool,
    /// Where in the line the type is, with the comma that goes with it.
    pub(super) type_at: Option<(usize, usize)>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Index, Kind::Create, Kind::Update, Kind::Delete];

    /// Its name in actions and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Index => "index",
            Kind::Create => "create",
            Kind::Update => "update",
            Kind::Delete => "delete",
        }
    }
}

impl Field {
    /// Every field with its name.
    const NAMES: [(&'static [u8], Field); 9] = [
        (b"_index", Field::Index),
        (b"_id", Field::Id),
        (b"pipeline", Field::Pipeline),
        (b"routing", Field::Routing),
        (b"_routing", Field::Routing),
        (b"require_alias", Field::RequireAlias),
        (b"require_data_stream", Field::RequireDataStream),
        (b"_require_data_stream", Field::RequireDataStream),
        (b"_type", Field::Type),
    ];

    fn named(name: &[u8]) -> Option<Field> {
        Field::NAMES.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Action<'_> {
    /// Whether the line has this field.
    pub const fn has(&self, field: Field) -> bool {
        self.fields & field.bit() != 0
    }
}

/// Reads an action's line.
pub(super) fn read(line: &[u8]) -> Result<Action<'_>, LineError> {
    let mut cursor = Cursor::new(line);
    expect(&mut cursor, b'{', "no JSON object")?;
    let unknown = LineError::new(cursor.offset(), "none of `index`, `create`, `update` and `delete`");
    let name = cursor.string().map_err(|_| unknown)?.raw;
    let kind = Kind::ALL.into_iter().find(|kind| name == kind.name().as_bytes()).ok_or(unknown)?;
    expect(&mut cursor, b':', "no colon behind a name")?;
    expect(&mut cursor, b'{', "no JSON object")?;
    let fields_at = cursor.offset();
    let mut action = Action {
        kind,
        index: None,
        id: None,
        pipeline: false,
        fields: 0,
        fields_at,
        has_fields: false,
        type_at: None,
    };
    if cursor.peek() != Some(b'}') {
        // Where the comma before a field is, or where the first one begins.
        let mut before = cursor.offset();
        loop {
            let from = cursor.offset();
            let is_type = field(&mut cursor, &mut action)? == Some(Field::Type);
            let is_last = cursor.peek() == Some(b'}');
            let end = cursor.offset();
            if is_type {
                action.type_at = Some(if is_last { (before, end) } else { (from, end + 1) });
            } else {
                action.has_fields = true;
            }
            before = end;
            if !goes_on(&mut cursor)? {
                break;
            }
        }
    }
    expect(&mut cursor, b'}', "no end of the action")?;
    expect(&mut cursor, b'}', "more than one action")?;
    cursor.end()?;
    Ok(action)
}

#[inline]
fn field<'a>(cursor: &mut Cursor<'a>, action: &mut Action<'a>) -> Result<Option<Field>, LineError> {
    let escaped = LineError::new(cursor.offset(), "an escape in the name of a field");
    let name = cursor.string()?;
    // It would be another field to the peer than it is here.
    if name.is_escaped {
        return Err(escaped);
    }
    let repeated = LineError::new(cursor.offset(), "a field that was given before");
    expect(cursor, b':', "no colon behind a name")?;
    let first = cursor.peek();
    let from = cursor.offset();
    value(cursor)?;
    let Some(field) = Field::named(name.raw) else { return Ok(None) };
    if action.has(field) {
        return Err(repeated);
    }
    action.fields |= field.bit();
    let value = cursor.since(from);
    match (field, first) {
        (_, Some(b'n')) => {}
        (Field::Index, Some(b'"')) if value.len() > 2 => action.index = Some(value),
        (Field::Index, _) => return Err(LineError::new(from, "an `_index` that is no name")),
        (Field::Id, Some(b'"' | b'-' | b'0'..=b'9')) => action.id = Some(value),
        (Field::Id, _) => return Err(LineError::new(from, "an `_id` that is no text")),
        (Field::Pipeline, _) => action.pipeline = true,
        _ => {}
    }
    Ok(Some(field))
}
