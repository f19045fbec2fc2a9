//! What a load needs of disk, memory and processors while stores are out, in numbers and in sentences.
//!
//! It computes with the figures of [`figures`], which tests measure again, or with those that somebody gives. It knows nothing of
//! the gateway but what [`Setup`] says of it.

pub mod figures;
mod quantity;
mod rate;
mod report;
mod sizing;

pub use quantity::{bytes, duration, items};
pub use rate::{Amount, BadRate, ItemKind, Rate};
pub use sizing::{Catching, Load, Losses, Memory, Part, Setup, Sizing, intake_bytes, measured_bytes};
