//! How gateways die, a file for each cause: what kills others is done to this one, at `memory: 64MiB` and mostly in a
//! cgroup of that size. In every one of them resident memory stays within the budget, everything acknowledged
//! arrives, every refusal is an answer, and the books close. `design/storms.md` has the table.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it fails, and says what it measures"
)]

#[path = "../support/segments.rs"]
mod segments;
#[path = "../support/storm.rs"]
mod support;

mod crowd;

mod a01_endless_retries;
mod a02_step_load;
mod a03_slow_sink;
mod a04_large_bodies;
mod a04_unbounded_bodies;
mod a05_bombs;
mod a07_swollen_buffers;
mod a08_invented_names;
mod a10_restart;
mod a11_stampede;
mod a13_damage;
mod a14_full_disk;
mod a15_one_bad_sink;
mod a16_kill;
mod a17_small_items;
mod a18_on_the_hour;
mod a20_any_memory;
mod noisy_neighbour;
mod open_pages;
mod searches;
mod swelling_neighbour;
