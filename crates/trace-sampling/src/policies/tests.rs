//! Promise: votes and decisions are those of the Collector's processor, of which these numbers are.

use super::*;

fn facts(spans: u32, duration_ms: u64, fulfilled: u64) -> TraceFacts {
    let start_ns = 1_000_000_000;
    TraceFacts {
        start_ns,
        end_ns: start_ns + duration_ms * 1_000_000 + 999_999,
        spans,
        fulfilled,
        ..TraceFacts::default()
    }
}

/// The decision of these policies, with the number of the one that decided.
fn decided(policies: &[Policy], facts: &TraceFacts) -> Decision {
    let evidence = Evidence { trace_id: &[1; 16], facts, second: 1 };
    Policies::new(policies).unwrap().decide(&evidence, &mut Rates::default())
}

fn keeps(policy: Policy, facts: &TraceFacts) -> bool {
    decided(&[policy], facts).is_kept
}

const TEST: Policy = Policy::Test { number: 0, invert: false };
const INVERTED: Policy = Policy::Test { number: 1, invert: true };

/// Computed by Go's `math/big` as the Collector does it.
#[test]
fn thresholds_are_exact() {
    let known = [
        (0.000_000_1, 18_446_744_073),
        (0.001, 184_467_440_737_095),
        (0.1, 18_446_744_073_709_551),
        (1.0, 184_467_440_737_095_519),
        (3.7, 682_529_530_727_253_503),
        (10.0, 1_844_674_407_370_955_263),
        (12.5, 2_305_843_009_213_693_951),
        (33.3, 6_142_765_776_545_279_999),
        (33.333333333333336, 6_148_914_691_236_517_887),
        (50.0, 9_223_372_036_854_775_807),
        (66.6, 12_285_531_553_090_559_999),
        (75.0, 13_835_058_055_282_163_711),
        (99.9, 18_428_297_329_635_844_095),
        (99.99999999999999, 18_446_744_073_709_549_567),
        (100.0, 18_446_744_073_709_551_615),
    ];
    for (percentage, expected) in known {
        assert_eq!(threshold(percentage), expected, "{percentage} %");
    }
    assert_eq!((threshold(0.0), threshold(-1.0), threshold(250.0)), (0, 0, u64::MAX));
}

#[test]
fn ids_are_hashed_with_the_salt_before_them() {
    let id: TraceId = std::array::from_fn(|at| at as u8 + 1);
    assert_eq!(fnv(fnv(FNV_OFFSET, DEFAULT_SALT.as_bytes()), &id), 15_838_989_281_584_434_349);
}

#[test]
fn latencies_are_whole_milliseconds() {
    let policy = |threshold_ms, upper_threshold_ms| Policy::Latency { threshold_ms, upper_threshold_ms };
    assert!(keeps(policy(500, 0), &facts(1, 500, 0)));
    assert!(!keeps(policy(501, 0), &facts(1, 500, 0)));
    // With an upper threshold the lower one is left out.
    assert!(!keeps(policy(500, 900), &facts(1, 500, 0)));
    assert!(keeps(policy(499, 500), &facts(1, 500, 0)));
    assert!(!keeps(policy(1, 499), &facts(1, 500, 0)));
}

#[test]
fn spans_are_counted() {
    let policy = |min, max| Policy::SpanCount { min, max };
    for (policy, expected) in
        [(policy(3, 0), true), (policy(4, 0), false), (policy(1, 3), true), (policy(1, 2), false)]
    {
        assert_eq!(keeps(policy, &facts(3, 0, 0)), expected);
    }
}

/// `drop` has the last word, then the first that keeps a trace decides; an inverted policy is one like any other.
#[test]
fn votes_have_the_collectors_order() {
    let drop = || Policy::Drop(vec![TEST]);
    let nothing = || Policy::SpanCount { min: 100, max: 0 };
    let by = |policy: usize| Decision { is_kept: true, policy: Some(policy) };
    let none = Decision { is_kept: false, policy: None };
    for (policies, fulfilled, expected) in [
        (vec![Policy::Always, drop()], 1, Decision { is_kept: false, policy: Some(1) }),
        (vec![Policy::Always, drop()], 0, by(0)),
        (vec![nothing(), Policy::Always, TEST], 1, by(1)),
        (vec![INVERTED, Policy::Always], 2, by(1)),
        (vec![INVERTED, nothing()], 0, by(0)),
        (vec![INVERTED, nothing()], 2, none),
        (vec![Policy::Not(Box::new(TEST))], 0, by(0)),
        (vec![Policy::Not(Box::new(TEST))], 1, none),
        (vec![Policy::Not(Box::new(INVERTED))], 2, by(0)),
        (vec![Policy::And(vec![TEST, INVERTED])], 1, by(0)),
        (vec![Policy::And(vec![TEST, INVERTED])], 3, none),
    ] {
        assert_eq!(decided(&policies, &facts(1, 0, fulfilled)), expected, "{policies:?} {fulfilled}");
    }
}

/// Fewer spans than the limit, and what is refused does not count.
#[test]
fn rates_are_of_a_second() {
    let policies = Policies::new(&[Policy::RateLimiting { spans_per_second: 10 }]).unwrap();
    let mut rates = Rates::default();
    let mut keeps = |spans, second| {
        let evidence = Evidence { trace_id: &[1; 16], facts: &facts(spans, 0, 0), second };
        policies.decide(&evidence, &mut rates).is_kept
    };
    let kept = [(6, 1), (4, 1), (3, 1), (1, 1), (9, 2), (1, 2), (10, 3)].map(|(spans, at)| keeps(spans, at));
    assert_eq!(kept, [true, false, true, false, true, false, false]);
}

/// The first that keeps a trace decides, and each has its own rate.
#[test]
fn a_composite_gives_each_policy_its_part() {
    let composite = Policy::Composite { most: 10, policies: vec![(4, TEST), (8, Policy::Always)] };
    let policies = Policies::new(&[composite]).unwrap();
    let mut rates = Rates::default();
    let mut keeps = |spans, fulfilled| {
        let evidence = Evidence { trace_id: &[1; 16], facts: &facts(spans, 0, fulfilled), second: 1 };
        policies.decide(&evidence, &mut rates).is_kept
    };
    let kept = [(4, 1), (1, 1), (8, 0), (1, 0)].map(|(spans, fulfilled)| keeps(spans, fulfilled));
    assert_eq!(kept, [true, false, true, false]);
}

#[test]
fn counters_beyond_the_most_are_refused() {
    let rated = vec![Policy::RateLimiting { spans_per_second: 1 }; MAX_RATES + 1];
    assert!(Policies::new(&rated).is_none());
    assert!(Policies::new(&rated[1..]).is_some());
}
