//! The memory in which a body is decompressed: on whose account it is, and who waits for it.

use super::Gate;
use super::turn::Turn;
use crate::passage::{self, Passage};
use crate::refused::Refused;
use std::ops::{Deref, DerefMut};
use tidegate_arena::{Charge, Refused as NoMemory, Share, Window};
use tidegate_limit::{Denied, Part};

/// Up to so many bytes a body is light: it is checked on the thread that has it without waiting for its turn.
pub const LIGHT: usize = 256 << 10;

/// A window of decode memory on the account of a tenant, where there are tenants. It derefs to the filled bytes;
/// dropping it gives the memory back, and takes it off the account.
#[derive(Debug)]
pub struct Room {
    // First of all, so that what is off the account is free.
    window: Window,
    part: Option<Part>,
    turn: Option<Turn>,
}

/// What a connection that is read is charged besides its request, with room to spare, in bytes.
const OF_THE_CONNECTION: usize = 128 << 10;

impl Gate {
    /// A window in which `bytes` can be decompressed to be checked, for the request that holds `passage`; `here` says
    /// that it will be checked on this thread. To be given back before anything else is waited for: those who hold
    /// decode memory never wait, which is why nobody waits for ever.
    ///
    /// # Errors
    /// `share` when its tenant has its part of the memory, `memory` when there is none within the time that a request
    /// may wait, `too_large` when there never is.
    pub async fn room_to_decode(&self, passage: &Passage, bytes: usize, here: bool) -> Result<Room, Refused> {
        self.room_beside(passage, 0, bytes, here).await
    }

    /// The same for a request that holds `beside` bytes of the bodies' share meanwhile: where both together are more
    /// than there can be, it is too large.
    ///
    /// # Errors
    /// As [`room_to_decode`](Self::room_to_decode).
    pub async fn room_beside(
        &self,
        passage: &Passage,
        beside: u32,
        bytes: usize,
        here: bool,
    ) -> Result<Room, Refused> {
        let part = match &passage.0 {
            Some(hold) => {
                let free = self.0.arena.free(Share::Decode);
                hold.part(bytes as u64, free).map_err(|denied| self.denied(denied))?
            }
            None => None,
        };
        // Before the memory, so that whoever has that does not wait for a turn.
        let turn = if here && bytes > LIGHT { Some(Turn::come().await) } else { None };
        let window = match self.0.arena.try_window(Share::Decode, bytes) {
            Err(NoMemory::Short) if !self.could_hold(beside as usize, bytes) => {
                return Err(Refused::too_large(self.most_decoded().saturating_sub(beside as usize)));
            }
            Err(NoMemory::Short) if part.as_ref().is_none_or(Part::is_alone) => {
                // On the heap: it happens only when memory is short.
                Box::pin(self.wait_for_window(bytes)).await
            }
            Err(NoMemory::Short) => {
                let held = part.map_or(0, |part| part.held());
                return Err(self.denied(Denied::Share { held }));
            }
            taken => taken,
        };
        let window = window.map_err(|refused| match refused {
            NoMemory::Never { .. } => Refused::too_large(self.most_decoded()),
            NoMemory::Short | NoMemory::Crowded => self.no_memory(),
        })?;
        let mut room = Room { window, part, turn };
        room.settle();
        Ok(room)
    }

    async fn wait_for_window(&self, bytes: usize) -> Result<Window, NoMemory> {
        let waiting = self.0.arena.window(Share::Decode, bytes);
        tokio::time::timeout(self.0.memory_wait, waiting).await.unwrap_or(Err(NoMemory::Short))
    }

    /// Whether a request can ever hold so many bytes at a time: of the bodies' share, and of the one to decode in.
    fn could_hold(&self, ingest: usize, decode: usize) -> bool {
        let ingest = ingest.saturating_add(OF_THE_CONNECTION);
        self.0.arena.could_hold(&[(Share::Ingest, ingest as u64), (Share::Decode, decode as u64)])
    }

    /// Why a request did not get memory that would have it hold so many bytes at a time: of the bodies' share, and of
    /// the one to decode in. It is to come again, unless that is more than there can ever be; then bodies of `most`
    /// bytes may be small enough.
    pub fn short_of(&self, refused: NoMemory, ingest: usize, decode: usize, most: usize) -> Refused {
        match refused {
            NoMemory::Never { .. } => Refused::too_large(most),
            NoMemory::Short | NoMemory::Crowded if !self.could_hold(ingest, decode) => {
                Refused::too_large(most)
            }
            NoMemory::Short | NoMemory::Crowded => self.no_memory(),
        }
    }

    fn denied(&self, denied: Denied) -> Refused {
        passage::refused(denied, &self.0.memory)
    }
}

impl Room {
    /// The most that may be decompressed on this thread, of `most` that might be: no more than what is light, unless
    /// it is this body's turn.
    pub fn most_here(&self, most: usize) -> usize {
        if self.turn.is_some() { most } else { most.min(LIGHT) }
    }

    /// Makes room for `more` bytes behind the filled ones, without waiting. Says whether there can be that much.
    ///
    /// # Errors
    /// When there is not now, or not for this tenant.
    pub fn grow(&mut self, gate: &Gate, more: usize) -> Result<bool, Refused> {
        self.grow_beside(gate, 0, more)
    }

    /// The same for a request that holds `beside` bytes of the bodies' share meanwhile.
    ///
    /// # Errors
    /// As [`grow`](Self::grow).
    pub fn grow_beside(&mut self, gate: &Gate, beside: usize, more: usize) -> Result<bool, Refused> {
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

    /// Charges `bytes` for what is made of the body beside it, without waiting. They are on the account for as long
    /// as this is there.
    ///
    /// # Errors
    /// When they are not free, or not for this tenant.
    pub fn beside(&mut self, gate: &Gate, bytes: usize) -> Result<Charge, Refused> {
        self.ask(gate, bytes)?;
        let charge = gate.0.arena.try_charge(Share::Decode, bytes as u64);
        let decode = self.window.charged().saturating_add(bytes);
        charge.map_err(|refused| gate.short_of(refused, 0, decode, self.window.len() / 2))
    }

    /// The bytes charged, filled or not.
    pub fn charged(&self) -> usize {
        self.window.charged()
    }

    /// The bytes charged and not filled yet.
    pub fn spare(&self) -> usize {
        self.window.spare()
    }

    /// The same, to be written to.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.window.spare_mut()
    }

    /// Declares the first `bytes` of the spare ones filled.
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

    fn ask(&mut self, gate: &Gate, more: usize) -> Result<(), Refused> {
        match &mut self.part {
            Some(part) if more > 0 => {
                let free = gate.0.arena.free(Share::Decode);
                part.grow(more as u64, free).map_err(|denied| gate.denied(denied))
            }
            _ => Ok(()),
        }
    }

    /// Whole pages were charged, and pages that were hot anyway.
    fn settle(&mut self) {
        if let Some(part) = &mut self.part {
            part.settle(self.window.charged() as u64);
        }
    }
}

impl Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.window
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.window
    }
}
