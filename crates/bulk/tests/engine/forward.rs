//! Forwarded items: sent as they stand, answered as the server answers.

use crate::server::{Server, Step};
use crate::{MS, charged, settings, settle};
use tidegate_arena::{Arena, Share};
use tidegate_bulk::{FailureKind, Forward, ItemResponse, Refresh, Settings, Ticket};
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
