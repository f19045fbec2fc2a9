//! Profiles, whose schema is in development: carried, not read.

use super::request::Item;

/// One profile, which refers to the dictionary of its request.
#[derive(Debug, Clone, Copy)]
pub struct Profile<'a> {
    message: &'a [u8],
}

impl<'a> Item<'a> for Profile<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        Some(Self { message })
    }
}

impl<'a> Profile<'a> {
    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }
}
