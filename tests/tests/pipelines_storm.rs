//! P1 to P4 behind pipelines at 64 MiB: hundreds of statements, records of a million attributes, replacements that grow every
//! value, patterns made to be slow, values nested as deep as the door lets them in. Whatever comes is accepted or
//! answered, and what was accepted and not dropped as too large arrives.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[path = "support/otlp.rs"]
mod otlp;
#[path = "pipelines_storm/records.rs"]
mod records;

use otlp::{DRAINED, MIB, Storm, alone};
use records::{Body, list, map, nested, pair, pairs, record, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_load::otlp::{
    ContentCoding, OtlpClient, OtlpProfile, OtlpReport, Signal, Transport, drive_blocking,
};
use tidegate_load::{NumberSet, OnRefused, Target};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway of 64 MiB with a pipeline of these steps.
fn storm(steps: Value) -> Storm {
    let pipelines = json!({"pipelines": {"storm": {"steps": steps}}});
    Storm::start_behind(64 * MIB, 1_000, json!({"pipeline": "storm", "linger": "20ms"}), pipelines)
}

/// The answers to requests: the numbers of records that were accepted, and how often each other answer came.
#[derive(Debug, Default)]
struct Answers {
    accepted: NumberSet,
    refused: BTreeMap<u16, u64>,
}

/// Sends requests of one record each on four connections, each again until it is accepted or refused for good.
fn send(target: &Target, transport: Transport, bodies: Vec<Body>) -> Answers {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let bodies = Arc::new(Mutex::new(bodies));
    let answers = runtime.block_on(async {
        let mut senders = JoinSet::new();
        for _ in 0..4 {
            senders.spawn(sender(target.clone(), transport, Arc::clone(&bodies)));
        }
        tokio::time::timeout(DRAINED, senders.join_all()).await.expect("all are answered")
    });
    answers.into_iter().fold(Answers::default(), |mut all, answers| {
        all.accepted.merge(&answers.accepted);
        answers.refused.into_iter().for_each(|(code, count)| *all.refused.entry(code).or_default() += count);
        all
    })
}

async fn sender(target: Target, transport: Transport, bodies: Arc<Mutex<Vec<Body>>>) -> Answers {
    let mut answers = Answers::default();
    loop {
        let Some(body) = bodies.lock().unwrap().pop() else { return answers };
        let number = body.number;
        loop {
            let mut client = OtlpClient::open(transport, &target, PATIENCE).await.unwrap();
            let answer = client.send(Signal::Logs, ContentCoding::Identity, &body.bytes, PATIENCE).await;
            let answer = answer.unwrap_or_else(|error| panic!("{number} got no answer: {error}"));
            if answer.taken {
                answers.accepted.insert(number, number + 1);
            } else if answer.retryable {
                tokio::time::sleep(answer.retry_after.unwrap_or(Duration::from_millis(50))).await;
                continue;
            } else {
                *answers.refused.entry(answer.code).or_default() += 1;
            }
            break;
        }
    }
}

/// Every accepted item has arrived, but as many as were dropped as too large; everything else as after each storm.
#[track_caller]
fn is_over(storm: &mut Storm, signal: Signal, accepted: &NumberSet) {
    storm.gateway.at_rest(DRAINED);
    let sink = storm.gateway.sink("out");
    let dropped = sink["dropped"].as_object().cloned().unwrap_or_default();
    let too_large = dropped.get("too_large").and_then(Value::as_u64).unwrap_or_default();
    println!("{} accepted, dropped {dropped:?}; {}", accepted.len(), sink["pipeline"]);
    assert!(dropped.keys().all(|reason| reason == "too_large"), "{dropped:?}");
    let arrived = storm.receiver.report();
    let missing = accepted.missing_from(arrived.of(signal)).map_or(0, |(_, missing)| missing);
    assert_eq!((missing, arrived.malformed, arrived.unnumbered), (too_large, 0, 0), "{sink}");
    storm.is_sound();
    // The gateway goes on.
    let profile =
        OtlpProfile { first: 1 << 40, connections: 1, requests: 2, items: 20, ..load(Signal::Metrics) };
    let report = drive(storm, &profile);
    storm.gateway.at_rest(DRAINED);
    assert_eq!(report.acked.missing_from(storm.receiver.report().of(Signal::Metrics)), None);
}

fn load(signal: Signal) -> OtlpProfile {
    OtlpProfile {
        transport: Transport::Grpc,
        signal,
        connections: 16,
        items: 250,
        requests: 4,
        on_refused: OnRefused::Retry { at_most: Duration::from_secs(1) },
        answer_within: PATIENCE,
        deadline: DRAINED,
        ..OtlpProfile::default()
    }
}

/// Sends all of a load, each request again until it is accepted; refusals say when to return.
#[track_caller]
fn drive(storm: &Storm, profile: &OtlpProfile) -> OtlpReport {
    let report = drive_blocking(&storm.target(), profile).unwrap();
    assert_eq!(
        (report.accepted, report.failed),
        (profile.connections * profile.requests, 0),
        "{:?}",
        report.reasons
    );
    assert_eq!(report.with_delay, report.refused, "{:?}", report.reasons);
    report
}

/// Two hundred statements on each log record and on each span, many of them with patterns, while more comes than they let
/// through.
#[test]
fn two_hundred_statements() {
    let _alone = alone();
    let statements = |context: &str, text: &str| -> Vec<String> {
        let statement = |n: usize| match n % 5 {
            0 => format!(r#"set({context}.attributes["a{}"], Concat([{text}, "{n}"], "-"))"#, n % 20),
            1 => format!(r#"delete_key({context}.attributes, "a{}") where {text} != "{n}""#, (n + 7) % 20),
            2 => format!(
                r#"set({context}.attributes["b"], {context}.attributes["http.response.status_code"] + {n})"#
            ),
            3 => format!(
                r#"set(resource.attributes["seen"], "{n}") where {context}.attributes["b"] == {}"#,
                200 + n
            ),
            _ if n % 20 == 4 => format!(r#"replace_pattern({text}, "(us)er{n}?", "$$1-{n}")"#),
            _ => format!(r#"set({context}.attributes["c"], "{n}") where IsMatch({text}, "^h.*{n}$")"#),
        };
        (0..200).map(statement).collect()
    };
    let mut storm =
        storm(json!([{"edit": statements("log", "log.body")}, {"edit": statements("span", "span.name")}]));
    for signal in [Signal::Logs, Signal::Traces] {
        let report = drive(&storm, &load(signal));
        is_over(&mut storm, signal, &report.acked);
    }
    // Every item reached its 200 statements.
    for step in 0..2 {
        let step = storm.gateway.sink("out")["pipeline"][step].clone();
        assert_eq!(step["items"], 16_000, "{step}");
    }
}

/// Records of up to a million attributes, or members of one: as many as the door takes pass, with or without what the
/// statements could not do to them; the others are refused.
#[test]
fn a_million_attributes() {
    let _alone = alone();
    let mut storm = storm(json!([
        {"edit": [
            r#"set(log.attributes["seen"], true)"#, r#"delete_matching_keys(log.attributes, "^a1")"#,
            r#"replace_all_patterns(log.attributes, "value", "x", "long")"#, r#"limit(log.attributes, 10, ["load.number"])"#,
        ]},
        {"edit": [
            r#"set(log.body["seen"], true)"#, r#"flatten(log.body)"#, r#"delete_key(log.body, "a77")"#,
            r#"set(log.attributes["json"], String(log.body))"#, r#"merge_maps(log.attributes, log.body, "upsert")"#,
            r#"append(log.body, "x")"#, r#"set(log.attributes["values"], Values(log.body))"#,
            r#"set(log.attributes["sorted"], Sort(log.body))"#,
        ]},
        {"redact": {"presets": ["email"], "block_keys": ["^a9"]}, "on_error": "ignore"},
    ]));
    let counts = [1_000_000, 300_000, 120_000, 65_000, 20_000, 4_097, 4_095, 100];
    for transport in [Transport::Http, Transport::Grpc] {
        let first = if transport == Transport::Http { 0 } else { 1_000 };
        let bodies = counts.into_iter().zip((first..).step_by(3)).flat_map(|(count, number)| {
            [
                record(number, &text("many attributes"), &pairs(count)),
                record(number + 1, &map(&pairs(count)), &[]),
                record(number + 2, &list(&vec![text("x"); count]), &[]),
            ]
        });
        let answers = send(&storm.target(), transport, bodies.collect());
        println!("{transport:?}: {} accepted, refused {:?}", answers.accepted.len(), answers.refused);
        // 413, or RESOURCE_EXHAUSTED without a delay.
        assert!(answers.refused.keys().all(|code| [413, 8].contains(code)), "{:?}", answers.refused);
        assert!((12..24).contains(&answers.accepted.len()), "{answers:?}");
        is_over(&mut storm, Signal::Logs, &answers.accepted);
    }
}

/// Each value becomes ten times as long, again and again, and each text twice as long as often as there is room for it.
#[test]
fn replacements_that_grow_every_value() {
    let _alone = alone();
    let tenfold = r#"replace_all_patterns(log.attributes, "value", "\\w", "0123456789")"#;
    let twofold = r#"set(log.body, Concat([log.body, log.body], ""))"#;
    let mut storm = storm(json!([
        {"edit": vec![tenfold; 4]}, {"edit": vec![twofold; 20]},
        {"edit": [r#"set(resource.attributes["long"], log.body)"#, r#"replace_pattern(log.body, "", "much longer")"#]},
    ]));
    // Up to the largest that the door takes.
    for items in [250, 3_000] {
        let first = items * 1_000;
        let profile = OtlpProfile { items, first, connections: 3_000 / items, ..load(Signal::Logs) };
        let report = drive(&storm, &profile);
        is_over(&mut storm, Signal::Logs, &report.acked);
    }
    for step in 0..3 {
        let step = storm.gateway.sink("out")["pipeline"][step].clone();
        assert!(step["failures"].as_u64() > Some(0), "all had room: {step}");
    }
}

/// Patterns that cost other engines exponential or quadratic time, on the texts that make them; meanwhile others are
/// served.
#[test]
fn patterns_made_to_be_slow() {
    let _alone = alone();
    let matches = [
        "^(a|aa)*$",
        "(.*a){12}$",
        "^(a*)*b",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*)(.*)(.*)(.*)=.*=",
    ];
    let mut statements: Vec<String> = matches
        .iter()
        .map(|pattern| {
            format!(r#"set(log.attributes["matched"], "{pattern}") where IsMatch(log.body, "{pattern}")"#)
        })
        .collect();
    for pattern in ["(a+)+b", "a(.*z)?", "(a|aa)+$", "(.*a){12}b", "(a?){20}a{20}"] {
        statements.push(format!(r#"replace_pattern(log.body, "{pattern}", "<$$1>")"#));
    }
    statements.push(r#"merge_maps(log.attributes, ExtractPatterns(log.body, "(?P<first>(a|aa)+)(?P<rest>.*b)"), "upsert")"#.into());
    statements.push(r#"replace_all_patterns(log.attributes, "value", "(a*)*b", "c")"#.into());
    let mut storm = storm(json!([{"edit": statements}]));
    let hostile = [
        "a".repeat(50_000),
        "a".repeat(50_000) + "!",
        "x".repeat(50_000),
        "az".repeat(25_000),
        "aaaa ".repeat(10_000),
    ];
    let bodies = (0..60).map(|number| {
        let hostile = &hostile[number as usize % hostile.len()];
        record(number, &text(hostile), &[pair("hostile", &text(hostile))])
    });
    let driving = storm.drive(&OtlpProfile { requests: 4, items: 50, ..load(Signal::Traces) });
    let answers = send(&storm.target(), Transport::Http, bodies.collect());
    let report = driving.join().unwrap();
    assert_eq!((report.accepted, report.failed), (64, 0), "{:?}", report.reasons);
    assert_eq!((answers.accepted.len(), &answers.refused), (60, &BTreeMap::new()));
    is_over(&mut storm, Signal::Logs, &answers.accepted);
    assert_eq!(report.acked.missing_from(storm.receiver.report().of(Signal::Traces)), None);
}

/// Maps and lists in each other, and texts of JSON that become such, with every function that walks through values.
#[test]
fn values_nested_in_values() {
    let _alone = alone();
    let mut storm = storm(json!([
        {"edit": [
            r#"set(log.attributes["text"], String(log.body))"#, r#"set(log.attributes["copy"], log.body)"#,
            r#"set(log.cache["deeper"], log.body)"#, r#"set(log.attributes["deeper"], log.cache)"#,
            r#"set(log.attributes["pairs"], ToKeyValueString(log.body))"#, r#"set(log.body["a"]["a"]["a"], 1)"#,
            r#"set(log.attributes["parsed"], ParseJSON(log.attributes["json"])) where log.attributes["json"] != nil"#,
            r#"merge_maps(log.attributes, log.body, "insert") where IsMap(log.body)"#,
            r#"append(log.attributes["list"], log.body)"#, r#"flatten(log.attributes)"#,
            r#"truncate_all(log.attributes, 100000)"#, r#"delete_key(log.body["a"]["a"], "a")"#,
        ]},
        {"redact": {"presets": ["jwt"], "block_keys": ["secret"]}, "on_error": "ignore"},
    ]));
    let depths = [1, 20, 60, 100, 126, 127, 128, 129, 130, 1_000, 10_000];
    let bodies = depths.into_iter().zip((0..).step_by(4)).flat_map(|(depth, number)| {
        let json = |open: &str, close: &str| {
            let deep = open.repeat(depth) + "1" + &close.repeat(depth);
            [pair("json", &text(&deep))]
        };
        [
            record(number, &nested(depth, true), &[]),
            record(number + 1, &nested(depth, false), &[]),
            record(number + 2, &text("lists"), &json("[", "]")),
            record(number + 3, &text("maps"), &json("{\"a\":", "}")),
        ]
    });
    let answers = send(&storm.target(), Transport::Http, bodies.collect());
    println!("{} accepted, refused {:?}", answers.accepted.len(), answers.refused);
    assert!(answers.refused.keys().all(|code| *code == 400), "{:?}", answers.refused);
    // All texts, and what nests less than a hundred levels at least.
    assert!(answers.accepted.len() >= 22 + 6, "{answers:?}");
    is_over(&mut storm, Signal::Logs, &answers.accepted);
}
