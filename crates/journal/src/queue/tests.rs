//! Promises: every submission is answered once; nobody sleeps through an answer; slots never leak.

use super::*;

#[cfg(not(loom))]
mod alone {
    use super::*;

    fn take(queue: &Queue<u8, u8>, taken: &mut Vec<(u32, u8)>) {
        assert_eq!(queue.turn(None), WriterTurn::Open);
        queue.take(taken);
        queue.release(0);
    }

    #[test]
    fn a_full_table_declines_and_a_read_outcome_frees_its_slot() {
        let queue: Queue<u8, u8> = Queue::new(1);
        let slot = queue.submit(1, 0).unwrap();
        assert_eq!(queue.submit(2, 0), Err(SubmitError::Full));
        let mut taken = Vec::new();
        take(&queue, &mut taken);
        assert_eq!(taken, [(slot, 1)]);
        assert!(queue.poll(slot, Waker::noop()).is_pending());
        queue.complete(&mut vec![(slot, 10)], &mut Vec::new());
        assert_eq!(queue.submit(2, 0), Err(SubmitError::Full));
        assert_eq!(queue.poll(slot, Waker::noop()), Poll::Ready(10));
        assert!(queue.submit(2, 0).is_ok());
    }

    #[test]
    fn an_abandoned_item_is_still_written_and_its_slot_freed() {
        let queue: Queue<u8, u8> = Queue::new(2);
        let (first, second) = (queue.submit(1, 0).unwrap(), queue.submit(2, 0).unwrap());
        queue.abandon(first);
        let mut taken = Vec::new();
        take(&queue, &mut taken);
        assert_eq!(taken, [(first, 1), (second, 2)]);
        queue.complete(&mut vec![(first, 10), (second, 20)], &mut Vec::new());
        queue.abandon(second);
        assert_eq!(queue.in_use(), 0);
    }

    /// Who waits for what was queued before waits neither for what came later nor for what is done, abandoned or not.
    #[test]
    fn an_item_is_pending_until_it_has_an_outcome() {
        let queue: Queue<u8, u8> = Queue::new(2);
        let slot = queue.submit(1, 0).unwrap();
        queue.abandon(slot);
        let before = queue.submitted();
        let later = queue.submit(2, 0).unwrap();
        assert!(queue.has_pending_before(before) && !queue.has_pending_before(0));
        let mut taken = Vec::new();
        take(&queue, &mut taken);
        assert!(queue.has_pending_before(before), "it is being written");
        queue.complete(&mut vec![(slot, 10)], &mut Vec::new());
        assert!(!queue.has_pending_before(before) && queue.has_pending_before(queue.submitted()));
        queue.complete(&mut vec![(later, 20)], &mut Vec::new());
        assert!(!queue.has_pending_before(queue.submitted()), "its outcome need not be read");
        queue.submit(3, 0).unwrap();
        assert!(!queue.has_pending_before(before), "the slot has another item");
    }

    #[test]
    fn a_bar_ends_by_time_or_by_word() {
        let queue: Queue<u8, u8> = Queue::new(2);
        queue.suspend(7, 100);
        assert_eq!(queue.submit(1, 99), Err(SubmitError::Barred(7)));
        assert!(queue.submit(1, 100).is_ok());
        queue.suspend(7, 1000);
        queue.resume();
        assert!(queue.submit(1, 101).is_ok());
    }

    #[test]
    fn closing_drains_the_queue() {
        let queue: Queue<u8, u8> = Queue::new(2);
        let slot = queue.submit(1, 0).unwrap();
        queue.close();
        assert_eq!(queue.submit(2, 0), Err(SubmitError::Closed));
        let mut taken = Vec::new();
        take(&queue, &mut taken);
        assert_eq!(taken, [(slot, 1)]);
        assert_eq!(queue.turn(None), WriterTurn::Closed);
    }
}

/// While a group is on its way, another is begun when as much is queued, or when that has landed; and at once when
/// the queue is closed.
#[cfg(not(loom))]
#[test]
fn a_group_behind_another_is_not_smaller() {
    let queue: Queue<u32, u32> = Queue::new(8);
    let mut taken = Vec::new();
    let turn = |queue: &Queue<u32, u32>| {
        let now = Some(Duration::ZERO);
        // A small group is written when the patience ends; only the queue knows its size.
        let worth = lock(&queue.state).is_worth_a_turn();
        assert_eq!(queue.turn(now), WriterTurn::Open);
        worth
    };
    queue.submit(1, 0).unwrap();
    queue.submit(2, 0).unwrap();
    assert!(turn(&queue));
    queue.take(&mut taken);
    let first = queue.release(2);
    queue.submit(3, 0).unwrap();
    assert!(!lock(&queue.state).is_worth_a_turn(), "one is less than the two that are on their way");
    queue.submit(4, 0).unwrap();
    assert!(turn(&queue));
    queue.take(&mut taken);
    let second = queue.release(2);
    queue.submit(5, 0).unwrap();
    queue.group_done(first);
    assert!(!lock(&queue.state).is_worth_a_turn(), "the second is still on its way");
    queue.group_done(second);
    assert!(turn(&queue));
    queue.take(&mut taken);
    queue.release(3);
    queue.submit(6, 0).unwrap();
    queue.close();
    assert!(turn(&queue), "whoever closes wants everything written");
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p tidegate-journal --lib --release queue`.
#[cfg(loom)]
mod interleaved {
    use super::*;
    use loom::future::block_on;
    use loom::sync::Arc;
    use loom::thread;
    use std::future::poll_fn;

    fn outcome(queue: &Queue<u32, u32>, slot: u32) -> u32 {
        block_on(poll_fn(|context| queue.poll(slot, context.waker())))
    }

    fn write(queue: &Queue<u32, u32>) -> usize {
        let (mut taken, mut outcomes, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        let mut written = 0;
        while queue.turn(None) == WriterTurn::Open {
            queue.take(&mut taken);
            let number = queue.release(taken.len());
            written += taken.len();
            outcomes.extend(taken.drain(..).map(|(slot, item)| (slot, item * 10)));
            queue.complete(&mut outcomes, &mut wakers);
            queue.group_done(number);
        }
        written
    }

    /// Loom fails this with a deadlock if an arrival or an answer can be slept through, and the assertions
    /// fail if an answer can reach the wrong ticket.
    #[test]
    fn two_concurrent_appends_are_both_answered() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            let writer = thread::spawn({
                let queue = queue.clone();
                move || write(&queue)
            });
            let other = thread::spawn({
                let queue = queue.clone();
                move || {
                    let slot = queue.submit(1, 0).unwrap();
                    assert_eq!(outcome(&queue, slot), 10);
                }
            });
            let slot = queue.submit(2, 0).unwrap();
            assert_eq!(outcome(&queue, slot), 20);
            other.join().unwrap();
            queue.close();
            assert_eq!(writer.join().unwrap(), 2);
            assert_eq!(queue.in_use(), 0);
        });
    }

    /// Of two who write, one has the turn at a time, and whoever arrives during a turn is not slept through.
    #[test]
    fn two_writers_take_turns() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            let turns = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
            let writer = || {
                let (queue, turns) = (queue.clone(), turns.clone());
                thread::spawn(move || {
                    let (mut taken, mut outcomes) = (Vec::new(), Vec::new());
                    let mut written = 0;
                    while queue.turn(None) == WriterTurn::Open {
                        assert_eq!(turns.fetch_add(1, loom::sync::atomic::Ordering::SeqCst), 0);
                        queue.take(&mut taken);
                        turns.fetch_sub(1, loom::sync::atomic::Ordering::SeqCst);
                        let number = queue.release(taken.len());
                        written += taken.len();
                        outcomes.extend(taken.drain(..).map(|(slot, item): (u32, u32)| (slot, item * 10)));
                        queue.complete(&mut outcomes, &mut Vec::new());
                        queue.group_done(number);
                    }
                    written
                })
            };
            let (one, other) = (writer(), writer());
            let slot = queue.submit(1, 0).unwrap();
            assert_eq!(outcome(&queue, slot), 10);
            queue.close();
            assert_eq!(one.join().unwrap() + other.join().unwrap(), 1);
        });
    }

    /// A ticket dropped at any moment leaves an item that is written once and a slot that is free again.
    #[test]
    fn an_abandoned_slot_is_reused_by_one_only() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(1));
            let writer = thread::spawn({
                let queue = queue.clone();
                move || write(&queue)
            });
            let slot = queue.submit(1, 0).unwrap();
            queue.abandon(slot);
            let again = queue.submit(2, 0);
            if let Ok(slot) = again {
                assert_eq!(outcome(&queue, slot), 20);
            }
            queue.close();
            assert_eq!(writer.join().unwrap(), 1 + usize::from(again.is_ok()));
            assert_eq!(queue.in_use(), 0);
        });
    }
}
