//! Forwarded items: sent as they stand, answered as the server answers.

use crate::server::{Server, Step};
use crate::{MS, charged, settings, settle};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_bulk::{FailureKind, Forward, ItemResponse, Refresh, RequestFailure, Settings, Ticket};
use tidegate_wire::bulk::checked_items;

async fn driven<T>(settings: Settings, server: &Server, test: impl AsyncFnOnce(&Forward, &Arena) -> T) -> T {
    let arena = crate::arena();
    let (forward, driver) = Forward::new(settings, arena.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let test = async {
        let result = test(&forward, &arena).await;
        drop(stop);
        result
    };
    let run = driver.run(server, async move { drop(stopped.await) });
    let (result, ()) = futures_util::future::join(test, run).await;
    assert_eq!((forward.depth(), charged(&arena)), (0, 0), "something is left");
    result
}

/// Forwards every item of a body that belongs to the index `i`.
fn all<'f>(forward: &'f Forward, body: &str, refresh: Refresh) -> Vec<Ticket<'f, ItemResponse>> {
    let more: &[&[u8]] = &[b"\"_index\":\"i\""];
    let items = checked_items(body.as_bytes()).map(Result::unwrap);
    items.map(|item| forward.forward(&item, more, b"\"i\"", refresh).unwrap()).collect()
}

fn text(element: &ItemResponse) -> String {
    String::from_utf8(element.body.as_ref().unwrap().to_vec()).unwrap()
}

/// Whatever pieces the response comes in, each client gets its own element, byte by byte; and an item that the server
/// rejects is not sent again.
#[tokio::test(start_paused = true)]
async fn elements_are_the_servers_own() {
    let elements = [
        "{\"index\":{\"_index\":\"i\",\"_id\":\"a\" , \"_shards\":{\"total\":2},\"status\":201}}",
        "{\"create\":{\"error\":{\"type\":\"es_rejected_execution_exception\",\"reason\":\"x\"},\"status\":429}}",
        "{\"delete\":{\"_id\":\"\\u00e9]}\",\"result\":\"not_found\",\"status\":404}}",
    ];
    let answer = format!("{{\"took\":3,\"errors\":true,\"items\":[{}]}}", elements.join(" ,\n"));
    for piece in [0, 1, 7, 100] {
        let server = Server { piece, ..Server::scripted([Step::Text(answer.clone())]) };
        let body = "{\"index\":{\"_id\":\"a\",\"version\":7}}\n{\"x\":1}\n{\"create\":{}}\n{\"y\":2}\n{\"delete\":{\"_id\":\"é\"}}\n";
        driven(settings(), &server, async |forward, _| {
            for (ticket, wanted) in all(forward, body, Refresh::Wait).into_iter().zip(elements) {
                let element = ticket.await.unwrap();
                assert_eq!(text(&element), wanted);
                assert_eq!(element.failed, element.status == 429);
            }
        })
        .await;
        let [seen] = &server.requests()[..] else { panic!("sent again") };
        assert_eq!(seen.path, "/_bulk?refresh=wait_for");
        let wanted = "{\"index\":{\"_index\":\"i\",\"_id\":\"a\",\"version\":7}}\n{\"x\":1}\n{\"create\":{\"_index\":\"i\"}}\n\
                      {\"y\":2}\n{\"delete\":{\"_index\":\"i\",\"_id\":\"é\"}}\n";
        assert_eq!(seen.body, wanted);
    }
}

/// An element that is too long to be put together still tells its status; one without memory tells its error's words.
#[tokio::test(start_paused = true)]
async fn a_discarded_response_element_still_reports_its_status() {
    let long = format!("{{\"update\":{{\"get\":\"{}\",\"status\":200}}}}", "x".repeat(20_000));
    let server = Server { piece: 999, ..Server::scripted([Step::Text(format!("{{\"items\":[{long}]}}"))]) };
    let body = "{\"update\":{\"_id\":\"a\"}}\n{}\n";
    driven(settings(), &server, async |forward, _| {
        let [ticket] = all(forward, body, Refresh::No).try_into().unwrap();
        let element: ItemResponse = ticket.await.unwrap();
        assert_eq!((element.status, element.failed, element.body.is_none()), (200, false, true));
    })
    .await;

    let rejected = "{\"items\":[{\"index\":{\"status\":400,\"error\":{\"type\":\"t\",\"reason\":\"r\"}}}]}";
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server::scripted([Step::HoldText(held, rejected.to_owned())]);
    driven(settings(), &server, async |forward, arena| {
        let [ticket] = all(forward, "{\"index\":{}}\n{}\n", Refresh::No).try_into().unwrap();
        tokio::time::sleep(20 * MS).await;
        // Everything is somebody else's.
        let mut others = Vec::new();
        while let Ok(window) = arena.try_window(Share::Ingest, 4096) {
            others.push(window);
        }
        drop(release);
        let element: ItemResponse = ticket.await.unwrap();
        assert_eq!((element.status, element.failed, element.body.is_none()), (400, true, true));
        assert_eq!(element.reason.as_deref(), Some("t: r"));
    })
    .await;
}

/// A client that leaves before its item is sent takes it back; later it only stops to listen.
#[tokio::test(start_paused = true)]
async fn leaving_says_whether_it_was_in_time() {
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server::scripted([Step::Hold(held)]);
    driven(settings(), &server, async |forward, _| {
        let body = "{\"index\":{\"_id\":\"a\"}}\n{}\n{\"index\":{\"_id\":\"b\"}}\n{}\n{\"index\":{\"_id\":\"c\"}}\n{}\n";
        let [back, sent, answered] = all(forward, body, Refresh::No).try_into().unwrap();
        assert!(back.withdraw());
        tokio::time::sleep(20 * MS).await;
        assert!(!sent.withdraw());
        drop(release);
        settle().await;
        assert!(!answered.withdraw(), "it has its answer");
    })
    .await;
    assert_eq!(server.sizes(), [2]);
}

/// A request that the server refuses as a whole is retried until the deadline, and then reported as rejected; without
/// a server, it is reported as not sent.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_has_an_end() {
    for (step, kind) in [(503, FailureKind::Rejected), (0, FailureKind::Timeout)] {
        let steps = (0..1000).map(|_| if step == 0 { Step::NotSent } else { Step::Status(step, None) });
        let server = Server::scripted(steps);
        let short = Settings { deadline: 2000 * MS, ..settings() };
        driven(short, &server, async |forward, _| {
            let [ticket] = all(forward, "{\"index\":{}}\n{}\n", Refresh::No).try_into().unwrap();
            let failure = ticket.await.unwrap_err();
            assert_eq!(failure.kind, kind);
        })
        .await;
        assert!(server.requests().len() > 1);
    }
}

/// A server that refuses everything, or cannot be reached, is retried for a shorter time than a slow one is waited for.
#[tokio::test(start_paused = true)]
async fn a_failing_server_is_reported_before_the_deadline() {
    for (step, kind) in
        [(503, FailureKind::Rejected), (429, FailureKind::Rejected), (0, FailureKind::Timeout)]
    {
        let steps = (0..1000).map(|_| if step == 0 { Step::NotSent } else { Step::Status(step, None) });
        let server = Server::scripted(steps);
        let quick = Settings { deadline: 30_000 * MS, retry_for: 500 * MS, ..settings() };
        driven(quick, &server, async |forward, _| {
            let since = tokio::time::Instant::now();
            let [ticket] = all(forward, "{\"index\":{}}\n{}\n", Refresh::No).try_into().unwrap();
            assert_eq!(ticket.await.unwrap_err().kind, kind);
            assert!(since.elapsed() < 600 * MS, "{:?}", since.elapsed());
        })
        .await;
        assert!(server.requests().len() > 1, "it was retried");
    }
}

/// The transport learns how each request ended: also where the server responds with 200 and answers nothing.
#[tokio::test(start_paused = true)]
async fn the_transport_learns_of_each_failure() {
    let no_items = "{\"errors\":false,\"items\":[]}".to_owned();
    let server = Server::scripted([
        Step::Status(503, None),
        Step::Status(429, Some(Duration::from_secs(7))),
        Step::NotSent,
        Step::Broken(3),
        Step::Answer("hello".to_owned()),
        Step::Answer(no_items),
        Step::Reject(vec![0], 429),
        Step::Hang,
        Step::Serve,
        Step::Status(400, None),
    ]);
    driven(Settings { retry_for: Duration::ZERO, ..settings() }, &server, async |forward, _| {
        for _ in 0..10 {
            let [ticket] = all(forward, "{\"index\":{}}\n{}\n", Refresh::No).try_into().unwrap();
            let _ = ticket.await;
        }
    })
    .await;
    let refused = |status| Err(RequestFailure::Refused { status, excerpt: "no".to_owned() });
    let unanswered = |words: &str| Err(RequestFailure::Unanswered(words.to_owned()));
    let len = server.requests()[0].body.len();
    let wanted = [
        refused(503),
        refused(429),
        Err(RequestFailure::NotSent("connection refused".to_owned())),
        unanswered("reset"),
        unanswered("the answer broke off"),
        unanswered("the server answered fewer items than it was sent"),
        Err(RequestFailure::RejectedItems { status: 429, items: 1 }),
        unanswered("no response in time"),
        Ok(len),
        Ok(len),
    ];
    assert_eq!(*server.ended.lock().unwrap(), wanted);
    assert_eq!(
        RequestFailure::Refused { status: 503, excerpt: "busy".to_owned() }.to_string(),
        "status 503: busy"
    );
}
