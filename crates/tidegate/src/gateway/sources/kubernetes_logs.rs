//! The source `kubernetes_logs`: files of the kubelet, with the metadata of their pods.

mod meters;
mod resource;
mod settings;

use super::follow::{self, FollowingSource, IntakeDestination, start_offsets};
use super::running::{LARGEST_BATCH, RunningKind, RunningServices, RunningSource};
use super::tail_series::{self, tail_series};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use resource::PodResource;
use std::time::{Duration, Instant};
use tidegate_arena::Reservation;
use tidegate_config::Config;
use tidegate_journal::{Protocol, Signal};
use tidegate_kube_pods::{PodLimits, PodTable, Watcher};
use tidegate_log_intake::TaskGroup;
use tidegate_tail::{Control, TailMeters, Tailer};
use tokio::sync::mpsc::{Sender, WeakSender};

pub(super) use settings::check;

pub(super) const KIND: SourceKind = SourceKind {
    name: "kubernetes_logs",
    max_body_setting: "sources.kubernetes_logs",
    max_body: |_| LARGEST_BATCH,
    max_received: |_| LARGEST_BATCH,
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.kubernetes_logs,
    shown: |config| {
        let source = &config.sources.kubernetes_logs;
        let node = settings::node(source).unwrap_or_default();
        ("Kubernetes logs", format!("{} of {node}", source.path.display()))
    },
    runs: Some(RunningKind { is_configured, declared, files, checkpoints, start }),
    start: |http, _| Ok(http),
};

/// Descriptors beside those of the files: inotify, runtimes, a directory being listed, the connection to the API.
const OWN_FILES: u64 = 12;
/// The least time between two messages that tell the reader of pods.
const LEAST_BETWEEN_CHANGES: Duration = Duration::from_millis(100);

/// The files of a source, and the watch of its pods.
struct KubernetesLogs {
    files: FollowingSource,
    watch: TaskGroup,
}

impl RunningSource for KubernetesLogs {
    fn is_finished(&self) -> Option<String> {
        self.files.is_finished().or_else(|| self.watch.lost().map(str::to_owned))
    }

    fn stop(self: Box<Self>, deadline: Instant) -> bool {
        let KubernetesLogs { files, watch } = *self;
        let has_read = Box::new(files).stop(deadline);
        watch.wait(deadline) && has_read
    }

    fn follower(&self) -> Option<&Sender<Control>> {
        self.files.follower()
    }
}

fn is_configured(config: &Config) -> bool {
    config.sources.kubernetes_logs.enabled
}

fn declared(config: &Config) -> Vec<Reservation> {
    let max_files = config.sources.kubernetes_logs.max_files as usize;
    // The start says what is wrong with them.
    let files = settings::files(config).map_or(0, |settings| settings.most_bytes());
    let pins = max_files * PodResource::BYTES_PER_FILE;
    let limits = PodLimits::default();
    let pods = PodTable::planned_bytes(limits) + Watcher::planned_bytes(limits.pod_bytes);
    let line = |what, each: usize, setting| Reservation {
        owner: "kubernetes_logs",
        what,
        count: 1,
        each: each as u64,
        setting,
    };
    let own = [
        line(
            "known files, and a thread that reads them",
            files + pins,
            Some("sources.kubernetes_logs.max_files"),
        ),
        line("pods of the node, and the watch of the API", pods, None),
    ];
    own.into_iter().chain(follow::declared(config, "kubernetes_logs")).collect()
}

fn files(config: &Config) -> u64 {
    u64::from(config.sources.kubernetes_logs.max_files) + OWN_FILES
}

/// Those of files that are there, and as many of files that are gone.
fn checkpoints(config: &Config) -> usize {
    2 * config.sources.kubernetes_logs.max_files as usize + 1
}

fn start(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
) -> Result<Box<dyn RunningSource>, Failure> {
    let config = environment.config;
    let source = &config.sources.kubernetes_logs;
    let mut settings = settings::files(config)?;
    settings.start_offsets = start_offsets(config, "kubernetes_logs")?;
    let watch_settings = settings::watch(source)?;
    let tenant = source.tenant.as_ref().map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.kubernetes_logs.tenant")?;
    let pods = PodTable::new(PodLimits::default(), source.keep_deleted.get());
    let meters = TailMeters::default();
    tail_series::publish(services.registry, tail_series!("kubernetes_logs", "container logs"), &meters);
    meters::publish(services.registry, &pods);
    let shutdown = intake.shutdown().clone();
    let destination = IntakeDestination::new(intake, services.journal.clone());
    let resource = PodResource::new(source, &watch_settings.node, pods.clone());
    let tailer = move || Tailer::new(settings, destination, resource, meters);
    let files = FollowingSource::start("kubernetes_logs", tailer)?;
    let watch = TaskGroup::new();
    let watcher = Watcher::new(watch_settings, pods.clone()).run();
    let messages = tell_of_changes(pods, files.control());
    watch.spawn_watched(services.workers.worker(0), "the watch of the Kubernetes API", async move {
        tokio::select! {
            biased;
            () = shutdown.begun() => {}
            () = Box::pin(watcher) => {}
            () = messages => {}
        }
    });
    Ok(Box::new(KubernetesLogs { files, watch }))
}

/// Wakes the files that wait for their pods, when the table has changed.
async fn tell_of_changes(pods: PodTable, reader: WeakSender<Control>) {
    let mut changes = pods.changes();
    loop {
        changes.next().await;
        if let Some(reader) = reader.upgrade() {
            // A reader with a full queue looks at these files within a second by itself.
            let _ = reader.try_send(Control::ResourcesChanged);
        }
        tokio::time::sleep(LEAST_BETWEEN_CHANGES).await;
    }
}
