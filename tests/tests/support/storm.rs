//! Shared by the storms: a gateway with little memory before a verifying receiver, and the final checks.

#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidegate_load::{
    AcknowledgedSamples, Behaviour, Check, Comparison, LoadProfile, LoadReport, OnRefused, RunLimit,
    SeriesModel, Target, Timeline, VerifyingReceiver, compare, drive_blocking,
};
use tidegate_tests::{Gateway, until};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };

/// The kernel's memory in the same cgroup in addition to `memory`: the page cache of the journal, page tables, and
/// the structures of a socket for each connection.
pub(crate) fn kernel_allowance(connections: u64) -> u64 {
    16 * MIB + connections * (5 << 10)
}

/// Whether the tests were asked to take their time (`TIDEGATE_TEST_LONG=1`).
pub(crate) fn long() -> bool {
    std::env::var("TIDEGATE_TEST_LONG").is_ok_and(|long| long == "1")
}

/// How long a backlog may take to arrive, on a busy machine.
pub(crate) fn drained() -> Duration {
    Duration::from_secs(if long() { 3600 } else { 240 })
}

/// How long each phase of a storm lasts.
pub(crate) fn phase() -> Duration {
    Duration::from_secs(if long() { 60 } else { 3 })
}

/// Held by each test of a file, since storms would starve each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gateway, what is sent to it, and where that has to arrive.
pub(crate) struct Storm {
    pub(crate) gateway: Gateway,
    pub(crate) sink: VerifyingReceiver,
    pub(crate) model: Arc<SeriesModel>,
    memory: u64,
}

impl Storm {
    /// A gateway with `memory` bytes, started: as root in a cgroup that leaves the kernel its allowance and
    /// nothing more. `settings` are merged into its configuration.
    pub(crate) fn start(memory: u64, series: usize, settings: &Value) -> Storm {
        let mut storm = Storm::plan(memory, series, settings);
        storm.limit();
        storm.gateway.start();
        storm
    }

    /// The same for so many connections.
    pub(crate) fn start_for(memory: u64, series: usize, connections: usize, settings: &Value) -> Storm {
        let mut settings = settings.clone();
        merge(&mut settings, &json!({ "limits": { "connections": connections } }));
        let mut storm = Storm::plan(memory, series, &settings);
        storm.gateway.limit_memory(memory + kernel_allowance(connections as u64));
        storm.gateway.start();
        storm
    }

    /// One that is not started yet, and not in a cgroup.
    pub(crate) fn plan(memory: u64, series: usize, settings: &Value) -> Storm {
        let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap();
        let gateway = Gateway::new(configuration(memory, &sink, settings));
        Storm { gateway, sink, model: Arc::new(SeriesModel::new(7, series, TIMELINE)), memory }
    }

    /// Writes the configuration anew, for the next start: the sink may be another one.
    pub(crate) fn configure(&self, settings: &Value) {
        self.gateway.configure(configuration(self.memory, &self.sink, settings));
    }

    /// From its next start on the gateway is in a cgroup, if that is possible.
    pub(crate) fn limit(&mut self) {
        let connections = 1000;
        self.gateway.limit_memory(self.memory + kernel_allowance(connections));
    }

    /// Sends in the background.
    pub(crate) fn drive(&self, profile: &LoadProfile) -> JoinHandle<LoadReport> {
        driving(&self.gateway.target(), &self.model, profile)
    }

    /// The invariants after every storm: the memory was never exceeded, the books balance, nothing is open or
    /// charged, and every acknowledged item has arrived unchanged.
    #[track_caller]
    pub(crate) fn is_over(&mut self, acked: &AcknowledgedSamples) -> Comparison {
        self.gateway.at_rest(drained());
        self.is_sound();
        let verdict = compare(&self.model, acked, &self.sink.report());
        assert!(verdict.nothing_lost(), "{verdict:?}");
        assert_eq!(verdict.unknown_series, 0, "{verdict:?}");
        verdict
    }

    /// The memory was never exceeded, nothing that came is held for ever, and the books close.
    #[track_caller]
    pub(crate) fn is_sound(&mut self) {
        let gateway = &self.gateway;
        // Doors close a little after the last answer.
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

    /// Back to normal: an ordinary pass over all series is accepted at once, and arrives.
    #[track_caller]
    pub(crate) fn is_normal(&mut self, acked: &mut AcknowledgedSamples, first: u64) {
        let profile =
            LoadProfile { connections: 4, first, on_refused: OnRefused::Count, ..LoadProfile::default() };
        let report = drive_blocking(&self.gateway.target(), &self.model, &profile).unwrap();
        assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
        assert_eq!(self.gateway.page("/ready").status, 200);
        acked.merge(0, &report.acked);
        self.is_over(acked);
    }
}

fn configuration(memory: u64, sink: &VerifyingReceiver, settings: &Value) -> Value {
    let mut all = json!({
        "memory": memory,
        "limits": { "connections": 1000 },
        "sinks": { "up": { "type": "prometheus_remote_write", "url": sink.target().to_string() } },
    });
    merge(&mut all, settings);
    all
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Sends in the background.
pub(crate) fn driving(
    target: &Target,
    model: &Arc<SeriesModel>,
    profile: &LoadProfile,
) -> JoinHandle<LoadReport> {
    let (target, model, profile) = (target.clone(), Arc::clone(model), profile.clone());
    std::thread::spawn(move || drive_blocking(&target, &model, &profile).unwrap())
}

/// As fast as answers come, again and again until accepted, for `time`.
pub(crate) fn full_speed(connections: usize, time: Duration) -> LoadProfile {
    LoadProfile {
        connections,
        series_per_request: 200,
        limit: RunLimit::Time(time),
        deadline: time,
        answer_within: Duration::from_secs(60),
        on_refused: OnRefused::Retry { at_most: Duration::from_millis(500) },
        ..LoadProfile::default()
    }
}
