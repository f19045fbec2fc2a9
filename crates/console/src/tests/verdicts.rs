//! The word and the sentence that the eye meets first.

use super::sample::{healthy, now, troubled};
use crate::{BlockedIndex, Destination, Lag, LastError, State, StateReport, Status};
use std::time::Duration;

/// The second sink, behind by a minute and a half.
fn behind() -> Status {
    let mut status = healthy();
    status.sinks[1].lag = Lag { items: 90_000, bytes: 1 << 20, age: Some(Duration::from_secs(90)) };
    status
}

fn assert_verdict(status: &Status, state: State, reason: &str) {
    assert_eq!(StateReport::of(status), StateReport { state, reason: reason.to_owned() });
}

#[test]
fn sinks_that_keep_up_are_flowing() {
    assert_verdict(&healthy(), State::Flowing, "data is accepted, and every sink keeps up");
    let mut status = healthy();
    status.sinks.truncate(1);
    assert_verdict(&status, State::Flowing, "data is accepted, and the sink keeps up");
    status.sinks.clear();
    assert_verdict(&status, State::Flowing, "data is accepted, but no sink is configured");
}

/// A usual delay of a sink is not late: a lake collects rows before it closes a file.
#[test]
fn a_lag_by_design_is_not_late() {
    let mut status = healthy();
    status.sinks[0].lag.age = Some(status.sinks[0].usual_lag);
    assert_eq!(StateReport::of(&status).state, State::Flowing);
}

#[test]
fn a_failing_sink_spills() {
    let mut status = behind();
    let message = "503 Service Unavailable".to_owned();
    status.sinks[1].last_error = Some(LastError { message, at: now() });
    status.sinks[1].retry_at = Some(now() + Duration::from_secs(1));
    let reason = "sink `upstream` is 1 min 30 s behind: 503 Service Unavailable";
    assert_verdict(&status, State::Spilling, reason);
    // A short stumble is none: it is shown with the sink, and the state stays.
    status.sinks[1].lag.age = Some(Duration::from_secs(2));
    assert_eq!(StateReport::of(&status).state, State::Flowing);
}

/// An unexpected end is reported at once, not when it is late.
#[test]
fn a_broken_sink_is_reported_at_once() {
    let mut status = healthy();
    status.sinks[1].broken = true;
    let message = "a panic: index out of bounds".to_owned();
    status.sinks[1].last_error = Some(LastError { message, at: now() });
    let reason =
        "sink `upstream` is 0 s behind: it failed and is started again: a panic: index out of bounds";
    assert_verdict(&status, State::Spilling, reason);
}

#[test]
fn a_sink_slower_than_the_intake_is_spilling() {
    let mut status = behind();
    status.sinks[1].items_per_second = Some(1_000.0);
    assert_verdict(
        &status,
        State::Spilling,
        "sink `upstream` is 1 min 30 s behind: it is slower than the incoming data",
    );
}

#[test]
fn a_sink_that_catches_up_drains() {
    let mut status = behind();
    status.journal.items_per_second = Some(50_000.0);
    status.sinks[1].items_per_second = Some(51_000.0);
    let reason = "sink `upstream` is 1 min 30 s behind: it is catching up, in about 1 min 30 s";
    assert_verdict(&status, State::Draining, reason);
    for rate in [None, Some(50_000.0), Some(f64::NAN), Some(f64::INFINITY)] {
        status.sinks[1].items_per_second = rate;
        assert_eq!(StateReport::of(&status).state, State::Draining, "{rate:?}");
    }
}

/// The sink that fails is named before the one that is further behind, and the others are counted.
#[test]
fn the_worst_sink_is_named() {
    let mut status = troubled();
    status.journal.trouble = None;
    status.sinks[0].lag.age = Some(Duration::from_secs(86_400));
    let reason = "sink `upstream` is 3 h behind: connecting to 127.0.0.1:9090: connection refused; \
                  1 more sink is late";
    assert_verdict(&status, State::Spilling, reason);
}

/// Each thing that can be used up pushes back, and is named.
#[test]
fn an_exhausted_resource_pushes_back_and_is_named() {
    let reason = "the journal accepts nothing: its quota is used up by records that sinks have not completed yet; \
                  `old`, which is no longer configured, holds back 12,000 items: \
                  `tidegate journal forget old` drops them; \
                  sink `upstream` is 3 h behind: connecting to 127.0.0.1:9090: connection refused";
    assert_verdict(&troubled(), State::PushingBack, reason);

    let mut status = healthy();
    status.memory.payload.shares[0].waiting = 1;
    assert_verdict(&status, State::PushingBack, "1 request waits for memory of the share `ingest`");
    status.memory.payload.shares[0].waiting = 1200;
    assert_verdict(&status, State::PushingBack, "1,200 requests wait for memory of the share `ingest`");

    // A backlog does not stop new data.
    let mut status = healthy();
    status.memory.payload.shares[1].waiting = 1;
    assert_eq!(StateReport::of(&status).state, State::Flowing);

    let mut status = healthy();
    status.memory.connections_open = 1000;
    assert_verdict(&status, State::PushingBack, "all 1,000 connections are in use");

    // The disk may take something at this very moment, and the sink be late besides.
    let mut status = troubled();
    (status.journal.trouble, status.left_behind) = (None, Vec::new());
    status.refused_lately = vec!["disk", "memory"];
    let reason = "requests are refused: disk, memory; \
                  sink `upstream` is 3 h behind: connecting to 127.0.0.1:9090: connection refused";
    assert_verdict(&status, State::PushingBack, reason);
}

#[test]
fn a_gateway_that_shuts_down_is_stopping() {
    let mut status = behind();
    status.stopping = true;
    let verdict = StateReport::of(&status);
    assert_eq!(verdict.state, State::Stopping);
    assert!(verdict.reason.starts_with("stopping, answering requests in flight; sink `upstream` is"));
}

/// A destination that fails pushes back, since its items are refused; a single request that fails does not.
#[test]
fn a_failing_destination_pushes_back() {
    let mut status = healthy();
    let message = "the cluster refuses requests: status 503: busy".to_owned();
    let mut destination = Destination {
        source: "elasticsearch".to_owned(),
        sink: "out".to_owned(),
        in_flight: 0,
        requests: 3,
        failures: 4,
        last_success: Some(now() - Duration::from_secs(60)),
        last_error: Some(LastError { message, at: now() }),
        failing_since: Some(now() - Duration::from_secs(12)),
    };
    status.destination = Some(destination.clone());
    let reason = "destination `out` of `elasticsearch` has failed for 12 s: the cluster refuses requests: status 503: busy";
    assert_verdict(&status, State::PushingBack, reason);
    for since in [None, Some(now() - Duration::from_secs(1))] {
        destination.failing_since = since;
        status.destination = Some(destination.clone());
        assert_eq!(StateReport::of(&status).state, State::Flowing);
    }
}

/// A sink that is late because of unavailable indexes does not catch up: the reason names it and them.
#[test]
fn unavailable_indexes_are_named() {
    let mut status = behind();
    let index = |index: &str| BlockedIndex {
        index: index.to_owned(),
        records: 30,
        documents: 600,
        since: now() - Duration::from_secs(90),
        reason: "primary shard is not active".to_owned(),
    };
    status.sinks[1].waiting = vec![index("red1"), index("red2")];
    let reason =
        "sink `upstream` is 1 min 30 s behind: 1,200 documents wait for unavailable indexes: `red1`, `red2`";
    assert_verdict(&status, State::Spilling, reason);
    // One that fails altogether comes first.
    status.sinks[0].lag.age = Some(Duration::from_secs(3_600));
    status.sinks[0].retry_at = Some(now());
    let failing = StateReport::of(&status).reason;
    assert_eq!(failing, "sink `lake` is 1 h behind: its last attempt failed; 1 more sink is late");
}
