//! The atomic numbers, swapped for loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
