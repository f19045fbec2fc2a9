//! `tidegate search-process`: the process in which a search of the console runs.
//!
//! It reads a [`Order`] and a query from standard input, and writes a status and the answer to standard output. Whatever is in the
//! lake and the journal, it takes no more than its bounds, and changes nothing.

use super::confine::confine;
use crate::Outcome;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_search::Order;

/// The longest input: an order and a query.
const LONGEST_INPUT: u64 = 64 << 10;
/// Processor time, in seconds.
const CPU_SECONDS: u64 = 12;
/// The lowest priority: data goes before.
const NICE: i32 = 19;
/// The memory that the program itself takes before it searches, in bytes.
const PROGRAM: u64 = 4 << 20;

/// `tidegate search-process`
pub(crate) fn search_process(memory: u64) -> Outcome {
    confine(memory, CPU_SECONDS, NICE)?;
    let mut input = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    std::io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut input)?;
    let (status, answer) =
        answer(&input, memory).ok_or("the input is no search: this command is for the gateway itself")?;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{status}\n").as_bytes())?;
    out.write_all(&answer)?;
    Ok(())
}

fn answer(input: &[u8], memory: u64) -> Option<(u16, Vec<u8>)> {
    let (order, query) = Order::read(input)?;
    YIELDS_AFTER_MS.store(order.prompt_milliseconds, Relaxed);
    yield_processors();
    order.answer(query, memory.saturating_sub(PROGRAM), yield_processors)
}

/// The processor time after which the process yields, in milliseconds; `YIELDED` once it has.
static YIELDS_AFTER_MS: AtomicU64 = AtomicU64::new(0);
const YIELDED: u64 = u64::MAX;

/// Leaves the processors to others once the time for a prompt answer is used up. Called between the steps of a search.
fn yield_processors() {
    let prompt = YIELDS_AFTER_MS.load(Relaxed);
    if prompt == YIELDED {
        return;
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.try_into().unwrap_or_default());
    if used >= Duration::from_millis(prompt) {
        YIELDS_AFTER_MS.store(YIELDED, Relaxed);
        // Where that is forbidden, it has the lowest priority all the same.
        let _idle = tidegate_scheduling::run_when_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    /// The scheduling class of the calling thread: the 41st field of `stat`, as `proc(5)` counts.
    fn class() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(41 - 3).unwrap().to_owned()
    }

    /// One test, since what is left of the time is kept for the process.
    #[test]
    fn a_search_yields_when_its_time_is_used_up() {
        let class_after = |prompt: u64| {
            let order = serde_json::json!({
                "kind": "services", "journal": null, "lake": null, "node": "", "lake_sink": "",
                "dead_letters": "/nowhere", "answer": 100_000, "milliseconds": 1_000, "prompt_milliseconds": prompt,
            });
            let thread = std::thread::spawn(move || {
                let (status, _) = answer(format!("{order}\n{{}}").as_bytes(), 32 << 20).unwrap();
                (status, class())
            });
            thread.join().unwrap()
        };
        // `SCHED_OTHER`, and `SCHED_IDLE`.
        let hour = 3_600_000;
        assert_eq!(class_after(hour), (200, "0".to_owned()));
        assert_eq!(class_after(0), (200, "5".to_owned()));
    }
}
