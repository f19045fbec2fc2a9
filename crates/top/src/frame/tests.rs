//! Promise: what a gateway says of itself is understood, older and newer ones too, and nothing else is.

use super::sink::SinkState;
use super::*;

const HEALTHY: &str = include_str!("../../../console/src/tests/golden/healthy.json");
const TROUBLED: &str = include_str!("../../../console/src/tests/golden/troubled.json");

/// The console's own samples of `/status.json`.
#[test]
fn reads_the_status_that_the_console_writes() {
    let frame = Frame::parse(HEALTHY).unwrap();
    assert_eq!((frame.state.as_str(), frame.journal.items_total), ("flowing", 10_000_000));
    let [lake, upstream] = &frame.sinks[..] else { panic!("{:?}", frame.sinks) };
    assert_eq!((lake.lag.items, lake.lag.age_seconds, lake.state()), (120_000, Some(95.0), SinkState::Fine));
    assert_eq!((upstream.in_flight, upstream.items_per_second), (1, Some(51_999.6)));
    let [source] = &frame.books.sources[..] else { panic!("{:?}", frame.books) };
    assert_eq!(
        (source.all_items(), source.all_refused(), source.items_refused["malformed"]),
        (10_000_000, 18, 3)
    );

    let frame = Frame::parse(TROUBLED).unwrap();
    let upstream = &frame.sinks[1];
    assert_eq!(upstream.state(), SinkState::Failing);
    let error = upstream.error().unwrap();
    assert_eq!(frame.seconds_since(&error.at), Some(200.0));
    assert_eq!(frame.left_behind[0].command, "tidegate journal forget old");
}

#[test]
fn owners_are_added_up_and_ordered() {
    let frame = Frame::parse(HEALTHY).unwrap();
    let owners = frame.memory.owners();
    let names: Vec<_> = owners.iter().map(|owner| owner.name).collect();
    assert_eq!(names, ["ingest", "egress", "binary", "connections", "meters"]);
    assert_eq!((owners[0].used, owners[0].most), (Some(3_145_728), 35_651_584));
    let line = |used| DeclaredLine { owner: "x".to_owned(), declared: 10, used };
    let memory = Memory { declared: vec![line(Some(1)), line(None)], ..Memory::default() };
    assert_eq!((memory.owners()[0].most, memory.owners()[0].used), (20, None));
    let memory = Memory { declared: vec![line(Some(1)), line(Some(2))], ..Memory::default() };
    assert_eq!(memory.owners()[0].used, Some(3));
}

#[test]
fn what_is_missing_is_absent_and_what_is_new_is_ignored() {
    let least = r#"{"version":"9","state":"floating","reason":"","uptime_seconds":1,"novel":{"a":[1]}}"#;
    let frame = Frame::parse(least).unwrap();
    assert_eq!((frame.sinks.len(), frame.tenants.is_none(), frame.memory.limit), (0, true, 0));
    assert_eq!(frame.seconds_since("not a time"), None);
}

#[test]
fn other_answers_are_refused_in_words() {
    for answer in ["", "<html>", "{}", "[]", r#"{"version":1}"#, "null"] {
        let error = Frame::parse(answer).unwrap_err().to_string();
        assert!(error.starts_with("the answer is not the status of a gateway ("), "{error}");
    }
}

/// A gateway that says it has a million sinks costs no more than one with 256.
#[test]
fn lists_are_bounded() {
    let sinks = vec!["{}"; 10_000].join(",");
    let text = format!(r#"{{"version":"","state":"","reason":"","uptime_seconds":0,"sinks":[{sinks}]}}"#);
    assert_eq!(Frame::parse(&text).unwrap().sinks.len(), MOST);
    let lines = (0..10_000).map(|owner| format!(r#"{{"owner":"{owner}"}}"#)).collect::<Vec<_>>().join(",");
    let counts = (0..10_000).map(|reason| format!(r#""{reason}":1"#)).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"version":"","state":"","reason":"","uptime_seconds":0,
            "memory":{{"declared":[{lines}],"payload":{{"shares":[{sinks}]}}}},"left_behind":[{sinks}],
            "sinks":[{{"waiting":[{sinks}],"members":[{sinks}],"dropped":{{{counts}}}}}],
            "books":{{"sources":[{{"refused":{{{counts}}},"items":{{{counts}}},"items_refused":{{{counts}}}}}]}}}}"#
    );
    let frame = Frame::parse(&text).unwrap();
    let (sink, source) = (&frame.sinks[0], &frame.books.sources[0]);
    for length in [
        frame.memory.declared.len(),
        frame.memory.payload.shares.len(),
        frame.left_behind.len(),
        sink.waiting.len(),
        sink.members.len(),
        sink.dropped.len(),
        source.refused.len(),
        source.items.len(),
        source.items_refused.len(),
    ] {
        assert_eq!(length, MOST);
    }
    assert_eq!(frame.memory.owners().len(), 2 * MOST);
}
