//! The literals of a program: their bytes, in one space, and what is compiled of them.

use super::program::Argument;
use super::signature::Signature;
use crate::memory::{Slice, Space};
use crate::regex::Regexes;
use std::collections::HashMap;

/// All literals of a pipeline. Equal literals share their bytes.
#[derive(Debug, Default)]
pub(crate) struct Literals {
    bytes: Vec<u8>,
    known: HashMap<Vec<u8>, Slice>,
    /// Those that are regular expressions.
    pub(crate) regexes: Regexes,
}

impl Literals {
    /// The slice that holds `literal`.
    pub(crate) fn store(&mut self, literal: &[u8]) -> Slice {
        if let Some(slice) = self.known.get(literal) {
            return *slice;
        }
        // A configuration's size is bounded far below 4 GiB; beyond, there would be no literal rather than another one.
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(literal.len())) else {
            return Slice::EMPTY;
        };
        self.bytes.extend_from_slice(literal);
        let slice = Slice { start, len, space: Space::Constants };
        self.known.insert(literal.to_vec(), slice);
        slice
    }

    /// The space that the slices point into: [`Memory::constants`](crate::memory::Memory::constants).
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a literal.
    pub(crate) fn get(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        self.bytes.get(start..start + slice.len as usize).unwrap_or_default()
    }

    /// Compiles the literals of a call that belong together.
    ///
    /// # Errors
    /// As [`Signature::complete`].
    pub(crate) fn complete(
        &mut self,
        function: &Signature,
        arguments: &mut [Argument],
    ) -> Result<(), (usize, String)> {
        (function.complete)(arguments, &self.bytes, &mut self.regexes)
    }
}
