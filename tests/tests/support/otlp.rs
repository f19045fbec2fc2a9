//! Shared by the OTLP storms: a gateway with little memory before a verifying receiver, and the final checks.

#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegate_load::otlp::{OtlpProfile, OtlpReport, OtlpSink, Signal, drive_blocking};
use tidegate_load::{Behaviour, Target};
use tidegate_tests::{Gateway, until};

pub(crate) const MIB: u64 = 1 << 20;

/// How long a backlog may take to arrive, on a busy machine.
pub(crate) const DRAINED: Duration = Duration::from_secs(240);

/// Held by each test of a file, since storms would starve each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gateway, and where what is sent to it has to arrive.
pub(crate) struct Storm {
    pub(crate) gateway: Gateway,
    pub(crate) receiver: OtlpSink,
    memory: u64,
}

impl Storm {
    /// A gateway with `memory` bytes, started: as root in a cgroup that leaves the kernel its allowance for
    /// `connections` and nothing more. `sink` is merged into its sink's settings.
    pub(crate) fn start(memory: u64, connections: u64, sink: Value) -> Storm {
        Storm::start_with(memory, connections, sink, json!({}))
    }

    /// The same with these limits.
    pub(crate) fn start_with(memory: u64, connections: u64, sink: Value, limits: Value) -> Storm {
        Storm::start_behind(memory, connections, sink, json!({"limits": limits}))
    }

    /// The same with these settings beside the sink's.
    pub(crate) fn start_behind(memory: u64, connections: u64, sink: Value, more: Value) -> Storm {
        let receiver = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        let mut out = json!({"type": "otlp", "endpoints": [format!("http://{}", receiver.address())]});
        let mut settings = json!({"memory": memory.to_string() + "B"});
        for (object, more) in [(&mut out, sink), (&mut settings, more)] {
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        settings["sinks"] = json!({"out": out});
        let mut gateway = Gateway::new(settings);
        // The kernel's memory in the same cgroup: page cache, page tables, sockets.
        gateway.limit_memory(memory + 16 * MIB + connections * (5 << 10));
        gateway.start();
        Storm { gateway, receiver, memory }
    }

    pub(crate) fn target(&self) -> Target {
        self.gateway.otlp_target()
    }

    /// Sends in the background.
    pub(crate) fn drive(&self, profile: &OtlpProfile) -> JoinHandle<OtlpReport> {
        let (target, profile) = (self.target(), profile.clone());
        std::thread::spawn(move || drive_blocking(&target, &profile).unwrap())
    }

    /// The invariants after every storm: every acknowledged item has arrived at least once; the memory was never
    /// exceeded; the books balance and nothing is held.
    #[track_caller]
    pub(crate) fn is_over(&mut self, signal: Signal, report: &OtlpReport) {
        println!(
            "{} accepted, {} refused ({} with a delay), {} without answer; {:?}",
            report.accepted, report.refused, report.with_delay, report.failed, report.reasons
        );
        self.gateway.at_rest(DRAINED);
        let arrived = self.receiver.report();
        assert_eq!(report.acked.missing_from(arrived.of(signal)), None, "{:?}", arrived.requests);
        assert_eq!((arrived.malformed, arrived.unnumbered), (0, 0));
        println!("{} items arrived again", arrived.duplicates);
        self.is_sound();
    }

    /// The memory was never exceeded, nothing that came is held for ever, and the books close.
    #[track_caller]
    pub(crate) fn is_sound(&mut self) {
        let gateway = &self.gateway;
        until(Duration::from_secs(30), "all charges to be given back", || {
            let status = gateway.status();
            let shares = status["memory"]["payload"]["shares"].as_array().cloned().unwrap_or_default();
            let receiving = shares.iter().filter(|share| share["name"] != "lake");
            receiving.map(|share| share["used"].as_u64().unwrap_or(u64::MAX)).sum::<u64>() == 0
        });
        gateway.books_close();
        let hwm = gateway.hwm();
        println!("peak {:.1} of {} MiB", hwm as f64 / MIB as f64, self.memory / MIB);
        assert!(hwm <= self.memory, "{hwm} bytes were resident, of {}", self.memory);
        if let Some(cgroup) = gateway.cgroup() {
            assert_eq!(cgroup.killed(), 0, "the kernel killed something");
        }
    }
}

/// A length-delimited field.
pub(crate) fn message(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        out.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(content);
    out
}
