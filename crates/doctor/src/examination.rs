//! Looks at everything once: what checks share is gathered first, then each check judges it.

use crate::checks::memory::MemoryOwner;
use crate::checks::{CHECKS, journal, running};
use crate::mask::Masker;
use crate::probe::{self, PeerReport};
use crate::report::Report;
use crate::subject::{Peer, Setup, Subject};
use crate::system::{lock, processes, within};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How long reading a journal, a lake or dead letters may take, each.
pub const READ_LIMIT: Duration = Duration::from_secs(10);

/// The time that a look with a limit of its own may take beyond it.
pub(crate) const MARGIN: Duration = Duration::from_secs(2);

/// How to examine.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Asks no peer of a sink.
    pub is_offline: bool,
    /// The value of `Authorization` for the admin address; empty if there is none.
    pub authorization: String,
}

/// What was seen of a subject.
pub struct Examination<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) options: &'a Options,
    /// The folder that stands for `/`.
    pub(crate) root: &'a Path,
    /// The process that has the data folder.
    pub(crate) owner: Option<u32>,
    /// The gateway at the admin address.
    pub(crate) running: running::Running,
    /// The reports of the peers that can be asked, in their order; none if no peer was asked.
    pub(crate) peers: Vec<(Peer, PeerReport)>,
    pub(crate) journal: Option<journal::Journal>,
    pub(crate) now: SystemTime,
    /// How far the clock moved beside the time that passed, in seconds.
    pub(crate) clock_jump: f64,
    findings: Vec<(&'static str, crate::Finding)>,
}

/// Examines `subject`.
pub fn examine<'a>(subject: &'a Subject, options: &'a Options) -> Examination<'a> {
    examine_in(Path::new("/"), subject, options)
}

fn examine_in<'a>(root: &'a Path, subject: &'a Subject, options: &'a Options) -> Examination<'a> {
    let (begun, clock) = (Instant::now(), SystemTime::now());
    let setup = subject.setup.as_ref();
    let folder = setup.map(|setup| setup.data.path.join("journal"));
    // A disk that does not answer holds up nothing but these threads.
    let owner = folder.clone().and_then(|folder| {
        let root = root.to_owned();
        within(READ_LIMIT, move || lock::holder(&root, &folder.join("lock"))).flatten()
    });
    let running = setup
        .map(|setup| running::ask_for(root, setup.admin, &setup.data.path, owner, &options.authorization))
        .unwrap_or_default();
    let mut examination = Examination {
        subject,
        options,
        root,
        owner,
        running,
        peers: Vec::new(),
        journal: folder.and_then(|folder| {
            let to_look_at = folder.clone();
            within(READ_LIMIT + MARGIN, move || journal::look(&to_look_at, READ_LIMIT))
                .unwrap_or_else(|| Some(journal::Journal::silent(folder)))
        }),
        now: clock,
        clock_jump: 0.0,
        findings: Vec::new(),
    };
    if let Some(setup) = setup.filter(|_| !options.is_offline) {
        let peers: Vec<&Peer> = setup.peers.iter().flatten().collect();
        let reports = probe::ask_all(&peers, probe::PEER_LIMIT);
        examination.peers = peers.into_iter().cloned().zip(reports).collect();
    }
    examination.now = SystemTime::now();
    examination.clock_jump = seconds_between(clock, examination.now) - begun.elapsed().as_secs_f64();
    let found: Vec<_> = CHECKS
        .iter()
        .flat_map(|check| (check.run)(&examination).into_iter().map(|finding| (check.name, finding)))
        .collect();
    examination.findings = found;
    examination
}

impl Examination<'_> {
    /// The findings, without secrets.
    pub fn report(&self) -> Report {
        Report::new(self.findings.clone(), &self.masker())
    }

    /// Knows the secrets of the subject, and the token for the admin address.
    pub fn masker(&self) -> Masker {
        let secrets = self.subject.secrets.iter().map(String::as_str);
        let masker = Masker::new(secrets.chain([self.options.authorization.as_str()]));
        masker.hiding(self.subject.contents.iter().map(String::as_str))
    }

    /// Knows the values of environment variables, too.
    pub(crate) fn masker_of_archive(&self) -> Masker {
        self.masker().hiding(self.subject.variables.iter().map(String::as_str))
    }

    pub(crate) fn setup(&self) -> Option<&Setup> {
        self.subject.setup.as_ref()
    }

    /// The process to look at: the gateway, or this one, which is started as the gateway would be.
    pub(crate) fn process(&self) -> String {
        self.owner.map_or_else(|| "self".to_owned(), |pid| pid.to_string())
    }

    /// The process whose limits of memory are looked at, and what a running gateway says of its own.
    pub(crate) fn memory_owner(&self) -> MemoryOwner {
        let status = self.running.status.as_ref().filter(|_| self.running.is_ours);
        let limit = status.and_then(|status| status.pointer("/memory/limit")?.as_u64());
        MemoryOwner { process: self.process(), limit: limit.filter(|limit| *limit > 0) }
    }

    /// Whether a gateway uses the data folder, as far as can be seen.
    pub(crate) fn is_in_use(&self) -> bool {
        self.owner.is_some_and(|pid| processes::exists(self.root, pid)) || self.running.is_ours
    }
}

/// The seconds from one moment to another, which may be before it.
pub(crate) fn seconds_between(from: SystemTime, to: SystemTime) -> f64 {
    match to.duration_since(from) {
        Ok(after) => after.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}
