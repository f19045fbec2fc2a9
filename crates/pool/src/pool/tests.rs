//! Promises: what the pool runs at a time and lets in is bounded; a panic is an answer; nobody waits for ever.

use super::*;
use futures_util::FutureExt;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Work that says that it is begun, and comes to its end when told so.
fn held() -> (impl FnOnce() + Send + 'static, Receiver<()>, SyncSender<()>) {
    let (begin, begun) = sync_channel(1);
    let (end, ends) = sync_channel::<()>(1);
    let work = move || {
        begin.send(()).unwrap();
        let _told = ends.recv();
    };
    (work, begun, end)
}

#[tokio::test]
async fn work_is_done_elsewhere_and_its_outcome_comes_back() {
    let pool = Pool::start(2, 4).unwrap();
    let here = std::thread::current().id();
    let (there, sum) = pool.run(|| (std::thread::current().id(), (0..10).sum::<u32>())).await.unwrap();
    assert_ne!(there, here);
    assert_eq!(sum, 45);
}

#[tokio::test]
async fn a_panic_is_its_callers_error_and_the_thread_goes_on() {
    let pool = Pool::start(1, 1).unwrap();
    for _ in 0..5 {
        let failed = pool.run(|| panic!("work number {}", 7)).await;
        assert_eq!(failed, Err::<(), _>(JobError::Panicked("work number 7".to_owned())));
    }
    assert_eq!(pool.run(|| 1).await, Ok(1));
    assert!(!pool.has_ended());
}

/// One at work, one in the queue: the third is not let in before the first has left.
#[tokio::test]
async fn the_queue_is_bounded() {
    let pool = Pool::start(1, 1).unwrap();
    let (work, begun, end) = held();
    let mut first = pin!(pool.run(work));
    assert!(first.as_mut().now_or_never().is_none());
    begun.recv().unwrap();
    let (mut second, mut third) = (pin!(pool.run(|| 2)), pin!(pool.run(|| 3)));
    assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
    assert_eq!(pool.0.queue().pieces.len(), 1, "the third waits outside");
    end.send(()).unwrap();
    assert_eq!((first.await, second.await, third.await), (Ok(()), Ok(2), Ok(3)));
}

#[tokio::test]
async fn abandoned_work_is_not_begun() {
    let pool = Pool::start(1, 2).unwrap();
    let (work, begun, end) = held();
    let mut first = pin!(pool.run(work));
    assert!(first.as_mut().now_or_never().is_none());
    begun.recv().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    assert!(pool.run(move || counted.fetch_add(1, SeqCst)).now_or_never().is_none(), "and dropped");
    end.send(()).unwrap();
    first.await.unwrap();
    assert_eq!(pool.run(|| ()).await, Ok(()));
    assert_eq!(count.load(SeqCst), 0);
}

#[tokio::test]
async fn a_stop_answers_all_callers_and_waits_for_running_work() {
    let pool = Pool::start(1, 1).unwrap();
    let (work, begun, end) = held();
    let mut first = pin!(pool.run(work));
    assert!(first.as_mut().now_or_never().is_none());
    begun.recv().unwrap();
    let (mut queued, mut outside) = (pin!(pool.run(|| 2)), pin!(pool.run(|| 3)));
    assert!(queued.as_mut().now_or_never().is_none() && outside.as_mut().now_or_never().is_none());
    let stopping = std::thread::spawn({
        let pool = pool.clone();
        move || pool.stop()
    });
    assert_eq!((queued.await, outside.await), (Err(JobError::Stopped), Err(JobError::Stopped)));
    end.send(()).unwrap();
    stopping.join().unwrap();
    assert_eq!(first.await, Ok(()));
    assert_eq!(pool.run(|| 4).await, Err(JobError::Stopped));
}
