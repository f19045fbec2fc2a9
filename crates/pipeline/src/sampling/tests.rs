use super::*;
use serde_json::Value;

/// Decisions of the Collector's `probabilistic_sampler` 0.150: settings, item, and what came out.
const DECISIONS: &str = include_str!("../../testdata/sampling.jsonl");

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_default()
}

fn sampler(case: &Value) -> Sampler {
    let by = match text(case, "by").split_once(':') {
        Some(("traceID", name)) if !name.is_empty() => SampleBy::TraceIdOrAttribute(name.into()),
        Some(("record", name)) => SampleBy::Attribute(name.into()),
        _ => SampleBy::TraceId,
    };
    let mode = match text(case, "mode") {
        "hash_seed" => SampleMode::HashSeed(case["seed"].as_u64().unwrap().try_into().unwrap()),
        "equalizing" => SampleMode::Equalizing,
        _ => SampleMode::Proportional,
    };
    Sampler::new(&Sampling {
        ratio: case["ratio"].as_f64().unwrap(),
        by,
        mode,
        precision: case["precision"].as_u64().unwrap().try_into().unwrap(),
        drops_unknown: case["closed"].as_bool().unwrap(),
        priority: case["by_priority"].as_bool().map(|_| "p".to_owned()),
    })
}

fn trace_id(case: &Value) -> Vec<u8> {
    let digits = text(case, "id");
    (0..16).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn spans_are_decided_as_the_collector_does() {
    let cases = DECISIONS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let spans: Vec<Value> = cases.filter(|case| !case["state"].is_null()).collect();
    assert!(spans.len() > 150);
    for case in spans {
        let (id, state) = (trace_id(&case), text(&case, "state").as_bytes());
        let facts = SpanFacts {
            trace_id: &id,
            trace_state: state,
            attribute: None,
            priority: case["priority"].as_f64(),
        };
        let mut written = Vec::new();
        let kept = match sampler(&case).span(facts) {
            SpanDecision::Drop => false,
            SpanDecision::Keep => {
                written.extend(state);
                true
            }
            SpanDecision::KeepWith(state) => {
                let put = |bytes: &[u8]| -> Result<(), ()> {
                    written.extend(bytes);
                    Ok(())
                };
                state.write(put).unwrap();
                assert!(written.len() <= 1024 + 64, "it grows by the member that sampling writes");
                true
            }
        };
        assert_eq!(kept, case["kept"].as_bool().unwrap_or(false), "{case}");
        // The Collector writes over a broken trace state where the ratio is 0; here it stays.
        if case["ratio"] != 0 || TraceState::parse(state).is_some() {
            assert_eq!(String::from_utf8(written).unwrap(), text(&case, "state_out"), "{case}");
        }
    }
}

#[test]
fn log_records_are_decided_as_the_collector_does() {
    let cases = DECISIONS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let logs: Vec<Value> = cases.filter(|case| case["state"].is_null()).collect();
    assert!(logs.len() > 150);
    for case in logs {
        let id = trace_id(&case);
        let sampler = sampler(&case);
        let has_priority = sampler.priority_attribute().is_some();
        let attribute = sampler.hashed_attribute().and_then(|_| case["k"].as_str()).map(str::as_bytes);
        let (threshold, randomness) = (text(&case, "th"), text(&case, "rv"));
        let facts = LogFacts {
            trace_id: &id,
            attribute,
            threshold: threshold.as_bytes(),
            randomness: randomness.as_bytes(),
            priority: case["priority"].as_f64().filter(|_| has_priority),
        };
        let text_of = |text: Option<HexText>, known: &str| {
            text.map_or_else(|| known.to_owned(), |text| String::from_utf8(text.as_bytes().to_vec()).unwrap())
        };
        let (kept, threshold, randomness) = match sampler.log(facts) {
            LogDecision::Drop => (false, String::new(), String::new()),
            LogDecision::Keep => (true, threshold.to_owned(), randomness.to_owned()),
            LogDecision::KeepWith { threshold: new, randomness: made } => {
                (true, text_of(new, threshold), text_of(made, randomness))
            }
        };
        assert_eq!(kept, case["kept"].as_bool().unwrap_or(false), "{case}");
        // As above.
        if case["ratio"] == 0 && (text(&case, "th") == "zz" || text(&case, "rv") == "1") {
            continue;
        }
        assert_eq!(
            (threshold.as_str(), randomness.as_str()),
            (text(&case, "th_out"), text(&case, "rv_out")),
            "{case}"
        );
    }
}

#[test]
fn a_trace_state_of_other_vendors_survives() {
    let long = format!("{}=1", "k".repeat(256));
    for text in ["", "a=b", "a=b,c@d=e f", &long] {
        let state = TraceState::parse(text.as_bytes()).unwrap();
        let mut written = Vec::<u8>::new();
        let put = |bytes: &[u8]| -> Result<(), ()> {
            written.extend(bytes);
            Ok(())
        };
        state.write(put).unwrap();
        assert_eq!(written, text.as_bytes());
    }
    let many = vec!["a=1"; 32].join(",");
    for text in ["=", "a", "A=1", "a= ", "a@=1", "a=b=c", &many, &format!("{}=1", "k".repeat(257))] {
        assert_eq!(TraceState::parse(text.as_bytes()), None, "{text}");
    }
}
