//! The scheduling class of a thread.
//!
//! The lowest niceness is no class: a thread with it still delays others that wake up on its processor. Work that must not be noticed
//! belongs in `SCHED_IDLE` (`sched(7)`), which no safe library sets.

use std::io;

/// Lets the calling thread, and threads that it starts from now on, run only where a processor would be idle otherwise. Needs no
/// privilege; without privileges there is no way back.
///
/// # Errors
/// The kernel's, where such calls are forbidden.
pub fn run_when_idle() -> io::Result<()> {
    const CALLING_THREAD: libc::pid_t = 0;
    // The kernel's `struct sched_param`. Of this class, 0 is the only priority.
    let priority: libc::c_int = 0;
    // SAFETY: the call reads one `int` at the address of `priority`, which lives until it returns, and writes nothing of ours. It is the
    // system call itself, since a C library may refuse it (musl).
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, libc::SCHED_IDLE, &raw const priority)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy is the 41st field of `stat`, as `proc(5)` counts.
    #[test]
    fn the_class_of_a_thread_is_idle() {
        let thread = std::thread::spawn(|| {
            run_when_idle().map(|()| std::fs::read_to_string("/proc/thread-self/stat"))
        });
        let stat = thread.join().expect("the thread ends").expect("it is allowed").expect("there is a /proc");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        assert_eq!(fields.split(' ').nth(41 - 3), Some("5"), "{stat}");
    }
}
