//! Promises: what a source has a pipeline for never reaches the journal without having passed it, whatever is short; the
//! books close; a pass stays within the memory that is planned for it.

use super::*;
use crate::deliverable::{Deliverable, SizeLimit};
use crate::rejection::RejectionText;
use crate::source_pipelines::{SourcePipeline, SourcePipelines};
use std::path::Path;
use tidegate_ledger::{PipelineBalance, SourceBalance};
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, RuleDefinition, StepDefinition, StepKind};
use tidegate_pool::Pool;
use tidegate_stage::{PipelineMeters, StepMeters};
use tidegate_wire::snappy;

const RUNS: usize = 2;

/// A gate whose source has a pipeline of these steps.
pub(super) fn with_steps(steps: Vec<StepKind>) -> Rig {
    let pipelines = SourcePipelines::new(RUNS, Pool::start(1, 4).unwrap());
    pipelines.set(vec![pipeline(steps)], None);
    rig_with(64 << 20, |_, _| GateRules { pipelines, ..GateRules::default() })
}

fn pipeline(steps: Vec<StepKind>) -> Arc<SourcePipeline> {
    let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    let definition = Definition { steps: steps.into_iter().map(step).collect() };
    let meters = definition.steps.iter().map(|step| StepMeters::new("p".into(), "1".into(), step.parts()));
    let meters = PipelineMeters::new(meters.collect());
    let (pipeline, _) = Pipeline::compile(&definition).unwrap();
    Arc::new(SourcePipeline::new("test", pipeline, vec![], meters))
}

fn edit(statement: &str) -> Vec<StepKind> {
    vec![StepKind::Edit(vec![statement.to_owned()])]
}

pub(super) fn drops(condition: &str) -> Vec<StepKind> {
    vec![StepKind::Drop(vec![condition.to_owned()])]
}

/// A field of protobuf with this content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 128 {
        out.push(u8::try_from(len % 128).unwrap() | 128);
        len /= 128;
    }
    out.push(u8::try_from(len).unwrap());
    out.extend_from_slice(content);
    out
}

/// An OTLP request with a log record for each text.
fn logs(texts: &[&str]) -> Vec<u8> {
    let records: Vec<u8> =
        texts.iter().flat_map(|text| field(2, &field(5, &field(1, text.as_bytes())))).collect();
    field(1, &field(2, &records))
}

/// A request of remote write 1.0, compressed, with a series for each name; and its length when it is decompressed.
fn series(names: &[&str]) -> (Vec<u8>, usize) {
    let series = |name: &&str| {
        let label = field(1, &[field(1, b"__name__"), field(2, name.as_bytes())].concat());
        let sample = [&[1 << 3 | 1][..], &1.5_f64.to_bits().to_le_bytes(), &[2 << 3, 1]].concat();
        field(1, &[label, field(2, &sample)].concat())
    };
    let raw: Vec<u8> = names.iter().flat_map(series).collect();
    let mut body = vec![0; snappy::max_compressed_len(raw.len()).unwrap()];
    let len = snappy::Encoder::new().compress(&raw, &mut body).unwrap();
    body.truncate(len);
    (body, raw.len())
}

fn relabel(regex: &str, action: &str) -> Vec<StepKind> {
    vec![StepKind::Relabel(vec![RuleDefinition {
        source_labels: vec!["__name__".to_owned()],
        regex: vec![regex.to_owned()],
        action: Some(action.to_owned()),
        ..RuleDefinition::default()
    }])]
}

impl Rig {
    async fn send_logs(&self, texts: &[&str]) -> Result<(), Rejection> {
        self.send_logs_with(&Permit::default(), texts).await
    }

    pub(super) async fn send_logs_with(&self, permit: &Permit, texts: &[&str]) -> Result<(), Rejection> {
        let body = logs(texts);
        let form = (Protocol::Otlp, Signal::Logs, Encoding::Identity);
        self.send(permit, form, (&body, body.len()), texts.len()).await
    }

    async fn send_series(&self, names: &[&str]) -> Result<(), Rejection> {
        let (body, raw_len) = series(names);
        let form = (Protocol::RemoteWrite1, Signal::Metrics, Encoding::Snappy);
        self.send(&Permit::default(), form, (&body, raw_len), names.len()).await
    }

    async fn send(
        &self,
        permit: &Permit,
        (protocol, signal, encoding): (Protocol, Signal, Encoding),
        (body, raw_len): (&[u8], usize),
        items: usize,
    ) -> Result<(), Rejection> {
        let mut window = self.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(body).unwrap();
        let (items, raw_len) = (u32::try_from(items).unwrap(), u32::try_from(raw_len).unwrap());
        let meta =
            Meta { tenant: Tenant::NONE, signal, protocol, encoding, items, raw_len, received_at_ns: 1 };
        let counts = Counts::of(tidegate_ledger::Signal::Logs, items.into(), body.len() as u64);
        let mut checkpoints = Checkpoints::default();
        // As many bytes as were read.
        checkpoints.set(b"f", &body.len().to_le_bytes()).unwrap();
        let batch = Batch { meta, window, from: 0, len: body.len(), checkpoints };
        self.gate.append(permit, self.source.open(), counts, batch).await
    }

    /// How far the source has read, as the journal knows it.
    fn checkpoint(&self) -> Option<usize> {
        let value = self.journal.checkpoint(b"f")?;
        Some(usize::from_le_bytes((*value).try_into().unwrap()))
    }

    /// The source's page; the books balance and all memory is free.
    fn page(&self) -> SourceBalance {
        self.assert_books();
        self.ledger.balance().sources.remove(0)
    }

    /// Whether a file of the journal contains this.
    fn has_on_disk(&self, text: &[u8]) -> bool {
        fn any(folder: &Path, text: &[u8]) -> bool {
            std::fs::read_dir(folder).unwrap().any(|entry| {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => any(&path, text),
                    false => std::fs::read(path).unwrap().windows(text.len()).any(|part| part == text),
                }
            })
        }
        any(self._dir.path(), text)
    }
}

fn balance(received: u64, accepted: u64, filtered: u64) -> PipelineBalance {
    PipelineBalance { received, accepted, filtered, sampled_out: 0, difference: 0 }
}

#[tokio::test]
async fn what_a_step_removes_never_reaches_the_disk() {
    let rig = with_steps(edit(r#"replace_pattern(log.body, "secret", "***")"#));
    rig.send_logs(&["a secret word", "another"]).await.unwrap();
    rig.send_logs(&["nothing to hide"]).await.unwrap();
    assert!(rig.has_on_disk(b"a *** word") && rig.has_on_disk(b"nothing to hide"));
    assert!(!rig.has_on_disk(b"secret"));
    let page = rig.page();
    assert_eq!((page.accepted, page.pipeline), (2, balance(3, 3, 0)));
}

/// A source goes on behind what it sent, whatever a pipeline has left of it, and does not go on behind a refusal.
#[tokio::test]
async fn checkpoints_pass_with_any_outcome_but_a_refusal() {
    let steps = drops("log.body == \"drop\"")
        .into_iter()
        .chain(edit(r#"set(log.body, "x") where log.body == "edit""#));
    let rig = with_steps(steps.collect());
    let mut records = 0;
    for (text, appended) in [("pass", 1), ("edit", 1), ("drop", 0), ("pass again", 1), ("drop", 0)] {
        rig.send_logs(&[text]).await.unwrap();
        records += appended;
        assert_eq!(rig.checkpoint(), Some(logs(&[text]).len()), "after {text}");
        assert_eq!(rig.journal.stats().head, records);
    }
    let before = rig.checkpoint();
    rig.gate.set_deliverable(Deliverable::new(|_, _| SizeLimit { most: 10, factor: 0, item: usize::MAX }));
    assert_eq!(rig.send_logs(&["refused for its length"]).await.unwrap_err().reason, Refusal::TooLarge);
    assert_eq!(rig.checkpoint(), before);
    rig.page();
}

#[tokio::test]
async fn a_request_of_which_nothing_is_left_is_accepted_and_not_journalled() {
    let rig = with_steps(drops("log.body != nil"));
    rig.send_logs(&["one", "two"]).await.unwrap();
    assert!(!rig.has_on_disk(b"one"));
    let page = rig.page();
    assert_eq!((page.accepted, page.items, page.pipeline), (1, vec![], balance(2, 0, 2)));
    assert!(page.bytes > 0, "its bytes were received");
    assert_eq!((rig.source.items(), rig.ledger.balance().journal.appended), (2, 0));
}

/// Compressed bodies are decoded for the pipeline, and go on as they came where it changes nothing.
#[tokio::test]
async fn compressed_bodies_pass_and_stay_compressed_if_nothing_changes() {
    let rig = with_steps(relabel("go_.*", "drop"));
    let unchanged = ["up_unchanged", "up_unchanged_2", "up_unchanged_3"];
    rig.send_series(&unchanged).await.unwrap();
    assert!(rig.has_on_disk(&series(&unchanged).0));
    rig.send_series(&["go_gc_secret", "up", "go_threads"]).await.unwrap();
    assert!(!rig.has_on_disk(b"go_gc") && !rig.has_on_disk(b"go_threads"));
    assert_eq!(rig.page().pipeline, balance(6, 4, 2));
    let steps = rig.gate.rules().pipelines.all();
    let totals = steps[0].meters().steps()[0].totals();
    assert_eq!((totals.items, totals.filtered), (6, 2));
}

/// Where there is no memory to pass, the request is refused and can be sent again: it is not journalled as it is.
#[tokio::test(start_paused = true)]
async fn nothing_passes_unseen_when_memory_is_short() {
    let rig = with_steps(edit(r#"replace_pattern(log.body, "secret", "***")"#));
    let text = format!("secret {}", "x".repeat(100_000));
    let free = rig.arena.ceiling(Share::Decode);
    let held = rig.arena.try_charge(Share::Decode, free).unwrap();
    let asked = Instant::now();
    let refused = rig.send_logs(&[&text]).await.unwrap_err();
    assert_eq!((refused.reason, asked.elapsed()), (Refusal::Memory, WAIT));
    assert!(refused.retry_after.is_some());
    drop(held);
    // The output has no memory.
    let grows = with_steps(edit(r#"set(log.attributes["a"], log.body)"#));
    let ingest = grows.arena.free(Share::Ingest);
    let held = grows.arena.try_charge(Share::Ingest, ingest - (192 << 10)).unwrap();
    let refused = grows.send_logs(&[&text]).await.unwrap_err();
    assert_eq!(refused.reason, Refusal::Memory);
    drop(held);
    for rig in [rig, grows] {
        assert!(!rig.has_on_disk(b"secret"));
        let page = rig.page();
        assert_eq!((page.accepted, page.refused), (0, vec![(Refusal::Memory, 1)]));
        assert_eq!(page.pipeline, PipelineBalance::default());
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_turn_has_an_end() {
    let rig = with_steps(edit(r#"set(log.attributes["a"], 1)"#));
    let pipelines = rig.gate.rules().pipelines.clone();
    let turns = [pipelines.turn(true).await.unwrap(), pipelines.turn(false).await.unwrap()];
    let asked = Instant::now();
    let refused = rig.send_logs(&["a"]).await.unwrap_err();
    assert_eq!((refused.reason, asked.elapsed()), (Refusal::Memory, WAIT));
    drop(turns);
    rig.send_logs(&["a"]).await.unwrap();
    assert_eq!((rig.page().accepted, rig.page().refused), (1, vec![(Refusal::Memory, 1)]));
}

/// Large bodies leave one turn to others.
#[tokio::test]
async fn small_bodies_do_not_wait_for_large_ones() {
    let pipelines = SourcePipelines::new(RUNS, Pool::start(1, 4).unwrap());
    let _large = pipelines.turn(true).await.unwrap();
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::pin!(pipelines.turn(true)).poll(context).is_pending());
    assert!(std::pin::pin!(pipelines.turn(false)).poll(context).is_ready());
}

/// A body that becomes more than some sink could deliver is refused, neither acknowledged nor journalled unedited.
#[tokio::test]
async fn what_could_not_be_delivered_is_refused() {
    let rig = with_steps(edit(r#"set(log.attributes["copy"], log.body)"#));
    let text = "x".repeat(3000);
    let bound = |most, item| {
        rig.gate.set_deliverable(Deliverable::new(|_, _| SizeLimit { most, factor: 0, item }));
    };
    bound(5000, usize::MAX);
    assert_eq!(rig.send_logs(&[&text]).await.unwrap_err().reason, Refusal::TooLarge);
    bound(1 << 20, 5000);
    assert_eq!(rig.send_logs(&[&text]).await.unwrap_err().reason, Refusal::TooLarge);
    assert!(!rig.has_on_disk(b"xxx"));
    bound(1 << 20, 7000);
    rig.send_logs(&[&text, &text]).await.unwrap();
    let page = rig.page();
    assert_eq!((page.accepted, page.refused), (1, vec![(Refusal::TooLarge, 2)]));
    assert_eq!(page.pipeline, balance(2, 2, 0));
}

/// A long body that a pipeline made of a short one is not checked on the thread of a connection either.
#[tokio::test]
async fn long_edited_bodies_are_checked_in_the_pool() {
    let pool = Pool::start(1, 4).unwrap();
    let pipelines = SourcePipelines::new(RUNS, pool.clone());
    pipelines.set(vec![pipeline(edit(r#"set(log.attributes["copy"], log.body)"#))], None);
    let rig = rig_with(64 << 20, |_, _| GateRules { pipelines, ..GateRules::default() });
    rig.gate.set_deliverable(Deliverable::new(|_, _| SizeLimit { most: 4 << 20, factor: 0, item: 1 << 20 }));
    pool.stop();
    rig.send_logs(&["a"]).await.unwrap();
    let texts = vec!["x".repeat(1000); 560];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let refused = rig.send_logs(&texts).await.unwrap_err();
    assert_eq!(refused.reason, Refusal::Internal);
    assert_eq!(refused.words, RejectionText::Fixed("running the source's pipeline failed\n"));
}

/// A pipeline that takes the place of another applies to the next request, and the other's workspaces go.
#[tokio::test]
async fn another_pipeline_takes_its_place() {
    let rig = with_steps(drops("log.body == \"a\""));
    rig.send_logs(&["a", "b"]).await.unwrap();
    let pipelines = &rig.gate.rules().pipelines;
    let before = Arc::clone(&pipelines.all()[0]);
    let held = pipelines.workspace(&before);
    pipelines.set(vec![pipeline(drops("log.body == \"b\""))], None);
    drop(held);
    assert_eq!(pipelines.idle_workspaces("test"), 0);
    rig.send_logs(&["a", "b"]).await.unwrap();
    assert!(rig.has_on_disk(b"a") && pipelines.idle_workspaces("test") == 1);
    pipelines.set(vec![], None);
    rig.send_logs(&["a", "b"]).await.unwrap();
    let page = rig.page();
    assert_eq!((page.items[0].1, page.pipeline), (4, balance(4, 2, 2)));
}

/// A request that waited while its pipeline was replaced takes the place of a workspace that has no run.
#[tokio::test]
async fn there_are_no_more_workspaces_than_turns() {
    let rig = with_steps(drops("log.body == \"a\""));
    let pipelines = &rig.gate.rules().pipelines;
    let before = Arc::clone(&pipelines.all()[0]);
    pipelines.set(vec![pipeline(drops("log.body == \"b\""))], None);
    let now = Arc::clone(&pipelines.all()[0]);
    let both = [pipelines.workspace(&now), pipelines.workspace(&now)];
    drop(both);
    assert_eq!(pipelines.idle_workspaces("test"), RUNS);
    let late = pipelines.workspace(&before);
    assert_eq!(pipelines.idle_workspaces("test"), RUNS - 1);
    let next = pipelines.workspace(&now);
    drop((late, next));
    assert_eq!(pipelines.idle_workspaces("test"), RUNS - 1);
}

/// Memory that a pipeline gives back is charged until the last request has left it.
#[tokio::test]
async fn a_replaced_pipeline_keeps_its_memory_until_nothing_is_in_it() {
    let rig = with_steps(drops("log.body == \"a\""));
    let pipelines = &rig.gate.rules().pipelines;
    let request = Arc::clone(&pipelines.all()[0]);
    let free = rig.arena.free(Share::Ingest);
    pipelines.set(vec![], Some(rig.arena.try_charge(Share::Ingest, 1000).unwrap()));
    assert_eq!(rig.arena.free(Share::Ingest), free - 1000);
    drop(request);
    assert_eq!(rig.arena.free(Share::Ingest), free);
    // Nothing gives anything back.
    pipelines.set(vec![], Some(rig.arena.try_charge(Share::Ingest, 1000).unwrap()));
    assert_eq!(rig.arena.free(Share::Ingest), free);
}

/// The heap of a waiting request and of a run is at most what is declared for them.
#[tokio::test]
async fn waits_and_runs_fit_their_declarations() {
    let rig = with_steps(edit(r#"set(log.attributes["a"], 1)"#));
    let body = logs(&["a"]);
    let batch = || async {
        let mut window = rig.arena.window(Share::Ingest, body.len()).await.unwrap();
        window.append(&body).unwrap();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: 1,
            raw_len: u32::try_from(body.len()).unwrap(),
            received_at_ns: 1,
        };
        Batch { meta, window, from: 0, len: body.len(), checkpoints: Checkpoints::default() }
    };
    let first = batch().await;
    let (own, format) = rig.gate.pipeline_of(&rig.source.open(), &first.meta).unwrap();
    let permit = Permit::default();
    let begin = super::super::source_pipeline::FirstPass { number: 0, may_change: false };
    let run = size_of_val(&rig.gate.run_in_turn((&own, format), begin, &permit, first));
    // The other half is for the engine's state, which is in a box of its own.
    assert!(run <= SourcePipeline::RUN_BYTES / 2, "{run} bytes");
    let waiting_charge = rig.gate.charge_turn().unwrap();
    let (counts, second) = (Counts::of(tidegate_ledger::Signal::Logs, 1, 1), batch().await);
    let waits = size_of_val(&rig.gate.append_through_pipeline(
        waiting_charge,
        (own, format),
        &permit,
        rig.source.open(),
        counts,
        second,
    ));
    println!("a run {run} bytes, a wait {waits} bytes");
    assert!(waits as u64 <= super::super::source_pipeline::WAITING_BYTES, "{waits} bytes");
}
