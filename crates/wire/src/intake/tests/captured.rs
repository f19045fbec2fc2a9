//! Bodies as four agents sent them.

use super::*;
use tidegate_load::elastic_apm::AGENTS;

/// All of each body is accepted, without an allocation.
#[test]
fn captured_bodies_are_accepted_without_an_allocation() {
    for agent in AGENTS {
        for body in [agent.busy, agent.idle] {
            let mut counts = None;
            let used = allocation_counter::measure(|| {
                counts =
                    Some(check(body.as_bytes(), LONGEST_LINE, |_, error| panic!("{}: {error}", agent.name)));
            });
            assert_eq!(used.count_total, 0);
            let mut lines = body.split_inclusive('\n').filter(|line| !line.trim().is_empty()).map(str::len);
            let metadata = lines.next().unwrap();
            let (events, largest_item) = (lines.clone().count() as u64, metadata + lines.max().unwrap());
            let of = |kinds: &[&str]| {
                let begins =
                    |line: &&str| kinds.iter().any(|kind| line.starts_with(&format!("{{\"{kind}\":")));
                body.lines().filter(begins).count() as u64
            };
            let (traces, metrics, logs) =
                (of(&["transaction", "span"]), of(&["metricset"]), of(&["error", "log"]));
            let expected = Counts { events, traces, metrics, logs, refused: 0, largest_item };
            assert_eq!(traces + metrics + logs, events);
            assert_eq!(counts, Some(Ok(expected)), "{}", agent.name);
        }
    }
}

/// All of each body is shown as another decoder reads it.
#[test]
fn captured_events_equal_those_of_another_decoder() {
    for agent in AGENTS {
        for body in [agent.busy, agent.idle] {
            let shown: Vec<_> = events(body.as_bytes())
                .map(|event| (event.kind.name().to_owned(), oracle::shown(Value::Object(event.fields()))))
                .collect();
            let expected: Vec<_> = body
                .lines()
                .filter(|line| !line.is_empty())
                .flat_map(|line| serde_json::from_str::<serde_json::Map<_, _>>(line).unwrap())
                .collect();
            assert_eq!(shown.len(), expected.len());
            for ((kind, shown), (name, expected)) in shown.iter().zip(&expected) {
                assert!(kind == name && oracle::alike(shown, expected), "{shown} {expected}");
            }
        }
    }
}
