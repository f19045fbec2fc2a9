//! The destinations tidegate sends to.
