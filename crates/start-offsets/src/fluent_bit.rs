//! The database of Fluent Bit's input `tail` (`db`): SQLite, with a table `in_tail_files`.

use crate::bounded::ReadError;
use crate::checkpoint::{Checkpoint, Checkpoints};
use crate::sqlite::{Value, read_table};
use std::collections::BTreeMap;
use std::path::Path;

/// The checkpoints in the database at `path`.
///
/// # Errors
/// When it cannot be read, is damaged, or has no such table.
pub fn fluent_bit(path: &Path) -> Result<Checkpoints, ReadError> {
    let table = read_table(path, "in_tail_files")?.ok_or_else(|| {
        ReadError::format(
            path,
            "it has no table `in_tail_files`: name the file of the setting `db` of an input `tail`",
        )
    })?;
    let mut found = Checkpoints::default();
    let mut broken = 0_usize;
    // Fluent Bit takes the newest row of an inode.
    let mut newest = BTreeMap::new();
    for row in &table.rows {
        let integer = |column| {
            table.value(row, column).and_then(Value::integer).and_then(|value| u64::try_from(value).ok())
        };
        let name = table.value(row, "name").and_then(Value::text);
        match (name, integer("offset"), integer("inode")) {
            (Some(name), Some(offset), Some(inode)) => {
                let file = Checkpoint {
                    path: Some(name.into()),
                    inode: Some(inode),
                    offset,
                    ..Checkpoint::default()
                };
                let row = (row.rowid, file);
                newest
                    .entry(inode)
                    .and_modify(|of: &mut (i64, Checkpoint)| {
                        if of.0 < row.0 {
                            *of = row.clone();
                        }
                    })
                    .or_insert(row);
            }
            _ => broken += 1,
        }
    }
    found.files = newest.into_values().map(|(_, file)| file).collect();
    if broken > 0 {
        found.notes.push(format!("{broken} rows have no name, offset or inode: they are left out"));
    }
    Ok(found)
}
