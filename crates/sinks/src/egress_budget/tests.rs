//! Promise: a sink holds no more than its part, or than there is while it has the turn.

use super::*;
use tidegate_arena::{Floors, PAGE};

const PART: usize = 64 * PAGE;

fn rooms() -> (Arena, EgressBudget, EgressBudget) {
    let floors = Floors::NONE.with(Share::Egress, 2 * PART as u64).with(Share::Ingest, PART as u64);
    let arena = Arena::new(8 * PART as u64, floors, 4 * PART, 64, 8).unwrap();
    let turn = Arc::default();
    let room = || EgressBudget::new(&arena, Share::Egress, PART, &turn);
    let rooms = (room(), room());
    (arena, rooms.0, rooms.1)
}

#[tokio::test]
async fn without_the_borrow_turn_only_the_share_is_available() {
    let (_arena, room, _) = rooms();
    let half = room.window(PART / 2).await.unwrap();
    let rest = room.charge(PART / 2).await.unwrap();
    assert_eq!(room.window(1).await.err(), Some(BudgetError::WithoutTurn));
    drop(rest);
    assert!(room.window(1).await.is_ok());
    drop(half);
    assert_eq!(room.charge(room.most() + 1).await.err(), Some(BudgetError::Never));
}

#[tokio::test]
async fn with_the_borrow_turn_free_memory_is_available() {
    let (_arena, room, other) = rooms();
    let turn = room.turn().await;
    // Eight parts, less the floors of the other shares and the other sink's part.
    assert_eq!(room.most(), 6 * PART);
    let all = room.charge(room.most()).await.unwrap();
    assert!(room.is_over());
    let others = other.charge(PART).await.unwrap();
    drop((all, others, turn));
    assert!(!room.is_over());
    assert_eq!(room.charge(PART + 1).await.err(), Some(BudgetError::WithoutTurn), "the turn is over");
}

/// A reserve is there for the others whatever the rest holds, also after a turn.
#[tokio::test]
async fn a_reserve_is_left_to_the_others() {
    const RESERVE: usize = 8 * PAGE;
    let (_arena, room, _) = rooms();
    let rest = room.with_reserve(RESERVE);
    assert_eq!((rest.part(), rest.left()), (PART - RESERVE, PART - RESERVE));
    let held = rest.charge(PART - RESERVE).await.unwrap();
    assert_eq!(rest.window(1).await.err(), Some(BudgetError::WithoutTurn));
    let reserved = room.window(RESERVE).await.unwrap();
    assert_eq!(room.window(1).await.err(), Some(BudgetError::WithoutTurn));
    drop(held);
    let held = rest.charge(PART - RESERVE).await.unwrap();
    assert!(!rest.is_over(), "what is held of the reserve is no matter of the rest");
    drop(reserved);
    let turn = rest.turn().await;
    let more = rest.charge(PAGE).await.unwrap();
    assert!(rest.is_over(), "the turn is kept until the reserve is free again");
    assert_eq!(rest.charge(rest.most()).await.err(), Some(BudgetError::Never));
    drop((more, held, turn));
    assert!(!rest.is_over() && rest.held() == 0);
}

#[tokio::test]
async fn one_borrows_at_a_time() {
    let (_arena, room, other) = rooms();
    let turn = room.turn().await;
    let waiting = other.turn();
    tokio::pin!(waiting);
    let poll =
        std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context).is_ready()));
    assert!(!poll.await);
    assert!(room.is_turn_wanted() && !other.is_turn_wanted(), "the other one waits");
    drop(turn);
    assert!(waiting.await.is_some());
    assert!(!other.is_turn_wanted());
}

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_the_queue() {
    let (_arena, room, other) = rooms();
    let _turn = room.turn().await;
    assert!(tokio::time::timeout(Duration::from_millis(1), other.turn()).await.is_err());
    assert!(!room.is_turn_wanted());
}

/// A record keeps the turn while nobody waits, and for as long as it took to read it while somebody does.
#[tokio::test(start_paused = true)]
async fn a_slice_lasts_as_long_as_reading_took() {
    let (_arena, room, other) = rooms();
    let _turn = room.turn().await;
    let mut slice = BorrowSlice::begin();
    tokio::time::advance(4 * BORROW_SLICE).await;
    assert!(!slice.is_over(&room), "nothing is sent yet");
    slice.sends();
    tokio::time::advance(5 * BORROW_SLICE).await;
    assert!(!slice.is_over(&room), "nobody waits");
    let waiting = other.turn();
    tokio::pin!(waiting);
    let poll =
        std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context).is_ready()));
    assert!(!poll.await && slice.is_over(&room));
    let mut slice = BorrowSlice::begin();
    slice.sends();
    tokio::time::advance(BORROW_SLICE - Duration::from_millis(1)).await;
    assert!(!slice.is_over(&room), "too short");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(slice.is_over(&room));
}

#[tokio::test]
async fn growing_counts_too() {
    let (_arena, room, _) = rooms();
    let mut window = room.window(PAGE).await.unwrap();
    window.try_reserve(PART).unwrap();
    window.advance(PART);
    assert_eq!(window.try_reserve(1).err(), Some(BudgetError::WithoutTurn));
    drop(window);
    assert!(room.charge(PART).await.is_ok());
}

#[tokio::test]
async fn a_release_wakes_the_waiter() {
    let (_arena, room, _) = rooms();
    let own = room.window(PAGE).await.unwrap();
    let others = room.window(2 * PAGE).await.unwrap();
    assert!(room.holds_more_than(own.bytes()));
    let falls = room.falls_to(own.bytes());
    tokio::pin!(falls);
    let poll =
        std::future::poll_fn(|context| std::task::Poll::Ready(falls.as_mut().poll(context).is_ready()));
    assert!(!poll.await);
    drop(others);
    falls.await;
}

/// The pages of a window that was larger before do not come with it.
#[tokio::test]
async fn a_window_brings_no_more_than_was_asked_for() {
    let (arena, room, _) = rooms();
    drop(room.window(4 * PAGE).await.unwrap());
    let window = room.window(2 * PAGE).await.unwrap();
    let used: u64 = arena.usage().shares.iter().map(|share| share.used).sum();
    assert_eq!((used, window.bytes()), (2 * PAGE as u64, 2 * PAGE));
}
