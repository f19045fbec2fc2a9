//! Memory to decompress bodies in: charges it to tenants, and waits for it.

use super::Gate;
use super::decode_turn::DecodeTurn;
use crate::permit::{self, Permit};
use crate::rejection::Rejection;
use std::ops::{Deref, DerefMut};
use tidegate_arena::{Charge, ChargeError as NoMemory, Share, Window};
use tidegate_limit::{DecodeShare, Denied, TranslationShare};

/// The longest body, in bytes, that is checked on its connection's thread without waiting for a turn.
pub const MAX_INLINE_BYTES: usize = 256 << 10;

/// A buffer for a decompressed body, charged to the `decode` share and to the request's tenant, if it has one. It derefs
/// to the filled bytes; dropping it releases both charges.
#[derive(Debug)]
pub struct DecodeBuffer {
    // Dropped first, so that what the tenant is no longer charged for is free.
    window: Window,
    part: Option<DecodeShare>,
    turn: Option<DecodeTurn>,
}

/// The tenant's account of what a body is translated into, for as long as that is held. Owned, so that it can go to
/// another thread with the body.
#[derive(Debug, Default)]
pub struct TranslationCharge(Option<TranslationShare>);

impl TranslationCharge {
    /// Charges the tenant `bytes` of the `ingest` share more, before they are taken.
    ///
    /// # Errors
    /// `share` when the tenant holds its part of the memory.
    pub fn grow(&mut self, gate: &Gate, bytes: usize) -> Result<(), Rejection> {
        let Some(extra) = &mut self.0 else { return Ok(()) };
        extra.grow(bytes as u64, gate.0.arena.free(Share::Ingest)).map_err(|denied| gate.denied(denied))
    }

    /// Gives back what is more than `bytes`, as when the body it was made from is gone.
    pub fn shrink(&mut self, bytes: usize) {
        if let Some(extra) = &mut self.0 {
            extra.shrink(bytes as u64);
        }
    }
}

/// An upper bound on what a connection is charged beside its request, in bytes.
const OF_THE_CONNECTION: usize = 128 << 10;

impl Gate {
    /// A buffer of `bytes` to decompress a body in, for the request that holds `permit`; `here` says that the body will
    /// be checked on this thread. Drop it before waiting for anything else: holders of decode memory never wait, so
    /// nobody waits for ever.
    ///
    /// # Errors
    /// `share` when the tenant holds its part of the memory, `memory` when none became free within the time that a
    /// request may wait, `too_large` when there never is enough.
    pub async fn decode_buffer(
        &self,
        permit: &Permit,
        bytes: usize,
        here: bool,
    ) -> Result<DecodeBuffer, Rejection> {
        self.decode_buffer_beside(permit, 0, bytes, here).await
    }

    /// The same for a request that also holds `beside` bytes of the `ingest` share: it is too large when both together
    /// exceed what there can be.
    ///
    /// # Errors
    /// As [`decode_buffer`](Self::decode_buffer).
    pub async fn decode_buffer_beside(
        &self,
        permit: &Permit,
        beside: u32,
        bytes: usize,
        here: bool,
    ) -> Result<DecodeBuffer, Rejection> {
        let part = match permit.claims() {
            Some(hold) => {
                let free = self.0.arena.free(Share::Decode);
                hold.decode_share(bytes as u64, free).map_err(|denied| self.denied(denied))?
            }
            None => None,
        };
        // Before the memory: holders of memory do not wait for a turn.
        let turn = if here && bytes > MAX_INLINE_BYTES { Some(DecodeTurn::acquire().await) } else { None };
        let window = match self.0.arena.try_window(Share::Decode, bytes) {
            Err(NoMemory::Short) if !self.could_hold(beside as usize, bytes) => {
                return Err(Rejection::too_large(self.most_decoded().saturating_sub(beside as usize)));
            }
            Err(NoMemory::Short) if part.as_ref().is_none_or(DecodeShare::is_alone) => {
                // Boxed, since it happens only when memory is short.
                Box::pin(self.wait_for_window(bytes)).await
            }
            Err(NoMemory::Short) => {
                let held = part.map_or(0, |part| part.held());
                return Err(self.denied(Denied::Share { held }));
            }
            taken => taken,
        };
        let window = window.map_err(|refused| match refused {
            NoMemory::Never { .. } => Rejection::too_large(self.most_decoded()),
            NoMemory::Short | NoMemory::Crowded => self.no_memory(),
        })?;
        let mut room = DecodeBuffer { window, part, turn };
        room.settle();
        Ok(room)
    }

    /// An account for what the body of the request with this `permit` is translated into.
    pub fn translation_charge(&self, permit: &Permit) -> TranslationCharge {
        TranslationCharge(permit.claims().and_then(tidegate_limit::RequestPermit::translation_share))
    }

    async fn wait_for_window(&self, bytes: usize) -> Result<Window, NoMemory> {
        let waiting = self.0.arena.window(Share::Decode, bytes);
        tokio::time::timeout(self.0.memory_wait, waiting).await.unwrap_or(Err(NoMemory::Short))
    }

    /// Whether a request can ever hold so many bytes of `ingest` and of `decode` at the same time.
    fn could_hold(&self, ingest: usize, decode: usize) -> bool {
        let ingest = ingest.saturating_add(OF_THE_CONNECTION);
        self.0.arena.could_hold(&[(Share::Ingest, ingest as u64), (Share::Decode, decode as u64)])
    }

    /// The refusal of a request that would have held `ingest` and `decode` bytes of these shares at the same time: to be
    /// retried, or too large when there can never be that much; `most` is a body length that may do.
    pub fn memory_rejection(
        &self,
        refused: NoMemory,
        ingest: usize,
        decode: usize,
        most: usize,
    ) -> Rejection {
        match refused {
            NoMemory::Never { .. } => Rejection::too_large(most),
            NoMemory::Short | NoMemory::Crowded if !self.could_hold(ingest, decode) => {
                Rejection::too_large(most)
            }
            NoMemory::Short | NoMemory::Crowded => self.no_memory(),
        }
    }

    fn denied(&self, denied: Denied) -> Rejection {
        permit::refused(denied, &self.0.memory)
    }
}

impl DecodeBuffer {
    /// How many of `most` bytes may be decompressed on this thread: at most [`MAX_INLINE_BYTES`], unless it is this body's turn.
    pub fn inline_limit(&self, most: usize) -> usize {
        if self.turn.is_some() { most } else { most.min(MAX_INLINE_BYTES) }
    }

    /// Grows the buffer by `more` bytes behind the filled ones, without waiting. `false` when there can never be that
    /// much.
    ///
    /// # Errors
    /// When there is not that much now, or not for this tenant.
    pub fn grow(&mut self, gate: &Gate, more: usize) -> Result<bool, Rejection> {
        self.grow_beside(gate, 0, more)
    }

    /// The same for a request that also holds `beside` bytes of the `ingest` share.
    ///
    /// # Errors
    /// As [`grow`](Self::grow).
    pub fn grow_beside(&mut self, gate: &Gate, beside: usize, more: usize) -> Result<bool, Rejection> {
        let missing = self.window.len().saturating_add(more).saturating_sub(self.window.charged());
        self.ask(gate, missing)?;
        let grown = self.window.try_reserve(more);
        self.settle();
        match grown {
            Ok(()) => Ok(true),
            Err(NoMemory::Never { .. }) => Ok(false),
            Err(NoMemory::Short | NoMemory::Crowded) => {
                let wanted = self.window.len().saturating_add(more);
                if gate.could_hold(beside, wanted) { Err(gate.no_memory()) } else { Ok(false) }
            }
        }
    }

    /// Charges `bytes` for something made from the body, without waiting. The tenant is charged until this buffer is
    /// dropped.
    ///
    /// # Errors
    /// When they are not free, or not for this tenant.
    pub fn beside(&mut self, gate: &Gate, bytes: usize) -> Result<Charge, Rejection> {
        self.ask(gate, bytes)?;
        let charge = gate.0.arena.try_charge(Share::Decode, bytes as u64);
        let decode = self.window.charged().saturating_add(bytes);
        charge.map_err(|refused| gate.memory_rejection(refused, 0, decode, self.window.len() / 2))
    }

    /// The bytes charged, filled or not.
    pub fn charged(&self) -> usize {
        self.window.charged()
    }

    /// The bytes charged and not filled yet.
    pub fn spare(&self) -> usize {
        self.window.spare()
    }

    /// The bytes charged and not filled yet, to be written to.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.window.spare_mut()
    }

    /// Marks the first `bytes` spare bytes as filled.
    ///
    /// # Panics
    /// When fewer are charged.
    pub fn advance(&mut self, bytes: usize) {
        self.window.advance(bytes);
    }

    /// Forgets all filled bytes. The charge stays.
    pub fn clear(&mut self) {
        self.window.clear();
    }

    fn ask(&mut self, gate: &Gate, more: usize) -> Result<(), Rejection> {
        match &mut self.part {
            Some(part) if more > 0 => {
                let free = gate.0.arena.free(Share::Decode);
                part.grow(more as u64, free).map_err(|denied| gate.denied(denied))
            }
            _ => Ok(()),
        }
    }

    /// Corrects the tenant's charge: the arena charges whole pages, and pages that were still resident.
    fn settle(&mut self) {
        if let Some(part) = &mut self.part {
            part.settle(self.window.charged() as u64);
        }
    }
}

impl Deref for DecodeBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.window
    }
}

impl DerefMut for DecodeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.window
    }
}
