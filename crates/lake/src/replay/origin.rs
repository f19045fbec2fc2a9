//! Where rows come from: the resource and the scope of each.

use super::columns::{ColumnTypeError, Columns, Texts};
use super::message::Message;
use super::request::Level;
use super::values::{ValueError, write_attributes};

/// The columns that say where a row comes from.
pub(super) struct OriginColumns {
    texts: [Texts; PARTS],
}

/// Texts that an origin consists of.
const PARTS: usize = 6;
const NAMES: [&str; PARTS] = [
    "resource",
    "resource_schema_url",
    "scope_name",
    "scope_version",
    "scope_attributes",
    "scope_schema_url",
];

impl OriginColumns {
    pub(super) fn of(columns: &impl Columns) -> Result<OriginColumns, ColumnTypeError> {
        let [resource, resource_schema_url, name, version, attributes, schema_url] = NAMES;
        let of = |name| Texts::of(columns, name);
        let texts = [
            of(resource)?,
            of(resource_schema_url)?,
            of(name)?,
            of(version)?,
            of(attributes)?,
            of(schema_url)?,
        ];
        Ok(OriginColumns { texts })
    }
}

/// The resource and the scope of a row, encoded. Rows mostly have those of the row before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    texts: Option<[Option<String>; PARTS]>,
    /// `ResourceSpans` and `ScopeSpans`, and what they are called for other signals.
    pub(super) levels: [Level; 2],
    /// Which of the promoted attributes the resource has, a bit each.
    has: u32,
}

impl Default for Origin {
    /// An unknown one.
    fn default() -> Origin {
        Origin { texts: None, levels: levels(Vec::new(), Vec::new()), has: 0 }
    }
}

impl Origin {
    /// Whether it is that of a row.
    pub(super) fn is_of(&self, columns: &OriginColumns, row: usize) -> bool {
        let Some(texts) = &self.texts else { return false };
        texts.iter().zip(&columns.texts).all(|(text, column)| text.as_deref() == column.at(row))
    }

    /// Becomes that of a row. `promoted` are the attributes that have columns of their own.
    pub(super) fn update(
        &mut self,
        columns: &OriginColumns,
        row: usize,
        promoted: &[&str],
    ) -> Result<(), ValueError> {
        if self.is_of(columns, row) {
            return Ok(());
        }
        self.texts = None;
        let [resource, resource_schema_url, name, version, attributes, schema_url] =
            columns.texts.each_ref().map(|column| column.at(row));
        self.has = 0;
        let mut group = Message::default();
        // A resource without attributes is as good as none.
        if let Some(resource) = resource.filter(|resource| *resource != NO_ATTRIBUTES) {
            let open = group.begin(1);
            write_attributes(resource, 1, &mut group, |key| {
                let place = promoted.iter().position(|name| name.as_bytes() == key);
                self.has |= place.map_or(0, |place| 1 << place);
            })?;
            group.end(open);
        }
        group.text(3, resource_schema_url);
        let mut scope = Message::default();
        scope.text(1, name);
        scope.text(2, version);
        if let Some(attributes) = attributes {
            write_attributes(attributes, 3, &mut scope, |_| ())?;
        }
        let mut scope_group = Message::default();
        scope_group.bytes_unless_empty(1, scope.as_bytes());
        scope_group.text(3, schema_url);
        self.levels = levels(group.into_bytes(), scope_group.into_bytes());
        self.texts = Some(columns.texts.each_ref().map(|column| column.at(row).map(str::to_owned)));
        Ok(())
    }

    /// Whether the resource has the promoted attribute of this place: the item's is among its other attributes then, if it
    /// has it, too.
    pub(super) fn has(&self, place: usize) -> bool {
        self.has >> place & 1 != 0
    }

    /// Whether nothing is known of it.
    pub(super) fn is_unknown(&self) -> bool {
        self.levels.iter().all(|level| level.head.is_empty())
    }
}

/// The messages around items, with these fields of their own.
fn levels(resource: Vec<u8>, scope: Vec<u8>) -> [Level; 2] {
    [Level { field: 1, head: resource, kind: 0 }, Level { field: 2, head: scope, kind: 0 }]
}

/// An object without members.
pub(super) const NO_ATTRIBUTES: &str = "{}";
