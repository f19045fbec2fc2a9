//! Compresses requests while they fill: one coder serves all requests of a sink, since it keeps nothing between two chunks.

use super::message::Form;
use crate::egress_budget::{BudgetError, Charged};
use tidegate_arena::Window;
use tidegate_wire::snappy::Encoder;
use tidegate_wire::snappy::framed::{self, CHUNK};

/// Compresses chunks, where requests are compressed.
pub(super) struct Coder {
    snappy: Option<(Encoder, Box<[u8]>)>,
}

impl Coder {
    /// The memory that it holds, in bytes.
    pub(super) const BYTES: usize = Encoder::BYTES + framed::SCRATCH;

    pub(super) fn new(is_compressed: bool) -> Coder {
        Coder { snappy: is_compressed.then(|| (Encoder::new(), vec![0; framed::SCRATCH].into())) }
    }

    /// The form of the requests that it makes.
    #[inline]
    pub(super) fn form(&self) -> Form {
        if self.snappy.is_some() { Form::Snappy } else { Form::Plain }
    }

    /// Moves what is in `staging` to the end of `out`, compressed. When there is no memory, both are as they were.
    ///
    /// # Errors
    /// When there is no memory now.
    pub(super) fn flush(
        &mut self,
        staging: &mut Charged<Window>,
        out: &mut Charged<Window>,
    ) -> Result<(), BudgetError> {
        let Some((encoder, scratch)) = &mut self.snappy else { return Ok(()) };
        if staging.len() > CHUNK {
            out.try_reserve(framed::max_framed_len(staging.len()))?;
        }
        for chunk in staging.chunks(CHUNK) {
            // Neither is too long, so there is a chunk.
            let Ok((head, data)) = framed::frame(encoder, chunk, scratch) else { continue };
            out.try_reserve(head.len() + data.len())?;
            append(out, &head);
            append(out, data);
        }
        staging.clear();
        Ok(())
    }
}

/// Appends bytes that room was made for.
#[inline]
pub(super) fn append(window: &mut Window, bytes: &[u8]) {
    if let Some(room) = window.spare_mut().get_mut(..bytes.len()) {
        room.copy_from_slice(bytes);
        window.advance(bytes.len());
    }
}
