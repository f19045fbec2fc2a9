//! Puts runs together to a request, which is whole after each of them.

use super::Run;
use crate::output::{Full, Output, SliceOutput};

/// A field with a length of four bytes, which is known last: protobuf does not ask for the shortest form.
const OPENING: usize = 5;
/// The most that four bytes of seven bits say.
const LONGEST: usize = (1 << 28) - 1;

/// Writes runs to a request. A resource and a scope are written once for runs in a row that share them.
#[derive(Debug, Clone, Default)]
pub struct RouteWriter {
    /// Where the lengths of the present resource and the present scope are.
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// The body, the resource and the scope that the last run was of.
    body: u64,
    resource: u32,
    scope: u32,
    resource_at: usize,
    scope_at: usize,
}

impl RouteWriter {
    /// For a request without items.
    #[must_use]
    pub const fn new() -> RouteWriter {
        RouteWriter { open: None }
    }

    /// How many bytes [`write`](Self::write) puts for this run of the body with the number `body`.
    #[must_use]
    pub fn len_of(&self, run: &Run<'_>, body: u64) -> usize {
        let resource = OPENING + run.resource.level.envelope();
        let scope = OPENING + run.scope.level.envelope();
        let around = match self.open {
            Some(open) if open.is_resource_of(run, body) => {
                if open.scope == run.scope.number {
                    0
                } else {
                    scope
                }
            }
            _ => resource + scope,
        };
        around + run.members.len()
    }

    /// Writes a run to `spare`, which follows the `at` bytes of the request written so far; says how many bytes it took. Bodies have
    /// different numbers. [`close`](Self::close) follows.
    ///
    /// # Errors
    /// [`Full`] when there is too little room, or the request would be longer than 256 MiB; then nothing has changed.
    pub fn write(&mut self, run: &Run<'_>, body: u64, at: usize, spare: &mut [u8]) -> Result<usize, Full> {
        let needed = self.len_of(run, body);
        if needed > spare.len() || at.saturating_add(needed) > LONGEST {
            return Err(Full);
        }
        let mut out = SliceOutput::new(spare);
        let same_resource = self.open.filter(|open| open.is_resource_of(run, body));
        let same_scope = same_resource.filter(|open| open.scope == run.scope.number);
        let open = match (same_scope, same_resource) {
            (Some(open), _) => open,
            (None, Some(open)) => {
                Open { scope: run.scope.number, scope_at: scope(run, at, &mut out)?, ..open }
            }
            (None, None) => {
                let resource_at = at + out.len();
                opening(run.resource.level.field(), &mut out)?;
                run.resource.level.write_envelope(run.signal, 1, &mut out)?;
                let scope_at = scope(run, at, &mut out)?;
                let (resource, scope) = (run.resource.number, run.scope.number);
                Open { body, resource, scope, resource_at, scope_at }
            }
        };
        out.put(run.members)?;
        self.open = Some(open);
        Ok(out.len())
    }

    /// Enters the lengths of the messages that the last run is in, after each run: then the request is whole. `request` is all that was
    /// written.
    pub fn close(&self, request: &mut [u8]) {
        let Some(open) = self.open else { return };
        for at in [open.resource_at, open.scope_at] {
            let mut len = request.len().saturating_sub(at + OPENING);
            let Some(place) = request.get_mut(at + 1..at + OPENING) else { return };
            for (index, byte) in place.iter_mut().enumerate() {
                let more = if index + 2 < OPENING { 0x80 } else { 0 };
                *byte = len.to_le_bytes()[0] & 0x7f | more;
                len >>= 7;
            }
        }
    }
}

impl Open {
    fn is_resource_of(&self, run: &Run<'_>, body: u64) -> bool {
        self.body == body && self.resource == run.resource.number
    }
}

/// Begins the scope of a run; says where.
fn scope(run: &Run<'_>, at: usize, out: &mut SliceOutput<'_>) -> Result<usize, Full> {
    let scope_at = at + out.len();
    opening(run.scope.level.field(), out)?;
    run.scope.level.write_envelope(run.signal, 2, out)?;
    Ok(scope_at)
}

fn opening(field: u32, out: &mut impl Output) -> Result<(), Full> {
    // Fields of members are below 16: their keys have one byte.
    let key = (field << 3 | 2).to_le_bytes()[0];
    out.put(&[key, 0x80, 0x80, 0x80, 0])
}
