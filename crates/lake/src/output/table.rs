//! Columns aligned by spaces.

use std::io::{Result, Write};

pub(crate) fn line(out: &mut impl Write, fields: &[String], widths: &[usize]) -> Result<()> {
    for (place, (field, &width)) in fields.iter().zip(widths).enumerate() {
        // Nothing is padded at a line's end.
        if place + 1 == fields.len() {
            write!(out, "{field}")?;
        } else {
            write!(out, "{field:width$}  ")?;
        }
    }
    out.write_all(b"\n")
}
