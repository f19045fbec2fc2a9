//! RFC 4180, safe to open in a spreadsheet.

use super::cell::CellValue;
use std::io::{Result, Write};

/// Characters that a spreadsheet treats as the beginning of a formula, or skips before one.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A value as a field has it. A text that would be a formula is marked as text; a number is none, whatever its sign.
pub(crate) fn cell(cell: CellValue) -> String {
    match cell {
        // A plus sign says nothing.
        CellValue::NoNumber(text) => text.trim_start_matches('+').to_owned(),
        CellValue::Text(text) | CellValue::Json(text) if text.starts_with(FORMULA) => format!("'{text}"),
        cell => cell.text(),
    }
}

pub(crate) fn line<'a>(out: &mut impl Write, fields: impl Iterator<Item = &'a str>) -> Result<()> {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        if field.contains(['"', ',', '\r', '\n']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\r\n")
}
