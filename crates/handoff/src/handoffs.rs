//! The logs of all members of a sink, as their owner holds them.

use crate::address::is_valid;
use crate::clock::{Clock, SystemClock};
use crate::error::{MemberError, OpenError};
use crate::member::MemberLog;
use crate::recover::{Recovery, recover};
use crate::settings::Settings;
use crate::state::{MemberState, Shared, View, lock};
use crate::worker::{STACK_BYTES, Worker};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tidegate_files::folder::{Files, RealFiles};
use tidegate_files::{FolderLock, FolderLockError};

/// The logs of a folder. A handle; clones are the same logs. When the last one is dropped, or [`close`](Self::close) is
/// called, the logs close: what is queued is written, the cursors are saved.
#[derive(Clone)]
pub struct Handoffs {
    shared: Arc<Shared>,
    owner: Arc<Owner>,
}

/// Ends the I/O thread.
struct Owner {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handoffs {
    /// Opens the folder, making it where there is none, and starts its I/O thread. Blocks for the disk: to be called when a
    /// sink starts.
    ///
    /// # Errors
    /// When another process has the folder, another version wrote a file in it, or the system refuses.
    pub fn open(settings: Settings) -> Result<(Handoffs, Recovery), OpenError> {
        let dir = settings.dir.display().to_string();
        let lock = FolderLock::acquire(&settings.dir).map_err(|error| match error {
            FolderLockError::InUse { pid } => OpenError::InUse { dir: dir.clone(), pid },
            FolderLockError::Io { doing, source } => {
                OpenError::Io { dir: dir.clone(), doing: doing.into(), source }
            }
        })?;
        let files = Arc::new(RealFiles::new(settings.dir.clone()));
        let clock = Box::new(SystemClock::default());
        let (handoffs, worker, recovery) = Self::assemble(settings, files, clock)?;
        let run = move || {
            worker.run();
            // Only now may another process take the folder.
            drop(lock);
        };
        let thread = std::thread::Builder::new().name("handoff".into()).stack_size(STACK_BYTES).spawn(run);
        let thread = thread.map_err(|source| OpenError::Io { dir, doing: "start its thread".into(), source });
        *crate::state::lock(&handoffs.owner.thread) = Some(thread?);
        Ok((handoffs, recovery))
    }

    /// The logs and their worker, which the caller runs.
    pub(crate) fn assemble(
        settings: Settings,
        files: Arc<dyn Files>,
        clock: Box<dyn Clock>,
    ) -> Result<(Handoffs, Worker, Recovery), OpenError> {
        let (shared, worker, recovery) = recover(settings, files, clock)?;
        let owner = Arc::new(Owner { shared: shared.clone(), thread: Mutex::new(None) });
        Ok((Handoffs { shared, owner }, worker, recovery))
    }

    /// The log of the member at `address`, which has no files until something is appended. When the planned number of
    /// members is reached, it takes the place of one without a backlog and without a handle.
    ///
    /// # Errors
    /// When the address cannot be one, or there are too many members.
    pub fn member(&self, address: &str) -> Result<MemberLog, MemberError> {
        if !is_valid(address) {
            return Err(MemberError::Address(address.into()));
        }
        let mut members = self.shared.members();
        if let Some(member) = members.iter().find(|member| &*member.address == address) {
            member.view().unlimited = false;
            return Ok(MemberLog::new(self.shared.clone(), member.clone()));
        }
        let index = if members.len() < self.shared.settings.members {
            members.len()
        } else {
            let unused = members.iter().position(MemberState::is_unused);
            unused.ok_or(MemberError::Crowded(members.len()))?
        };
        let member = Arc::new(MemberState::new(index, address, View::default()));
        match members.get_mut(index) {
            Some(place) => *place = member.clone(),
            None => members.push(member.clone()),
        }
        Ok(MemberLog::new(self.shared.clone(), member))
    }

    /// The logs of all members that have a backlog, also of those that nobody asked for since the start.
    pub fn members_with_backlog(&self) -> Vec<MemberLog> {
        let members = self.shared.members();
        let waiting = members.iter().filter(|member| !member.view().is_empty());
        waiting.map(|member| MemberLog::new(self.shared.clone(), member.clone())).collect()
    }

    /// Closes the logs, and waits until what is queued is written and the cursors are saved. Blocks for the disk.
    pub fn close(&self) {
        self.owner.close();
    }
}

impl Owner {
    fn close(&self) {
        self.shared.queue.close();
        self.shared.members().iter().for_each(|member| member.wake());
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the handoff log's thread panicked");
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Handoffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handoffs({})", self.shared.settings.dir.display())
    }
}
