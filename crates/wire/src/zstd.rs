//! Zstandard (RFC 8878), over slices, with state that is used again.
//!
//! A body may be several frames one after the other, skippable ones among them, which is also how bodies are
//! joined without being decompressed. Each frame is measured before it is decoded: where its blocks end, the
//! most that they can become, the window that it wants. So a frame is decoded in one go into its final place,
//! and the history that it refers to is the output itself: there is no window buffer, whatever the frame
//! claims. What the library has for streams would take the window (8 MiB in what common senders write) and
//! copy every byte once more.

mod decode;
mod encode;
mod frame;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::{Encoder, ZstdEncoderError};
pub use frame::ZstdError;
