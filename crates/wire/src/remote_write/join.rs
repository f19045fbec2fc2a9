//! Joining 2.0 bodies: one symbol table for all, and references rewritten to it.
//!
//! (1.0 bodies are joined by putting them one after the other, compressed ones with
//! [`snappy::join`](crate::snappy::join).)

mod series;
mod unjoined;

pub use unjoined::write_unjoined;

use super::error::{ErrorSubject, RemoteWriteError, RemoteWriteErrorKind};
use super::intern::{Interner, TextLocation, location_of};
use super::rewrite::RewriteError;
use super::symbols::{SYMBOLS, Table, index_into};
use super::v2::{self, Request, field};
use crate::output::Output;
use crate::proto::write;

/// Marks a symbol that no series has referred to yet.
const UNUSED: u32 = u32::MAX;

/// Scratch for joins, of a size known beforehand, to be kept and reused.
#[derive(Debug)]
pub struct Scratch {
    /// Offsets of the symbols of all bodies, one body after the other.
    offsets: Vec<u32>,
    /// The new numbers of those symbols.
    numbers: Vec<u32>,
    /// The symbols of the joined body.
    symbols: Interner,
}

/// The output of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joined {
    /// Series.
    pub series: u64,
    /// Distinct symbols, the empty one included.
    pub symbols: u64,
}

impl Scratch {
    /// Scratch for bodies that have up to `symbols` symbols together.
    #[must_use]
    pub fn new(symbols: usize) -> Self {
        let symbols = symbols.saturating_add(1);
        Self {
            offsets: Vec::with_capacity(symbols),
            numbers: Vec::with_capacity(symbols),
            symbols: Interner::new(symbols),
        }
    }

    /// How many bytes [`new`](Self::new) takes: 32 to 40 for each symbol.
    #[must_use]
    pub fn bytes_for(symbols: usize) -> usize {
        let symbols = symbols.saturating_add(1);
        2 * symbols * size_of::<u32>() + Interner::bytes_for(symbols)
    }
}

/// Joins `bodies`, all checked, into one: their series in order, with one symbol table that holds each text
/// in use once. Fields that the schema does not know are kept.
///
/// # Errors
/// [`RewriteError`]; the output then holds a part that is of no use.
pub fn join(bodies: &[&[u8]], scratch: &mut Scratch, out: &mut impl Output) -> Result<Joined, RewriteError> {
    join_selected(bodies, |_, _| true, scratch, out)
}

/// Joins the series of `bodies` that `keep` wants, given the position of the series among all and the
/// series: to cut a body in pieces, or to spread it over lanes. `keep` is asked twice about each series and
/// must answer the same.
///
/// # Errors
/// As [`join`].
pub fn join_selected(
    bodies: &[&[u8]],
    mut keep: impl FnMut(u64, &v2::Series<'_>) -> bool,
    scratch: &mut Scratch,
    out: &mut impl Output,
) -> Result<Joined, RewriteError> {
    scratch.begin(bodies)?;
    let mut joined = Joined { series: 0, symbols: 1 };
    write::bytes(out, SYMBOLS, b"")?;
    let mut position = 0;
    let mut base = 0;
    for (body, raw) in (0..).zip(bodies) {
        let Scratch { offsets, numbers, symbols } = &mut *scratch;
        let (table, numbers, next) = part(raw, offsets, numbers, base)?;
        for series in Request::new(raw, table).series() {
            if keep(position, &series) {
                series::each_reference(series.message(), &mut |reference| {
                    let number = number_of(table, numbers, reference)?;
                    if *number == UNUSED {
                        let symbol = table.get(reference).unwrap_or_default();
                        let place = location_of(raw, symbol, body)?;
                        let (new, first) = symbols.intern(symbol, place, |place| text_at(bodies, place))?;
                        *number = new;
                        if first {
                            joined.symbols += 1;
                            write::bytes(out, SYMBOLS, symbol)?;
                        }
                    }
                    Ok(())
                })?;
                joined.series += 1;
            }
            position += 1;
        }
        base = next;
    }
    let (mut position, mut base) = (0, 0);
    for raw in bodies {
        let (table, numbers, next) = part(raw, &scratch.offsets, &mut scratch.numbers, base)?;
        for series in Request::new(raw, table).series() {
            if keep(position, &series) {
                write::message(
                    out,
                    field::TIMESERIES,
                    &series::Renumbered { message: series.message(), numbers: &*numbers },
                )?;
            }
            position += 1;
        }
        base = next;
    }
    Ok(joined)
}

impl Scratch {
    /// Finds the symbols of all `bodies` and forgets what was before.
    fn begin(&mut self, bodies: &[&[u8]]) -> Result<(), RewriteError> {
        let limit = self.symbols.limit();
        self.offsets.clear();
        self.numbers.clear();
        self.symbols.clear();
        // The empty symbol comes first, as the specification demands.
        self.symbols.intern(b"", TextLocation { body: 0, offset: 0, len: 0 }, |_| b"")?;
        for raw in bodies {
            index_into(raw, &mut self.offsets, limit).map_err(|error| match error.kind() {
                RemoteWriteErrorKind::Limit { subject: ErrorSubject::Symbols, .. } => {
                    RewriteError::Scratch { limit }
                }
                RemoteWriteErrorKind::TooLong(_) => RewriteError::TooLong,
                _ => RewriteError::Unchecked(error),
            })?;
        }
        self.numbers.resize(self.offsets.len(), UNUSED);
        Ok(())
    }
}

/// The table of `raw` and the new numbers of its symbols, whose first is number `base` of all; and the
/// `base` of the next body.
fn part<'a, 'n>(
    raw: &'a [u8],
    offsets: &'a [u32],
    numbers: &'n mut [u32],
    base: usize,
) -> Result<(Table<'a>, &'n mut [u32], usize), RewriteError> {
    let next = base + super::symbols::count(raw)?;
    let table = Table::new(raw, offsets.get(base..next).unwrap_or_default());
    Ok((table, numbers.get_mut(base..next).unwrap_or_default(), next))
}

/// Where the new number of the symbol that `reference` means is kept.
fn number_of<'n>(
    table: Table<'_>,
    numbers: &'n mut [u32],
    reference: u64,
) -> Result<&'n mut u32, RewriteError> {
    let number = usize::try_from(reference).ok().and_then(|reference| numbers.get_mut(reference));
    number.ok_or_else(|| {
        let symbols = table.len();
        RemoteWriteError::new(
            0,
            RemoteWriteErrorKind::Reference { subject: ErrorSubject::Symbol, reference, symbols },
        )
        .into()
    })
}

fn text_at<'a>(bodies: &[&'a [u8]], place: TextLocation) -> &'a [u8] {
    bodies.get(place.body as usize).map_or(&[], |body| place.of(body))
}
