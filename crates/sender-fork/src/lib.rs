//! How many times the code that is running has been forked off since it first asked.
//!
//! Promise: [`generation`] is one atomic load, and differs between a process and its child from the child's
//! first instruction after `fork`. Asking the kernel for the process id instead costs 50 to 300 ns, for every
//! event. Left to others: what to do about it. A child made by a bare `clone` call, past the C library, is
//! not noticed.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static WATCHED: Once = Once::new();

/// Forks from here on are counted. Call it once before [`generation`] matters; more calls do nothing.
pub fn watch() {
    #[cfg(unix)]
    WATCHED.call_once(|| {
        // SAFETY: the handler is an `extern "C"` function without arguments that lives as long as the
        // program, and does nothing but an atomic addition, which is allowed after a fork in a process of
        // many threads. If registering fails (no memory), forks are not noticed; nothing else happens.
        unsafe {
            libc::pthread_atfork(None, None, Some(forked));
        }
    });
    #[cfg(not(unix))]
    WATCHED.call_once(|| ());
}

/// The number of forks between the first [`watch`] and this process.
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_one_generation_on_and_its_parent_is_not() {
        watch();
        let before = generation();
        // SAFETY: the child calls nothing but an atomic load and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = i32::from(generation() != before + 1);
            // SAFETY: ends the child at once, without running the parent's exit handlers.
            unsafe { libc::_exit(status) };
        }
        let mut status = -1;
        // SAFETY: `status` outlives the call, and `child` is this process's own.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        assert_eq!(generation(), before);
    }
}
