//! 2.0 series with a symbol table of their own that says every text as often as it is referred to: longer than a
//! [join](super::join), but made without any table in memory.

use super::series::{Numbers, Renumbered, each_reference};
use crate::output::Output;
use crate::proto::write;
use crate::remote_write::rewrite::RewriteError;
use crate::remote_write::symbols::SYMBOLS;
use crate::remote_write::v2::{self, field};

/// Writes `series`, which are asked for twice, as a body. Fields that the schema does not know are kept.
///
/// # Errors
/// [`RewriteError`]; the output then holds a part that is of no use.
pub fn write_unjoined<'a>(
    series: impl Iterator<Item = v2::Series<'a>> + Clone,
    out: &mut impl Output,
) -> Result<u64, RewriteError> {
    write::bytes(out, SYMBOLS, b"")?;
    for series in series.clone() {
        each_reference(series.message(), &mut |reference| {
            Ok(write::bytes(out, SYMBOLS, series.symbols().get(reference).unwrap_or_default())?)
        })?;
    }
    let (mut numbers, mut written) = (Counting(1), 0);
    for series in series {
        let message = series.message();
        write::message(out, field::TIMESERIES, &Renumbered { message, numbers })?;
        each_reference(message, &mut |_| {
            numbers = numbers.behind(1);
            Ok(())
        })?;
        written += 1;
    }
    Ok(written)
}

/// One number after the other, from this one on.
#[derive(Clone, Copy)]
struct Counting(u64);

impl Numbers for Counting {
    fn of(self, before: u64, _: u64) -> u64 {
        self.0 + before
    }

    fn behind(self, before: u64) -> Self {
        Self(self.0 + before)
    }
}
