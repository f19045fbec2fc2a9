//! Admission control: decides about every request, and words the refusals.
//!
//! A source asks the [`Gate`] before it reads a body, before it decompresses one, and when it hands one to
//! the journal. A request that is not accepted becomes a [`Rejection`]: a reason that the ledger counts, a
//! message for the person who reads the client's log, and a computed delay. [`answer`] turns it into the
//! protocol's own response.
//!
//! It promises: every refusal is an answer, with a `Retry-After` where a retry helps (promise P3); waiting
//! for memory has a deadline; every request is counted exactly once.
//!
//! Behind the gate a request passes through the pipeline of its source, if that has one.
//!
//! Other crates check bodies (`wire`), hold the memory (`arena`) and write to disk (`journal`).

pub mod access;
mod answer;
mod browser_guard;
mod caller;
mod canned_refusal;
mod deliverable;
mod drain_estimate;
pub mod elastic;
mod gate;
pub mod intake;
mod origin;
pub mod otlp;
mod permit;
mod rejection;
mod source_pipelines;
mod status;
pub mod tenancy;

pub use answer::{AnswerFormat, PREPARED_BYTES, WRITTEN, answer, codec, prepare};
pub use caller::{Caller, Headers, is_guarded};
pub use canned_refusal::CannedRefusal;
pub use deliverable::{Deliverable, Size, SizeLimit, Undeliverable};
pub use drain_estimate::DrainEstimate;
pub use gate::{
    BulkDefaults, DecodeBuffer, Gate, GateRules, HeadSeriesGate, MAX_INLINE_BYTES, RESEND_HEADER,
    SINK_HEADER, TranslationCharge,
};
pub use origin::{from_peer, note_body_length, with_origin};
pub use permit::Permit;
pub use rejection::{Rejection, RejectionText};
pub use source_pipelines::{SourcePipeline, SourcePipelines};
pub use status::Code;
