//! Memory does not grow with the backlog.

use super::*;
use allocation_counter::measure;

#[test]
fn a_backlog_costs_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let settings =
        Settings { segment_bytes: 64 << 10, durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let clock = Box::new(Driven::default());
    let files = Arc::new(tidegate_files::folder::RealFiles::new(dir.path().to_owned()));
    let (handoffs, mut worker, _) = Handoffs::assemble(settings, files, clock).unwrap();
    let log = handoffs.member("a:1").unwrap();
    let body = body([1; 1000]);
    let mut append = |count: usize| {
        for _ in 0..count {
            let mut append = std::pin::pin!(log.append(meta(1), body.clone()));
            let context = &mut Context::from_waker(Waker::noop());
            assert!(append.as_mut().poll(context).is_pending());
            worker.turn(Some(Duration::ZERO));
            assert_eq!(append.as_mut().poll(context), Poll::Ready(Ok(())));
        }
    };
    append(10);
    let used = measure(|| append(2000));
    assert!(used.bytes_current.abs() < 512, "{used:?}");
    assert_eq!(log.backlog().records, 2010);
    assert!(std::fs::read_dir(dir.path()).unwrap().count() > 30);
}

/// A member takes what the plan declares for it, gone with a backlog in several segments and being read.
#[test]
fn members_take_no_more_than_declared() {
    let members = 100;
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        segment_bytes: 4096,
        durability: Durability::PageCache,
        members,
        ..Settings::new(dir.path())
    };
    let declared: u64 = settings
        .overhead()
        .iter()
        .filter(|entry| entry.what == "members' logs")
        .map(|entry| entry.bytes())
        .sum();
    let clock = Box::new(Driven::default());
    let files = Arc::new(tidegate_files::folder::RealFiles::new(dir.path().to_owned()));
    let (handoffs, mut worker, _) = Handoffs::assemble(settings, files, clock).unwrap();
    let body = body([1; 3000]);
    let context = &mut Context::from_waker(Waker::noop());
    // Not measured: the first of everything, and the buffer that a save is encoded in.
    let mut logs = Vec::with_capacity(members);
    let mut go = |members: std::ops::Range<usize>| {
        for member in members {
            let log = handoffs.member(&format!("{member}{}", "x".repeat(250))).unwrap();
            for _ in 0..3 {
                let mut append = std::pin::pin!(log.append(meta(1), body.clone()));
                assert!(append.as_mut().poll(context).is_pending());
                worker.turn(Some(Duration::ZERO));
                assert_eq!(append.as_mut().poll(context), Poll::Ready(Ok(())));
            }
            let mut next = std::pin::pin!(log.next());
            assert!(next.as_mut().poll(context).is_pending());
            worker.turn(Some(Duration::ZERO));
            assert!(matches!(next.as_mut().poll(context), Poll::Ready(Ok(Some(_)))));
            logs.push(log.clone());
        }
        worker.save_and_delete();
    };
    go(0..1);
    let used = measure(|| go(1..members));
    let each = declared / members as u64;
    assert!((used.bytes_current as u64) < each * (members as u64 - 1), "{used:?} {each}");
}
