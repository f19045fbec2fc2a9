//! A small fixed pool of threads for work that would hold up a worker: decompressing and checking large bodies,
//! say. A worker serves thousands of connections on one thread, so what takes it milliseconds takes them too.
//!
//! It promises: no more threads than it was started with; no more pieces of work in it than threads and places,
//! whoever comes then waits outside, first come, first served; a piece that panics is an error of its caller,
//! and its thread goes on; what nobody waits for any more is not begun.
//!
//! It leaves to others: what a piece of work needs in memory is charged by whoever gives it, and travels in it.
//! Work must not wait for anything but the processor: name resolution, files and locks that are held for long
//! have no place here, since one that hangs would hang all that comes after it.

mod pool;

pub use pool::{JobError, Pool};
