//! Events to bytes, in the two formats of the wire.

pub(crate) mod intake;
pub(crate) mod otlp;
#[cfg(test)]
mod tests;
mod text;
