//! Descriptors that a forked child does not keep.
//!
//! A child that keeps its parent's sockets open keeps the connections open: the peer does not hear it when the
//! parent closes them. They are closed in the handler that runs in the child before `fork` returns: later, the
//! program could have closed a descriptor itself, and have opened something else under its number.

use std::sync::atomic::{AtomicI32, Ordering};

/// Descriptors guarded at a time; what is beyond stays open in children.
const MOST: usize = 64;
const NONE: i32 = -1;

/// Numbers are entered after they were opened, and taken out before they are closed: what stands here is open,
/// and is ours, at any instant at which another thread may fork.
static GUARDED: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// Has a descriptor closed in children that are forked off while this lives. Drop it before the descriptor.
#[must_use = "a descriptor is guarded as long as this lives"]
#[derive(Debug)]
pub struct Inherited(Option<&'static AtomicI32>);

impl Inherited {
    /// Guards a descriptor that is open.
    #[cfg(unix)]
    pub fn guard(descriptor: &impl std::os::fd::AsRawFd) -> Inherited {
        let number = descriptor.as_raw_fd();
        let free = |place: &&AtomicI32| {
            place.compare_exchange(NONE, number, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        Inherited(GUARDED.iter().find(free))
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(NONE, Ordering::Release);
        }
    }
}

/// In a child, before anything else happens there.
pub(crate) fn close_all() {
    for place in &GUARDED {
        let number = place.swap(NONE, Ordering::Acquire);
        #[cfg(unix)]
        if number != NONE {
            // SAFETY: the descriptor was open in the parent at the fork, and is this process's copy, which
            // nothing uses: the thread that did was not forked along.
            unsafe { libc::close(number) };
        }
        #[cfg(not(unix))]
        let _ = number;
    }
}
