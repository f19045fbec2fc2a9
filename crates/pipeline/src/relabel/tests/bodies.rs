//! Bodies of both versions: what is left of each series is what the rules leave of its labels, and nothing else changes.

use super::random::{self, Random};
use super::symbols::{others, unreferenced};
use super::*;
use crate::{Outcome, Progress};
use tidegate_wire::proto::write::Varint;
use tidegate_wire::remote_write::{self, Limits, Symbols, Version};

/// A series: its labels, and how many samples and exemplars it has.
pub(super) struct Series {
    pub(super) labels: Vec<(String, String)>,
    pub(super) samples: usize,
    pub(super) exemplars: usize,
    /// Whether something stands before its labels.
    pub(super) scattered: bool,
}

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(Varint::new(number as u64).as_bytes());
}

fn message(out: &mut Vec<u8>, field: u8, payload: &[u8]) {
    out.push(field << 3 | 2);
    number(out, payload.len());
    out.extend_from_slice(payload);
}

fn sample(value: usize) -> Vec<u8> {
    let mut sample = vec![0x09];
    sample.extend_from_slice(&(value as f64).to_le_bytes());
    sample.push(0x10);
    number(&mut sample, 1_700_000_000_000 + value);
    sample
}

fn one(all: &[Series]) -> Vec<u8> {
    let mut body = Vec::new();
    for (at, series) in all.iter().enumerate() {
        let mut payload = Vec::new();
        let mut samples: Vec<Vec<u8>> = (0..series.samples).map(|sample_at| sample(at + sample_at)).collect();
        if series.scattered && !samples.is_empty() {
            message(&mut payload, 2, &samples.remove(0));
        }
        for (name, value) in &series.labels {
            let mut label = Vec::new();
            message(&mut label, 1, name.as_bytes());
            message(&mut label, 2, value.as_bytes());
            message(&mut payload, 1, &label);
        }
        samples.iter().for_each(|sample| message(&mut payload, 2, sample));
        for _ in 0..series.exemplars {
            message(&mut payload, 3, &[]);
        }
        message(&mut body, 1, &payload);
        if at % 7 == 3 {
            message(&mut body, 3, b"\x08\x01\x12\x02up");
        }
    }
    body
}

/// A 2.0 body, of which some have symbols that nothing refers to, and some have symbols behind series.
pub(super) fn two(all: &[Series]) -> Vec<u8> {
    let mut symbols = vec![String::new()];
    let mut symbol = |text: &str| {
        symbols.iter().position(|symbol| symbol == text).unwrap_or_else(|| {
            symbols.push(text.into());
            symbols.len() - 1
        })
    };
    let mut series_bytes = Vec::new();
    for (at, series) in all.iter().enumerate() {
        let mut references = Vec::new();
        for text in series.labels.iter().flat_map(|(name, value)| [name, value]) {
            number(&mut references, symbol(text));
        }
        let mut payload = Vec::new();
        let mut samples: Vec<Vec<u8>> = (0..series.samples).map(|sample_at| sample(at + sample_at)).collect();
        if series.scattered && !samples.is_empty() {
            message(&mut payload, 2, &samples.remove(0));
        }
        message(&mut payload, 1, &references);
        samples.iter().for_each(|sample| message(&mut payload, 2, sample));
        for _ in 0..series.exemplars {
            let (mut references, mut exemplar) = (Vec::new(), Vec::new());
            number(&mut references, symbol("trace_id"));
            number(&mut references, symbol(&format!("trace {}", at % 9)));
            message(&mut exemplar, 1, &references);
            message(&mut payload, 4, &exemplar);
        }
        let mut metadata = vec![0x08, 1, 0x18];
        number(&mut metadata, symbol(&format!("Help {}.", at % 5)));
        metadata.push(0x20);
        number(&mut metadata, symbol(["", "bytes"][at % 2]));
        message(&mut payload, 5, &metadata);
        message(&mut series_bytes, 5, &payload);
        if at % 5 == 0 && all.len().is_multiple_of(2) {
            symbol(&format!("unused {at}"));
        }
    }
    let mut body = Vec::new();
    let (first, behind) =
        symbols.split_at(if all.len() % 3 == 1 { symbols.len() / 2 } else { symbols.len() });
    first.iter().for_each(|symbol| message(&mut body, 4, symbol.as_bytes()));
    body.extend(series_bytes);
    behind.iter().for_each(|symbol| message(&mut body, 4, symbol.as_bytes()));
    body
}

/// Runs to the end. Returns the new body, if there is one.
pub(super) fn run(
    rules: &Rules,
    workspace: &mut RelabelWorkspace,
    version: Version,
    body: &[u8],
    scratch: &mut [u8],
) -> (Outcome, Option<Vec<u8>>) {
    let mut run = RelabelRun::new(rules, workspace, version, body, scratch);
    for _ in 0..1_000_000 {
        let Progress::Done(outcome) = run.advance() else { continue };
        let Outcome::Changed { len, .. } = outcome else { return (outcome, None) };
        let mut out = vec![0xff; len];
        while !run.write_part(&mut out) {}
        return (outcome, Some(out));
    }
    panic!("the run does not end");
}

/// The labels of a series, and its samples and exemplars.
type Read = (Vec<(String, String)>, usize, usize);

fn read(version: Version, body: &[u8]) -> Vec<Read> {
    let mut symbols = Symbols::new();
    let request = remote_write::view(version, body, &mut symbols).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let series = request.series().map(|series| {
        let labels = series.labels().map(|label| (text(label.name), text(label.value))).collect();
        (labels, series.samples().count(), series.exemplars().count())
    });
    series.collect()
}

fn items(version: Version, body: &[u8]) -> u64 {
    let limits = Limits { require_metric_name: false, ..Limits::default() };
    remote_write::inspect(version, body, &limits, &mut Symbols::new()).unwrap().counts.items()
}

/// A run over `all` leaves the series that the rules leave of each, looked at alone.
pub(super) fn check(version: Version, rules: &Rules, all: &[Series]) {
    let body = if version == Version::V1 { one(all) } else { two(all) };
    let mut workspace = rules.workspace();
    let mut scratch = vec![0; crate::Pipeline::scratch_bytes(body.len())];
    let (outcome, out) = run(rules, &mut workspace, version, &body, &mut scratch);
    let after = |series: &Series| relabeled(rules, &series.labels).filter(|labels| !labels.is_empty());
    let expected: Vec<_> =
        all.iter().filter_map(|series| Some((after(series)?, series.samples, series.exemplars))).collect();
    let before = items(version, &body);
    let counts = &workspace.counts[0];
    assert_eq!(counts.failures.iter().sum::<u64>(), 0);
    let left = match outcome {
        Outcome::Unchanged => {
            assert_eq!(unreferenced(version, &body), [""; 0]);
            assert!(all.iter().all(|series| after(series).as_ref() == Some(&series.labels)));
            before
        }
        Outcome::Empty => {
            assert_eq!(expected, []);
            0
        }
        Outcome::Changed { items: left, .. } => {
            let out = out.unwrap();
            assert_eq!(read(version, &out), expected);
            assert_eq!(unreferenced(version, &out), [""; 0]);
            let kept = others(version, &body);
            assert!(others(version, &out).iter().all(|texts| kept.contains(texts)));
            // Versions that receivers ask for.
            let limits = Limits { require_metric_name: false, ..Limits::default() };
            let report = remote_write::inspect(version, &out, &limits, &mut Symbols::new()).unwrap();
            let scattered = all.iter().any(|series| series.scattered);
            assert!(report.rejected.is_empty() && (scattered || report.irregular.is_none()), "{report:?}");
            assert_eq!(report.counts.items(), left);
            left
        }
    };
    assert_eq!(before, left + counts.filtered);
}

/// Random rules over random bodies: each series ends with the labels that the rules leave, its items stay with it, the new
/// body passes the check of receivers, and the counts close.
#[test]
fn bodies_change_as_their_labels_do() {
    let mut random = Random(0xfeed_f00d_dead_beef);
    let mut compiled = 0;
    while compiled < 400 {
        let definitions: Vec<_> = (0..1 + random.below(4)).map(|_| random::rule(&mut random)).collect();
        let step = StepRules { step: 0, on_error: ErrorMode::Ignore, rules: &definitions };
        let Ok((rules, _)) = Rules::compile(&[step]) else { continue };
        compiled += 1;
        let all: Vec<Series> = (0..random.below(60))
            .map(|_| Series {
                labels: random::labels(&mut random),
                samples: 1 + random.below(3),
                exemplars: random.below(2),
                scattered: random.chance(2),
            })
            .filter(|series| !series.labels.is_empty())
            .collect();
        check(Version::V1, &rules, &all);
        check(Version::V2, &rules, &all);
    }
}

fn usual() -> (Rules, Vec<Series>) {
    let rules = compile(&[
        rule(&[("source_labels", "__name__"), ("regex", "go_gc|up_total|x"), ("action", "drop")]),
        rule(&[("source_labels", "instance"), ("regex", "([^:]+):.*"), ("target_label", "host")]),
        rule(&[("regex", "replica|prometheus_.*"), ("action", "labeldrop")]),
        rule(&[("target_label", "cluster"), ("replacement", "eu-1")]),
        rule(&[
            ("source_labels", "path,code"),
            ("regex", "/[a-z]+;2.."),
            ("action", "hashmod"),
            ("target_label", "shard"),
            ("modulus", "7"),
        ]),
    ]);
    let series = |at: usize| Series {
        labels: labels(&format!(
            "__name__={},code=200,instance=node-{}:9100,path=/a,replica=r{}",
            ["http_requests_total", "go_gc"][usize::from(at.is_multiple_of(5))],
            at % 3,
            at % 2
        )),
        samples: 1 + at % 2,
        exemplars: 0,
        scattered: false,
    };
    (rules, (0..300).map(series).collect())
}

/// A run allocates nothing, in either version; its memory is what was declared.
#[test]
fn a_run_allocates_nothing() {
    let (rules, all) = usual();
    let mut workspace = None;
    let made = allocation_counter::measure(|| workspace = Some(rules.workspace()));
    assert!(
        made.bytes_current as usize <= rules.workspace_bytes(),
        "{} {}",
        made.bytes_current,
        rules.workspace_bytes()
    );
    let mut workspace = workspace.unwrap();
    for (version, body) in [(Version::V1, one(&all)), (Version::V2, two(&all))] {
        let mut scratch = vec![0; crate::Pipeline::scratch_bytes(body.len())];
        let mut out = vec![0; body.len() * 2];
        let mut ran = || {
            let mut run = RelabelRun::new(&rules, &mut workspace, version, &body, &mut scratch);
            let outcome = loop {
                if let Progress::Done(outcome) = run.advance() {
                    break outcome;
                }
            };
            let Outcome::Changed { len, .. } = outcome else { panic!("{outcome:?}") };
            while !run.write_part(&mut out[..len]) {}
        };
        ran();
        let allocations = allocation_counter::measure(&mut ran);
        assert_eq!(allocations.count_total, 0, "{version:?}");
    }
}

/// Whatever is in a body and however small the scratch is, a run ends without a panic, and what it leaves of a checked body
/// passes the check. Rules whose edits find no room have failed.
#[test]
fn a_run_survives_damaged_bodies_and_full_scratch() {
    let (rules, all) = usual();
    let mut workspace = rules.workspace();
    let mut random = Random(77);
    let mut failed = 0;
    for (version, body) in [(Version::V1, one(&all[..40])), (Version::V2, two(&all[..40]))] {
        let before = items(version, &body);
        for round in 0..600 {
            let mut scratch = vec![0; random.below(3_000)];
            let mut damaged = body.clone();
            let intact = round % 3 == 0;
            if !intact {
                for _ in 0..1 + random.below(4) {
                    let at = random.below(damaged.len());
                    damaged[at] = random.below(256) as u8;
                }
                damaged.truncate(damaged.len() - random.below(40));
            }
            workspace.take_counts(|_, _| {});
            let (outcome, out) = run(&rules, &mut workspace, version, &damaged, &mut scratch);
            if !intact {
                continue;
            }
            let counts = &workspace.counts[0];
            failed += counts.failures.iter().sum::<u64>();
            let left = match outcome {
                Outcome::Changed { items, .. } => items,
                Outcome::Unchanged => before,
                Outcome::Empty => 0,
            };
            assert_eq!(left + counts.filtered, before);
            if let Some(out) = out {
                assert_eq!(items(version, &out), left);
            }
        }
    }
    assert!(failed > 100, "{failed}");
}

/// A step with `on_error: drop` drops what its rules fail on.
#[test]
fn failures_drop_series_where_that_is_asked_for() {
    let grows =
        [rule(&[("source_labels", "a"), ("target_label", "b"), ("replacement", "$1$1"), ("regex", "(.*)")])];
    let long = Series {
        labels: labels(&format!("__name__=up,a={}", "x".repeat(40_000))),
        samples: 2,
        exemplars: 1,
        scattered: false,
    };
    for (on_error, filtered, outcome) in
        [(ErrorMode::Ignore, 0, Outcome::Unchanged), (ErrorMode::Drop, 3, Outcome::Empty)]
    {
        let (rules, _) = Rules::compile(&[StepRules { step: 0, on_error, rules: &grows }]).unwrap();
        let mut workspace = rules.workspace();
        let body = one(std::slice::from_ref(&long));
        let mut scratch = vec![0; crate::Pipeline::scratch_bytes(body.len())];
        assert_eq!(run(&rules, &mut workspace, Version::V1, &body, &mut scratch).0, outcome);
        assert_eq!((workspace.counts[0].filtered, &*workspace.counts[0].failures), (filtered, &[1][..]));
    }
}

/// A series whose edits find no room is dropped by a step that drops what it fails on.
#[test]
fn a_full_scratch_drops_series_where_that_is_asked_for() {
    let copies =
        [rule(&[("source_labels", "a"), ("target_label", "b"), ("replacement", "$1"), ("regex", "(.*)")])];
    let long = Series {
        labels: labels(&format!("__name__=up,a={}", "x".repeat(20_000))),
        samples: 2,
        exemplars: 1,
        scattered: false,
    };
    let body = one(std::slice::from_ref(&long));
    for (on_error, filtered, outcome) in
        [(ErrorMode::Ignore, 0, Outcome::Unchanged), (ErrorMode::Drop, 3, Outcome::Empty)]
    {
        let (rules, _) = Rules::compile(&[StepRules { step: 0, on_error, rules: &copies }]).unwrap();
        let mut workspace = rules.workspace();
        // From no room for the value to room for all.
        let mut failed = 0;
        for room in (0..80_000).step_by(512) {
            let mut scratch = vec![0; room + 1_024];
            workspace.take_counts(|_, _| {});
            let found = run(&rules, &mut workspace, Version::V1, &body, &mut scratch).0;
            if workspace.counts[0].failures == [1] {
                failed += 1;
                assert_eq!((found, workspace.counts[0].filtered), (outcome, filtered), "{room}");
            }
        }
        assert!((1..150).contains(&failed), "{failed}");
    }
}

/// A series with more labels than a table has is counted by the steps that it reaches.
#[test]
fn a_series_of_too_many_labels_is_counted_once() {
    let rules = [rule(&[("regex", "none"), ("action", "labeldrop")])];
    let many: Vec<String> = (0..3_000).map(|at| format!("l{at:04}=x")).collect();
    let long = Series { labels: labels(&many.join(",")), samples: 2, exemplars: 0, scattered: false };
    let step = |step, on_error| StepRules { step, on_error, rules: &rules };
    let (rules, _) =
        Rules::compile(&[step(0, ErrorMode::Ignore), step(1, ErrorMode::Drop), step(2, ErrorMode::Ignore)])
            .unwrap();
    let mut workspace = rules.workspace();
    let body = one(std::slice::from_ref(&long));
    let mut scratch = vec![0; crate::Pipeline::scratch_bytes(body.len())];
    assert_eq!(run(&rules, &mut workspace, Version::V1, &body, &mut scratch).0, Outcome::Empty);
    let counts: Vec<_> = workspace.counts.iter().map(|counts| (counts.items, counts.filtered)).collect();
    assert_eq!(counts, [(2, 0), (2, 2), (0, 0)]);
}

/// Steps that follow each other count by themselves.
#[test]
fn each_step_counts_what_reaches_it() {
    let first = [rule(&[("source_labels", "__name__"), ("regex", "go_gc"), ("action", "drop")])];
    let second = [rule(&[("source_labels", "instance"), ("regex", "node-1:.*"), ("action", "keep")])];
    let step = |step, rules| StepRules { step, on_error: ErrorMode::Ignore, rules };
    let (rules, _) = Rules::compile(&[step(0, &first), step(1, &second)]).unwrap();
    let (_, all) = usual();
    let mut workspace = rules.workspace();
    let body = one(&all);
    let mut scratch = vec![0; crate::Pipeline::scratch_bytes(body.len())];
    let (outcome, _) = run(&rules, &mut workspace, Version::V1, &body, &mut scratch);
    let samples = |keep: &dyn Fn(usize) -> bool| {
        (0..300).filter(|at| keep(*at)).map(|at| 1 + at as u64 % 2).sum::<u64>()
    };
    let (gone, left) = (samples(&|at| at % 5 == 0), samples(&|at| at % 5 != 0 && at % 3 == 1));
    let counts: Vec<_> = workspace.counts.iter().map(|counts| (counts.items, counts.filtered)).collect();
    assert_eq!(counts, [(450, gone), (450 - gone, 450 - gone - left)]);
    let metadata = 300u64 / 7 + 1;
    let Outcome::Changed { items, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(items, left + metadata);
}

/// A pipeline runs its relabeling steps over remote write, and leaves OTLP to the others.
#[test]
fn a_pipeline_relabels_remote_write() {
    use crate::{Definition, Format, Pipeline, Run, StepDefinition, StepKind};
    let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    let drop = rule(&[("source_labels", "__name__"), ("regex", "go_gc"), ("action", "drop")]);
    let definition = Definition {
        steps: vec![
            step(StepKind::Drop(vec!["log.severity_number < SEVERITY_NUMBER_INFO".into()])),
            step(StepKind::Relabel(vec![drop])),
        ],
    };
    let (pipeline, problems) = Pipeline::compile(&definition).unwrap();
    assert_eq!(problems, []);
    let format = Format::RemoteWrite(Version::V1);
    assert_eq!((pipeline.passes(format), pipeline.may_change(0, format, b"")), (1, true));
    assert_eq!(pipeline.passes(Format::Otlp(tidegate_wire::otlp::Signal::Metrics)), 0);
    let body = one(&usual().1);
    let (mut workspace, mut scratch) = (pipeline.workspace(), vec![0; Pipeline::scratch_bytes(body.len())]);
    let mut run = Run::new(&pipeline, 0, &mut workspace, format, &body, &mut scratch, 0);
    let outcome = loop {
        if let Progress::Done(outcome) = run.advance() {
            break outcome;
        }
    };
    let Outcome::Changed { len, items: left } = outcome else { panic!("{outcome:?}") };
    let mut out = vec![0; len];
    run.write(&mut out);
    assert_eq!(items(Version::V1, &out), left);
    let mut counts = Vec::new();
    workspace.take_counts(|step, counted| {
        counts.push((step, counted.items, counted.filtered, counted.failures.len()))
    });
    assert_eq!(counts, [(0, 0, 0, 1), (1, 450, 90, 1)]);
    assert!(pipeline.workspace_bytes() > 160 << 10);

    let wrong =
        StepDefinition { when: Some("log.body == nil".into()), ..step(StepKind::Relabel(Vec::new())) };
    let problems = Pipeline::compile(&Definition { steps: vec![wrong] }).unwrap_err();
    assert_eq!((problems[0].at.step, problems[0].at.setting), (0, "when"));
}
