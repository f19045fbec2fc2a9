//! What has to be looked after while nothing happens: memory that nobody used for a while goes back, and what
//! must not end is watched. On a thread of its own, since a busy worker would do it late.

use super::keys::Keys;
use super::plan::PROGRAM;
use super::watch::{Rounds, Watch};
use std::io;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::{Arena, Program};

/// The thread's stack, in bytes: declared in the plan.
pub(crate) const STACK: usize = 128 << 10;
/// How often the program's pages are counted, and what must not end is looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// So many glances make a tick, of one second.
const TICK: u32 = 10;
/// Above this the program's pages are given back: the rest of what is declared for them is for those that
/// return until the next glance.
const TOO_MANY: u64 = PROGRAM / 5 * 4;

/// Looks after the arenas, the gate's measurements, certificates and credentials that change on disk, the pages of the program, and what `watch` is over, until
/// it is dropped; calls `log_state` once a second. `leave` is told what has ended.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn start(
    arena: Arena,
    console: Arena,
    gate: Gate,
    keys: Keys,
    mut log_state: impl FnMut() + Send + 'static,
    watch: Watch,
    leave: impl FnOnce(&str) + Send + 'static,
) -> io::Result<Rounds> {
    let program = Program::look().unwrap_or_default();
    // What the start needed is not needed again.
    program.trim();
    let mut glance = 0_u32;
    let round = move || {
        if Program::resident().is_ok_and(|resident| resident > TOO_MANY) {
            program.trim();
        }
        glance = (glance + 1) % TICK;
        if glance == 0 {
            arena.tick();
            console.tick();
            gate.tick();
            keys.look();
            log_state();
        }
        watch.gone()
    };
    Rounds::start("upkeep", STACK, GLANCE, round, leave)
}
