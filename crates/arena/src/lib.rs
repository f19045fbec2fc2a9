//! Payload memory that is paid for before it is touched.
//!
//! An [`Arena`] reserves address space once and hands out [`Window`]s: contiguous stretches, each as
//! long as the largest body allowed, that cost nothing until they grow. Growing takes a *charge* from
//! the budget first and touches pages second; dropping gives the charge back. A [`Charge`] can also
//! stand for memory that lives elsewhere (the lake writer's slice, say).
//!
//! It promises: at every moment, the resident bytes of all windows are at most the bytes charged plus
//! the hot pages of idle windows, and that sum never exceeds the arena's total. A [`Share`] can always
//! reach its floor without waiting for another share.
//!
//! It leaves to others: deciding who is refused when a charge is not granted (`admission`), and staying
//! inside what they declared in the [`MemoryPlan`] (every owner of an entry).
//!
//! The argument is in `design/memory.md`. Of the gateway's crates, `unsafe` code is in this one, and in `scheduling` for one system call.

mod arena;
mod budget;
pub mod heap;
mod map;
mod plan;
mod program;
mod share;
mod sync;
mod units;
mod window;

pub use arena::{Arena, Charge, ChargeError, ChargeFuture, ShareUse, Usage};
pub use plan::{DoesNotFit, MemoryPlan, Reservation};
pub use program::{ProgramPages, ResidentPages};
pub use share::{Floors, Share};
pub use units::{Bytes, GROWTH_STEP, PAGE, page, rounded};
pub use window::Window;
