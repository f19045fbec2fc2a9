use super::*;
use proptest::prelude::*;

const KEEP: Duration = Duration::from_secs(60);

fn limits(table_bytes: usize) -> PodLimits {
    PodLimits { table_bytes, ..PodLimits::default() }
}

fn pod(uid: &str) -> Pod {
    let name: Box<str> = "p".into();
    Pod { uid: uid.into(), log_uid: uid.into(), namespace: "n".into(), name, bytes: 1000, ..Pod::default() }
}

fn has(table: &PodTable, uid: &str) -> bool {
    let path = format!("n_p_{uid}/c/0.log");
    table.pod_of(&LogPath::parse(&path).unwrap()).is_some()
}

fn number(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(std::sync::atomic::Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_stay_for_a_while() {
    let table = PodTable::new(limits(1 << 20), KEEP);
    let begin = Instant::now();
    table.apply(pod("a"), begin);
    table.delete(pod("a"), begin);
    table.forget_deleted(begin + KEEP - Duration::from_millis(1));
    assert!(has(&table, "a"));
    table.forget_deleted(begin + KEEP);
    assert!(!has(&table, "a"));
    assert_eq!(table.len_and_bytes(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn pods_that_a_list_does_not_have_were_deleted() {
    let table = PodTable::new(limits(1 << 20), KEEP);
    let begin = Instant::now();
    table.begin_list();
    assert!(!table.is_listed());
    table.apply(pod("a"), begin);
    table.apply(pod("b"), begin);
    table.end_list(begin);
    assert!(table.is_listed());
    table.begin_list();
    table.apply(pod("b"), begin);
    table.end_list(begin);
    assert!(has(&table, "a") && has(&table, "b"));
    table.forget_deleted(begin + KEEP);
    assert!(!has(&table, "a") && has(&table, "b"));
}

/// A pod that is there again after its deletion is not forgotten by it.
#[tokio::test(start_paused = true)]
async fn a_pod_that_returns_stays() {
    let table = PodTable::new(limits(1 << 20), KEEP);
    let begin = Instant::now();
    table.delete(pod("a"), begin);
    table.apply(pod("a"), begin);
    table.forget_deleted(begin + 2 * KEEP);
    assert!(has(&table, "a"));
}

/// A reader that is behind has the names of a pod until its files are closed, through newer states of the pod too.
#[tokio::test(start_paused = true)]
async fn a_pinned_pod_stays_until_its_last_pin_is_gone() {
    let table = PodTable::new(limits(1 << 20), KEEP);
    let begin = Instant::now();
    table.apply(pod("a"), begin);
    let path = LogPath::parse("n_p_a/c/0.log").unwrap();
    let (first, second) = (table.pin(&path).unwrap(), table.pin(&path).unwrap());
    table.delete(pod("a"), begin);
    table.delete(pod("b"), begin + KEEP / 2);
    table.forget_deleted(begin + 2 * KEEP);
    assert!(has(&table, "a") && !has(&table, "b"));
    drop(first);
    table.forget_deleted(begin + 3 * KEEP);
    assert!(has(&table, "a"));
    drop(second);
    table.forget_deleted(begin + 3 * KEEP);
    assert!(!has(&table, "a"));
    assert_eq!(table.len_and_bytes(), (0, 0));
    assert!(table.pin(&path).is_none());
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_make_way_for_new_ones() {
    let table = PodTable::new(limits(3 * (1000 + ENTRY_BYTES)), KEEP);
    let begin = Instant::now();
    for uid in ["a", "b", "c"] {
        table.apply(pod(uid), begin);
    }
    table.apply(pod("d"), begin);
    assert!(!has(&table, "d"));
    assert_eq!(number(&table.counters().not_kept), 1);
    table.delete(pod("b"), begin);
    table.apply(pod("d"), begin);
    assert!(has(&table, "a") && !has(&table, "b") && has(&table, "d"));
}

#[tokio::test]
async fn changes_are_told() {
    let table = PodTable::new(limits(1 << 20), KEEP);
    let mut changes = table.changes();
    let before = table.version();
    table.apply(pod("a"), Instant::now());
    changes.next().await;
    assert!(table.version() > before);
}

proptest! {
    /// Whatever happens in whatever order, the table never takes more than it may, and counts what it has.
    #[test]
    fn never_exceeds_its_memory(steps in proptest::collection::vec((0u8..5, 0u8..20, 0usize..3000), 0..200)) {
        let limit = 10_000;
        let table = PodTable::new(limits(limit), KEEP);
        let mut now = Instant::now();
        for (step, uid, bytes) in steps {
            let pod = Pod { bytes, ..pod(&uid.to_string()) };
            match step {
                0 => table.begin_list(),
                1 => table.end_list(now),
                2 => table.delete(pod, now),
                3 => now += Duration::from_secs(bytes as u64 % 40),
                _ => table.apply(pod, now),
            }
            let pods = table.lock();
            let sum: usize = pods.by_uid.values().map(|entry| entry.pod.bytes() + ENTRY_BYTES).sum();
            prop_assert_eq!(pods.bytes, sum);
            prop_assert!(sum <= limit);
            let deleted = pods.by_uid.values().filter(|entry| entry.deleted_at.is_some()).count();
            prop_assert_eq!(pods.deleted.len(), deleted);
        }
    }
}
