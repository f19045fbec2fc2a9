//! The present members, and when they change.

use crate::dns::LOOKUP_BYTES;
use crate::entry::Entry;
use crate::file::{self, LONGEST, Stamp};
use crate::resolution::{Known, Round, members, round};
use futures_util::future::BoxFuture;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often a file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The first wait after a failed round; it doubles up to the interval.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// A member's address, generously: a name of 253 characters within a URL.
const LONGEST_ADDRESS: usize = 512;

/// Where members come from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The entries of the list.
    pub entries: Vec<Entry>,
    /// A file with more of them.
    pub file: Option<PathBuf>,
    /// Whether an address of the file can be used.
    pub check: fn(&str) -> Result<(), String>,
    /// The most members at a time.
    pub max_members: usize,
    /// How often names are looked up; a tenth more or less.
    pub interval: Duration,
    /// The servers that are asked, instead of those of `/etc/resolv.conf`: names are looked up as they are written, without the
    /// search list and `/etc/hosts`.
    pub name_servers: Vec<SocketAddr>,
}

impl Settings {
    /// The most bytes that a source takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let looked_up = self.entries.iter().filter(|entry| entry.is_looked_up()).count();
        // What is known, what replaces it, and the list of before and after.
        let lists = (2 * looked_up + 2) * (2 * (self.max_members + 1)) * LONGEST_ADDRESS;
        let file = self.file.as_ref().map_or(0, |_| 3 * usize::try_from(LONGEST).unwrap_or(0));
        lists + file + if looked_up > 0 { 2 * LOOKUP_BYTES } else { 0 }
    }
}

/// A change of the members, or of what is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// These are the members from now on: sorted, each once, at least one.
    Members(Vec<String>),
    /// Something could not be read or looked up, and the members known before stay. Reported once, until it works again.
    Failed(String),
    /// Everything can be read and looked up again.
    Recovered,
}

/// The members of a list, of names in DNS, and of a file.
pub struct MemberSource {
    settings: Arc<Settings>,
    /// For each entry that is looked up, in order.
    known: Vec<Known>,
    lookup: Option<BoxFuture<'static, Round>>,
    lookup_at: Instant,
    /// Rounds since the last one without a problem.
    failed_rounds: u32,
    lookup_problem: Option<String>,
    /// The members in the file at the last look; `None` before it could be read.
    in_file: Option<Vec<String>>,
    seen: Option<Stamp>,
    look_at: Instant,
    file_problem: Option<String>,
    /// The members that were reported last.
    members: Vec<String>,
    is_failing: bool,
}

impl MemberSource {
    /// A source that has not read or asked anything.
    #[must_use]
    pub fn new(settings: Settings) -> MemberSource {
        let looked_up = settings.entries.iter().filter(|entry| entry.is_looked_up()).count();
        let now = Instant::now();
        MemberSource {
            settings: Arc::new(settings),
            known: vec![None; looked_up],
            lookup: None,
            lookup_at: now,
            failed_rounds: 0,
            lookup_problem: None,
            in_file: None,
            seen: None,
            look_at: now,
            file_problem: None,
            members: Vec::new(),
            is_failing: false,
        }
    }

    /// Waits for the next event: at first for the first members.
    ///
    /// They are known when each name was answered and the file was read: a part of them would move keys that move back a moment
    /// later. Without names and file, they are known at once, and nothing else happens. Nothing is lost when the future is
    /// dropped before it is ready. Look-ups go on only while it is polled.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.event() {
                return event;
            }
            let has_file = self.settings.file.is_some();
            let is_idle = self.lookup.is_none() && !self.known.is_empty();
            tokio::select! {
                biased;
                round = answered(&mut self.lookup) => self.answered(round),
                () = sleep_until(self.lookup_at), if is_idle => {
                    self.lookup = Some(Box::pin(round(Arc::clone(&self.settings), self.known.clone())));
                }
                () = sleep_until(self.look_at), if has_file => self.look(),
            }
        }
    }

    /// The event that the present state is, compared with what was reported.
    fn event(&mut self) -> Option<Event> {
        let problem = match self.current() {
            Some(members) if members.len() > self.settings.max_members => {
                let most = self.settings.max_members;
                Some(format!("there are more members than the {most} of `max_members`: raise it to use them"))
            }
            Some(members) if members != self.members && !members.is_empty() => {
                self.members.clone_from(&members);
                return Some(Event::Members(members));
            }
            _ => None,
        };
        let problem = problem.or_else(|| self.file_problem.clone()).or_else(|| self.lookup_problem.clone());
        match problem {
            Some(problem) if !self.is_failing => {
                self.is_failing = true;
                Some(Event::Failed(problem))
            }
            None if self.is_failing => {
                self.is_failing = false;
                Some(Event::Recovered)
            }
            _ => None,
        }
    }

    /// All members as they are known now. `None` while not everything was read once.
    fn current(&self) -> Option<Vec<String>> {
        if self.known.iter().any(Option::is_none) || (self.settings.file.is_some() && self.in_file.is_none())
        {
            return None;
        }
        let mut known = self.known.iter();
        let mut all = self.in_file.clone().unwrap_or_default();
        for entry in &self.settings.entries {
            match entry {
                Entry::Literal(address) => all.push(address.clone()),
                Entry::Addresses(pattern) | Entry::Services(pattern) => {
                    all.extend(known.next().into_iter().flat_map(|known| members(pattern, known)));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    fn answered(&mut self, round: Round) {
        self.known = round.known;
        self.lookup_problem = round.problem;
        let interval = self.settings.interval;
        let wait = if self.lookup_problem.is_some() {
            let doubled =
                FIRST_RETRY.saturating_mul(1_u32.checked_shl(self.failed_rounds).unwrap_or(u32::MAX));
            self.failed_rounds = self.failed_rounds.saturating_add(1);
            doubled.min(interval)
        } else {
            self.failed_rounds = 0;
            interval
        };
        // Gateways that started together need not ask together.
        self.lookup_at = Instant::now() + wait.mul_f64(rand::random_range(0.9..1.1));
    }

    /// Reads the file, if it is another than at the last look.
    fn look(&mut self) {
        self.look_at = Instant::now() + LOOK_EVERY;
        let Some(path) = &self.settings.file else { return };
        // Before the content: a change in between is seen at the next look.
        let now = Some(file::stamp(path));
        if self.seen == now {
            return;
        }
        self.seen = now;
        match file::read(path, self.settings.check) {
            Ok(members) => (self.in_file, self.file_problem) = (Some(members), None),
            Err(error) => self.file_problem = Some(error.to_string()),
        }
    }
}

/// The result of the round that is under way, which ends it.
async fn answered(lookup: &mut Option<BoxFuture<'static, Round>>) -> Round {
    match lookup {
        Some(under_way) => {
            let round = under_way.await;
            *lookup = None;
            round
        }
        None => std::future::pending().await,
    }
}
