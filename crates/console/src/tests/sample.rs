//! A made-up gateway in trouble: everything that can be shown is there to be shown.

use crate::{
    Damage, DeclaredLine, Journal, Lag, LastError, LeftBehind, Memory, Payload, Resident, ShareLine, Sink,
    Status, Syncs,
};
use std::time::{Duration, SystemTime};
use tidegate_ledger::{
    Balance, Dropped, ForwardedBalance, JournalBalance, PipelineBalance, Refusal, Signal, SinkBalance,
    SourceBalance,
};

const MIB: u64 = 1 << 20;

/// The moment of all samples.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// The journal is full because one sink of two has been failing for three hours.
pub(crate) fn troubled() -> Status {
    let mut status = healthy();
    status.journal.trouble =
        Some("its quota is used up by records that sinks have not completed yet".to_owned());
    status.journal.bytes = status.journal.quota;
    status.journal.segments = 320;
    status.journal.full_in = Some(Duration::ZERO);
    status.commit = Some("d3adb33fd3ad".to_owned());
    status.left_behind = vec![LeftBehind {
        name: "old".to_owned(),
        items: 12_000,
        bytes: 3 << 20,
        age: Some(Duration::from_secs(7_200)),
        command: "tidegate journal forget old".to_owned(),
    }];
    status.journal.oldest_age = Some(Duration::from_secs(3 * 3600 + 300));
    status.journal.damage = Damage { records: 3, bytes: 70_000, quarantined_segments: 1 };
    let upstream = &mut status.sinks[1];
    upstream.lag = Lag { items: 7_000_000, bytes: 20 << 30, age: Some(Duration::from_secs(3 * 3600)) };
    upstream.in_flight = 0;
    upstream.cursor = 1_501;
    upstream.items_per_second = Some(0.0);
    upstream.delivered = 2_999_995;
    upstream.failures = 411;
    let message = "connecting to 127.0.0.1:9090: connection refused".to_owned();
    upstream.last_error = Some(LastError { message, at: now() - Duration::from_secs(200) });
    upstream.retry_at = Some(now() + Duration::from_secs(12));
    upstream.dropped = vec![(Dropped::Rejected, 4), (Dropped::TooLarge, 1)];
    status.books.sinks[1].queued = 7_000_000;
    status.books.sinks[1].delivered = 2_999_995;
    status.books.sinks[1].dropped = status.sinks[1].dropped.clone();
    status
}

/// Two sinks that keep up.
pub(crate) fn healthy() -> Status {
    Status {
        version: "0.1.0".to_owned(),
        commit: None,
        at: now(),
        uptime: Duration::from_secs(93_784),
        stopping: false,
        memory: memory(),
        journal: Journal {
            dir: "./tidegate-data/journal".to_owned(),
            durability: "fsync".to_owned(),
            bytes: 128 * MIB,
            quota: 20 << 30,
            segments: 2,
            oldest_age: Some(Duration::from_secs(95)),
            head: 5_001,
            items_total: 10_000_000,
            items_per_second: Some(52_000.4),
            full_in: None,
            damage: Damage::default(),
            syncs: Syncs { count: 4_321, mean: Duration::from_micros(1_830) },
            trouble: None,
        },
        source_pipelines: Vec::new(),
        left_behind: Vec::new(),
        refused_lately: Vec::new(),
        destination: None,
        sinks: vec![sink("lake", "lake", "./tidegate-data/lake", 600), upstream()],
        tenants: None,
        handshakes: None,
        fleet: None,
        books: books(),
    }
}

fn memory() -> Memory {
    let line = |owner: &str, what: &str, count, each: u64, used, peak| DeclaredLine {
        owner: owner.to_owned(),
        what: what.to_owned(),
        count,
        each,
        declared: count * each,
        used,
        peak,
    };
    let share = |name: &str, floor, used, peak| ShareLine {
        name: name.to_owned(),
        floor,
        at_most: 34 * MIB,
        used,
        peak,
        waiting: 0,
    };
    Memory {
        limit: 64 * MIB,
        origin: "set by `memory` in tidegate.yaml".to_owned(),
        resident: Some(Resident { now: 31 * MIB, peak: 40 * MIB, anonymous: 25 * MIB, file: 6 * MIB }),
        heap_live: 5 * MIB + 300_000,
        declared: vec![
            line("binary", "code and constants that are resident", 1, 10 * MIB, Some(6 * MIB), None),
            line("connections", "parked connections", 1_000, 2_048, Some(84_000), Some(150_000)),
            line("meters", "series", 1, 700_000, None, None),
        ],
        payload: Payload {
            total: 50 * MIB,
            idle: MIB,
            shares: vec![share("ingest", MIB, 3 * MIB, 20 * MIB), share("egress", 2 * MIB, 4_096, 9 * MIB)],
        },
        connections_open: 41,
        connections_limit: 1_000,
    }
}

fn sink(name: &str, kind: &str, target: &str, usual_lag: u64) -> Sink {
    Sink {
        name: name.to_owned(),
        kind: kind.to_owned(),
        target: target.to_owned(),
        lag: Lag { items: 120_000, bytes: 30 * MIB, age: Some(Duration::from_secs(95)) },
        usual_lag: Duration::from_secs(usual_lag),
        cursor: 4_000,
        concurrency_limit: None,
        in_flight: 0,
        requests: 25,
        last_success: Some(now() - Duration::from_secs(95)),
        failures: 0,
        bytes: 900 * MIB,
        resent: 0,
        restarts: 0,
        broken: false,
        items_per_second: None,
        last_error: None,
        waiting: Vec::new(),
        members: Vec::new(),
        members_left_out: 0,
        pipeline: Vec::new(),
        pipeline_left_out: 0,
        sampling: None,
        derived: None,
        retry_at: None,
        delivered: 9_880_000,
        dropped: Vec::new(),
    }
}

fn upstream() -> Sink {
    Sink {
        lag: Lag::default(),
        cursor: 5_001,
        in_flight: 1,
        requests: 4_999,
        resent: 2_000,
        items_per_second: Some(51_999.6),
        delivered: 10_000_000,
        ..sink("upstream", "prometheus_remote_write", "http://127.0.0.1:9090/api/v1/write", 30)
    }
}

fn books() -> Balance {
    let sink = |name: &str, delivered, queued| SinkBalance {
        name: name.to_owned(),
        accepted: 10_000_000,
        replayed: 0,
        delivered,
        passed: 0,
        queued,
        dropped: Vec::new(),
        difference: 0,
    };
    Balance {
        sources: vec![SourceBalance {
            name: "prometheus_remote_write".to_owned(),
            received: 5_020,
            accepted: 5_001,
            refused: vec![(Refusal::Memory, 7), (Refusal::Malformed, 11)],
            open: 1,
            items: vec![(Signal::Metrics, 10_000_000)],
            items_refused: vec![(Refusal::Malformed, 3)],
            bytes: 400 * MIB,
            forwarded: ForwardedBalance::default(),
            pipeline: PipelineBalance::default(),
            difference: 0,
        }],
        journal: JournalBalance { accepted: 10_000_000, handed_over: 0, appended: 10_000_000, difference: 0 },
        sinks: vec![sink("lake", 9_880_000, 120_000), sink("upstream", 10_000_000, 0)],
    }
}
