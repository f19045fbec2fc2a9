//! Columns aligned by spaces.

use std::io::{Result, Write};

/// Control characters escaped: a label must not move the cursor of who reads it.
pub(crate) fn plain(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let mut plain = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

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
