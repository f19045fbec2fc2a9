//! Handoff logs: records that members of a ring cannot take now, kept on disk for each member until it can.
//!
//! A sink [opens](Handoffs::open) one folder for all its members. For a member that is gone it
//! [`append`](MemberLog::append)s records; when the member is back it reads the [`next`](MemberLog::next) one, reads its
//! [body](MemberLog::read) into a window it has charged for, delivers it and [completes](MemberLog::complete) it.
//!
//! It promises: an acknowledged record is there after any crash that its [`Durability`] names, in order, until it is
//! completed, dropped for the quota or forgotten; a crash may deliver records again. The folder always opens: damage is
//! skipped, counted and set aside. Memory is O(members), whatever is queued, and one thread does all I/O, so no task of a
//! runtime ever waits for the disk.
//!
//! It leaves to others: the layout of bodies and notes, whether a member is back, and paying for the windows and bodies
//! that pass through.
//!
//! The layout of the bytes and the argument for each crash case are in `design/handoff.md`.

mod address;
mod clock;
mod cursors;
mod disk;
mod error;
mod handoffs;
mod log;
mod member;
mod queue;
mod record;
mod recover;
mod scan;
mod segment;
mod settings;
mod state;
mod totals;
mod worker;

pub use address::ADDRESS_MAX;
pub use error::{AppendError, DiskError, MemberError, OpenError, ReadError};
pub use handoffs::Handoffs;
pub use member::{Body, MemberLog};
pub use record::{Meta, NOTE_MAX, Note, Record};
pub use recover::Recovery;
pub use settings::{Durability, Settings, WhenFull};
pub use state::Stats;
pub use totals::Totals;

#[cfg(test)]
mod tests;
