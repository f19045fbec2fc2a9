//! A window: one contiguous stretch of the arena, owned by one holder, filled from the front.

use crate::arena::{Arena, ChargeError};
use crate::share::Share;
use crate::units::rounded;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;

/// Bytes in the arena that one holder owns: `len()` filled ones, and behind them as many as are charged.
///
/// It derefs to the filled bytes. Growing never moves them. Dropping it gives the memory back.
pub struct Window {
    arena: Arena,
    share: Share,
    index: u32,
    /// Invariant: `filled ≤ charged ≤ window length`; only the first `charged` bytes are ever touched.
    charged: usize,
    filled: usize,
    /// Up to here the owner was given the bytes to write to. Behind it they are an earlier owner's.
    offered: usize,
}

impl Window {
    pub(crate) fn new(arena: Arena, share: Share, index: u32, charged: usize) -> Window {
        Window { arena, share, index, charged, filled: 0, offered: 0 }
    }

    /// The share its memory is charged to.
    pub fn share(&self) -> Share {
        self.share
    }

    /// The bytes charged, filled or not.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// The bytes charged and not filled yet: what [`spare_mut`](Self::spare_mut) gives.
    #[inline]
    pub fn spare(&self) -> usize {
        self.charged - self.filled
    }

    /// Charges what is missing for `more` bytes behind the filled ones, if it is free now.
    ///
    /// # Errors
    /// [`ChargeError::Short`] now, or [`ChargeError::Never`].
    pub fn try_reserve(&mut self, more: usize) -> Result<(), ChargeError> {
        let missing = self.missing_for(more)?;
        if missing > 0 {
            self.arena.try_charge(self.share, missing as u64)?.spent();
            self.charged += missing;
        }
        Ok(())
    }

    /// Charges what is missing for `more` bytes behind the filled ones, waiting until it is free.
    ///
    /// # Errors
    /// [`ChargeError::Never`] or [`ChargeError::Crowded`].
    pub async fn reserve(&mut self, more: usize) -> Result<(), ChargeError> {
        let missing = self.missing_for(more)?;
        if missing > 0 {
            self.arena.charge(self.share, missing as u64).await?.spent();
            self.charged += missing;
        }
        Ok(())
    }

    /// The charged bytes behind the filled ones, to be written to. What they hold is left over from
    /// earlier owners of the pages; only what [`advance`](Self::advance) covers becomes readable. Whoever takes them
    /// writes what it declares filled, and does not read the others.
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        let (filled, charged) = (self.filled, self.charged);
        self.offered = charged;
        // SAFETY: the window's index is out of the idle list, so `self` is the only owner of this range,
        // which lies in the mapping since `charged ≤ window length`; anonymous memory is initialised.
        let all = unsafe { slice::from_raw_parts_mut(self.arena.start_of(self.index).as_ptr(), charged) };
        all.get_mut(filled..).unwrap_or_default()
    }

    /// Declares the first `bytes` of the spare ones filled. Those that nobody was given to write to become zeros: no window
    /// shows what an earlier one held.
    ///
    /// # Panics
    /// When fewer are charged.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.spare(), "advanced past what is charged");
        let end = self.filled + bytes;
        if end > self.offered {
            self.wipe(self.offered.max(self.filled), end);
        }
        self.advance_raw(bytes);
    }

    /// Fills the first `bytes` of the spare ones with zeros: a place to be written to later.
    ///
    /// # Panics
    /// When fewer are charged.
    pub fn skip(&mut self, bytes: usize) {
        assert!(bytes <= self.spare(), "skipped past what is charged");
        self.wipe(self.filled, self.filled + bytes);
        self.advance_raw(bytes);
    }

    /// Fills bytes between these places, behind the filled ones, with zeros.
    #[cold]
    fn wipe(&mut self, from: usize, to: usize) {
        let (begin, offered) = (from - self.filled, self.offered);
        if let Some(skipped) = self.spare_mut().get_mut(begin..to - from + begin) {
            skipped.fill(0);
        }
        self.offered = offered.max(to);
    }

    /// Whatever the bytes hold.
    #[inline]
    fn advance_raw(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Appends `bytes`, charging what is missing if it is free now.
    ///
    /// # Errors
    /// As [`try_reserve`](Self::try_reserve); nothing is appended then.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ChargeError> {
        self.try_reserve(bytes.len())?;
        if let Some(room) = self.spare_mut().get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.advance_raw(bytes.len());
        Ok(())
    }

    /// Forgets the filled bytes behind the first `len`. The charge stays.
    pub fn truncate(&mut self, len: usize) {
        self.filled = self.filled.min(len);
    }

    /// Forgets all filled bytes. The charge stays.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Gives back what is charged beyond the filled bytes.
    pub fn shrink(&mut self) {
        let keep = rounded(self.filled.max(1));
        if keep < self.charged && self.arena.give_back_tail(self.share, self.index, keep..self.charged) {
            self.charged = keep;
            // The pages behind it are nobody's: those that come in their place are zeros.
            self.offered = self.offered.min(keep);
        }
    }

    fn missing_for(&self, more: usize) -> Result<usize, ChargeError> {
        let most = self.arena.window_len();
        let wanted = rounded(self.filled.saturating_add(more));
        if wanted > most {
            return Err(ChargeError::Never { wanted: wanted as u64, most: most as u64 });
        }
        self.arena.possible(self.share, wanted as u64)?;
        Ok(wanted.saturating_sub(self.charged))
    }
}

impl Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as in `spare_mut`; `&self` allows no writer.
        unsafe { slice::from_raw_parts(self.arena.start_of(self.index).as_ptr(), self.filled) }
    }
}

impl DerefMut for Window {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `spare_mut`.
        unsafe { slice::from_raw_parts_mut(self.arena.start_of(self.index).as_ptr(), self.filled) }
    }
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({}: {} of {} bytes)", self.share.name(), self.filled, self.charged)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.arena.put_back(self.share, self.index, self.charged);
    }
}
