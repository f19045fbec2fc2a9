//! Promise: a sink that does not stop in time is followed by its successor all the same, once it has.

use super::*;
use crate::gateway::plan;
use std::sync::mpsc::sync_channel;
use tidegate_journal::StartAt;
use tidegate_meters::Registry;

const NAME: &str = "nowhere";

/// A journal, and what sinks are attached to, with a single sink that goes nowhere.
fn attached(dir: &std::path::Path) -> (Config, GatewayPlan, SinkServices, Journal) {
    let sinks = BTreeMap::from([(NAME.parse().unwrap(), Sink::Blackhole(Default::default()))]);
    let config = Config { data: dir.to_owned(), sinks, ..Config::default() };
    let planned = plan::of(&config);
    let arena = Arena::new(planned.plan.payload(), planned.plan.floors(), planned.window, 64, 64).unwrap();
    let (journal, recovery) = Journal::open(tidegate_journal::Settings::new(dir.join("journal"))).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let workers = Arc::new(Workers::start(1).unwrap());
    let attach =
        SinkServices::new(&config, &planned, &arena, &journal, &ledger, &workers, &Tap::new(arena.clone()))
            .unwrap();
    (config, planned, SinkServices { patience: Duration::from_millis(10), ..attach }, journal)
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain");
        std::thread::yield_now();
    }
}

#[test]
fn a_sink_that_does_not_stop_in_time_has_a_successor_when_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let (config, planned, attach, journal) = attached(dir.path());
    // A sink that is stuck: it keeps its place at the cursor until the test lets it go.
    let follower = journal.follow(NAME, StartAt::Oldest, WhenFull::Block).unwrap();
    let (let_go, stuck) = sync_channel::<()>(0);
    let thread = std::thread::spawn(move || {
        let _end = stuck.recv();
        drop(follower);
    });
    let (stopper, stop) = StopSender::new();
    let mut running = vec![RunningSink {
        name: NAME.to_owned(),
        kind: "blackhole",
        target: String::new(),
        health: Health::default(),
        usual_lag: Duration::from_secs(1),
        pipeline: None,
        // Other memory than planned, so that it is started anew.
        parts: SinkMemory { other: 1, ..*attach.parts() },
        stopper,
        task: Task::Thread(thread),
    }];
    attach.change(&mut running, &config.sinks, &config.sinks, &planned).unwrap();
    assert!(stop.is_given());
    let successor = running.first().expect("there is a successor");
    until(|| successor.health.trouble().broken);
    let error = successor.health.trouble().last_error.unwrap();
    assert!(error.contains("follows the journal already"), "{error}");
    let followed = || journal.stats().sinks.iter().any(|sink| sink.name == NAME && sink.followed);
    drop(let_go);
    until(|| !attach.is_leaving(NAME));
    until(followed);
    assert!(!successor.is_finished());
    assert!(stop_all(running, Instant::now() + Duration::from_secs(20)).is_empty());
}

/// A sink without a predecessor that cannot start is a failure of the change, not of later.
#[test]
fn a_sink_that_cannot_start_fails_the_change() {
    let dir = tempfile::tempdir().unwrap();
    let (config, _planned, attach, journal) = attached(dir.path());
    let _other = journal.follow(NAME, StartAt::Oldest, WhenFull::Block).unwrap();
    let Err(Failure(message)) = attach.start_all(&config.sinks) else {
        panic!("it cannot be followed twice")
    };
    assert!(message.starts_with("starting the sink `nowhere`: "), "{message}");
}
