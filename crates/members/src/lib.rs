//! The members that data is spread over: from a list, from DNS, or from a file.
//!
//! [`MemberSource`] turns what is configured into the present addresses, and says when they change. It promises:
//! - neither order nor duplicates matter: a list is sorted, and holds each address once;
//! - an empty or failed answer changes nothing: the members known before stay, and the failure is reported once;
//! - a list longer than `max_members` changes nothing either;
//! - memory is bounded by [`Settings::bytes`], whatever a server or a file says;
//! - nothing blocks: names are resolved by a DNS client that runs in the caller's task.
//!
//! The form of a member's address, and the service at it, are the caller's business.

#![cfg_attr(test, allow(clippy::indexing_slicing))]

mod dns;
mod entry;
mod file;
mod resolution;
#[cfg(feature = "simulated")]
pub mod simulated;
mod source;

pub use dns::LookupError;
pub use entry::{Entry, EntryError};
pub use file::FileError;
pub use source::{Event, MemberSource, Settings};

/// For fuzzing: reads `answer` as the answer to a question for records of this type.
#[cfg(fuzzing)]
pub use dns::fuzz;
