//! Promise: a sink that does not stop in time is followed by its successor all the same, once it has.

use super::*;
use crate::gateway::plan;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use tidegate_arena::Share;
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol, StartAt, Tenant};
use tidegate_meters::Registry;

const NAME: &str = "nowhere";

/// A journal, and what sinks are attached to, with a single sink that goes nowhere.
fn attached(dir: &Path) -> (Config, GatewayPlan, SinkServices, Journal) {
    attached_to(dir, &format!("{NAME}: {{type: blackhole}}"))
}

/// A configuration with these sinks, as YAML.
fn config(dir: &Path, sinks: &str) -> Config {
    let text = format!("memory: 256MiB\ndata: '{}'\nsinks: {{{sinks}}}\n", dir.display());
    tidegate_config::parse("test", &text, &|_| None).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

fn attached_to(dir: &Path, sinks: &str) -> (Config, GatewayPlan, SinkServices, Journal) {
    let config = config(dir, sinks);
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
    let shown = Arc::new(ShownSink {
        name: NAME.to_owned(),
        kind: "blackhole",
        target: String::new(),
        health: Health::default(),
        usual_lag: Duration::from_secs(1),
        pipeline: None,
        sampling: None,
    });
    let mut running = vec![RunningSink {
        shown,
        // Other memory than planned, so that it is started anew.
        parts: SinkMemory { other: 1, ..*attach.parts() },
        stopper,
        task: Task::Thread(thread),
    }];
    attach.change(&mut running, &config.sinks, &config.sinks, &planned).unwrap();
    assert!(stop.is_given());
    let successor = running.first().expect("there is a successor");
    until(|| successor.shown.health.trouble().broken);
    let error = successor.shown.health.trouble().last_error.unwrap();
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

/// The names of the sinks that run, and where they send.
fn shown(running: &[RunningSink]) -> Vec<(&str, &str)> {
    running.iter().map(|sink| (&*sink.shown.name, &*sink.shown.target)).collect()
}

fn change(
    (attach, running): (&SinkServices, &mut Vec<RunningSink>),
    old: &Config,
    new: &Config,
) -> Result<(), Failure> {
    let planned = plan::of_queued(new, &attach.routing());
    attach.change(running, &old.sinks, &new.sinks, &planned)
}

/// A change that fails to store its routing leaves the sinks running, and the routing as it was; also when the disk stays full.
#[test]
fn sinks_run_again_when_their_routing_cannot_be_stored() {
    let dir = tempfile::tempdir().unwrap();
    let taking = |body: u32| format!("{NAME}: {{type: blackhole, when: 'log.body == \"{body}\"'}}");
    let (old, _planned, attach, _journal) = attached_to(dir.path(), &taking(1));
    let mut running = attach.start_all(&old.sinks).unwrap();
    let before = attach.routing().clone();
    // The file that is written first cannot be opened.
    let full = dir.path().join("routing.new");
    std::fs::create_dir(&full).unwrap();
    let new = config(dir.path(), &taking(2));
    let Err(Failure(error)) = change((&attach, &mut running), &old, &new) else {
        panic!("it cannot be stored")
    };
    assert!(error.starts_with("writing "), "{error}");
    assert_eq!(running.len(), 1);
    assert_eq!(*attach.routing(), before);
    std::fs::remove_dir(&full).unwrap();
    change((&attach, &mut running), &old, &new).unwrap_or_else(|Failure(error)| panic!("{error}"));
    assert_ne!(*attach.routing(), before);
    stop_all(running, Instant::now() + Duration::from_secs(20));
}

/// After a change that failed, the sinks are those of before, also where a changed or a new one had started already.
#[test]
fn a_failed_change_leaves_no_sink_of_the_new_configuration() {
    let to = |port: u16| format!("b: {{type: otlp, endpoints: 'http://127.0.0.1:{port}'}}");
    // With as many sinks before as after, each has the same memory, so that alone does not tell them apart.
    for (beside, new) in [("", "a: {type: blackhole}, "), (", d: {type: blackhole}", "")] {
        let dir = tempfile::tempdir().unwrap();
        let (old, _planned, attach, journal) = attached_to(dir.path(), &format!("{}{beside}", to(1)));
        let mut running = attach.start_all(&old.sinks).unwrap();
        let _other = journal.follow("c", StartAt::Oldest, WhenFull::Block).unwrap();
        let new = config(dir.path(), &format!("{new}{}, c: {{type: blackhole}}", to(2)));
        assert!(change((&attach, &mut running), &old, &new).is_err(), "`c` is followed already");
        let names = shown(&running);
        let names_of_old: Vec<&str> = old.sinks.keys().map(|name| name.as_str()).collect();
        assert_eq!(names.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names_of_old);
        assert!(names.iter().any(|(name, target)| *name == "b" && target.contains(":1")), "{names:?}");
        stop_all(running, Instant::now() + Duration::from_secs(20));
    }
}

/// Items received while a change failed are routed by it, by the sinks that are started again.
#[test]
fn records_of_a_failed_change_keep_its_routing() {
    let dir = tempfile::tempdir().unwrap();
    let (old, planned, attach, journal) = attached_to(dir.path(), &format!("{NAME}: {{type: blackhole}}"));
    let _cursor = journal.follow("behind", StartAt::Oldest, WhenFull::Block).unwrap();
    let new = config(dir.path(), &format!("{NAME}: {{type: blackhole, when: 'log.body == \"x\"'}}"));
    let changed = plan::of_queued(&new, &attach.routing()).pipelines;
    append(&attach, &journal);
    attach.begin_routing(&changed, &new.sinks).unwrap_or_else(|Failure(error)| panic!("{error}"));
    append(&attach, &journal);
    let mut running = Vec::new();
    let parts = *attach.parts();
    attach.roll_back(&mut running, &old.sinks, &planned.pipelines, parts);
    assert_eq!(running.len(), 1);
    let earlier = attach.pipelines().earlier(NAME, &attach.routing());
    let [earlier] = earlier.as_slice() else { panic!("{} earlier pipelines", earlier.len()) };
    assert_eq!((earlier.records.clone(), earlier.routing), (1..2, 1));
    let pipelines = attach.pipelines();
    let mut declared = pipelines.declared().map(|line| (line.what, line.count));
    let line = declared.find(|(what, _)| what.starts_with("pipelines for records"));
    assert_eq!(line.map(|(_, count)| count), Some(2), "the next reload has it beside its successor");
    // Its memory is not payload.
    assert!(attach.arena.usage().total < parts.total);
    stop_all(running, Instant::now() + Duration::from_secs(20));
}

/// Journals a record.
fn append(attach: &SinkServices, journal: &Journal) {
    attach.worker().block_on(async {
        let window = attach.arena.window(Share::Ingest, 1).await.unwrap();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: 1,
            raw_len: 0,
            received_at_ns: 1,
        };
        journal
            .append(Batch { meta, window, from: 0, len: 0, checkpoints: Checkpoints::default() })
            .await
            .unwrap();
    });
}

/// Those who look while sinks stop and start see those of before, and never none.
#[test]
fn sinks_are_shown_while_they_are_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (old, _planned, attach, _journal) = attached(dir.path());
    let set = SinkSet::new(attach.start_all(&old.sinks).unwrap());
    let names = || set.shown().iter().map(|sink| sink.name.clone()).collect::<Vec<_>>();
    let new = config(dir.path(), "other: {type: blackhole}");
    set.change(|running| {
        change((&attach, &mut *running), &old, &new).unwrap_or_else(|Failure(error)| panic!("{error}"));
        assert_eq!((shown(running)[0].0, names()), ("other", vec![NAME.to_owned()]));
    });
    assert_eq!((names(), set.ended()), (vec!["other".to_owned()], None));
    assert!(stop_all(set.take(), Instant::now() + Duration::from_secs(20)).is_empty());
}
