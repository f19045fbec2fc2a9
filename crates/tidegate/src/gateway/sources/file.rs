//! The source `file`.

mod meters;
mod settings;

use super::follow::{FollowingSource, IntakeDestination, ReaderChanges};
use super::running::{LARGEST_BATCH, RunningKind, RunningServices, RunningSource};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use std::path::Path;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::Config;
use tidegate_journal::{Protocol, Signal};
use tidegate_start_offsets::StartOffsets;
use tidegate_tail::{FileId, PathResource, StartOffset, TailMeters, Tailer};

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
    let mut declared = vec![Reservation { owner: "file", what, count: 1, each: each as u64, setting }];
    let offsets = StartOffsets::read(&config.data).unwrap_or_default();
    if !offsets.is_empty() {
        let what = "start offsets of another program, until the first listing";
        let each = offsets.bytes() as u64;
        declared.push(Reservation { owner: "file", what, count: 1, each, setting: None });
    }
    declared
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
    let offsets = StartOffsets::read(&config.data).map_err(|error| {
        Failure(format!("starting the source `file`: {error}; import the checkpoints again"))
    })?;
    if !offsets.is_empty() {
        let find =
            move |path: &Path, id: FileId, first: &[u8]| offsets.find(path, id.device, id.inode, first);
        settings.start_offsets = Some(StartOffset(Arc::new(find)));
    }
    let tenant = config.sources.file.tenant.as_ref().map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.file.tenant")?;
    let destination = IntakeDestination::new(intake, services.journal.clone());
    let meters = TailMeters::default();
    meters::publish(services.registry, &meters);
    let tailer = move || Tailer::new(settings, destination, PathResource::default(), meters);
    let changes =
        ReaderChanges { differ: |old, new| *old.sources.file != *new.sources.file, settings: settings::of };
    let source = FollowingSource::start("file", tailer)?.changing(changes);
    Ok(Box::new(source))
}
