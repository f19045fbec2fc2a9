//! Promise: a sink that fails in an unexpected way is shown as broken and started again; it goes on where its
//! cursor is, and what it held is free.

use crate::rig::{NAME, Rig, SECOND, arrival, order, peer, settings};
use std::cell::Cell;
use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_lake::Writer;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::{EgressBudget, Lake, RemoteWrite, StopSender, StopSignal, Supervisor};
use tokio::runtime::Handle;

const SOON: Duration = Duration::from_millis(1);

/// Waits until `condition` holds.
async fn until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(20 * SECOND, waited).await.expect("waited in vain");
}

/// It panics with a request on its way: the request's memory comes back, it is sent again, and nothing is lost.
#[tokio::test]
async fn a_sink_that_panics_in_the_middle_of_a_request_goes_on() {
    let mut rig = Rig::new(20, 1 << 20);
    for _ in 0..10 {
        rig.put(Version::V1, 0..20, 1).await;
    }
    let peer = peer(Behaviour::Stall);
    let (stopper, stop) = StopSender::new();
    let room = EgressBudget::new(&rig.arena, Share::Egress, rig.part, &rig.turn);
    let starts = Cell::new(0);
    let held = Cell::new(0);
    let start = || {
        starts.set(starts.get() + 1);
        let sink = RemoteWrite::start(rig.context(NAME), room.clone(), settings(&peer), stop.clone());
        let (sink, peer, number) = (sink.map_err(|error| error.to_string())?, peer.clone(), starts.get());
        held.set(rig.held());
        let fails = async move {
            if number == 1 {
                arrival(&peer, |arrived| arrived.stalled == 1).await;
                panic_any("the sink is tested");
            }
            std::future::pending::<()>().await;
        };
        Ok::<_, String>(async move {
            tokio::select! {
                () = sink.run() => {}
                () = fails => {}
            }
        })
    };
    let supervisor = Supervisor::new(NAME, rig.health.clone(), stop.clone()).waiting(SOON, SOON);
    let script = async {
        until(|| rig.health.trouble().broken).await;
        let trouble = rig.health.trouble();
        assert_eq!(trouble.last_error.as_deref(), Some("a panic: the sink is tested"));
        assert!(trouble.retry_at.is_some());
        order(&peer, Behaviour::Healthy).await;
        arrival(&peer, |arrived| arrived.samples() == 200).await;
        until(|| rig.ledger.balance().at_rest() && !rig.health.trouble().broken).await;
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(supervisor.run(None, start), script) })
        .await
        .unwrap();
    assert_eq!((starts.get(), rig.health.activity().restarts), (2, 1));
    assert_eq!(rig.health.activity().in_flight, 0);
    until(|| rig.held() == 0).await;
    rig.assert_closed(0);
    rig.assert_exact(&peer.report());
}

/// An end that nobody ordered is a failure too, and so is a start that fails; the waits become longer.
#[tokio::test(start_paused = true)]
async fn a_sink_that_ends_or_fails_to_start_is_restarted() {
    let rig = Rig::new(1, 1 << 20);
    let (stopper, stop) = StopSender::new();
    let (starts, health) = (Cell::new(0), rig.health.clone());
    let start = || {
        starts.set(starts.get() + 1);
        match starts.get() {
            1 => Err("its predecessor is still there"),
            5 => {
                stopper.stop();
                Ok(std::future::ready(()))
            }
            _ => Ok(std::future::ready(())),
        }
    };
    let begun = tokio::time::Instant::now();
    Supervisor::new(NAME, health.clone(), stop).waiting(SECOND, 60 * SECOND).run(None, start).await;
    assert_eq!((starts.get(), health.activity().restarts), (5, 4));
    assert_eq!(health.trouble().last_error.as_deref(), Some("it ended unexpectedly"));
    let took = begun.elapsed();
    assert!((7 * SECOND..=15 * SECOND).contains(&took), "waits of 1, 2, 4 and 8 s with jitter: {took:?}");
}

/// The lake's slice of memory and its place at the cursor are free again, and its files are taken up.
#[tokio::test]
async fn a_lake_that_panics_is_started_again() {
    let mut rig = Rig::new(20, 1 << 20);
    rig.put(Version::V1, 0..20, 5).await;
    let rig = Arc::new(rig);
    let (stopper, stop) = StopSender::new();
    let runtime = Handle::current();
    let thread = {
        let rig = Arc::clone(&rig);
        tokio::task::spawn_blocking(move || {
            let starts = Cell::new(0);
            let start = || {
                starts.set(starts.get() + 1);
                let lake = lake(&rig, runtime.clone(), stop.clone())?;
                let number = starts.get();
                Ok::<_, String>(move || {
                    let lake = lake;
                    assert!(number > 1, "the lake is tested");
                    lake.run();
                })
            };
            let supervisor = Supervisor::new(NAME, rig.health.clone(), stop.clone()).waiting(SOON, SOON);
            supervisor.run_blocking(&runtime, None, start);
            starts.get()
        })
    };
    until(|| rig.health.trouble().broken).await;
    assert_eq!(rig.health.trouble().last_error.as_deref(), Some("a panic: the lake is tested"));
    until(|| rig.journal.stats().sinks[0].followed && rig.health.activity().restarts == 1).await;
    stopper.stop();
    assert_eq!(tokio::time::timeout(20 * SECOND, thread).await.unwrap().unwrap(), 2);
    assert!(rig.arena.usage().shares.iter().all(|share| share.used == 0), "what it held is free");
    // Records not taken by then are in the journal.
    let queued = rig.page().queued;
    assert_eq!(rig.assert_closed(queued).delivered + queued, 100);
}

fn lake(rig: &Rig, runtime: Handle, stop: StopSignal) -> Result<Lake, String> {
    let slice = Writer::smallest_slice();
    let charge = rig.arena.try_charge(Share::Lake, slice).map_err(|error| error.to_string())?;
    let node = format!("{:016x}", rig.journal.id());
    let settings = tidegate_lake::WriterSettings::new(rig.dir.path().join("lake"), slice, node);
    let room = EgressBudget::new(&rig.arena, Share::Lake, rig.part, &rig.turn);
    Lake::start(rig.context(NAME), settings, charge, room, runtime, stop).map_err(|error| error.to_string())
}
