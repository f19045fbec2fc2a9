//! Threads without the standard library's start.
//!
//! `std::thread` registers each thread of a Rust program that starts or ends in a table of stack guards, under
//! a lock. A child that is forked off while another thread holds it can never start a thread by it: the new
//! thread waits for an owner that was not forked along. The C library's own locks on the way (allocator,
//! stacks, thread-local storage, loader) are set up anew by its `fork`.

use std::ffi::CStr;
use std::io;

/// Runs `work` on a thread of its own, which nobody joins. A panic ends that thread only.
#[cfg(unix)]
pub fn spawn(
    name: &'static CStr,
    stack_bytes: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let start = Start { name, work: Box::new(work) };
    let argument = Box::into_raw(Box::new(start));
    let mut thread = std::mem::MaybeUninit::uninit();
    // SAFETY: the attributes are initialised before they are used, and given back after; `thread` has room for
    // what is written there; `run` takes the argument over, if and only if the thread starts.
    let failed = unsafe {
        let mut attributes = std::mem::MaybeUninit::uninit();
        match libc::pthread_attr_init(attributes.as_mut_ptr()) {
            0 => {
                libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
                // Of a size that it does not like, the default is used.
                libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes);
                let failed =
                    libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument.cast());
                libc::pthread_attr_destroy(attributes.as_mut_ptr());
                failed
            }
            failed => failed,
        }
    };
    if failed == 0 {
        return Ok(());
    }
    // SAFETY: no thread was started, so the argument is still ours, as `Box::into_raw` gave it.
    drop(unsafe { Box::from_raw(argument) });
    Err(io::Error::from_raw_os_error(failed))
}

/// Runs `work` on a thread of its own, which nobody joins.
#[cfg(not(unix))]
pub fn spawn(
    name: &'static CStr,
    stack_bytes: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let name = name.to_string_lossy().into_owned();
    std::thread::Builder::new().name(name).stack_size(stack_bytes).spawn(work).map(drop)
}

#[cfg(unix)]
struct Start {
    name: &'static CStr,
    work: Box<dyn FnOnce() + Send>,
}

#[cfg(unix)]
extern "C" fn run(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `spawn` made it by `Box::into_raw`, and gave it to this thread alone.
    let start = unsafe { Box::from_raw(argument.cast::<Start>()) };
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    // SAFETY: the name ends with a zero; one that is too long is refused.
    unsafe {
        libc::pthread_setname_np(libc::pthread_self(), start.name.as_ptr());
    }
    #[cfg(target_vendor = "apple")]
    // SAFETY: as above.
    unsafe {
        libc::pthread_setname_np(start.name.as_ptr());
    }
    // The panic was reported when it happened; going on over the edge of C would end the program.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(start.work));
    std::ptr::null_mut()
}
