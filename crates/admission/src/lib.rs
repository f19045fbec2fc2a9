//! Admission control: decides about every request, and words the refusals.
//!
//! A source asks the [`Gate`] before it reads a body, before it decompresses one, and when it hands one to
//! the journal. A request that is not accepted becomes a [`Refused`]: a reason that the ledger counts, a
//! message for the person who reads the client's log, and a computed delay. [`answer`] turns it into the
//! protocol's own response.
//!
//! It promises: every refusal is an answer, with a `Retry-After` where a retry helps (promise P3); waiting
//! for memory has a deadline; every request is counted exactly once.
//!
//! Other crates check bodies (`wire`), hold the memory (`arena`) and write to disk (`journal`).

pub mod access;
mod answer;
mod caller;
mod deliverable;
pub mod elastic;
mod gate;
pub mod intake;
pub mod otlp;
mod pages;
mod passage;
mod pressure;
mod refused;
mod standing;
mod status;
pub mod tenancy;

pub use answer::{PREPARED_BYTES, Protocol, WRITTEN, answer, codec, prepare};
pub use caller::{Caller, Headers, is_guarded};
pub use deliverable::{Bound, Deliverable, Size, Undeliverable};
pub use gate::{BulkDefaults, Gate, LIGHT, RESEND_HEADER, Room, Rules, Translation};
pub use passage::Passage;
pub use pressure::Pressure;
pub use refused::{Refused, Words};
pub use standing::Standing;
pub use status::Code;
