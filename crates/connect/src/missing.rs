//! The error for a sender whose protocol this configuration does not receive.

use thiserror::Error;

/// What the configuration lacks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "this configuration does not receive {protocol}: `{setting}` is not set. Add these lines to it:\n\n{lines}\n{note}"
)]
pub struct Missing {
    /// What is not received.
    pub protocol: &'static str,
    /// The setting that turns it on.
    pub setting: &'static str,
    /// Lines for the configuration, with which it is received. They join what is there.
    pub lines: String,
    /// What else to know, in one sentence.
    pub note: String,
}
