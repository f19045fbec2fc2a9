//! The source `file`.

pub(super) mod settings;

use super::follow::{self, FollowingSource, IntakeDestination, ReaderChanges, start_offsets};
use super::running::{LARGEST_BATCH, RunningKind, RunningServices, RunningSource};
use super::tail_series::{self, tail_series};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use tidegate_arena::Reservation;
use tidegate_config::Config;
use tidegate_journal::{Protocol, Signal};
use tidegate_tail::{PathResource, TailMeters, Tailer};

pub(super) const KIND: SourceKind = SourceKind {
    name: "file",
    max_body_setting: "sources.file",
    max_body: |_| LARGEST_BATCH,
    max_received: |_| LARGEST_BATCH,
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.file,
    shown: |config| {
        let inputs = config.sources.file.inputs.values();
        let patterns: Vec<&str> = inputs.flat_map(|input| &input.include).map(String::as_str).collect();
        ("log files", patterns.join("   "))
    },
    runs: Some(RunningKind { is_configured, declared, files, checkpoints, start }),
    start: |http, _| Ok(http),
};

/// The mistakes in patterns of paths, in a sentence each with the setting.
pub(super) fn check(config: &Config) -> Vec<String> {
    settings::check(config)
}

/// Descriptors of the reader beside those of the files: inotify, a runtime, a directory being listed.
const OWN_FILES: u64 = 8;

fn is_configured(config: &Config) -> bool {
    !config.sources.file.inputs.is_empty()
}

fn declared(config: &Config) -> Vec<Reservation> {
    // The start says what is wrong with them.
    let each = settings::of(config).map_or(0, |settings| settings.most_bytes());
    let what = "known files, and a thread that reads them";
    let setting = Some("sources.file.max_files");
    let reader = Reservation { owner: "file", what, count: 1, each: each as u64, setting };
    std::iter::once(reader).chain(follow::declared(config, "file")).collect()
}

fn files(config: &Config) -> u64 {
    u64::from(config.sources.file.max_files) + OWN_FILES
}

/// Those of files that are there, and as many of files that are gone.
fn checkpoints(config: &Config) -> usize {
    let source = &config.sources.file;
    2 * source.max_files as usize + source.inputs.len()
}

fn start(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
) -> Result<Box<dyn RunningSource>, Failure> {
    let config = environment.config;
    let mut settings = settings::of(config)?;
    settings.start_offsets = start_offsets(config, "file")?;
    let tenant = config.sources.file.tenant.as_ref().map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.file.tenant")?;
    let destination = IntakeDestination::new(intake, services.journal.clone());
    let meters = TailMeters::default();
    tail_series::publish(services.registry, tail_series!("file", "log files"), &meters);
    let tailer = move || Tailer::new(settings, destination, PathResource::default(), meters);
    let changes =
        ReaderChanges { differ: |old, new| *old.sources.file != *new.sources.file, settings: settings::of };
    let source = FollowingSource::start("file", tailer)?.changing(changes);
    Ok(Box::new(source))
}
