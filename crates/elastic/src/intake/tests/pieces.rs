//! Events in pieces, and how long the longest are.

use super::*;
use std::time::Instant;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_wire::otlp::{check, items};

const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

/// In whatever pieces events are written, and from wherever it goes on, all of them are there once.
#[test]
fn pieces_hold_all_events() {
    for agent in AGENTS {
        let raw = agent.busy.as_bytes();
        for signal in SIGNALS {
            let (whole, events) = said(raw, signal);
            for most in [0, 3000, 1 << 20] {
                let mut pieces = EventRequests::new(raw, RECEIVED, signal);
                let (mut found, mut of_otlp) = (0, 0);
                while !pieces.is_done() {
                    let mut later = EventRequests::new(raw, RECEIVED, signal);
                    later.go_to(pieces.place());
                    let (mut space, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
                    let portion = pieces.write(&mut space, most).unwrap();
                    assert_eq!(later.write(&mut other, most).unwrap(), portion);
                    let piece = &space[..portion.bytes];
                    assert_eq!(piece, &other[..portion.bytes]);
                    assert_eq!(check(signal, piece).unwrap().items, portion.items);
                    let longest = most.max(portion.enclosing + most / 8) + 32;
                    assert!(piece.len() <= longest || portion.items <= 1, "{} of {most}", piece.len());
                    (found, of_otlp) = (found + portion.events, of_otlp + portion.items);
                }
                assert_eq!(
                    (found, of_otlp),
                    (events, items(signal, &whole)),
                    "{} {signal:?} {most}",
                    agent.name
                );
            }
        }
    }
}

/// A metricset with many samples is cut between them, and what has no room is passed over whole.
#[test]
fn metricsets_are_cut_between_samples() {
    let samples: Vec<_> = (0..1000).map(|number| format!("\"m{number}\":{{\"value\":{number}}}")).collect();
    let tags = "t".repeat(1000);
    let event =
        format!("{{\"metricset\":{{\"samples\":{{{}}},\"tags\":{{\"a\":\"{tags}\"}}}}}}", samples.join(","));
    let raw = format!("{{\"metadata\":{{\"service\":{{\"name\":\"a\"}}}}}}\n{event}\n{event}\n");
    let mut pieces = EventRequests::new(raw.as_bytes(), RECEIVED, Signal::Metrics);
    let mut space = vec![0; 20_000];
    let (mut events, mut items, mut count) = (0, 0, 0);
    while !pieces.is_done() {
        let portion = pieces.write(&mut space, usize::MAX).unwrap();
        check(Signal::Metrics, &space[..portion.bytes]).unwrap();
        (events, items, count) = (events + portion.events, items + portion.items, count + 1);
    }
    assert_eq!((events, items), (2, 2000));
    assert!(count > 100, "{count}");
    let mut pieces = EventRequests::new(raw.as_bytes(), RECEIVED, Signal::Metrics);
    assert_eq!(pieces.write(&mut [0; 200], usize::MAX), Err(Full));
    assert!(pieces.pass_over() && pieces.pass_over() && !pieces.pass_over() && pieces.is_done());
}

/// Shared attributes are looked up once per metricset, not once per sample.
#[test]
fn a_metricset_takes_time_in_proportion_to_its_samples() {
    let raw = |samples: usize| {
        let samples: Vec<_> = (0..samples).map(|number| format!("\"m{number}\":{{\"value\":1}}")).collect();
        let samples = samples.join(",");
        format!(
            "{{\"metadata\":{{}}}}\n{{\"metricset\":{{\"samples\":{{{samples}}},\"tags\":{{\"a\":\"b\"}}}}}}\n"
        )
    };
    let (few, many) = (raw(500), raw(8_000));
    let mut space = vec![0; 4 << 20];
    let mut best = |raw: &str| {
        let mut took = || {
            let begun = Instant::now();
            let done = to_otlp(raw.as_bytes(), RECEIVED, Signal::Metrics, &mut space).unwrap();
            assert_eq!(done.events, 1);
            begun.elapsed()
        };
        (0..5).map(|_| took()).min().unwrap()
    };
    let (few, many) = (best(&few), best(&many));
    // Sixteen times as much; with a walk for each sample it would be 256 times.
    assert!(many < 64 * few, "{few:?}, {many:?}");
}

/// The bound that sinks rely on: an event takes at most ten times its line and the metadata's, plus a constant.
#[test]
fn an_event_is_at_most_ten_times_as_long() {
    let many = |member: &str, count: usize| vec![member; count].join(",");
    let plain = "{\"service\":{\"name\":\"a\"}}".to_owned();
    let unknown = many("\"\":1", 9000);
    let long = "n".repeat(20_000);
    let bodies = [
        (
            format!("{{\"system\":{{\"kubernetes\":{{\"node\":{{{unknown}}}}}}}}}"),
            "{\"log\":{\"message\":\"a\"}}".to_owned(),
        ),
        (
            plain.clone(),
            format!("{{\"span\":{{\"context\":{{\"destination\":{{\"service\":{{{unknown}}}}}}}}}}}"),
        ),
        (plain.clone(), format!("{{\"transaction\":{{\"span_count\":{{{unknown}}}}}}}")),
        (plain.clone(), format!("{{\"error\":{{\"transaction\":{{{unknown}}}}}}}")),
        (plain.clone(), format!("{{\"log\":{{\"{long}\":{{{unknown}}}}}}}")),
        (plain.clone(), format!("{{\"log\":{{{unknown}}}}}")),
        (
            plain.clone(),
            format!("{{\"metricset\":{{\"samples\":{{\"a\":{{\"value\":1}}}},\"span\":{{{unknown}}}}}}}"),
        ),
        (
            plain,
            format!(
                "{{\"metricset\":{{\"samples\":{{\"a\":{{\"values\":[{}],\"counts\":[{}]}}}}}}}}",
                (0..9000).map(|number| number.to_string()).collect::<Vec<_>>().join(","),
                many("1", 9000),
            ),
        ),
    ];
    for (metadata, event) in bodies {
        let raw = format!("{{\"metadata\":{metadata}}}\n{event}\n");
        for signal in SIGNALS {
            let mut space = vec![0; 4 << 20];
            let done = to_otlp(raw.as_bytes(), RECEIVED, signal, &mut space).unwrap();
            assert!(
                done.bytes <= 10 * raw.len() + (4 << 10),
                "{} of {}: {}",
                done.bytes,
                raw.len(),
                &event[..30]
            );
        }
    }
}
