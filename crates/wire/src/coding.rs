//! The interface of the content codings: decoders driven in steps over memory that the caller has charged.
//!
//! A step reads from one slice, writes to another and says what it wants next. Whoever drives it decides how
//! far the output may grow, so a body that decompresses to a thousand times its size costs only what was
//! paid for; what was decoded so far stays where it is.

#[cfg(test)]
pub(crate) mod tests;

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How much of the input was used up.
    pub read: usize,
    /// How much was written to the start of the output.
    pub written: usize,
    /// The requirement of the next step.
    pub needs: Needs,
}

/// A decoder's next requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// More input: the body may not end here.
    Input,
    /// An output with at least one free byte; this many would do for a while, perhaps to the end.
    Output(usize),
    /// Nothing: the body may end here, and may go on with another member or frame.
    Nothing,
}

/// Reads one content coding.
pub trait Decode {
    /// Errors in the input.
    type Error: std::error::Error;

    /// Forgets the body before, keeping the memory.
    fn reset(&mut self);

    /// Decodes from the start of `input` to the start of `output`. `input` is all that is left of the body.
    ///
    /// # Errors
    /// When the body is malformed; the decoder must be reset then.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, Self::Error>;

    /// How long the whole of `body` will be once decoded, if it is what it says: for the first charge. Never
    /// more than the coding can expand `body` to.
    fn expected_len(&self, body: &[u8]) -> usize;

    /// The error for a body that ends too early.
    fn truncated(&self) -> Self::Error;
}

/// Memory that grows in place, paid for step by step.
pub trait Grow {
    /// Charged and not yet written bytes.
    fn spare(&mut self) -> &mut [u8];

    /// Counts the first `bytes` of [`spare`](Self::spare) as written.
    fn advance(&mut self, bytes: usize);

    /// Makes [`spare`](Self::spare) at least one byte longer, by `more` if possible; `false` if that is refused.
    fn grow(&mut self, more: usize) -> bool;
}

/// Why a body was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError<F> {
    /// It is malformed.
    #[error(transparent)]
    Malformed(#[from] F),
    /// The output was not allowed to grow any further.
    #[error("the body has more bytes once decompressed than it was granted")]
    OutputFull,
}

/// Decodes all of `body` into `output`, and returns how many bytes that were.
///
/// # Errors
/// [`DecompressError`]; what was decoded before stays in `output`.
pub fn decode<D: Decode>(
    decoder: &mut D,
    body: &[u8],
    output: &mut impl Grow,
) -> Result<usize, DecompressError<D::Error>> {
    decoder.reset();
    let mut rest = body;
    let mut total = 0usize;
    loop {
        let progress = decoder.step(rest, output.spare())?;
        output.advance(progress.written);
        total = total.saturating_add(progress.written);
        rest = rest.get(progress.read..).unwrap_or_default();
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return Ok(total),
            Needs::Nothing => {}
            Needs::Input => return Err(DecompressError::Malformed(decoder.truncated())),
            Needs::Output(more) => {
                if !output.grow(more) {
                    return Err(DecompressError::OutputFull);
                }
            }
        }
    }
}
