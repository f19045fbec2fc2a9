//! Support for a library that keeps working in a forked child: the number of forks, threads that start under all
//! circumstances, and descriptors that a child does not keep.
//!
//! Promises: [`generation`] is one atomic load, and differs between a process and its child from the child's
//! first instruction after `fork`. Asking the kernel for the process id instead costs 50 to 300 ns, for every
//! event. [`spawn`] waits for no lock that a thread of the parent could have held at the fork. What
//! [`Inherited`] guards is closed in the child before `fork` returns there. Left to others: what to do about a
//! fork. A child made by a bare `clone` call, past the C library, is not noticed before it calls [`notice`].

mod descriptors;
mod thread;

pub use descriptors::Inherited;
pub use thread::spawn;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
/// The process that [`GENERATION`] was last counted up in.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether forks are counted: the process that is about to see to it, or one of these.
static WATCHED: AtomicU32 = AtomicU32::new(UNWATCHED);
const UNWATCHED: u32 = 0;
const DONE: u32 = u32::MAX;

/// Forks from here on are counted. Call it once before [`generation`] matters; more calls do nothing.
pub fn watch() {
    let us = std::process::id();
    // Not a `Once`, which a child would wait for that was forked off while a thread of its parent is in here.
    loop {
        match WATCHED.load(Ordering::Acquire) {
            DONE => return,
            // A thread of this process, which is a few instructions from done.
            other if other == us => std::thread::yield_now(),
            before => {
                if WATCHED.compare_exchange(before, us, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    break;
                }
            }
        }
    }
    PROCESS.store(us, Ordering::Relaxed);
    #[cfg(unix)]
    // SAFETY: the handler is an `extern "C"` function without arguments that lives as long as the program, and
    // does nothing but atomic operations, `getpid` and `close`, which are allowed after a fork in a process of
    // many threads. If registering fails (no memory), forks are not noticed; nothing else happens.
    unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    }
    WATCHED.store(DONE, Ordering::Release);
}

/// The number of forks between the first [`watch`] and this process.
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// For a child that was not made by the C library's `fork`: counts the fork, if nothing has counted it yet.
pub fn notice() {
    let (before, now) = (PROCESS.load(Ordering::Relaxed), std::process::id());
    let exchanged = PROCESS.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if before != now && exchanged {
        descriptors::close_all();
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(unix)]
extern "C" fn forked() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    descriptors::close_all();
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Runs `child` in a forked process, which ends with its result.
    fn in_a_child(child: impl FnOnce() -> bool) -> bool {
        watch();
        // SAFETY: what the tests do in the child needs no lock of another thread.
        let id = unsafe { libc::fork() };
        if id == 0 {
            let well = child();
            // SAFETY: ends the child at once, without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        let mut status = -1;
        // SAFETY: `status` outlives the call, and the child is this process's own.
        let waited = unsafe { libc::waitpid(id, &raw mut status, 0) };
        waited == id && status == 0
    }

    #[test]
    fn a_child_is_one_generation_on_and_its_parent_is_not() {
        watch();
        let before = generation();
        assert!(in_a_child(|| generation() == before + 1));
        assert_eq!(generation(), before);
    }

    #[test]
    fn an_ordinary_fork_is_counted_once() {
        watch();
        let before = generation();
        notice();
        assert_eq!(generation(), before, "this is no child");
        assert!(in_a_child(|| {
            notice();
            notice();
            generation() == before + 1
        }));
    }

    #[test]
    fn a_direct_clone_is_counted_when_announced() {
        watch();
        let before = generation();
        // SAFETY: a fork by the system call alone; the child does nothing but atomic operations and `_exit`.
        let id = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        if id == 0 {
            let unnoticed = generation() == before;
            notice();
            let well = unnoticed && generation() == before + 1;
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        let mut status = -1;
        // SAFETY: `status` outlives the call, and the child is this process's own.
        let waited = unsafe { libc::waitpid(id as libc::pid_t, &raw mut status, 0) };
        assert_eq!((i64::from(waited), status), (id, 0));
    }

    #[test]
    fn a_child_has_no_guarded_descriptor_and_its_parent_has() {
        use std::os::fd::AsRawFd;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let guard = Inherited::guard(&ours);
        let open = |fd: i32| {
            // SAFETY: asks for the flags of a descriptor, or hears that it is none.
            unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
        };
        assert!(in_a_child(|| !open(ours.as_raw_fd()) && open(theirs.as_raw_fd())));
        assert!(open(ours.as_raw_fd()));
        drop(guard);
        assert!(in_a_child(|| open(ours.as_raw_fd())));
    }

    #[test]
    fn a_thread_runs_and_has_its_name() {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        spawn(c"sender-fork", 128 << 10, move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
            send.send(name).unwrap();
            panic!("which ends the thread, and nothing else");
        })
        .unwrap();
        let name = receive.recv().unwrap();
        assert!(name.is_empty() || name.trim() == "sender-fork", "{name}");
    }
}
