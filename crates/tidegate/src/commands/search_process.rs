//! `tidegate search-process`: the process in which a search of the console runs.
//!
//! It reads a [`Order`] and a query from standard input, and writes a status and the answer to standard output. Whatever is in the
//! lake and the journal, it takes no more than its bounds, and changes nothing.

use super::confine::confine;
use crate::Outcome;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_search::Order;

/// The longest input: an order and a query.
const LONGEST_INPUT: u64 = 64 << 10;
/// Processor time, in seconds.
const CPU_SECONDS: u64 = 12;
/// The lowest priority: data goes before.
const NICE: i32 = 19;
/// Processor time with that priority, in milliseconds: enough for a short search, which is then answered on a busy machine, too. A longer one
/// runs only where a processor would be idle.
const SHORT: i64 = 40;
/// The memory that the program itself takes before it searches, in bytes.
const PROGRAM: u64 = 4 << 20;

/// `tidegate search-process`
pub(crate) fn search_process(memory: u64) -> Outcome {
    confine(memory, CPU_SECONDS, NICE)?;
    let mut input = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    std::io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut input)?;
    let (status, answer) = Order::answer(&input, memory.saturating_sub(PROGRAM), yield_processors)
        .ok_or("the input is no search: this command is for the gateway itself")?;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{status}\n").as_bytes())?;
    out.write_all(&answer)?;
    Ok(())
}

/// Leaves the processors to others once the search has turned out to be a long one. Called between its steps.
fn yield_processors() {
    static HAS_YIELDED: AtomicBool = AtomicBool::new(false);
    if HAS_YIELDED.load(Relaxed) {
        return;
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let is_long = used.tv_sec > 0 || used.tv_nsec > SHORT * 1_000_000;
    if is_long && !HAS_YIELDED.swap(true, Relaxed) {
        // Where that is forbidden, it has the lowest priority all the same.
        let _idle = tidegate_scheduling::run_when_idle();
    }
}
