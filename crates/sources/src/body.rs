//! The body of a request, from its bytes as they came to a verdict: decompressed in memory that is charged, and checked on
//! this thread or, where that would take long, by the pool.

pub(crate) mod decode;
pub(crate) mod translation;

use std::ops::Range;
use tidegate_admission::{DecodeBuffer, Gate, Permit, Rejection};
use tidegate_arena::Window;
use tidegate_http1::Body;
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;
use tidegate_pool::{JobError, Pool};

/// Bodies that are or become larger than this are checked by the pool: they would hold up the other connections of their
/// worker for milliseconds.
pub(crate) const LARGE: usize = 4 << 20;
/// The same for bodies that are translated from text, which takes ten times as long.
pub(crate) const LARGE_TO_TRANSLATE: usize = 512 << 10;

/// A body as it was received.
pub(crate) struct Received {
    pub(crate) window: Window,
    /// Where in the window the body is.
    pub(crate) range: Range<usize>,
}

impl Received {
    /// The charge of its window, in bytes: windows are shorter than 4 GiB.
    pub(crate) fn charged(&self) -> u32 {
        short(self.window.charged())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Body> for Received {
    fn from(body: Body) -> Received {
        let (window, range) = body.into_parts();
        Received { window, range }
    }
}

/// Why a body was not checked to its end.
pub(crate) enum InspectionError {
    Refused(Rejection),
    /// It decompresses to more than was allowed here.
    Larger,
}

impl From<Rejection> for InspectionError {
    fn from(refused: Rejection) -> InspectionError {
        InspectionError::Refused(refused)
    }
}

fn short(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// How a body is inspected: for which request, in which encoding, and to how many bytes it may decompress.
#[derive(Clone, Copy)]
pub(crate) struct Inspection<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) passage: &'a Permit,
    pub(crate) pool: &'a Pool,
    pub(crate) encoding: Encoding,
    pub(crate) most: usize,
    /// Bodies that are or become larger than this go to the pool.
    pub(crate) large: usize,
}

/// Memory to decompress a body in, where it is compressed, and how long it says that it becomes.
pub(crate) struct Decompression {
    room: Option<DecodeBuffer>,
    /// In bytes, where that fits: windows are shorter than 4 GiB.
    expected: u32,
}

// In three steps, so that nothing but the body and this memory is kept over the waits: a connection's task has room for it.
impl Inspection<'_> {
    /// Takes memory to decompress `body` in: as much as it says that it becomes, since whoever has decode memory in hand
    /// must not wait for more.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn begin(&self, body: &Received) -> Result<Decompression, Rejection> {
        let Inspection { gate, passage, encoding, most, large, .. } = *self;
        let as_sent = body.range.len();
        if encoding == Encoding::Identity {
            return Ok(Decompression { room: None, expected: short(as_sent) });
        }
        let expected = decode::expected(encoding, body.bytes()).max(1).min(most);
        let expected = expected.max(as_sent);
        let room =
            gate.decode_buffer_beside(passage, body.charged(), expected.min(most), expected <= large).await?;
        Ok(Decompression { room: Some(room), expected: short(expected) })
    }

    /// Checks a body on this thread, where that does not take long. `check` gets the body, the memory, and the most bytes
    /// that the body may become.
    pub(crate) fn here<T>(
        self,
        body: &mut Received,
        Decompression { room, expected }: &mut Decompression,
        check: impl FnOnce(&mut Received, Option<&mut DecodeBuffer>, usize) -> Result<T, InspectionError>,
    ) -> Option<Result<T, Rejection>> {
        if *expected as usize > self.large {
            return None;
        }
        let most = room.as_ref().map_or(self.large, |room| room.inline_limit(self.large)).min(self.most);
        match check(body, room.as_mut(), most) {
            Ok(content) => Some(Ok(content)),
            Err(InspectionError::Refused(refused)) => Some(Err(refused)),
            Err(InspectionError::Larger) if self.most <= most => Some(Err(Rejection::too_large(most))),
            // It is larger than it said.
            Err(InspectionError::Larger) => None,
        }
    }

    /// The same by the pool.
    pub(crate) fn in_pool<T: Send + 'static>(
        self,
        mut body: Received,
        Decompression { mut room, .. }: Decompression,
        check: impl FnOnce(&mut Received, Option<&mut DecodeBuffer>, usize) -> Result<T, InspectionError>
        + Send
        + 'static,
    ) -> impl Future<Output = Result<(Received, T), Rejection>> + Send {
        let Inspection { pool, gate, most, .. } = self;
        in_pool(pool, gate, most, move || {
            let content = check(&mut body, room.as_mut(), most)?;
            Ok((body, content))
        })
    }
}

/// Has the pool look at a body that may decompress to `most` bytes.
///
/// # Errors
/// The error of `look`, or of the pool.
pub(crate) fn in_pool<T: Send + 'static>(
    pool: &Pool,
    gate: &Gate,
    most: usize,
    look: impl FnOnce() -> Result<T, InspectionError> + Send + 'static,
) -> impl Future<Output = Result<T, Rejection>> + Send {
    // On the heap before it is awaited, so that a connection's task has no room for what only large bodies need.
    let looking = Box::pin(pool.run(look));
    async move {
        match looking.await {
            Ok(Ok(looked)) => Ok(looked),
            Ok(Err(InspectionError::Refused(refused))) => Err(refused),
            Ok(Err(InspectionError::Larger)) => Err(Rejection::too_large(most)),
            Err(failed) => Err(unseen(failed).retry_after(gate.memory_delay())),
        }
    }
}

/// Why the pool did not look at a body.
fn unseen(failed: JobError) -> Rejection {
    match failed {
        JobError::Stopped => Rejection::new(Refusal::Shutdown, "the gateway is stopping; send it again\n"),
        JobError::Panicked(_) => {
            Rejection::new(Refusal::Internal, "the gateway failed while it checked the body\n")
        }
    }
}
