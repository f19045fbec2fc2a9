//! One JSON object a line.

use super::cell::CellValue;
use serde_json::Value;
use std::io::{Result, Write};

pub(crate) fn line<'a>(
    out: &mut impl Write,
    cells: impl Iterator<Item = (&'a str, CellValue)>,
) -> Result<()> {
    for (place, (name, cell)) in cells.enumerate() {
        let open = if place == 0 { '{' } else { ',' };
        write!(out, "{open}{}:{}", Value::from(name), cell.json())?;
    }
    out.write_all(b"}\n")
}
