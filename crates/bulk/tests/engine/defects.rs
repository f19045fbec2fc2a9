//! Defects that engines of this kind have had, one by one. The first two and the eighth are also measured, in
//! `tests/storm.rs` and `tests/allocations.rs`.

use crate::server::{Server, Step};
use crate::{MS, arena, charged, driven, once, settings, settle};
use serde_json::json;
use std::time::Duration;
use tidegate_bulk::{
    Bulk, BulkSubmitError, FailureKind, Refresh, Search, Settings, Target, TicketList, WriteResponse,
};
use tidegate_meters::Registry;

/// 1: memory was bounded by nothing. Here it is by the lane's bytes, and the rest is refused with a delay.
#[tokio::test(start_paused = true)]
async fn waiting_bodies_are_bounded() {
    let server = Server::scripted([Step::Hang, Step::Hang]);
    let lane_bytes = 256 << 10;
    let limited = Settings { lane_bytes, timeout: 100 * MS, deadline: 300 * MS, ..settings() };
    driven(limited, &server, async |bulk, arena| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(8 << 10));
        let mut tickets = Vec::new();
        let mut refused = 0;
        for number in 0..200 {
            match bulk.index(Target::new("i", &number.to_string()), body.as_bytes()) {
                Ok(ticket) => tickets.push(ticket),
                Err(BulkSubmitError::Full { retry_after }) => {
                    assert!(retry_after >= 100 * MS);
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(charged(arena) <= lane_bytes);
        }
        assert!(refused > 150 && tickets.len() > 10, "{refused}");
        assert!(bulk.get(Target::new("i", "1")).is_ok(), "what waits to be written takes nothing from reads");
        for ticket in tickets {
            drop(ticket.await);
        }
    })
    .await;
}

/// 2: an abort while the answer was awaited started a task with a timer. Here there is one task, the driver, and
/// a slot that is freed with the answer.
#[tokio::test(start_paused = true)]
async fn leaving_while_under_way_leaves_one_slot_until_the_answer() {
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server::scripted([Step::Hold(held)]);
    driven(settings(), &server, async |bulk, _| {
        let ticket = bulk.index(Target::new("i", "1"), b"{}").unwrap();
        tokio::time::sleep(20 * MS).await;
        assert_eq!(server.sizes(), [1]);
        drop(ticket);
        assert_eq!(bulk.depth(), 1);
        drop(release);
        settle().await;
        assert_eq!(bulk.depth(), 0);
        assert_eq!(server.written("1").len(), 1, "what was sent is carried out");
    })
    .await;
}

/// 3: a bench of one way to leave measured the other. The meters tell them apart.
#[tokio::test(start_paused = true)]
async fn withdrawals_and_abandonments_are_counted_separately() {
    let server = Server::scripted([Step::Hang]);
    let registry = Registry::new(1);
    let soon = Settings { timeout: 50 * MS, ..settings() };
    driven(soon, &server, async |bulk, _| {
        bulk.publish(&registry);
        let (early, late) = (bulk.delete(Target::new("i", "1")), bulk.delete(Target::new("i", "2")));
        drop(early.unwrap());
        let late = late.unwrap();
        tokio::time::sleep(20 * MS).await;
        drop(late);
        let text = published(&registry);
        assert!(text.contains("tidegate_bulk_items_total{kind=\"write\",fate=\"withdrawn\"} 1"), "{text}");
        assert!(text.contains("tidegate_bulk_items_total{kind=\"write\",fate=\"abandoned\"} 1"), "{text}");
        assert!(text.contains("tidegate_bulk_depth{kind=\"write\"} 1"), "{text}");
        assert!(text.contains("tidegate_bulk_waiting_bytes{kind=\"write\"} 4096"), "{text}");
        assert!(text.contains("tidegate_bulk_oldest_seconds{kind=\"write\"} 0.02"), "{text}");
        tokio::time::sleep(100 * MS).await;
        assert!(published(&registry).contains("tidegate_bulk_flush_seconds_count{kind=\"write\"} 1"));
        assert!(published(&registry).contains("tidegate_bulk_batch_items_sum{kind=\"write\"} 1"));
    })
    .await;
}

fn published(registry: &Registry) -> String {
    let mut text = String::new();
    registry.encode(&mut text).unwrap();
    text
}

/// 4: queues were stacks, so of three updates of one document the oldest won.
#[tokio::test(start_paused = true)]
async fn updates_within_one_request_are_sent_in_order() {
    let server = Server::default();
    driven(settings(), &server, async |bulk, _| {
        let index = |n: u8| bulk.index(Target::new("i", "1"), format!("{{\"n\":{n}}}").as_bytes()).unwrap();
        let list: TicketList<WriteResponse> = [0, 1, 2].map(index).into_iter().collect();
        let versions: Vec<u64> = list.await.into_iter().map(|answer| answer.unwrap().version).collect();
        assert_eq!(versions, [1, 2, 3]);
    })
    .await;
    assert_eq!(server.sizes(), [3]);
    assert_eq!(server.written("1"), [json!({"n": 0}), json!({"n": 1}), json!({"n": 2})]);
}

/// 5: lists dropped their options. Here an item of a list is an item.
#[tokio::test(start_paused = true)]
async fn items_of_a_list_keep_their_options() {
    let server = Server::default();
    driven(settings(), &server, async |bulk, _| {
        let mut list = TicketList::with_capacity(3);
        for (id, refresh) in [("1", Refresh::Now), ("2", Refresh::Wait), ("3", Refresh::No)] {
            let target = Target::new("i", id).refresh(refresh).routing("r");
            list.push(bulk.index(target, b"{}").unwrap());
        }
        assert_eq!(list.await.into_iter().filter(Result::is_ok).count(), 3);
    })
    .await;
    let paths: Vec<_> = server.requests().iter().map(|seen| seen.path.split('&').next().unwrap()).collect();
    assert!(
        paths.contains(&"/_bulk?refresh=true") && paths.contains(&"/_bulk?refresh=wait_for"),
        "{paths:?}"
    );
    assert!(server.requests().iter().all(|seen| seen.body.contains("\"routing\":\"r\"")));
}

/// 6: when all flushes were under way, reads waited too; a minute later the engine ended, and those in its queue
/// were never answered.
#[tokio::test(start_paused = true)]
async fn writes_that_hang_hold_up_no_read_and_end_nothing() {
    let server = Server::scripted([Step::Hang, Step::Hang]);
    let patient = Settings {
        batch_items: 1,
        timeout: Duration::from_secs(90),
        deadline: Duration::from_secs(80),
        ..settings()
    };
    driven(patient, &server, async |bulk, _| {
        let hang = |id: &'static str| bulk.index(Target::new("i", id), b"{}").unwrap();
        let (first, second) = (hang("1"), hang("2"));
        settle().await;
        let third = hang("3");
        let started = tokio::time::Instant::now();
        let hits = bulk.search(Search { index: "i", query: b"{\"size\":1}" }).unwrap().await.unwrap();
        assert!(
            serde_json::from_slice::<serde_json::Value>(&hits.body).unwrap()["hits"]["query"]["size"] == 1
        );
        let found = bulk.get(Target::new("i", "1")).unwrap().await;
        assert_eq!(found.unwrap_err().kind, FailureKind::NotFound);
        let refreshed = bulk.index(Target::new("i", "4").refresh(Refresh::Now), b"{}").unwrap().await;
        assert!(refreshed.is_ok());
        assert!(started.elapsed() < Duration::from_secs(1));
        assert_eq!(third.await.unwrap_err().kind, FailureKind::Timeout, "its turn never came");
        assert_eq!(first.await.unwrap_err().kind, FailureKind::Unanswered);
        assert_eq!(second.await.unwrap_err().kind, FailureKind::Unanswered);
        assert!(bulk.index(Target::new("i", "5"), b"{}").unwrap().await.is_ok(), "the engine goes on");
    })
    .await;
}

/// 7: lists went past the cap, and one that was cancelled left its items queued.
#[tokio::test(start_paused = true)]
async fn lists_are_counted_and_taken_back_whole() {
    let server = Server::default();
    let few = Settings { slots: 10, ..settings() };
    driven(few, &server, async |bulk, _| {
        let mut list = TicketList::with_capacity(20);
        for number in 0..20 {
            match bulk.index(Target::new("i", &number.to_string()), b"{}") {
                Ok(ticket) => list.push(ticket),
                Err(refused) => assert!(matches!(refused, BulkSubmitError::Full { .. })),
            }
        }
        assert_eq!((list.len(), bulk.depth()), (10, 10));
        assert!(once(&mut list).await.is_none());
        drop(list);
        assert_eq!(bulk.depth(), 0);
        tokio::time::sleep(20 * MS).await;
    })
    .await;
    assert!(server.requests().is_empty(), "what was taken back is not sent");
}

/// 8: buffers in pools kept their largest size. There is no pool: what was charged is given back.
#[tokio::test(start_paused = true)]
async fn a_large_body_leaves_nothing_behind() {
    let server = Server::default();
    driven(settings(), &server, async |bulk, arena| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
        bulk.index(Target::new("i", "large"), body.as_bytes()).unwrap().await.unwrap();
        let found = bulk.get(Target::new("i", "large")).unwrap().await.unwrap();
        assert_eq!(found.source.len(), body.len());
        assert!(charged(arena) >= 1 << 20, "an answer is paid for as long as it is held");
        drop(found);
        assert_eq!(charged(arena), 0);
    })
    .await;
}

/// 9: what was refused kept its block.
#[tokio::test(start_paused = true)]
async fn a_refused_item_holds_no_memory() {
    let (bulk, driver) = Bulk::new(settings(), arena());
    for _ in 0..2000 {
        assert!(matches!(
            bulk.index(Target::new("i", "1"), b"not an object"),
            Err(BulkSubmitError::Invalid(_))
        ));
        assert!(matches!(bulk.get(Target::with_auto_id("i")), Err(BulkSubmitError::Invalid(_))));
        assert!(matches!(bulk.search(Search { index: "", query: b"{}" }), Err(BulkSubmitError::Invalid(_))));
    }
    assert_eq!(bulk.depth(), 0);
    drop(driver);
    assert!(matches!(bulk.delete(Target::new("i", "1")), Err(BulkSubmitError::Stopping)));
}

/// 10: items of a batch were read after their replies were sent, and shared a place. Here each gets its own answer,
/// by its place, also when they are of one document and some callers are gone.
#[tokio::test(start_paused = true)]
async fn each_item_gets_the_answer_at_its_place() {
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server { piece: 7, ..Server::scripted([Step::Hold(held)]) };
    driven(settings(), &server, async |bulk, _| {
        let mut tickets = Vec::new();
        for number in 0..40 {
            let id = (number % 7).to_string();
            tickets.push(match number % 3 {
                0 => bulk.create(Target::new("i", &id), b"{}").unwrap(),
                1 => bulk.create(Target::with_auto_id("i"), b"{}").unwrap(),
                _ => bulk.delete(Target::new("missing", &id)).unwrap(),
            });
        }
        tokio::time::sleep(20 * MS).await;
        let gone: Vec<_> = (0..40).rev().step_by(5).map(|at| tickets.remove(at)).collect();
        let gone_numbers: Vec<_> = (0..40).rev().step_by(5).collect();
        drop((gone, release));
        let numbers = (0..40).filter(|number| !gone_numbers.contains(number));
        for (number, ticket) in numbers.zip(tickets) {
            let answer = ticket.await;
            match number % 3 {
                0 if number < 21 => {
                    let written = answer.unwrap();
                    assert_eq!((written.status, written.id), (201, None));
                }
                0 => {
                    let failure = answer.unwrap_err();
                    assert_eq!(failure.kind, FailureKind::VersionConflict);
                    let words = "version_conflict_engine_exception: a \"b\" \u{e9}";
                    assert_eq!(failure.reason.as_deref(), Some(words));
                }
                1 => assert!(answer.unwrap().id.unwrap().starts_with("chosen-")),
                _ => assert_eq!(answer.unwrap_err().kind, FailureKind::IndexNotFound),
            }
        }
    })
    .await;
}

/// 11: every abort wrote a line to the log. The engine writes none at all; aborts are a number.
#[tokio::test(start_paused = true)]
async fn aborts_are_counted_and_not_logged() {
    let manifest = include_str!("../../Cargo.toml");
    assert!(!manifest.contains("tracing") && !manifest.contains("log."));
    let server = Server::default();
    let registry = Registry::new(1);
    driven(settings(), &server, async |bulk, _| {
        bulk.publish(&registry);
        for _ in 0..1000 {
            drop(bulk.delete(Target::new("i", "1")).unwrap());
        }
        assert!(published(&registry).contains("fate=\"withdrawn\"} 1000"));
    })
    .await;
}

/// 12: a body that was too large failed all that were in it. One that can never fit is refused alone, and where a
/// server takes less than the engine sends, it is sent less at a time.
#[tokio::test(start_paused = true)]
async fn too_large_concerns_one_item() {
    let server = Server { most: Some(2000), ..Server::default() };
    let small = Settings { item_bytes: 4000, ..settings() };
    driven(small, &server, async |bulk, _| {
        let body = |len: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(len));
        let index = |id: &str, len: usize| bulk.index(Target::new("i", id), body(len).as_bytes());
        assert!(matches!(index("huge", 5000), Err(BulkSubmitError::TooLarge { most: 4000, .. })));
        let mut list: Vec<_> = (0..20).map(|number| index(&number.to_string(), 300).unwrap()).collect();
        list.insert(7, index("large", 2500).unwrap());
        let answers = list.into_iter().collect::<TicketList<_>>().await;
        for (place, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(written) => assert_eq!((written.version, place == 7), (1, false)),
                Err(failure) => assert_eq!((failure.kind, place), (FailureKind::TooLarge, 7)),
            }
        }
    })
    .await;
}
