//! Outcomes of items when the server misbehaves.

use crate::server::{Server, Step};
use crate::{MS, arena, charged, driven, settings, settle};
use serde_json::json;
use std::time::Duration;
use tidegate_bulk::{
    Bulk, BulkSubmitError, FailureKind, Search, Settings, Target, Ticket, TicketList, WriteResponse,
};
use tokio::time::Instant;

fn hand_over<'a>(bulk: &'a Bulk, ids: impl IntoIterator<Item = u32>) -> Vec<Ticket<'a, WriteResponse>> {
    let index = |id: u32| bulk.index(Target::new("i", &id.to_string()), format!("{{\"n\":{id}}}").as_bytes());
    ids.into_iter().map(|id| index(id).unwrap()).collect()
}

/// Items rejected inside a 200 are sent again alone; the others have their answers already.
#[tokio::test(start_paused = true)]
async fn only_rejected_items_are_retried() {
    let server = Server::scripted([Step::Reject(vec![1, 3], 429), Step::Reject(vec![0], 503)]);
    driven(settings(), &server, async |bulk, _| {
        let mut tickets = hand_over(bulk, 0..5);
        let last = tickets.pop().unwrap();
        assert!(last.await.is_ok());
        assert_eq!(server.sizes(), [5], "it need not wait for those that were rejected");
        for answer in tickets.into_iter().collect::<TicketList<_>>().await {
            assert_eq!(answer.unwrap().status, 201);
        }
    })
    .await;
    assert_eq!(server.sizes(), [5, 2, 1]);
    assert!(
        server.requests()[1].body.contains("{\"n\":1}\n")
            && server.requests()[1].body.contains("{\"n\":3}\n")
    );
    assert!(server.requests()[2].body.contains("{\"n\":1}\n"));
}

/// A server that goes on rejecting is asked less and less often, until the deadline.
#[tokio::test(start_paused = true)]
async fn rejections_end_at_the_deadline() {
    let server = Server::scripted((0..1000).map(|_| Step::Reject(vec![0], 429)));
    let deadline = Duration::from_secs(20);
    driven(Settings { deadline, ..settings() }, &server, async |bulk, _| {
        let started = Instant::now();
        let failure = hand_over(bulk, 0..1).remove(0).await.unwrap_err();
        assert_eq!((failure.kind, failure.status), (FailureKind::Rejected, 429));
        assert!(started.elapsed() <= deadline + 10 * MS && started.elapsed() > deadline / 4);
    })
    .await;
    assert!((5..20).contains(&server.sizes().len()), "{}", server.sizes().len());
}

/// While what was rejected rests, its flight is free, and its caller can take it back.
#[tokio::test(start_paused = true)]
async fn an_item_in_backoff_holds_no_flight_and_can_be_withdrawn() {
    let server = Server::scripted([Step::Reject(vec![0, 1], 429)]);
    let one = Settings {
        max_in_flight: 1,
        backoff: (Duration::from_secs(5), Duration::from_secs(5)),
        ..settings()
    };
    driven(one, &server, async |bulk, _| {
        let mut tickets = hand_over(bulk, 0..2);
        tokio::time::sleep(20 * MS).await;
        let started = Instant::now();
        assert!(hand_over(bulk, 7..8).remove(0).await.is_ok());
        assert!(started.elapsed() < Duration::from_secs(1));
        drop(tickets.remove(0));
        assert_eq!(bulk.depth(), 1);
        assert!(tickets.remove(0).await.is_ok());
    })
    .await;
    assert_eq!(server.sizes(), [2, 1, 1]);
    assert!(server.written("0").is_empty());
}

/// A request that was refused whole, or that reached nobody, is sent again whole, when the server asks for it.
#[tokio::test(start_paused = true)]
async fn requests_that_were_not_carried_out_are_retried_whole() {
    let asked = Some(Duration::from_secs(3));
    let server = Server::scripted([Step::NotSent, Step::Status(503, None), Step::Status(429, asked)]);
    driven(settings(), &server, async |bulk, _| {
        let started = Instant::now();
        for answer in hand_over(bulk, 0..3).into_iter().collect::<TicketList<_>>().await {
            assert_eq!(answer.unwrap().version, 1);
        }
        assert!(started.elapsed() >= Duration::from_secs(3));
    })
    .await;
    assert_eq!(server.sizes(), [3; 4]);
}

/// Where nobody can be reached until the deadline, nothing was carried out, and that is what callers hear.
#[tokio::test(start_paused = true)]
async fn without_a_server_items_time_out() {
    let server = Server::scripted((0..1000).map(|_| Step::NotSent));
    driven(settings(), &server, async |bulk, _| {
        for answer in hand_over(bulk, 0..3).into_iter().collect::<TicketList<_>>().await {
            assert_eq!(answer.unwrap_err().kind, FailureKind::Timeout);
        }
    })
    .await;
}

/// Writes whose answer broke off are not sent twice; those that were answered before have their answers. Reads are.
#[tokio::test(start_paused = true)]
async fn a_broken_response_leaves_writes_unanswered_and_retries_reads() {
    let server = Server { piece: 1, ..Server::scripted([Step::Broken(250)]) };
    driven(settings(), &server, async |bulk, _| {
        let answers = hand_over(bulk, 0..20).into_iter().collect::<TicketList<_>>().await;
        let answered = answers.iter().take_while(|answer| answer.is_ok()).count();
        assert!((1..4).contains(&answered), "{answered}");
        for answer in &answers[answered..] {
            let failure = answer.as_ref().unwrap_err();
            assert_eq!((failure.kind, failure.reason.as_deref()), (FailureKind::Unanswered, Some("reset")));
        }
        server.push(Step::Broken(50));
        let found = bulk.get(Target::new("i", "1")).unwrap().await.unwrap();
        assert_eq!(&*found.source, b"{\"n\":1}");
    })
    .await;
    assert_eq!(server.sizes(), [20, 1, 1]);
}

/// A server that answers fewer items than it was sent, or not in JSON, leaves nobody waiting.
#[tokio::test(start_paused = true)]
async fn answers_that_cannot_be_read_are_answers() {
    let fewer = json!({"items": [{"index": {"status": 201, "_version": 9}}, {"index": {}}]}).to_string();
    let texts = [fewer.as_str(), "", "<html>", "{\"items\":[[[[", "{\"items\":[{\"index\":{\"status\":201"];
    let server = Server::scripted(texts.map(|text| Step::Answer(text.to_owned())));
    driven(settings(), &server, async |bulk, _| {
        for round in 0..5 {
            let answers = hand_over(bulk, 0..3).into_iter().collect::<TicketList<_>>().await;
            let kinds: Vec<_> =
                answers.iter().map(|answer| answer.as_ref().map_err(|failure| failure.kind)).collect();
            assert_eq!(kinds[0].is_ok(), round == 0);
            assert!(kinds[1..].iter().all(|kind| *kind == Err(FailureKind::Unanswered)), "{kinds:?}");
        }
    })
    .await;
}

/// An item that makes the server refuse the whole request is found, and fails alone.
#[tokio::test(start_paused = true)]
async fn one_bad_item_spoils_no_other() {
    let server = Server { poison: Some("poison"), ..Server::default() };
    driven(settings(), &server, async |bulk, _| {
        let mut tickets = hand_over(bulk, 0..50);
        tickets.insert(33, bulk.update(Target::new("i", "x"), b"{\"poison\":1}").unwrap());
        let answers = tickets.into_iter().collect::<TicketList<_>>().await;
        for (place, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(written) => assert_eq!((written.version, place == 33), (1, false)),
                Err(failure) => {
                    assert_eq!((failure.kind, failure.status, place), (FailureKind::Invalid, 400, 33))
                }
            }
        }
    })
    .await;
    assert!(server.requests().len() < 20);
    let searches = Server { poison: Some("poison"), ..Server::default() };
    driven(settings(), &searches, async |bulk, _| {
        let search = |query: &'static [u8]| bulk.search(Search { index: "i", query }).unwrap();
        let (good, bad, other) = (search(b"{}"), search(b"{\"poison\":1}"), search(b"{}"));
        assert!(good.await.is_ok() && other.await.is_ok());
        assert_eq!(bad.await.unwrap_err().kind, FailureKind::Invalid);
    })
    .await;
}

/// Answers longer than is read are cut; those in the part that was read are given out, and the rest is asked again.
#[tokio::test(start_paused = true)]
async fn answers_beyond_the_limit_come_in_several() {
    let server = Server { piece: 500, ..Server::default() };
    let short = Settings { answer_bytes: 10_000, ..settings() };
    driven(short, &server, async |bulk, _| {
        let body =
            |id: u32| format!("{{\"n\":{id},\"a\":\"{}\"}}", "x".repeat(if id == 5 { 20_000 } else { 2000 }));
        let write = |id: u32| bulk.index(Target::new("i", &id.to_string()), body(id).as_bytes()).unwrap();
        assert!((0..12).map(write).collect::<TicketList<_>>().await.iter().all(Result::is_ok));
        let get = |id: u32| bulk.get(Target::new("i", &id.to_string())).unwrap();
        let answers = (0..12).map(get).collect::<TicketList<_>>().await;
        for (id, answer) in (0..12).zip(answers) {
            match answer {
                Ok(found) => assert_eq!(
                    *found.source,
                    *serde_json::from_str::<serde_json::Value>(&body(id)).unwrap().to_string().as_bytes()
                ),
                Err(failure) => assert_eq!((failure.kind, id), (FailureKind::TooLarge, 5)),
            }
        }
    })
    .await;
}

/// The status of a whole request is each item's.
#[tokio::test(start_paused = true)]
async fn statuses_of_requests_become_kinds() {
    for (status, kind) in [
        (401, FailureKind::Denied),
        (403, FailureKind::Denied),
        (500, FailureKind::Server),
        (504, FailureKind::Unanswered),
    ] {
        let server = Server::scripted([Step::Status(status, None)]);
        driven(settings(), &server, async |bulk, _| {
            for answer in hand_over(bulk, 0..3).into_iter().collect::<TicketList<_>>().await {
                let failure = answer.unwrap_err();
                assert_eq!((failure.kind, failure.status), (kind, status));
            }
        })
        .await;
    }
}

/// Told to stop, the engine sends what has gathered at once; what hangs beyond the grace is answered too.
#[tokio::test(start_paused = true)]
async fn shutdown_answers_every_item() {
    let server = Server::scripted([Step::Serve, Step::Hang]);
    let slow = Settings { linger: Duration::from_secs(3600), max_in_flight: 1, batch_items: 2, ..settings() };
    let arena = arena();
    let (bulk, driver) = Bulk::new(slow.clone(), arena.clone());
    let mut tickets = hand_over(&bulk, 0..5);
    let started = Instant::now();
    driver.run(&server, async {}).await;
    assert!(started.elapsed() >= slow.grace && started.elapsed() < 2 * slow.grace);
    let kinds: Vec<_> = tickets
        .drain(..)
        .collect::<TicketList<_>>()
        .await
        .into_iter()
        .map(|answer| answer.map(|written| written.status).map_err(|failure| failure.kind))
        .collect();
    let (unanswered, stopped) = (Err(FailureKind::Unanswered), Err(FailureKind::Stopped));
    assert_eq!(kinds, [Ok(201), Ok(201), unanswered, unanswered, stopped]);
    assert!(matches!(bulk.delete(Target::new("i", "1")), Err(BulkSubmitError::Stopping)));
    assert_eq!((bulk.depth(), charged(&arena)), (0, 0));
}

/// A driver that is lost with its task answers everybody too.
#[tokio::test(start_paused = true)]
async fn a_lost_driver_answers_every_item() {
    let server = Server::scripted([Step::Hang]);
    let (bulk, driver) = Bulk::new(settings(), arena());
    let under_way = hand_over(&bulk, 0..2);
    {
        let mut run = Box::pin(driver.run(&server, std::future::pending()));
        assert!(crate::once(&mut run).await.is_none());
        tokio::time::sleep(20 * MS).await;
        assert!(crate::once(&mut run).await.is_none());
        settle().await;
        assert_eq!(server.sizes(), [2]);
        let waiting = hand_over(&bulk, 1..3);
        drop(run);
        for answer in waiting.into_iter().collect::<TicketList<_>>().await {
            assert_eq!(answer.unwrap_err().kind, FailureKind::Stopped);
        }
    }
    for answer in under_way.into_iter().collect::<TicketList<_>>().await {
        assert_eq!(answer.unwrap_err().kind, FailureKind::Unanswered);
    }
}
