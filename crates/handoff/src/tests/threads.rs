//! On real files, with the I/O thread running.

use super::*;

/// Long enough for anything that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") })
}

fn real(dir: &std::path::Path) -> Settings {
    Settings { segment_bytes: 64 << 10, ..Settings::new(dir) }
}

#[test]
fn tasks_append_and_deliver_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let arena = arena();
    let (handoffs, _) = Handoffs::open(real(dir.path())).unwrap();
    run(async {
        let mut tasks = tokio::task::JoinSet::new();
        for member in 0..8u64 {
            let log = handoffs.member(&format!("member-{member}:1")).unwrap();
            let reader = log.clone();
            tasks.spawn(async move {
                for number in 0..100u64 {
                    log.append(meta(1), body(number.to_le_bytes().repeat(200))).await.unwrap();
                }
            });
            let arena = arena.clone();
            tasks.spawn(async move {
                for number in 0..100u64 {
                    reader.readable().await.unwrap();
                    let record = reader.next().await.unwrap().unwrap();
                    let window = arena.window(Share::Egress, record.body_len as usize).await.unwrap();
                    let window = reader.read(&record, window).await.unwrap();
                    assert_eq!(*window, number.to_le_bytes().repeat(200));
                    assert_eq!(reader.complete(&record).records, 1);
                }
                assert_balanced(&reader.stats());
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    handoffs.close();
    drop(handoffs);
    let (_, recovery) = Handoffs::open(real(dir.path())).unwrap();
    assert_eq!(recovery, Recovery { took: recovery.took, ..Recovery::default() });
}

#[test]
fn a_folder_is_one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let (handoffs, _) = Handoffs::open(real(dir.path())).unwrap();
    let refused = Handoffs::open(real(dir.path())).unwrap_err().to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    drop(handoffs);
    Handoffs::open(real(dir.path())).unwrap();
}

#[test]
fn closing_answers_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let (handoffs, _) = Handoffs::open(real(dir.path())).unwrap();
    let log = handoffs.member("a:1").unwrap();
    run(async {
        let mut waiting = std::pin::pin!(log.readable());
        let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        tokio::task::spawn_blocking(move || handoffs.close()).await.unwrap();
        assert_eq!(waiting.await, Err(ReadError::Closed));
        assert_eq!(log.append(meta(1), body([1])).await, Err(AppendError::Closed));
        assert_eq!(log.next().await, Err(ReadError::Closed));
    });
}

#[test]
fn files_belong_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("handoff");
    let (handoffs, _) = Handoffs::open(real(&folder)).unwrap();
    let log = handoffs.member("a:1").unwrap();
    run(log.append(meta(1), body([1]))).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}
