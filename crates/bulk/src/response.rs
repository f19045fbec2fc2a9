//! Parses responses incrementally, without building a tree.
//!
//! [`ElementScanner`] finds the elements of the relevant array, across chunks of any length.
//! [`read_bulk_item`], [`read_mget_document`] and [`read_msearch_response`] read the fields of one element.
//! They do not check that the rest is JSON; they cannot panic, read past an element, or keep more than they
//! were told to.

mod elements;
mod fields;
mod json;

pub use elements::{ElementChunk, ElementScanner};
pub use fields::{
    DocumentFields, ItemFields, ServerError, each_field, read_bulk_item, read_mget_document,
    read_msearch_response,
};
