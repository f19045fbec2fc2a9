//! Threads that hold what locks a process has, each as often as it can: what a fork in the middle leaves behind.

use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegate_sender::{Log, Sender};

/// Runs `forking` while threads start, end, resolve names, allocate, and shake hands through `handshaking`, whose
/// peer closes each connection.
pub(crate) fn around(handshaking: &Sender, forking: impl FnOnce()) {
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let again = |round: &dyn Fn()| {
        while !stop.load(Ordering::Relaxed) {
            round();
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| again(&|| std::thread::spawn(|| ()).join().unwrap()));
        scope.spawn(|| again(&|| std::thread::spawn(|| vec![0_u8; 100_000].len()).join().map(drop).unwrap()));
        scope.spawn(|| again(&|| ("localhost", 1).to_socket_addrs().map(drop).unwrap_or_default()));
        scope.spawn(|| {
            again(&|| {
                handshaking.log(&Log::default()).unwrap();
                let _late = handshaking.flush(std::time::Duration::from_secs(1));
                handshaking.scope(&format!("noise {}", rounds.load(Ordering::Relaxed) % 60), "");
            });
        });
        // Also when it panics, which has to end this test and not to hang it.
        let _stop = Stop(&stop);
        forking();
    });
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
