//! Callers who go away.

use crate::server::{Server, Step};
use crate::{MS, charged, driven, settings};
use serde_json::json;
use tidegate_bulk::{Settings, Target, TicketList};

/// A withdrawn item leaves no bytes in the request.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_item_is_not_in_the_request() {
    let server = Server::default();
    driven(settings(), &server, async |bulk, _| {
        let get = |id: u32| bulk.get(Target::new("i", &id.to_string())).unwrap();
        let index = |id: u32| {
            bulk.index(Target::new("i", &id.to_string()), format!("{{\"n\":{id}}}").as_bytes()).unwrap()
        };
        let (mut gets, mut writes): (Vec<_>, Vec<_>) =
            ((0..9).map(get).collect(), (0..9).map(index).collect());
        for at in [8, 5, 4, 0] {
            drop((gets.remove(at), writes.remove(at)));
        }
        assert!(writes.into_iter().collect::<TicketList<_>>().await.iter().all(Result::is_ok));
        let found = gets.into_iter().collect::<TicketList<_>>().await;
        assert_eq!(found.len(), 5);
    })
    .await;
    for seen in server.requests() {
        assert_eq!(seen.items, 5);
        for id in 0..9 {
            assert_eq!(
                seen.body.contains(&format!("\"_id\":\"{id}\"")),
                [1, 2, 3, 6, 7].contains(&id),
                "{seen:?}"
            );
        }
    }
}

/// Callers who come and go while nothing is sent take no more memory than those who stay.
#[tokio::test(start_paused = true)]
async fn holes_are_used_again() {
    let server = Server::default();
    let small = Settings { batch_bytes: 32 << 10, lane_bytes: 64 << 10, linger: 1000 * MS, ..settings() };
    driven(small, &server, async |bulk, arena| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
        let index = |id: u32| bulk.index(Target::new("i", &id.to_string()), body.as_bytes()).unwrap();
        let stays = index(1);
        for _ in 0..1000 {
            let (goes, next) = (index(2), index(3));
            drop(goes);
            drop(next);
        }
        assert!(charged(arena) <= 64 << 10);
        assert!(stays.await.is_ok());
    })
    .await;
    assert_eq!(server.sizes(), [1], "compacting made room, so nothing was sent early");
}

/// When everybody left, nothing is sent, and the memory is free when the batch would have been due.
#[tokio::test(start_paused = true)]
async fn a_batch_without_callers_is_not_sent() {
    let server = Server::default();
    driven(settings(), &server, async |bulk, arena| {
        let index = |id: u32| bulk.index(Target::new("i", &id.to_string()), b"{}").unwrap();
        drop((0..50).map(index).collect::<Vec<_>>());
        assert_eq!(bulk.depth(), 0);
        tokio::time::sleep(20 * MS).await;
        assert_eq!(charged(arena), 0);
    })
    .await;
    assert!(server.requests().is_empty());
}

/// One who leaves the middle of a chain of requests for one document does not shorten it.
#[tokio::test(start_paused = true)]
async fn leaving_a_chain_keeps_its_order() {
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server::scripted([Step::Hold(held)]);
    driven(settings(), &server, async |bulk, _| {
        let index = |n: u32| bulk.index(Target::new("i", "1"), format!("{{\"n\":{n}}}").as_bytes()).unwrap();
        let first = index(0);
        tokio::time::sleep(20 * MS).await;
        drop(index(1));
        tokio::time::sleep(20 * MS).await;
        let third = index(2);
        tokio::time::sleep(20 * MS).await;
        assert_eq!(server.sizes(), [1], "it waits for the one before it");
        drop(release);
        assert_eq!((first.await.unwrap().version, third.await.unwrap().version), (1, 2));
    })
    .await;
    assert_eq!(server.written("1"), [json!({"n": 0}), json!({"n": 2})]);
}
