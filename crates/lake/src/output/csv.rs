//! RFC 4180.

use std::io::{Result, Write};

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
