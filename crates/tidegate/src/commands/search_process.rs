//! `tidegate search-process`: the process in which a search of the console runs.
//!
//! It reads a [`Order`] and a query from standard input, and writes a status and the answer to standard output. Whatever is in the
//! lake and the journal, it takes no more than its bounds, and changes nothing.

use super::confine::confine;
use crate::Outcome;
use std::io::{Read, Write};
use tidegate_search::Order;

/// The longest input: an order and a query.
const LONGEST_INPUT: u64 = 64 << 10;
/// Processor time, in seconds.
const CPU_SECONDS: u64 = 12;
/// The lowest priority: data goes before.
const NICE: i32 = 19;
/// Of its memory: what the program itself has before it searches, in bytes.
const PROGRAM: u64 = 4 << 20;

/// `tidegate search-process`
pub(crate) fn search_process(memory: u64) -> Outcome {
    confine(memory, CPU_SECONDS, NICE)?;
    // Where that is forbidden, it has the lowest priority all the same.
    let _idle = tidegate_scheduling::run_when_idle();
    let mut input = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    std::io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut input)?;
    let (status, answer) = Order::answer(&input, memory.saturating_sub(PROGRAM))
        .ok_or("the input is no search: this command is for the gateway itself")?;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{status}\n").as_bytes())?;
    out.write_all(&answer)?;
    Ok(())
}
