//! P1 at its root: what is resident is what is charged. One test, since it measures its own process.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use tidegate_arena::{Arena, Floors, Share, Window};

const MIB: usize = 1 << 20;

#[test]
fn residency_follows_the_charges_and_never_exceeds_the_total() {
    resident_memory_follows_the_charges();
    a_shifting_mix_of_sizes_never_exceeds_the_total();
}

fn resident_memory_follows_the_charges() {
    let arena = Arena::new(48 * MIB as u64, Floors::NONE, 8 * MIB, 64, 16).unwrap();
    let before = resident();
    let mut windows: Vec<Window> = (0..8).map(|_| arena.try_window(Share::Ingest, 1).unwrap()).collect();
    windows.iter_mut().for_each(|window| fill(window, 5 * MIB, 1));
    assert!(resident() - before >= 40 * MIB);
    drop(windows);
    assert!(resident() < before + 10 * MIB, "at most the hot megabyte of each window stays");
    assert_eq!(arena.usage().idle, 8 * MIB as u64);
    (0..3).for_each(|_| arena.tick());
    assert_eq!(arena.usage().idle, 0);
}

/// With bodies of every size freed on other threads than they were taken on, residency stays within
/// the total (plus what the test itself allocates).
fn a_shifting_mix_of_sizes_never_exceeds_the_total() {
    let total = 32 * MIB;
    let arena = Arena::new(total as u64, Floors::NONE, 8 * MIB, 512, 16).unwrap();
    let before = resident();
    let (send, receive) = std::sync::mpsc::sync_channel::<Window>(256);
    let dropper = std::thread::spawn(move || receive.into_iter().map(|window| window.len()).sum::<usize>());
    let mut most = 0;
    for round in 0..20_000usize {
        let size = match round / 2_000 % 3 {
            0 => 200 + round % 3_000,
            1 => 200 + (round * 7919) % MIB,
            _ => 64 + (round * 104_729) % (512 << 10),
        };
        if let Ok(mut window) = arena.try_window(Share::Ingest, size) {
            window.spare_mut()[..size].fill(round as u8);
            window.advance(size);
            send.send(window).unwrap();
        }
        if round % 64 == 0 {
            most = most.max(resident().saturating_sub(before));
            let usage = arena.usage();
            assert!(usage.shares[0].used + usage.idle <= total as u64);
        }
    }
    drop(send);
    assert!(dropper.join().unwrap() > 0);
    assert!(most < total + 2 * MIB, "{most} bytes resident");
}

/// Resident bytes of this process that belong to no file.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn fill(window: &mut Window, bytes: usize, with: u8) {
    window.try_reserve(bytes).unwrap();
    window.spare_mut()[..bytes].fill(with);
    window.advance(bytes);
}
