//! The console's declaration in the memory plan is sufficient.

use super::sample::troubled;
use crate::console::LONGEST_FORM;
use crate::live::{FRAMES, LONGEST_FRAME};
use crate::page::Page;
use crate::pipelines_page::{self, LONGEST_LISTED, ListedPipeline, MOST_LISTED};
use crate::{
    BlockedIndex, Console, Failed, Fleet, FleetPolicy, Handshakes, LONGEST_ANSWER, MOST_POLICIES,
    MOST_SAMPLED, MOST_STEPS, MOST_WAITING, PipelineStep, PolicyDecisions, SourcePipeline, Status, Tenant,
    Tenants, TraceDecisions, html, text,
};
use tidegate_arena::Share;
use tidegate_ledger::{Dropped, MAX_SINKS, MAX_SOURCES, PipelineBalance, Refusal};

/// As much as a status can hold: every source and sink that the books have pages for, every reason, errors
/// as long as sinks keep them.
fn crowded() -> Status {
    let mut status = troubled();
    let mut sink = status.sinks[1].clone();
    let mut sink_books = status.books.sinks[1].clone();
    let mut source = status.books.sources[0].clone();
    let name = "n".repeat(64);
    let dropped: Vec<_> = Dropped::ALL.iter().map(|reason| (*reason, u64::MAX / 16)).collect();
    (sink.name, sink.target) = (name.clone(), "t".repeat(256));
    sink.dropped = dropped.clone();
    if let Some(error) = &mut sink.last_error {
        error.message = "e".repeat(512);
    }
    let waiting = BlockedIndex {
        index: "i".repeat(255),
        records: 1024,
        documents: u64::MAX / 16,
        since: std::time::SystemTime::now(),
        reason: "r".repeat(128),
    };
    let waiting = vec![waiting; 4];
    (sink_books.name, sink_books.dropped) = (name.clone(), dropped);
    (source.name, source.refused) =
        (name.clone(), Refusal::ALL.iter().map(|reason| (*reason, u64::MAX / 16)).collect());
    let line = status.memory.declared[0].clone();
    status.memory.declared = vec![line; 64];
    status.sinks = vec![sink; MAX_SINKS];
    for sink in status.sinks.iter_mut().take(MOST_WAITING / 4) {
        sink.waiting.clone_from(&waiting);
    }
    let step = PipelineStep {
        pipeline: "p".repeat(64),
        step: "s".repeat(64),
        items: u64::MAX / 16,
        filtered: u64::MAX / 16,
        sampled_out: u64::MAX / 16,
        failures: u64::MAX / 16,
    };
    status.sinks.iter_mut().for_each(|sink| sink.pipeline_left_out = u64::MAX / 16);
    let of_source = SourcePipeline { source: name.clone(), steps: vec![step.clone()] };
    status.source_pipelines = vec![of_source; KINDS_OF_SOURCES];
    status.sinks[0].pipeline = vec![step; MOST_STEPS - KINDS_OF_SOURCES];
    let many = u64::MAX / 16;
    let decisions = TraceDecisions {
        undecided: many,
        most_undecided: many,
        remembered: many,
        held_back_bytes: many,
        early: many,
        late_kept: many,
        late_dropped: many,
        forgotten: many,
        unknown: many,
        kept_traces: many,
        unkept_traces: many,
        unkept_spans: many,
        policies: Vec::new(),
        policies_left_out: many,
    };
    let sampled = status.sinks.iter_mut().take(MOST_SAMPLED);
    sampled.for_each(|sink| sink.sampling = Some(decisions.clone()));
    let policy = PolicyDecisions { policy: "p".repeat(64), decision: "dropped", traces: many, spans: many };
    if let Some(first) = &mut status.sinks[0].sampling {
        first.policies = vec![policy; MOST_POLICIES];
    }
    status.books.sinks = vec![sink_books; MAX_SINKS];
    status.books.sources = vec![source; MAX_SOURCES];
    for source in status.books.sources.iter_mut().take(KINDS_OF_SOURCES) {
        source.pipeline = PipelineBalance {
            received: many,
            accepted: many,
            filtered: many,
            sampled_out: many,
            difference: i64::MIN,
        };
    }
    let tenant = Tenant {
        name: "n".repeat(128),
        received: many,
        accepted: many,
        refused: many,
        mostly: Some("unauthorized"),
        open: many,
        items: many,
        bytes: many,
        held: many,
    };
    status.tenants = Some(Tenants::of(vec![tenant; 256], 256, 256));
    let failed = Failed { reason: "unknown_authority", count: many, advice: ADVICE };
    status.handshakes = Some(Handshakes::of(many, vec![failed; 10]));
    status.fleet = Some(fleet(many));
    status
}

fn fleet(many: u64) -> Fleet {
    let policy = FleetPolicy {
        id: "n".repeat(128),
        revision: many,
        agents: many,
        up_to_date: many,
        rollout_seconds: [Some(1e15 / 3.0); 3],
    };
    Fleet {
        agents: many,
        waiting: many,
        in_rollout: many,
        by_status: vec![("disconnected".to_owned(), many); 6],
        by_version: vec![("255.255.65535".to_owned(), many); Fleet::MOST_VERSIONS],
        check_ins: Some(1e15 / 3.0),
        refused: many,
        policies: vec![policy; Fleet::MOST_POLICIES],
    }
}

/// The sources that can have a pipeline: one of each kind.
const KINDS_OF_SOURCES: usize = 7;

/// As long as advice is.
const ADVICE: &str = "the client's certificate is signed by an authority that is not known here: add it to those that are, \
                      or give the client a certificate of one of them, and see that its clock is right";

type Show<'a> = &'a dyn Fn(&Status);

/// Showing the largest status there can be takes no more heap than is declared for it.
#[test]
fn a_snapshot_fits_its_declaration() {
    let arena = Console::reserve().unwrap();
    let [_, _, snapshot, ..] = Console::declared();
    let sheet = || crate::page_buffer::PageBuffer::take(&arena).unwrap();
    let shows: [(&str, Show<'_>); 3] = [
        ("html", &|status| html::write(&Page::of(status), &mut sheet()).unwrap()),
        ("text", &|status| text::write(&Page::of(status), &mut sheet()).unwrap()),
        ("json", &|status| status.write_json(sheet()).unwrap()),
    ];
    // A sink has one pipeline, so all of them together have as many sinks as there are.
    let listed: Vec<ListedPipeline> = (0..MOST_LISTED)
        .map(|position| ListedPipeline {
            name: "n".repeat(64),
            sources: vec!["prometheus_remote_write"; 5],
            sinks: vec!["n".repeat(64); if position == 0 { MAX_SINKS } else { 0 }],
            steps: Some("&".repeat(LONGEST_LISTED / MOST_LISTED)),
        })
        .collect();
    let mut around = String::new();
    let taken = allocation_counter::measure(|| {
        let status = crowded();
        pipelines_page::begin(&status, Some(&listed), &mut sheet()).unwrap();
    });
    assert!(taken.bytes_max <= snapshot.each, "pipelines: {} bytes", taken.bytes_max);
    pipelines_page::begin(&crowded(), Some(&listed), &mut around).unwrap();
    pipelines_page::end(&mut around).unwrap();
    assert!(around.len() <= pipelines_page::AROUND, "{} bytes around the form", around.len());
    for (form, show) in shows {
        let taken = allocation_counter::measure(|| show(&crowded()));
        assert!(taken.bytes_max <= snapshot.each, "{form}: {} bytes", taken.bytes_max);
    }
}

/// The largest status there can be is shown whole, in every form, in one answer's memory.
#[test]
fn the_largest_status_is_not_cut() {
    let status = crowded();
    let (mut page, mut plain, mut json) = (String::new(), String::new(), Vec::new());
    html::write(&Page::of(&status), &mut page).unwrap();
    text::write(&Page::of(&status), &mut plain).unwrap();
    status.write_json(&mut json).unwrap();
    for (form, length) in [("html", page.len()), ("text", plain.len()), ("json", json.len())] {
        assert!(length < LONGEST_ANSWER / 2, "{form}: {length} bytes");
    }
}

/// The declared size is the largest possible use: the arena's total and its lines agree.
#[test]
fn the_declaration_is_the_reservation() {
    let arena = Console::reserve().unwrap();
    let [answers, heads, ..] = Console::declared();
    assert_eq!(arena.usage().total, answers.bytes() + heads.bytes());
    assert_eq!(arena.ceiling(Share::Egress), answers.bytes());
    // A form and the frames of open pages take a part of what answers have, and leave room for the longest of them.
    let form = LONGEST_FORM as u64;
    assert_eq!(arena.ceiling(Share::Ingest), heads.bytes() + form);
    let frames = (FRAMES * LONGEST_FRAME) as u64;
    assert!(answers.bytes() - form - frames >= LONGEST_ANSWER as u64);
}
