//! What has to be looked after while nothing happens: memory that nobody used for a while goes back.

use super::plan::PROGRAM;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::{Arena, Program};
use tokio::time::{MissedTickBehavior, interval};

/// How often the program's pages are counted.
const GLANCE: Duration = Duration::from_millis(100);
/// So many glances make a tick, of one second.
const TICK: u32 = 10;
/// Above this the program's pages are given back: the rest of what is declared for them is for those that
/// return until the next glance.
const TOO_MANY: u64 = PROGRAM / 5 * 4;

/// Looks after the arenas, the gate's measurements, and the pages of the program. Never ends by itself.
pub(crate) async fn run(arena: Arena, console: Arena, gate: Gate) {
    let program = Program::look().unwrap_or_default();
    // What the start needed is not needed again.
    program.trim();
    let mut glances = interval(GLANCE);
    glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut glance = 0_u32;
    loop {
        glances.tick().await;
        if Program::resident().is_ok_and(|resident| resident > TOO_MANY) {
            program.trim();
        }
        glance = (glance + 1) % TICK;
        if glance == 0 {
            arena.tick();
            console.tick();
            gate.tick();
        }
    }
}
