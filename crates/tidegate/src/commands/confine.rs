//! The bounds of a process that the gateway starts for a request.

use crate::Failure;
use rustix::process::{Resource, Rlimit, Signal, nice, set_parent_process_death_signal, setrlimit};

/// Bounds the process to so many bytes of memory and seconds of processor time, lowers its priority by `niceness`, and has it end with the
/// gateway. It can start nothing and write no file.
pub(super) fn confine(memory: u64, cpu_seconds: u64, niceness: i32) -> Result<(), Failure> {
    let limit = |resource, most| {
        let most = Some(most);
        setrlimit(resource, Rlimit { current: most, maximum: most })
    };
    limit(Resource::Data, memory)?;
    limit(Resource::Stack, 1 << 20)?;
    limit(Resource::Cpu, cpu_seconds)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Nproc, 0)?;
    limit(Resource::Fsize, 0)?;
    // Where that is forbidden, it runs all the same.
    let _nice = nice(niceness);
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}
