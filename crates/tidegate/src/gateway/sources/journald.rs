//! The source `journald`.

mod destination;

use super::running::{LARGEST_BATCH, RunningKind, RunningServices, RunningSource};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use destination::JournalDestination;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_arena::Reservation;
use tidegate_config::{Config, JournaldFields, JournaldInput, JournaldSource, JournaldStart};
use tidegate_journal::{Protocol, Signal};
use tidegate_journald::{Counters, FieldSet, Fields, JournalctlSettings, Reader, ReaderSettings};
use tidegate_log_intake::TaskGroup;
use tidegate_meters::{Kind, Name, Registry, Value};

/// The two pipes of a program, and those that are there while it is started.
const FILES_PER_INPUT: u64 = 8;

const ENTRIES: Name = Name::plain("journald_entries", "Entries of systemd's journal that are durable");
const BYTES: Name = Name::plain("journald_read_bytes", "Bytes that journalctl wrote for these entries");
const STARTS: Name = Name::plain("journald_starts", "Starts of journalctl");
const FAILURES: Name = Name::plain(
    "journald_failures",
    "Times that journalctl ended, could not be started or could not be read",
);
const GAPS: Name = Name::plain(
    "journald_gaps",
    "Times that the entry read last was not in the journal any more: entries were deleted unread",
);
const MISSING: Name = Name::plain(
    "journald_missing_entries",
    "Entries, of all units and priorities, that may be missing by that at most",
);
const CUT: Name = Name::plain("journald_cut_messages", "Messages cut to sources.journald.max_message");
const INVALID: Name =
    Name::plain("journald_invalid_text", "Messages with bytes that are not UTF-8, which were replaced");
const LEFT_OUT: Name =
    Name::plain("journald_fields_left_out", "Fields left out of entries with too many or too long ones");
const MALFORMED: Name =
    Name::plain("journald_malformed_entries", "Entries without a cursor, which were left out");

pub(super) const KIND: SourceKind = SourceKind {
    name: "journald",
    max_body_setting: "sources.journald",
    max_body: |_| LARGEST_BATCH,
    max_received: |_| LARGEST_BATCH,
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.journald,
    shown: |config| {
        let inputs = config.sources.journald.inputs.keys().map(ToString::to_string);
        ("systemd journal", inputs.collect::<Vec<_>>().join(", "))
    },
    runs: Some(RunningKind {
        is_configured: |config| !config.sources.journald.inputs.is_empty(),
        declared,
        files: |config| FILES_PER_INPUT * config.sources.journald.inputs.len() as u64,
        checkpoints: |config| config.sources.journald.inputs.len(),
        start,
    }),
    start: |http, _| Ok(http),
};

fn declared(config: &Config) -> Vec<Reservation> {
    let source = &config.sources.journald;
    let reader = Reader::<JournalDestination>::planned_bytes(source.max_message.as_usize());
    let each = (reader + JournalDestination::BYTES) as u64;
    let setting = Some("sources.journald.max_message");
    let count = source.inputs.len() as u64;
    vec![Reservation { owner: "journald", what: "reading of a journal", count, each, setting }]
}

fn start(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
) -> Result<Box<dyn RunningSource>, Failure> {
    let source = &environment.config.sources.journald;
    let tenant = source.tenant.as_ref().map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.journald.tenant")?;
    let counters = Arc::new(Counters::default());
    publish(services.registry, &counters);
    let tasks = TaskGroup::new();
    for (number, (name, input)) in source.inputs.iter().enumerate() {
        let destination = JournalDestination::new(intake.clone(), services.journal.clone(), name.as_str());
        let cursor = destination.cursor();
        let reader = Reader::new(settings(source, input), destination, cursor, Arc::clone(&counters));
        let worker = services.workers.worker(number);
        tasks.spawn_watched(worker, "the reader of a journal", reader.run());
    }
    Ok(Box::new(tasks))
}

fn settings(source: &JournaldSource, input: &JournaldInput) -> ReaderSettings {
    let set = match input.fields {
        JournaldFields::Mapped => FieldSet::Mapped,
        JournaldFields::User => FieldSet::User,
        JournaldFields::All => FieldSet::All,
    };
    ReaderSettings {
        journalctl: JournalctlSettings {
            program: source.journalctl.clone(),
            directory: input.directory.clone(),
            namespace: input.namespace.clone(),
            units: input.units.clone(),
            identifiers: input.identifiers.clone(),
            priority: input.priority.map(|priority| priority.to_string()),
            matches: input.matches.clone(),
            current_boot: input.current_boot,
        },
        from_beginning: input.start_at == JournaldStart::Beginning,
        fields: Fields { set, names: input.include_fields.clone() },
        max_message: source.max_message.as_usize(),
        attributes: input
            .attributes
            .iter()
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
    }
}

/// Picks one of the counters.
type CounterOf = fn(&Counters) -> &AtomicU64;

fn publish(registry: &Registry, counters: &Arc<Counters>) {
    let published: [(Name, CounterOf); 10] = [
        (ENTRIES, |counters| &counters.entries),
        (BYTES, |counters| &counters.bytes),
        (STARTS, |counters| &counters.starts),
        (FAILURES, |counters| &counters.failures),
        (GAPS, |counters| &counters.gaps),
        (MISSING, |counters| &counters.missing),
        (CUT, |counters| &counters.cut),
        (INVALID, |counters| &counters.invalid_text),
        (LEFT_OUT, |counters| &counters.left_out),
        (MALFORMED, |counters| &counters.malformed),
    ];
    for (name, counter) in published {
        let counters = Arc::clone(counters);
        registry.computed(name, Kind::Counter, [], 1, move |emit| {
            emit([], Value::Counter(counter(&counters).load(Relaxed)));
        });
    }
}
