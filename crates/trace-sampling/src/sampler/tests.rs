//! Promise: decisions are those of a list of all spans, however little is kept of them; and a restart makes the same ones.

use super::*;
use crate::policies::Policy;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const WAIT_MS: u64 = 1_000;
const START_MS: u64 = 1_700_000_000_000;

/// A span as the tests make it up: trace, root, start, end, tests fulfilled.
type Made = (u8, bool, u16, u16, u8);
/// A record: milliseconds since the one before, and its spans.
type Journalled = (u16, Vec<Made>);

fn span(&(trace, is_root, start, len, fulfilled): &Made) -> SpanFacts {
    let start_ns = u64::from(start) * 1_000_000;
    SpanFacts {
        trace_id: id(trace),
        start_ns,
        end_ns: start_ns + u64::from(len) * 1_000_000,
        is_root,
        fulfilled: fulfilled.into(),
    }
}

fn id(trace: u8) -> TraceId {
    let mut id = [7; 16];
    id[3] = trace;
    id
}

fn policies() -> Policies {
    let policies = [
        Policy::Drop(vec![Policy::Test { number: 3, invert: false }]),
        Policy::Test { number: 0, invert: false },
        Policy::Latency { threshold_ms: 50_000, upper_threshold_ms: 0 },
        Policy::And(vec![
            Policy::SpanCount { min: 3, max: 5 },
            Policy::Not(Box::new(Policy::Test { number: 1, invert: false })),
        ]),
    ];
    Policies::new(&policies).unwrap()
}

fn rated() -> Policies {
    Policies::new(&[Policy::RateLimiting { spans_per_second: 6 }]).unwrap()
}

fn settings(policies: Policies, after_root_ms: Option<u64>) -> Settings {
    Settings { wait_ms: WAIT_MS, after_root_ms, max_traces: 300, max_decisions: 700, policies }
}

fn journal() -> impl Strategy<Value = Vec<Journalled>> {
    let span = (0_u8..40, any::<bool>(), 0_u16..60_000, 0_u16..40_000, 0_u8..16);
    let record = (0_u16..400, prop::collection::vec(span, 0..6));
    prop::collection::vec(record, 1..120)
}

/// The times of records, in nanoseconds.
fn times(records: &[Journalled]) -> Vec<u64> {
    let sums = records.iter().scan(START_MS, |at, (step, _)| {
        *at += u64::from(*step);
        Some(*at * 1_000_000)
    });
    sums.collect()
}

fn take_in(sampler: &mut Sampler, sequence: u64, received_at_ns: u64, spans: &[Made]) {
    while !sampler.begin(sequence, received_at_ns) {}
    spans.iter().for_each(|made| sampler.watch(&span(made)));
    sampler.end();
}

/// The decision on each span, by record: what a reader behind is told once the record is decided.
fn decisions(sampler: &mut Sampler, records: &[Journalled], from: usize) -> BTreeMap<usize, Vec<bool>> {
    let times = times(records);
    let mut behind = from;
    let mut told = BTreeMap::new();
    let mut tell = |sampler: &mut Sampler, behind: &mut usize| {
        while *behind < records.len() && sampler.is_decided(*behind as u64, times[*behind]) {
            let spans = records[*behind].1.iter();
            told.insert(*behind, spans.map(|made| sampler.keeps(&id(made.0))).collect());
            *behind += 1;
            // Passed only now: before that it may be asked for again.
            sampler.pass(*behind as u64);
        }
    };
    for (sequence, (_, spans)) in records.iter().enumerate().skip(from) {
        take_in(sampler, sequence as u64, times[sequence], spans);
        tell(sampler, &mut behind);
    }
    while let Some(due_ms) = sampler.due_ms() {
        while !sampler.advance(due_ms) {}
    }
    tell(sampler, &mut behind);
    assert_eq!(behind, records.len(), "everything is decided in the end");
    told
}

/// The same from lists of all spans. A trace is decided before the first record that is not before its time.
fn expected(records: &[Journalled], after_root_ms: Option<u64>) -> BTreeMap<usize, Vec<bool>> {
    struct Trace {
        spans: Vec<SpanFacts>,
        due_ms: u64,
    }
    let times = times(records);
    let decide = |trace: &Trace| {
        let fulfils = |bit: u64| trace.spans.iter().any(|span| span.fulfilled & bit != 0);
        let start = trace.spans.iter().map(|span| span.start_ns).min().unwrap();
        let end = trace.spans.iter().map(|span| span.end_ns).max().unwrap();
        let is_long = (end - start) / 1_000_000 >= 50_000;
        !fulfils(8) && (fulfils(1) || is_long || ((3..=5).contains(&trace.spans.len()) && !fulfils(2)))
    };
    let mut open: HashMap<u8, Trace> = HashMap::new();
    let mut decided: HashMap<u8, bool> = HashMap::new();
    let ended = |open: &mut HashMap<u8, Trace>, decided: &mut HashMap<u8, bool>, now_ms: u64| {
        open.retain(|id, trace| {
            let is_due = trace.due_ms <= now_ms;
            if is_due {
                decided.insert(*id, decide(trace));
            }
            !is_due
        });
    };
    for ((_, spans), at) in records.iter().zip(&times) {
        let now_ms = at / 1_000_000;
        ended(&mut open, &mut decided, now_ms);
        for made in spans.iter().filter(|made| !decided.contains_key(&made.0)).collect::<Vec<_>>() {
            let new = || Trace { spans: Vec::new(), due_ms: now_ms + WAIT_MS };
            let trace = open.entry(made.0).or_insert_with(new);
            if made.1 && !trace.spans.iter().any(|span| span.is_root) {
                let after = after_root_ms.map_or(u64::MAX, |after| now_ms + after);
                trace.due_ms = trace.due_ms.min(after);
            }
            trace.spans.push(span(made));
        }
    }
    ended(&mut open, &mut decided, u64::MAX);
    records
        .iter()
        .enumerate()
        .map(|(number, (_, spans))| (number, spans.iter().map(|made| decided[&made.0]).collect()))
        .collect()
}

proptest! {
    #[test]
    fn decisions_are_those_of_all_spans(records in journal(), after_root in prop::option::of(0_u64..800)) {
        let mut sampler = Sampler::new(settings(policies(), after_root));
        prop_assert_eq!(decisions(&mut sampler, &records, 0), expected(&records, after_root));
        let Counts { early, forgotten, unknown, .. } = *sampler.counts();
        prop_assert_eq!((early, forgotten, unknown), (0, 0, 0));
    }

    /// A restart begins at the last checkpoint that the reader behind allowed, with an empty table. Traces that were met before that had
    /// been decided when the reader had come to where it is: only their late spans may be decided otherwise.
    #[test]
    fn a_restart_decides_the_same(records in journal(), killed in 1_usize..120, is_rated in any::<bool>()) {
        let policies = if is_rated { rated() } else { policies() };
        let mut before = Sampler::new(settings(policies.clone(), None));
        let told = decisions(&mut before, &records, 0);
        let times = times(&records);
        let killed = killed.min(records.len());

        // Again, up to the kill.
        let mut first = Sampler::new(settings(policies.clone(), None));
        let (mut behind, mut begin, mut rates) = (0, 0, Rates::default());
        for (sequence, (_, spans)) in records.iter().enumerate().take(killed) {
            take_in(&mut first, sequence as u64, times[sequence], spans);
            while behind < sequence && first.is_decided(behind as u64, times[behind]) {
                behind += 1;
            }
            if let Some(at) = first.pass(behind as u64) {
                (begin, rates) = at;
            }
        }
        let begin = usize::try_from(begin).unwrap();
        prop_assert!(begin <= behind);

        let mut second = Sampler::new(settings(policies, None));
        second.restore(begin as u64, Rates::from_bytes(&rates.to_bytes()));
        let again = decisions(&mut second, &records, begin);
        // The record in which each trace was met first.
        let met = |trace: u8| records.iter().position(|(_, spans)| spans.iter().any(|made| made.0 == trace));
        let are_late = |(_, spans): &Journalled| spans.iter().any(|made| met(made.0).unwrap() < begin);
        // The restart takes late spans for a new trace, which counts for the rates.
        if is_rated && records[begin..].iter().any(are_late) {
            return Ok(());
        }
        for number in behind..records.len() {
            for (place, made) in records[number].1.iter().enumerate() {
                if met(made.0).unwrap() >= begin {
                    prop_assert_eq!(told[&number][place], again[&number][place], "record {}", number);
                }
            }
        }
        // What is left to be read may begin with traces that were met before, if they are decided by then.
        for (number, (_, spans)) in records.iter().enumerate().skip(behind) {
            for made in spans.iter().filter(|made| met(made.0).unwrap() < begin) {
                prop_assert!(times[met(made.0).unwrap()] / 1_000_000 + WAIT_MS <= times[number] / 1_000_000);
            }
        }
    }

    /// However small the table is: every trace is decided, and a reader behind is never told that one is unknown.
    #[test]
    fn a_full_table_decides_early(records in journal()) {
        let small = Settings { max_traces: 3, max_decisions: 90, ..settings(policies(), Some(100)) };
        let mut sampler = Sampler::new(small);
        let told = decisions(&mut sampler, &records, 0);
        let counts = sampler.counts();
        prop_assert_eq!((counts.forgotten, counts.unknown), (0, 0));
        prop_assert_eq!(sampler.remembered().0, 0);
        // All spans of a trace have one decision, as long as it is remembered.
        let mut decided: HashMap<u8, bool> = HashMap::new();
        for (number, (_, spans)) in records.iter().enumerate() {
            for (made, is_kept) in spans.iter().zip(&told[&number]) {
                prop_assert_eq!(*decided.entry(made.0).or_insert(*is_kept), *is_kept);
            }
        }
    }
}

/// A clock that was set back for good ends what was undecided, rather than to keep it until it is as late again.
#[test]
fn a_clock_set_back_decides_what_is_open() {
    let mut sampler = Sampler::new(settings(policies(), None));
    let at_ns = START_MS * 1_000_000;
    take_in(&mut sampler, 0, at_ns, &[(1, false, 0, 0, 1)]);
    // Two seconds are a clock that is being mended.
    take_in(&mut sampler, 1, at_ns - 2_000_000_000, &[(2, false, 0, 0, 1)]);
    assert!(!sampler.is_decided(0, at_ns));
    take_in(&mut sampler, 2, at_ns - 3_600_000_000_000, &[(3, false, 0, 0, 1)]);
    assert!(sampler.is_decided(0, at_ns) && sampler.is_decided(1, at_ns));
    assert_eq!(sampler.counts().early, 2);
    assert!(!sampler.is_decided(2, at_ns - 3_600_000_000_000));
    take_in(&mut sampler, 3, at_ns - 3_598_900_000_000, &[]);
    assert!(sampler.is_decided(2, at_ns - 3_600_000_000_000));
    assert!(sampler.keeps(&id(3)));
}

/// A span that comes behind the decision has no part in it, and follows it.
#[test]
fn late_spans_follow() {
    let mut sampler = Sampler::new(settings(policies(), None));
    let at_ns = START_MS * 1_000_000;
    take_in(&mut sampler, 0, at_ns, &[(1, false, 0, 0, 1), (2, false, 0, 0, 0)]);
    take_in(&mut sampler, 1, at_ns + 1_000_000_000, &[(1, false, 0, 0, 8), (2, false, 0, 0, 1)]);
    assert_eq!((sampler.keeps(&id(1)), sampler.keeps(&id(2))), (true, false));
    assert_eq!(sampler.counts().late, [1, 1]);
    assert_eq!(sampler.counts().policies[1], PolicyCounts { traces: 1, spans: 1 });
    assert_eq!(sampler.counts().unkept, PolicyCounts { traces: 1, spans: 1 });
}

/// Promise: [`Settings::bytes`] is what a sampler takes, and nothing is allocated later. At most 80 bytes are for an undecided trace.
#[test]
fn memory_is_what_was_declared() {
    let settings = Settings { max_traces: 300_000, max_decisions: 600_000, ..settings(rated(), None) };
    let declared = settings.bytes();
    let mut sampler = None;
    let made = allocation_counter::measure(|| sampler = Some(Sampler::new(settings)));
    // The policies are made by the caller.
    assert!(made.bytes_max as usize <= declared, "{} of {declared}", made.bytes_max);
    assert!(Table::bytes(300_000, true) <= 80 * 300_000);
    let mut sampler = sampler.unwrap();
    let used = allocation_counter::measure(|| {
        for sequence in 0..400_000_u64 {
            let mut span = span(&(0, sequence % 3 == 0, 1, 1, 0));
            span.trace_id[8..].copy_from_slice(&sequence.to_le_bytes());
            while !sampler.begin(sequence, START_MS * 1_000_000 + sequence * 10_000) {}
            sampler.watch(&span);
            sampler.end();
            sampler.pass(sequence.saturating_sub(100_000));
        }
    });
    assert_eq!(used.count_total, 0);
}

/// A rate is used to within 2 %, over many seconds, whatever the traces do to the limit of each second.
#[test]
fn rates_are_used_up() {
    const SECONDS: u64 = 30;
    const RATE: u64 = 1_000;
    let policies = Policies::new(&[Policy::RateLimiting { spans_per_second: RATE }]).unwrap();
    let wide = Settings { max_traces: 10_000, max_decisions: 20_000, ..settings(policies, None) };
    let mut sampler = Sampler::new(wide);
    for number in 0..SECONDS * 1_000 {
        let mut made = span(&(0, false, 0, 1, 0));
        made.trace_id[8..].copy_from_slice(&number.to_le_bytes());
        while !sampler.begin(number, (START_MS + number) * 1_000_000) {}
        // One to seven spans.
        (0..1 + number % 7).for_each(|_| sampler.watch(&made));
        sampler.end();
        sampler.pass(number);
    }
    let kept = sampler.counts().policies[0].spans as f64 / (SECONDS - WAIT_MS / 1_000) as f64;
    assert!((0.98..=1.0).contains(&(kept / RATE as f64)), "{kept} spans a second");
}

/// One trace whose spans come late for ever takes its place in both halves of the memory for decisions, and no more.
#[test]
fn late_spans_do_not_push_others_out() {
    let few = Settings { max_traces: 50, max_decisions: 100, ..settings(policies(), None) };
    let mut sampler = Sampler::new(few);
    let at = |second: u64| (START_MS + second * 1_000) * 1_000_000;
    take_in(&mut sampler, 0, at(0), &[(200, false, 0, 0, 1)]);
    for second in 1..500_u64 {
        let others = (second % 40) as u8;
        let spans = [(200, false, 0, 0, 0), (others, false, 0, 0, 0), (200, false, 0, 0, 0)];
        take_in(&mut sampler, second, at(2 * second), &spans);
        assert!(second < 3 || sampler.keeps(&id(200)), "{second}");
        sampler.pass(second);
    }
    let Counts { forgotten, unknown, .. } = *sampler.counts();
    assert_eq!((forgotten, unknown), (0, 0));
    assert!(sampler.decisions.copies(hash(&sampler.hashes, &id(200))) <= 3);
}

/// A reader that settles many waits behind still gets places to begin at: the oldest that it may, in steps.
#[test]
fn a_reader_far_behind_moves_on() {
    const BEHIND_MS: u64 = 40 * WAIT_MS;
    let wide = Settings { max_traces: 2_000, max_decisions: 50_000, ..settings(policies(), None) };
    let mut sampler = Sampler::new(wide);
    let mut begins = Vec::new();
    for number in 0..20 * BEHIND_MS / 20 {
        // Every 20 ms a trace of its own.
        let mut made = span(&(0, false, 0, 1, 0));
        made.trace_id[8..].copy_from_slice(&number.to_le_bytes());
        while !sampler.begin(number, (START_MS + number * 20) * 1_000_000) {}
        sampler.watch(&made);
        sampler.end();
        if let Some(passed) = number.checked_sub(BEHIND_MS / 20) {
            begins.extend(sampler.pass(passed).map(|(begin, _)| (passed, begin)));
        }
    }
    assert!(begins.len() > 10, "{begins:?}");
    let most = begins.iter().map(|(passed, begin)| passed - begin).max().unwrap();
    let gaps = begins.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
    assert!(most + gaps < 20 * BEHIND_MS / 20 / 4, "{most} behind, {gaps} between");
}
