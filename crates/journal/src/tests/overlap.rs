//! The promise: two groups may be synced at once, and are still acknowledged in order: none before the sync of
//! every group before it, and none behind one whose sync failed.

use super::{PATIENCE, arena, batch, wait};
use crate::*;
use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tidegate_files::folder::simulated::SimulatedFiles;
use tidegate_files::folder::{File, Files};

/// A folder in which the syncs of segments wait for a word: in the order in which they came.
#[derive(Clone)]
struct Gated {
    files: SimulatedFiles,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Default)]
struct Gate {
    came: usize,
    /// The answer to each of them.
    words: Vec<Option<bool>>,
    /// How many have gone on.
    gone: usize,
    /// Nobody waits any more.
    open: bool,
}

impl Gated {
    fn new() -> Gated {
        Gated { files: SimulatedFiles::new(1), gate: Arc::default() }
    }

    /// Waits until so many syncs have come.
    fn await_syncs(&self, count: usize) {
        let (gate, changed) = &*self.gate;
        let waited = changed.wait_timeout_while(gate.lock().unwrap(), PATIENCE, |gate| gate.came < count);
        assert!(!waited.unwrap().1.timed_out(), "{count} syncs at once");
    }

    /// Lets a sync go on, to succeed or to fail, and waits until it has.
    fn let_go(&self, number: usize, well: bool) {
        let (gate, changed) = &*self.gate;
        let mut gate = gate.lock().unwrap();
        gate.words[number] = Some(well);
        let gone = gate.gone;
        changed.notify_all();
        drop(changed.wait_while(gate, |gate| gate.gone == gone).unwrap());
    }

    fn file(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        if name.ends_with(".seg") { Arc::new(GatedFile { file, gate: self.gate.clone() }) } else { file }
    }
}

impl Files for Gated {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        self.files.list()
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn File>> {
        Ok(self.file(name, self.files.open(name, write)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(name, self.files.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.files.sync_names()
    }
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

impl File for GatedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.file.write_at(parts, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn begin_sync(&self, offset: u64) {
        self.file.begin_sync(offset);
    }

    fn sync(&self) -> io::Result<()> {
        let (gate, changed) = &*self.gate;
        let mut gate = gate.lock().unwrap();
        let number = gate.came;
        gate.came += 1;
        gate.words.push(None);
        changed.notify_all();
        let mut gate = changed.wait_while(gate, |gate| !gate.open && gate.words[number].is_none()).unwrap();
        gate.gone += 1;
        changed.notify_all();
        if gate.words[number] != Some(false) { self.file.sync() } else { Err(io::Error::other("i/o error")) }
    }
}

/// Runs `look` on a journal whose writing threads run.
fn running(look: impl FnOnce(&Gated, &Journal)) {
    let files = Gated::new();
    let settings = Settings { queue: 8, ..Settings::new("/simulated") };
    let (journal, writer, _) =
        Journal::assemble(settings, Arc::new(files.clone()), Arc::new(SystemClock::default())).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| writer.run());
        let _open = Open(&files, &journal);
        look(&files, &journal);
    });
}

/// Lets everything go on at the end, also when the test has failed.
struct Open<'a>(&'a Gated, &'a Journal);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let (gate, changed) = &*self.0.gate;
        if let Ok(mut gate) = gate.lock() {
            gate.open = true;
        }
        changed.notify_all();
        self.1.close(Duration::ZERO);
    }
}

#[test]
fn a_group_is_acknowledged_after_all_groups_before_it() {
    let arena = arena();
    running(|files, journal| {
        let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
        let first = journal.append(batch(&arena, 1, b"first"));
        files.await_syncs(1);
        let second = journal.append(batch(&arena, 1, b"second"));
        files.await_syncs(2);
        files.let_go(1, true);
        assert_eq!(sink.next_blocking(Duration::from_millis(100)).unwrap(), None, "the first is not durable");
        files.let_go(0, true);
        assert_eq!([wait(first), wait(second)].map(|done| done.unwrap().sequence), [0, 1]);
        for sequence in 0..2 {
            let event = sink.next_blocking(PATIENCE).unwrap();
            assert!(matches!(event, Some(Event::Record(record)) if record.sequence == sequence));
        }
    });
}

#[test]
fn a_group_behind_one_that_failed_is_refused_with_it() {
    let arena = arena();
    running(|files, journal| {
        let first = journal.append(batch(&arena, 1, b"first"));
        files.await_syncs(1);
        let second = journal.append(batch(&arena, 1, b"second"));
        files.await_syncs(2);
        files.let_go(1, true);
        files.let_go(0, false);
        for refused in [wait(first), wait(second)] {
            assert!(
                matches!(refused, Err(AppendError::Disk { trouble: DiskError::Failed(_), .. })),
                "{refused:?}"
            );
        }
        assert_eq!(journal.stats().head, 0, "no sink sees either");
    });
}

#[test]
fn a_group_before_one_that_failed_is_acknowledged() {
    let arena = arena();
    running(|files, journal| {
        let first = journal.append(batch(&arena, 1, b"first"));
        files.await_syncs(1);
        let second = journal.append(batch(&arena, 1, b"second"));
        files.await_syncs(2);
        files.let_go(1, false);
        files.let_go(0, true);
        assert_eq!(wait(first).unwrap().sequence, 0);
        assert!(wait(second).is_err());
        assert_eq!(journal.stats().head, 1);
    });
}
