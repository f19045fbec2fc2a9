//! Who is let in, and the answer to who is not.
//!
//! A source asks the [`Gate`] before it reads a body, before it decompresses one, and when it gives one to
//! the journal. Whatever the gate or a source cannot take becomes a [`Refused`]: a reason that the books
//! know, words for the person who reads the client's log, and a computed delay. [`answer`] turns it into
//! the protocol's own response.
//!
//! It promises: every refusal is an answer, and says when to return if returning helps (promise P3);
//! waiting for memory has a deadline; a request is entered in the books exactly once.
//!
//! It leaves to others: what a body must look like (`wire`), what memory there is (`arena`), what the disk
//! takes (`journal`).

pub mod access;
mod answer;
mod caller;
mod deliverable;
pub mod elastic;
mod gate;
pub mod intake;
pub mod otlp;
mod passage;
mod pressure;
mod refused;
mod standing;
mod status;
pub mod tenancy;

pub use answer::{PREPARED_BYTES, Protocol, WRITTEN, answer, codec, prepare};
pub use caller::{Caller, Headers};
pub use deliverable::{Bound, Deliverable, Size, Undeliverable};
pub use gate::{Gate, LIGHT, Room, Rules};
pub use passage::Passage;
pub use pressure::Pressure;
pub use refused::{Refused, Words};
pub use standing::Standing;
pub use status::Code;
