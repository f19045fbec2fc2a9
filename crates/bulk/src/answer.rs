//! Answers, read as they come: no tree of them is ever built.
//!
//! [`Elements`] finds the elements of the one array that counts, across pieces of any length. [`item`],
//! [`document`] and [`response`] read what is needed out of one element. Nothing here checks that the rest is
//! JSON; nothing here can panic, read past an element, or keep more than it was told to.

mod elements;
mod fields;
mod json;

pub use elements::{Elements, Part};
pub use fields::{DocumentFields, ItemFields, ServerError, document, each_field, item, response};
