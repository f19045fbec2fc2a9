//! Promises: what is accepted is durable and in the books; waits end; what the intake says is always accepted, is.

use super::*;
use tidegate_admission::{Deliverable, SizeLimit};
use tidegate_arena::Floors;
use tidegate_journal::{Durability, Journal, Settings};
use tidegate_ledger::Ledger;
use tidegate_meters::Registry;
use tidegate_wire::otlp::logs::{Body, LogRecord, LogsEncoder};

const WAIT: Duration = Duration::from_secs(5);
const TOTAL: u64 = 4 << 20;
const MAX_BATCH: usize = 1 << 20;

struct Rig {
    arena: Arena,
    gate: Gate,
    ledger: Ledger,
    intake: LogIntake,
    _dir: tempfile::TempDir,
}

/// An intake before a journal that may take `quota` bytes.
fn rig(quota: u64) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let arena = Arena::new(
        TOTAL,
        Floors::NONE.with(Share::Ingest, 1 << 20).with(Share::Decode, 1 << 18),
        4 << 20,
        64,
        64,
    )
    .unwrap();
    let settings = Settings { quota, durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, recovery) = Journal::open(settings).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let head = ledger.head();
    journal.observe(move |items| head.advance_to(items));
    let gate = Gate::new(arena.clone(), journal, WAIT);
    let memory = (gate.clone(), arena.clone());
    let intake = LogIntake::new(memory, ledger.source("test").unwrap(), None, MAX_BATCH, Shutdown::new());
    Rig { arena, gate, ledger, intake, _dir: dir }
}

impl Rig {
    /// A batch of so many records with bodies of so many bytes.
    async fn batch(&self, records: usize, bytes: usize) -> LogBatch {
        let mut window = self.intake.window(records * (bytes + 64) + 256).await.unwrap();
        let text = vec![b'x'; bytes];
        let mut encoder = LogsEncoder::new(window.spare_mut());
        encoder.resource(&[], "test").unwrap();
        for _ in 0..records {
            encoder.record(&LogRecord { body: Body::Text(&[&text]), ..LogRecord::default() }).unwrap();
        }
        let done = encoder.finish();
        window.advance(done.len);
        let source_bytes = (records * bytes) as u64;
        let (items, largest_item) = (done.items, done.largest_item);
        LogBatch { window, from: 0, len: done.len, items, largest_item, source_bytes }
    }

    /// Accepted requests, accepted items, and refused requests by reason. The books balance, and all memory is free.
    fn assert_books(&self) -> (u64, u64, Vec<(Refusal, u64)>) {
        let mut balance = self.ledger.balance();
        assert_eq!(balance.difference(), 0, "{balance:?}");
        assert!(balance.at_rest());
        assert!(self.arena.usage().shares.iter().all(|share| share.used == 0));
        let source = balance.sources.remove(0);
        (source.accepted, self.ledger.source("test").unwrap().items(), source.refused)
    }
}

#[tokio::test]
async fn accepted_batches_are_in_the_books() {
    let rig = rig(1 << 30);
    for _ in 0..3 {
        let batch = rig.batch(7, 100).await;
        rig.intake.append(batch, Checkpoints::default()).await.unwrap();
    }
    rig.intake.refuse(Refusal::Memory, 5);
    assert_eq!(rig.assert_books(), (3, 21, vec![]));
    assert_eq!(rig.ledger.balance().sources[0].items_refused, [(Refusal::Memory, 5)]);
}

/// While the journal accepts nothing, no memory is given out; the wait ends with the source.
#[tokio::test(start_paused = true)]
async fn a_full_journal_keeps_sources_from_reading() {
    let rig = rig(1 << 20);
    let refused = loop {
        let batch = rig.batch(4, 50_000).await;
        if let Err(refused) = rig.intake.append(batch, Checkpoints::default()).await {
            break refused;
        }
    };
    assert!(matches!(refused, IntakeError::Retry(after) if !after.is_zero()), "{refused:?}");
    let (intake, waiting) = (rig.intake.clone(), rig.intake.window(1000));
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_secs(600), &mut waiting).await.is_err());
    intake.shutdown().begin();
    assert_eq!(waiting.await.unwrap_err(), Stopping);
    let (_, _, refused) = rig.assert_books();
    assert_eq!(refused, [(Refusal::Disk, 1)], "waiting refuses nothing");
}

/// A wait for memory ends when there is some, or when the source is to end.
#[tokio::test(start_paused = true)]
async fn waits_for_memory() {
    let rig = rig(1 << 30);
    let all = || rig.arena.try_charge(Share::Ingest, rig.arena.free(Share::Ingest)).unwrap();
    let held = all();
    let mut waiting = Box::pin(rig.intake.window(100_000));
    assert!(tokio::time::timeout(Duration::from_secs(600), &mut waiting).await.is_err());
    drop(held);
    assert!(waiting.await.unwrap().spare() >= 100_000);
    let held = all();
    let mut waiting = Box::pin(rig.intake.window(100_000));
    assert!(tokio::time::timeout(Duration::from_secs(600), &mut waiting).await.is_err());
    rig.intake.shutdown().begin();
    assert_eq!(waiting.await.unwrap_err(), Stopping);
    assert_eq!(rig.intake.window(1).await.unwrap_err(), Stopping);
    drop(held);
    rig.assert_books();
}

/// A sink that borrows waits for memory that a message holds; the records of the message get theirs at once.
#[tokio::test(start_paused = true)]
async fn a_sink_that_waits_for_a_message_does_not_hold_it_up() {
    let rig = rig(64 << 20);
    let message = rig.arena.window(Share::Ingest, 2 << 20).await.unwrap();
    let free = usize::try_from(rig.arena.free(Share::Egress)).unwrap();
    let mut sink = Box::pin(rig.arena.window(Share::Egress, free + (1 << 20)));
    assert!(tokio::time::timeout(Duration::from_secs(600), &mut sink).await.is_err());
    let beside = tokio::time::timeout(WAIT, rig.intake.window_beside_message(65_536, 65_536));
    drop((beside.await.unwrap().unwrap(), message));
    sink.await.unwrap();
}

/// Records read before the end are still accepted, until the gate itself stops.
#[tokio::test]
async fn the_last_batch_is_accepted() {
    let rig = rig(1 << 30);
    let (last, late) = (rig.batch(1, 10).await, rig.batch(1, 10).await);
    rig.intake.shutdown().begin();
    rig.intake.append(last, Checkpoints::default()).await.unwrap();
    rig.gate.stop();
    assert_eq!(rig.intake.append(late, Checkpoints::default()).await, Err(Stopping.into()));
    assert_eq!(rig.assert_books(), (1, 1, vec![(Refusal::Shutdown, 1)]));
}

/// A batch and a record of the lengths that are said to be always accepted are, whatever the sinks need; longer ones are
/// refused for good.
#[tokio::test]
async fn says_what_is_always_accepted() {
    let rig = rig(1 << 30);
    let bounds = [(1 << 20, 0, usize::MAX), (700_000, 4, usize::MAX), (900_000, 10, 20_000)];
    for (most, factor, item) in bounds {
        rig.gate.set_deliverable(Deliverable::new(|_, _| SizeLimit { most, factor, item }));
        let (batch, record) = (rig.intake.largest_batch(), rig.intake.largest_item());
        assert!(batch > 100_000 && record > 5000, "{batch} {record}");
        let limit = rig.gate.size_limit(Protocol::Otlp, Signal::Logs);
        assert_eq!(limit.check(Size { kept: batch, decoded: 0, item: record }), Ok(()));
        assert!(rig.intake.window(usize::MAX).await.unwrap().spare() >= batch);
    }
    let batch = rig.batch(1, 30_000).await;
    assert_eq!(rig.intake.append(batch, Checkpoints::default()).await, Err(IntakeError::TooLarge));
    assert_eq!(rig.assert_books(), (0, 0, vec![(Refusal::TooLarge, 1)]));
}
