//! Sources that read or listen by themselves, beside the shared listeners: their start, their watch and their end.

mod connections;

use super::SourceEnvironment;
use crate::Failure;
use crate::gateway::acceptor::{ConnectionLimiter, accept, accept_unix, listen};
use crate::gateway::reloaded_files::TlsAcceptors;
use crate::gateway::unix_socket::{self, SocketFile};
use crate::gateway::workers::Workers;
use connections::{SourceConnections, SourceTlsConnections};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tidegate_admission::Gate;
use tidegate_arena::Reservation;
use tidegate_config::{Config, EffectiveTls};
use tidegate_journal::Journal;
use tidegate_log_intake::{ConnectionService, LogIntake, Shutdown, TaskGroup};
use tidegate_meters::Registry;
use tidegate_tail::Control;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The largest batch that such a source gives to the gate, in bytes.
pub(crate) const LARGEST_BATCH: u64 = 4 << 20;

/// How a kind of source runs by itself.
pub(crate) struct RunningKind {
    /// Whether the configuration asks for it.
    pub(crate) is_configured: fn(&Config) -> bool,
    /// The memory that it takes beside payload, as lines of the plan.
    pub(crate) declared: fn(&Config) -> Vec<Reservation>,
    /// The files that it may have open at a time, beside its connections.
    pub(crate) files: fn(&Config) -> u64,
    /// The checkpoints that it keeps in the journal at most.
    pub(crate) checkpoints: fn(&Config) -> usize,
    /// Starts it. What it listens on is bound when this returns.
    pub(super) start: fn(&SourceEnvironment<'_>, &mut RunningServices<'_>) -> StartedSource,
}

/// A source that was started, or why it was not.
pub(super) type StartedSource = Result<Box<dyn RunningSource>, Failure>;

/// A change of settings that cannot fail any more.
pub(super) type ReadyChange = Box<dyn FnOnce()>;

/// Changes of sources that cannot fail any more.
#[derive(Default)]
pub(in crate::gateway) struct ReadyChanges(Vec<ReadyChange>);

impl ReadyChanges {
    /// Makes them. Without this nothing changes.
    pub(in crate::gateway) fn make(self) {
        self.0.into_iter().for_each(|change| change());
    }
}

/// A source that runs.
pub(crate) trait RunningSource: Send {
    /// The words for a part of it that has ended although it must not.
    fn is_finished(&self) -> Option<String>;

    /// Waits until it has appended what it has read, at most until `deadline`; says whether it has. Its
    /// [shutdown](LogIntake::shutdown) has begun.
    fn stop(self: Box<Self>, deadline: Instant) -> bool;

    /// Prepares the change of its settings from `old` to `new`, if there is one that it takes over while it runs.
    ///
    /// # Errors
    /// When the new settings cannot be used. Nothing has changed then.
    fn change(&self, old: &Config, new: &Config) -> Result<Option<ReadyChange>, Failure> {
        let _ = (old, new);
        Ok(None)
    }

    /// Where its reader of files takes messages, if it has one.
    fn follower(&self) -> Option<&mpsc::Sender<Control>> {
        None
    }
}

impl RunningSource for TaskGroup {
    fn is_finished(&self) -> Option<String> {
        self.lost().map(str::to_owned)
    }

    fn stop(self: Box<Self>, deadline: Instant) -> bool {
        self.wait(deadline)
    }
}

/// The services that such a source needs to start.
pub(crate) struct RunningServices<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) journal: &'a Journal,
    pub(crate) workers: &'a Arc<Workers>,
    pub(crate) registry: &'a Registry,
    pub(crate) door: &'a Arc<ConnectionLimiter>,
    pub(in crate::gateway) acceptors: &'a TlsAcceptors,
    pub(crate) running: RunningSources,
}

/// The running sources. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct RunningSources(Arc<Inner>);

#[derive(Default)]
struct Inner {
    shutdown: Shutdown,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sources: Vec<(&'static str, Box<dyn RunningSource>)>,
    acceptors: Vec<SourceAcceptor>,
    /// Of Unix sockets for datagrams.
    files: Vec<SocketFile>,
}

/// Accepts connections for a source.
struct SourceAcceptor {
    setting: String,
    task: AbortHandle,
    /// Of a Unix socket.
    _file: Option<SocketFile>,
}

impl RunningServices<'_> {
    /// Starts a source of this kind.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        kind: &RunningKind,
        environment: &SourceEnvironment<'_>,
    ) -> Result<(), Failure> {
        let source = (kind.start)(environment, self)?;
        self.running.state().sources.push((name, source));
        Ok(())
    }

    /// The way of a source to the gate. Its records belong to `tenant`, which the configuration has in `setting`.
    ///
    /// # Errors
    /// When it needs a tenant and has none.
    pub(crate) fn intake(
        &self,
        environment: &SourceEnvironment<'_>,
        tenant: Option<&str>,
        setting: &str,
    ) -> Result<LogIntake, Failure> {
        if self.gate.local_tenant(tenant).is_err() {
            let name = environment.books.name();
            return Err(Failure(format!(
                "starting the source `{name}`: a tenant is required, and it has none: set `{setting}` or `tenants.default`"
            )));
        }
        let memory = (self.gate.clone(), environment.arena.clone());
        let largest = environment.announced.max_body();
        let shutdown = self.running.0.shutdown.clone();
        Ok(LogIntake::new(memory, environment.books.clone(), tenant, largest, shutdown))
    }

    /// Accepts connections on a TCP address for a source, with TLS where it is given.
    ///
    /// # Errors
    /// In words: which setting it is, what was tried, what is wrong.
    pub(crate) fn accept_tcp(
        &mut self,
        config: &Config,
        (setting, address): (String, SocketAddr),
        tls: Option<EffectiveTls<'_>>,
        service: Arc<dyn ConnectionService>,
    ) -> Result<SocketAddr, Failure> {
        let socket = listen(address, &setting)?;
        let bound = socket.local_addr().unwrap_or(address);
        let (first, workers, door) =
            (self.workers.worker(0), Arc::clone(self.workers), Arc::clone(self.door));
        let connections = SourceConnections::new(service);
        let task = match tls.and_then(|shown| self.acceptors.of(config, shown)) {
            None => first.spawn(accept(socket, workers, door, Arc::new(connections))).abort_handle(),
            Some(acceptor) => {
                let shutdown = self.running.0.shutdown.clone();
                let connections = SourceTlsConnections::new(connections, Arc::clone(acceptor), shutdown);
                first.spawn(accept(socket, workers, door, Arc::new(connections))).abort_handle()
            }
        };
        self.running.state().acceptors.push(SourceAcceptor { setting, task, _file: None });
        Ok(bound)
    }

    /// Accepts connections on a Unix socket for a source.
    ///
    /// # Errors
    /// In words: which setting it is, what was tried, what is wrong.
    pub(crate) fn accept_unix(
        &mut self,
        (setting, path): (String, &Path),
        service: Arc<dyn ConnectionService>,
    ) -> Result<(), Failure> {
        let (socket, file) = unix_socket::listen(path, &setting)?;
        let (first, workers, door) =
            (self.workers.worker(0), Arc::clone(self.workers), Arc::clone(self.door));
        let connections = Arc::new(SourceConnections::new(service));
        let task = first.spawn(accept_unix(socket, workers, door, connections)).abort_handle();
        self.running.state().acceptors.push(SourceAcceptor { setting, task, _file: Some(file) });
        Ok(())
    }
}

impl RunningServices<'_> {
    /// Removes this socket when the sources stop.
    pub(crate) fn keep(&mut self, file: SocketFile) {
        self.running.state().files.push(file);
    }
}

impl RunningSources {
    /// The words for a part of one that has ended although it must not.
    pub(in crate::gateway) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let running = self.clone();
        move || {
            let state = running.state();
            let acceptor = state.acceptors.iter().find(|acceptor| acceptor.task.is_finished());
            let acceptor = acceptor.map(|acceptor| format!("the acceptor of `{}`", acceptor.setting));
            let part = |(name, source): &(&str, Box<dyn RunningSource>)| {
                Some(format!("{} of the source `{name}`", source.is_finished()?))
            };
            acceptor.or_else(|| state.sources.iter().find_map(part))
        }
    }

    /// Prepares the changes from `old` to `new` that sources take over while they run.
    ///
    /// # Errors
    /// When one of them cannot. Nothing has changed then.
    pub(in crate::gateway) fn change(&self, old: &Config, new: &Config) -> Result<ReadyChanges, Failure> {
        let state = self.state();
        let changes = state.sources.iter().map(|(name, source)| {
            source.change(old, new).map_err(|Failure(error)| Failure(format!("the source `{name}`: {error}")))
        });
        let changes: Vec<Option<ReadyChange>> = changes.collect::<Result<_, Failure>>()?;
        Ok(ReadyChanges(changes.into_iter().flatten().collect()))
    }

    /// The readers of files, with the names of their sources.
    pub(in crate::gateway) fn followers(&self) -> Vec<(&'static str, mpsc::Sender<Control>)> {
        let state = self.state();
        let sources = state.sources.iter();
        sources.filter_map(|(name, source)| Some((*name, source.follower()?.clone()))).collect()
    }

    /// Has all of them append what they have read and end, at the latest at `deadline`; says whether they did.
    pub(in crate::gateway) fn stop(&self, deadline: Instant) -> bool {
        let State { sources, acceptors, files } = std::mem::take(&mut *self.state());
        acceptors.iter().for_each(|acceptor| acceptor.task.abort());
        drop((acceptors, files));
        self.0.shutdown.begin();
        let late: Vec<&str> = sources
            .into_iter()
            .filter_map(|(name, source)| (!source.stop(deadline)).then_some(name))
            .collect();
        if !late.is_empty() {
            tracing::warn!(
                sources = late.join(", "),
                "not everything that was read could be appended in time"
            );
        }
        late.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the acceptor of this setting, as if it had failed.
    #[cfg(test)]
    pub(in crate::gateway) fn abort(&self, setting: &str) {
        let state = self.state();
        let acceptor = state.acceptors.iter().find(|acceptor| acceptor.setting == setting);
        acceptor.unwrap_or_else(|| panic!("{setting} is not listened on")).task.abort();
    }
}
