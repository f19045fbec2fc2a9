//! Background maintenance: returns memory that was unused for a while, and watches tasks that must not end. On a
//! separate thread, since a busy worker would be late.

use super::plan::PROGRAM;
use super::reloaded_files::ReloadedFiles;
use super::task_watch::{PeriodicThread, TaskWatch};
use std::io;
use std::sync::Once;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::{Arena, ProgramPages, ResidentPages};

/// The thread's stack, in bytes: declared in the plan.
pub(crate) const STACK: usize = 128 << 10;
/// How often the program's pages are counted, and what must not end is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// So many glances make a tick, of one second.
const TICK: u32 = 10;
/// Above this the program's pages are given back: the rest of what is declared for them is for those that
/// return until the next glance.
const TOO_MANY: u64 = PROGRAM / 5 * 4;

/// Looks after the arenas, the gate's measurements, certificates and credentials that change on disk, the pages of the program, and what `task_watch` is over, until
/// it is dropped; calls `log_state` once a second. `leave` is told what has ended.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn start(
    arenas: Vec<Arena>,
    gate: Gate,
    keys: ReloadedFiles,
    mut log_state: impl FnMut() + Send + 'static,
    watch: TaskWatch,
    leave: impl FnOnce(&str) + Send + 'static,
) -> io::Result<PeriodicThread> {
    // Not in unit tests, where several gateways share a process: tests crashed in the allocator now and then while they did.
    let program =
        if cfg!(test) { ProgramPages::default() } else { ProgramPages::measure().unwrap_or_default() };
    // Memory of the startup is not needed again.
    trim(&program);
    let resident = ResidentPages::open();
    let (mut glance, mut kept) = (0_u32, 0);
    let round = move || {
        let of_files = resident.as_ref().ok().and_then(|resident| resident.of_files().ok());
        if of_files.is_some_and(|bytes| bytes > TOO_MANY) {
            trim(&program);
        }
        glance = (glance + 1) % TICK;
        if glance == 0 {
            arenas.iter().for_each(Arena::tick);
            kept = told_of_kept(&arenas, kept);
            gate.tick();
            keys.look();
            log_state();
        }
        watch.gone()
    };
    PeriodicThread::start("upkeep", STACK, CHECK_INTERVAL, round, leave)
}

/// Gives the program's pages back, as far as the kernel takes them.
fn trim(program: &ProgramPages) {
    static TOLD: Once = Once::new();
    if let Err(error) = program.trim() {
        TOLD.call_once(|| {
            tracing::error!(%error, "the kernel keeps pages of the program: resident memory may exceed `memory`");
        });
    }
}

/// Says that the kernel has kept pages of the arenas, when that has happened more than `before` times; how often it has.
fn told_of_kept(arenas: &[Arena], before: u64) -> u64 {
    let usages: Vec<_> = arenas.iter().map(|arena| arena.usage()).collect();
    let times = usages.iter().map(|usage| usage.kept_times).sum();
    if times > before {
        let bytes: u64 = usages.iter().map(|usage| usage.kept_bytes).sum();
        tracing::error!(
            times,
            bytes,
            "the kernel does not take pages back (`madvise`); they stay charged, and there is less memory for requests: \
             restart, and find out what forbids the call"
        );
    }
    times
}
