//! A process that the gateway starts for a request: what nobody can tell the costs of beforehand runs there, within bounds that the kernel
//! keeps.

use std::pin::Pin;
use std::sync::Arc;
use tidegate_arena::Window;
use tidegate_http1::Body;

/// A part of a process's input. It is dropped once it was written; a body is kept, to be shown again should the process fail.
pub enum ProcessInput {
    /// A text.
    Text(String),
    /// The body of the request.
    Body(Arc<Body>),
    /// Items that were taken.
    Items(Window),
}

impl ProcessInput {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            ProcessInput::Text(text) => text.as_bytes(),
            ProcessInput::Body(body) => body,
            ProcessInput::Items(window) => window,
        }
    }
}

/// Takes a process's answer, a part at a time; the first part is the status, three digits and a line end. Says whether there is room
/// for more.
pub type ProcessOutput<'a> = dyn FnMut(&[u8]) -> bool + Send + 'a;

/// A process on its way.
pub type ProcessFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ProcessError>> + Send + 'a>>;

/// Why a process gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessError {
    /// Requests and sinks have the memory.
    Memory,
    /// It took longer than it may.
    Late,
    /// It ended without an answer, most likely for want of memory: it had so many bytes.
    Ended(u64),
    /// It could not be started.
    Start(String),
}

/// The status in the first part of an answer.
pub(crate) fn status_of(first: &[u8]) -> u16 {
    std::str::from_utf8(first).ok().and_then(|line| line.trim_end().parse().ok()).unwrap_or(500)
}
