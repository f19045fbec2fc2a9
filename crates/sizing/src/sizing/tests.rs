//! Promise: the arithmetic is right, more outage or load never needs less, and the sentences say all of it.

use super::*;
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn setup(quota: u64) -> Setup {
    Setup {
        is_configured: true,
        quota,
        segment: 64 << 20,
        data: "./tidegate-data".to_owned(),
        free_disk: Some(100 * GIB),
        losses: Some(Losses::default()),
        in_memory_only: false,
        sinks: 2,
        memory: Memory {
            budget: 256 << 20,
            problem: None,
            smallest: Some(41 << 20),
            connections: 768,
            intake: 100 << 20,
            largest_bodies: vec![("sources.otlp.max_body".to_owned(), 64 << 20)],
        },
    }
}

fn rates(texts: &[&str]) -> Vec<Rate> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn sizing(rate: &str, bytes: f64, outage: f64, quota: u64) -> Sizing {
    Sizing::of(Load::of(&rates(&[rate]), Some(bytes), true, &[]), outage, setup(quota))
}

#[test]
fn disk_is_rate_times_size_times_time() {
    let sizing = sizing("1000 samples/s", 100.0, 3_600.0, 20 * GIB);
    assert_eq!(sizing.journal_bytes_per_second, 100_000.0);
    assert_eq!(sizing.backlog_bytes, 360_000_000.0);
    // 343.3 MiB and two segments, in steps of 64 MiB.
    assert_eq!(sizing.quota_needed, 512 << 20);
    assert_eq!(sizing.quota_lasts_seconds, ((20 * GIB) - (128 << 20)) as f64 / 100_000.0);
    assert_eq!(sizing.disk_has_room, Some(true));
}

#[test]
fn bytes_are_bytes_whatever_an_item_has() {
    for size in [10.0, 5_000.0] {
        let sizing = sizing("30MB/s logs", size, 60.0, GIB);
        assert!((sizing.journal_bytes_per_second - 3e7).abs() < 1.0, "{sizing:?}");
    }
}

#[test]
fn several_kinds_add_up() {
    let load = Load::of(&rates(&["1000 samples/s", "10 spans/s"]), Some(10.0), true, &[]);
    assert_eq!(Sizing::of(load, 1.0, setup(GIB)).journal_bytes_per_second, 10_100.0);
}

/// A sink that is busy for a quarter of its time catches up an hour in a third of an hour.
#[test]
fn catching_up_takes_what_is_left_of_a_sink() {
    let caught = |delivery| {
        let load = Load::of(&rates(&["100 spans/s"]), Some(1.0), true, &rates(&[delivery]));
        Sizing::of(load, 3_600.0, setup(GIB)).catching_up
    };
    assert_eq!(caught("400 spans/s"), Catching::Seconds(1_200.0));
    assert_eq!(caught("100 spans/s"), Catching::Never);
    assert_eq!(caught("99 spans/s"), Catching::Never);
}

#[test]
fn cores_count_each_sink() {
    let figures = ItemKind::Spans.figures();
    let expected = 1e6 * (figures.intake_ns + 2.0 * figures.delivery_ns) / 1e9;
    assert!((sizing("1M spans/s", 1.0, 1.0, GIB).cores - expected).abs() < 1e-9);
}

#[test]
fn says_it_in_sentences() {
    let text = sizing("200k samples/s", 21.0, 21_600.0, 20 * GIB).to_string();
    for words in [
        "200 k samples a second, each 21.0 B in the journal: as given.",
        "while stores are out for 6 h",
        "grows by 4.0 MiB a second, which is 84.5 GiB in 6 h",
        "20.0 GiB is too small: it lasts 1 h 24 min. Set:\n    journal.quota: 85GiB",
        "has 100 GiB free for the journal, which is enough",
        "refused with 429 or 503",
        "Nothing that was acknowledged is lost",
        "The budget of 256 MiB takes this load",
        "`memory: 41MiB`",
        "768 connections",
        "sources.otlp.max_body",
        "bench/results/latest.md",
    ] {
        assert!(text.contains(words), "{words:?} in:\n{text}");
    }
    let mut bad = setup(20 * GIB);
    bad.free_disk = Some(GIB);
    (bad.memory.problem, bad.memory.smallest) = (Some("too small".to_owned()), None);
    let text = Sizing::of(Load::of(&rates(&["9M spans/s"]), None, false, &[]), 60.0, bad).to_string();
    for words in ["only 1.0 GiB free", "does not take", "No budget", "never catches up"] {
        assert!(text.contains(words), "{words:?} in:\n{text}");
    }
}

/// The text about a quota that is used up.
fn beyond(losses: Option<Losses>) -> String {
    let load = Load::of(&rates(&["1k spans/s"]), None, true, &[]);
    let text = Sizing::of(load, 60.0, Setup { losses, ..setup(GIB) }).to_string();
    let (_, text) = text.split_once("BEYOND THE QUOTA").unwrap();
    text.split_once("\n\n").unwrap().0.to_owned()
}

/// Nobody reads that nothing is lost where a sink drops.
#[test]
fn sinks_that_drop_are_named() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lost = "Nothing that was acknowledged is lost";
    assert!(beyond(Some(Losses::default())).contains(lost));
    let one = beyond(Some(Losses { journal: names(&["up"]), ..Losses::default() }));
    assert!(one.contains("While `up` is what") && one.contains("While another sink"), "{one}");
    let all = beyond(Some(Losses { journal: names(&["up", "lake"]), ..Losses::default() }));
    assert!(all.contains("`up` or `lake`") && !all.contains("refused"), "{all}");
    let handoff = beyond(Some(Losses { handoff: names(&["ring"]), ..Losses::default() }));
    assert!(handoff.contains("`ring` drops the oldest of that member's data"), "{handoff}");
    let unknown = beyond(None);
    assert!(unknown.contains("Not known") && unknown.contains("--config"), "{unknown}");
    for text in [one, all, handoff, unknown] {
        assert!(!text.contains(lost), "{text}");
    }
}

/// What is acknowledged has been delivered: nothing piles up on a disk, and nothing is caught up with.
#[test]
fn a_journal_in_memory_has_no_disk() {
    let load = Load::of(&rates(&["1M spans/s"]), Some(100.0), true, &[]);
    let text = Sizing::of(load, 60.0, Setup { in_memory_only: true, ..setup(GIB) }).to_string();
    assert!(text.contains("acknowledged when every sink has delivered it"), "{text}");
    assert!(text.contains("at most 1.0 s more"), "{text}");
    for heading in ["DISK", "BEYOND THE QUOTA", "CATCHING UP", "until the disk has it"] {
        assert!(!text.contains(heading), "{heading}: {text}");
    }
}

/// Without its configuration, the defaults of this program say nothing of a gateway elsewhere.
#[test]
fn what_a_status_does_not_say_is_not_known() {
    let load = Load::of(&rates(&["1k spans/s"]), None, true, &[]);
    let memory = Memory { smallest: None, ..setup(GIB).memory };
    let remote = Setup { is_configured: false, free_disk: None, losses: None, memory, ..setup(GIB) };
    let text = Sizing::of(load, 60.0, remote).to_string();
    for words in [
        "The gateway's configuration was not given",
        "is not known;",
        "Not known: that depends",
        "takes this rate",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        !text.contains("No budget that was planned") && !text.contains("smallest budget that takes it"),
        "{text}"
    );
}

#[test]
fn json_has_the_numbers() {
    let json = serde_json::to_value(sizing("100 samples/s", 10.0, 60.0, GIB)).unwrap();
    assert_eq!(json["journal_bytes_per_second"], 1_000.0);
    assert_eq!(json["catching_up"]["result"], "seconds");
    assert_eq!(json["load"]["parts"][0]["kind"], "samples");
}

proptest! {
    /// A longer outage needs no less disk and no less time; a larger quota lasts no shorter; more load needs no less.
    #[test]
    fn more_never_needs_less(
        rate in 1_u32..1_000_000, more in 0_u32..1_000_000,
        outage in 1_u32..1_000_000, longer in 0_u32..1_000_000,
        quota in 1_u64..1 << 45, larger in 0_u64..1 << 45,
        bytes in 1.0..5_000.0_f64,
    ) {
        let of = |rate: u32, outage: u32, quota: u64| {
            sizing(&format!("{rate} spans/s"), bytes, f64::from(outage), quota)
        };
        let caught = |sizing: &Sizing| match sizing.catching_up {
            Catching::Seconds(seconds) => seconds,
            Catching::Never => f64::INFINITY,
        };
        let base = of(rate, outage, quota);
        let long = of(rate, outage + longer, quota);
        prop_assert!(long.quota_needed >= base.quota_needed && long.backlog_bytes >= base.backlog_bytes);
        prop_assert!(caught(&long) >= caught(&base));
        let heavy = of(rate + more, outage, quota);
        prop_assert!(heavy.quota_needed >= base.quota_needed && heavy.cores >= base.cores);
        prop_assert!(heavy.quota_lasts_seconds <= base.quota_lasts_seconds && caught(&heavy) >= caught(&base));
        prop_assert!(of(rate, outage, quota + larger).quota_lasts_seconds >= base.quota_lasts_seconds);
    }

    /// The quota that is asked for lasts the outage.
    #[test]
    fn the_quota_that_is_named_is_enough(rate in 1_u32..10_000_000, outage in 1_u32..1_000_000) {
        let rate = format!("{rate} logs/s");
        let needed = sizing(&rate, 100.0, f64::from(outage), 0).quota_needed;
        let again = sizing(&rate, 100.0, f64::from(outage), needed);
        prop_assert!(again.quota_lasts_seconds >= f64::from(outage), "{again:?}");
    }
}
