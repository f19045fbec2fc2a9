//! Bodies whose items are forwarded: what the destination is sent, and what the client hears, whatever happens half-way.

use crate::accepts::NDJSON;
use crate::client::{Answer, connect, post};
use crate::rig::{Rig, settings};
use serde_json::{Value, json};
use std::future::pending;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_admission::access::BulkActions;
use tidegate_admission::{BulkDefaults, GateRules};
use tidegate_arena::Share;
use tidegate_bulk::{
    Driver, Forward, Settings, Transport, TransportError, TransportRequest, TransportResponse,
};
use tidegate_ledger::{Fate, Refusal};
use tidegate_sources::BulkDestination;
use tidegate_wire::bulk::checked_items;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

const MS: Duration = Duration::from_millis(1);

/// The behaviour of a cluster.
#[derive(Default)]
struct Fake {
    /// Never answers.
    hangs: bool,
    /// Answers a whole request so.
    status: Option<u16>,
    /// Rejects documents that contain this.
    poison: Option<&'static str>,
    requests: AtomicUsize,
    bodies: Mutex<Vec<String>>,
    arrived: Notify,
}

impl Transport for Fake {
    async fn send(
        &self,
        request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        let body = String::from_utf8(request.body.as_ref().to_vec()).unwrap();
        drop(request);
        self.requests.fetch_add(1, Relaxed);
        self.bodies.lock().unwrap().push(body.clone());
        self.arrived.notify_one();
        if self.hangs {
            pending::<()>().await;
        }
        if let Some(status) = self.status {
            return Ok(TransportResponse {
                status,
                excerpt: "no".to_owned(),
                ..TransportResponse::default()
            });
        }
        let mut items = Vec::new();
        for item in checked_items(body.as_bytes()) {
            let item = item.unwrap();
            let document = String::from_utf8_lossy(item.document.unwrap_or_default()).into_owned();
            let entry = match self.poison {
                Some(poison) if document.contains(poison) => {
                    json!({"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "poison"}})
                }
                _ => json!({"_index": "i", "document": document, "status": 201}),
            };
            items.push(json!({item.action.kind.name(): entry}));
        }
        let text = json!({"took": 1, "errors": false, "items": items}).to_string();
        for piece in text.as_bytes().chunks(1000) {
            let _ = answer(piece);
            tokio::task::yield_now().await;
        }
        Ok(TransportResponse { status: 200, ..TransportResponse::default() })
    }
}

fn small() -> Settings {
    Settings {
        linger: 5 * MS,
        backoff: (20 * MS, 50 * MS),
        deadline: 300 * MS,
        ..Settings::new(Share::Forward, 4 << 20)
    }
}

/// A gateway before a destination, and the driver of its engine.
fn rig(engine: Settings) -> (Rig, Forward, Driver) {
    ruled(engine, BulkActions::ALL, 1 << 30)
}

fn ruled(engine: Settings, open: BulkActions, quota: u64) -> (Rig, Forward, Driver) {
    let mut made = None;
    let rules = |_: &_| {
        let rules = GateRules::default();
        rules.bulk.store(Arc::new(BulkDefaults { open, ..BulkDefaults::default() }));
        rules
    };
    let rig = Rig::before(16 << 20, quota, settings(), rules, |arena| {
        let (forward, driver) = Forward::new(engine, arena.clone());
        made = Some((forward.clone(), driver));
        Some(BulkDestination { forward, unreachable: Arc::new(|| None) })
    });
    let (forward, driver) = made.unwrap();
    (rig, forward, driver)
}

/// Runs `client` while the engine is driven against `fake`.
async fn driven<T>(rig: &Rig, driver: Driver, fake: &Fake, client: impl AsyncFnOnce() -> T) -> T {
    let (stop, stopped) = oneshot::channel::<()>();
    let run = driver.run(fake, async move { drop(stopped.await) });
    let client = async {
        let outcome = client().await;
        drop(stop);
        outcome
    };
    let (outcome, ()) = futures_util::future::join(client, run).await;
    assert_eq!(rig.journal.stats().head, 0, "nothing is journalled");
    outcome
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

fn gzip(body: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// A body of many more items than the engine holds at a time is answered in full and in order, compressed or not, over both
/// versions of HTTP.
#[tokio::test]
async fn a_large_body_goes_in_pieces() {
    const ITEMS: usize = 3000;
    let body: String =
        (0..ITEMS).map(|n| format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"n\":{n}}}\n")).collect();
    let packed = gzip(body.as_bytes());
    let encoded = [NDJSON, ("content-encoding", "gzip")];
    for (headers, sent) in [(&encoded[..1], body.as_bytes()), (&encoded[..], &packed)] {
        for is_second in [false, true] {
            let (rig, _, driver) = rig(Settings { slots: 100, batch_items: 40, ..small() });
            let fake = Fake::default();
            let path = "/elasticsearch/i/_bulk";
            let answer = driven(&rig, driver, &fake, async || match is_second {
                true => rig.post2(path, headers, sent).await,
                false => rig.post(path, headers, sent).await,
            });
            let answer = answer.await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let answer = json_of(&answer);
            let items = answer["items"].as_array().unwrap();
            assert_eq!((items.len(), &answer["errors"]), (ITEMS, &json!(false)));
            for (n, item) in items.iter().enumerate() {
                assert_eq!(item["index"]["document"], format!("{{\"n\":{n}}}"));
            }
            assert!(fake.requests.load(Relaxed) >= ITEMS / 40);
            let books = rig.books_of("elasticsearch");
            assert_eq!((books.accepted, books.forwarded.received), (1, ITEMS as u64));
            assert_eq!(books.forwarded.fates, [(Fate::Answered, ITEMS as u64)]);
        }
    }
}

/// Items that are not to be sent have their errors in their places; and `filter_path` leaves what it names.
#[tokio::test]
async fn unsent_items_have_errors_in_their_places() {
    let body = b"{\"index\":{}}\n{\"a\":1}\n{\"index\":{}}\nno json\n{\"delete\":{\"_id\":\"x\"}}\n{\"index\":{\"_index\":\".secret\"}}\n{}\n\
                 {\"create\":{}}\n{\"b\":\"poison\"}\n";
    let (rig, _, driver) = ruled(small(), BulkActions::default(), 1 << 30);
    let fake = Fake { poison: Some("poison"), ..Fake::default() };
    let (all, few) = driven(&rig, driver, &fake, async || {
        let all = rig.post("/elasticsearch/i/_bulk", &[NDJSON], body).await;
        (all, rig.post("/elasticsearch/i/_bulk?filter_path=items.*.status", &[NDJSON], body).await)
    })
    .await;
    let statuses: Vec<u64> =
        [("index", 201), ("index", 400), ("delete", 403), ("index", 403), ("create", 400)]
            .iter()
            .zip(json_of(&all)["items"].as_array().unwrap())
            .map(|((action, wanted), item)| {
                assert_eq!(item[*action]["status"], *wanted, "{item}");
                *wanted
            })
            .collect();
    assert_eq!((statuses.len(), &json_of(&all)["errors"]), (5, &json!(true)));
    let wanted = json!({"items": [{"index": {"status": 201}}, {"index": {"status": 400}}, {"delete": {"status": 403}},
                                  {"index": {"status": 403}}, {"create": {"status": 400}}]});
    assert_eq!(json_of(&few), wanted);
    assert_eq!(
        fake.bodies.lock().unwrap()[0],
        "{\"index\":{\"_index\":\"i\"}}\n{\"a\":1}\n{\"create\":{\"_index\":\"i\"}}\n{\"b\":\"poison\"}\n"
    );
    let books = rig.books_of("elasticsearch");
    assert_eq!(books.items_refused, [(Refusal::Malformed, 2), (Refusal::Forbidden, 4)]);
    assert_eq!(books.forwarded.fates, [(Fate::Answered, 2), (Fate::Rejected, 2)]);
}

/// A client that leaves before its items are sent takes them back, over both versions; nothing of it is left.
#[tokio::test]
async fn a_client_that_leaves_takes_its_items_back() {
    for is_second in [false, true] {
        let (rig, forward, driver) =
            rig(Settings { linger: Duration::from_secs(60), deadline: Duration::from_secs(60), ..small() });
        let fake = Fake::default();
        driven(&rig, driver, &fake, async || {
            rig.serve(async |address| {
                let body = b"{\"index\":{\"_id\":\"1\"}}\n{}\n{\"index\":{\"_id\":\"2\"}}\n{}\n";
                if is_second {
                    let mut client = connect(address).await.ready().await.unwrap();
                    let request =
                        http::Request::post("http://test/elasticsearch/i/_bulk").header(NDJSON.0, NDJSON.1);
                    let (answer, mut sending) =
                        client.send_request(request.body(()).unwrap(), false).unwrap();
                    sending.send_data(bytes::Bytes::from_static(body), true).unwrap();
                    until(|| forward.depth() == 2).await;
                    // Only the stream ends.
                    sending.send_reset(h2::Reason::CANCEL);
                    drop(answer);
                    until(|| forward.depth() == 0).await;
                } else {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    stream.write_all(&post("/elasticsearch/i/_bulk", &[NDJSON], body)).await.unwrap();
                    until(|| forward.depth() == 2).await;
                    drop(stream);
                    until(|| forward.depth() == 0).await;
                }
            })
            .await;
        })
        .await;
        assert_eq!(fake.requests.load(Relaxed), 0, "nothing was sent");
        let books = rig.books_of("elasticsearch");
        assert_eq!(books.refused, [(Refusal::Abandoned, 1)]);
        assert_eq!(books.forwarded.fates, [(Fate::Abandoned, 2)]);
    }
}

/// A destination that does not answer is not waited for longer than the request says: what was not sent is taken back.
#[tokio::test]
async fn a_deadline_is_kept() {
    let (rig, forward, driver) = rig(Settings {
        max_in_flight: 1,
        batch_items: 1,
        grace: MS,
        deadline: Duration::from_secs(60),
        ..small()
    });
    let fake = Fake { hangs: true, ..Fake::default() };
    let body = b"{\"index\":{\"_id\":\"1\"}}\n{}\n{\"index\":{\"_id\":\"2\"}}\n{}\n";
    let answer = driven(&rig, driver, &fake, async || {
        let answer = rig.post("/elasticsearch/i/_bulk?timeout=200ms", &[NDJSON], body).await;
        assert_eq!(forward.depth(), 1, "the one that is in flight has its slot until its end");
        answer
    })
    .await;
    assert_eq!((answer.status, &json_of(&answer)["status"]), (503, &json!(503)), "{}", answer.text());
    let books = rig.books_of("elasticsearch");
    assert_eq!(books.refused, [(Refusal::Destination, 1)]);
    assert_eq!(books.forwarded.fates, [(Fate::Unanswered, 1), (Fate::Refused, 1)]);
}

/// Where the engine has no room the request is refused with 429, at once and with a delay; and an item that never fits with
/// 413.
#[tokio::test]
async fn without_room_requests_are_refused() {
    let (rig, forward, driver) = rig(Settings { slots: 1, item_bytes: 8 << 10, grace: MS, ..small() });
    let fake = Fake { hangs: true, ..Fake::default() };
    driven(&rig, driver, &fake, async || {
        let first = rig.post("/elasticsearch/i/_bulk?timeout=1s", &[NDJSON], b"{\"index\":{}}\n{}\n");
        let second = async {
            until(|| forward.depth() == 1).await;
            let refused = rig.post("/elasticsearch/i/_bulk", &[NDJSON], b"{\"index\":{}}\n{}\n").await;
            assert_eq!(refused.status, 429, "{}", refused.text());
            assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
            assert_eq!(json_of(&refused)["error"]["type"], "es_rejected_execution_exception");
            let long = format!("{{\"index\":{{}}}}\n{{\"a\":\"{}\"}}\n", "x".repeat(9000));
            let refused = rig.post("/elasticsearch/i/_bulk", &[NDJSON], long.as_bytes()).await;
            assert_eq!(refused.status, 413, "{}", refused.text());
        };
        let (first, ()) = futures_util::future::join(first, second).await;
        assert_eq!(first.status, 503);
    })
    .await;
    let books = rig.books_of("elasticsearch");
    let refused = [(Refusal::TooLarge, 1), (Refusal::Concurrency, 1), (Refusal::Destination, 1)];
    assert_eq!(books.refused, refused);
}

/// A destination that refuses the gateway, or has no room until the deadline, is told from one that answers.
#[tokio::test]
async fn a_failure_of_the_whole_destination_is_reported() {
    for (status, wanted, reason) in
        [(401, 503, Refusal::Destination), (503, 429, Refusal::Concurrency), (500, 503, Refusal::Destination)]
    {
        let (rig, _, driver) = rig(small());
        let fake = Fake { status: Some(status), ..Fake::default() };
        let answer = driven(&rig, driver, &fake, async || {
            rig.post("/elasticsearch/i/_bulk", &[NDJSON], b"{\"index\":{}}\n{}\n").await
        })
        .await;
        assert_eq!(answer.status, wanted, "{status}: {}", answer.text());
        assert!(
            answer.header("retry-after").is_some_and(|delay| delay != "0"),
            "{status}: {}",
            answer.text()
        );
        assert_eq!(rig.books_of("elasticsearch").refused, [(reason, 1)]);
    }
}

/// Whoever waits when the engine is told to stop, or is lost, is answered 503; and so are those who come later.
#[tokio::test]
async fn the_end_of_the_engine_is_answered() {
    for is_lost in [false, true] {
        let (rig, forward, driver) = rig(Settings { grace: 50 * MS, ..small() });
        let fake = Arc::new(Fake { hangs: true, ..Fake::default() });
        let (stop, stopped) = oneshot::channel::<()>();
        let its = Arc::clone(&fake);
        let run = tokio::task::LocalSet::new();
        let task =
            run.spawn_local(async move { driver.run(&*its, async move { drop(stopped.await) }).await });
        let test = async {
            let waiting = rig.post("/elasticsearch/i/_bulk", &[NDJSON], b"{\"index\":{}}\n{}\n");
            let end = async {
                until(|| fake.requests.load(Relaxed) == 1).await;
                match is_lost {
                    true => task.abort(),
                    false => drop(stop),
                }
            };
            let (waited, ()) = futures_util::future::join(waiting, end).await;
            assert_eq!(waited.status, 503, "{}", waited.text());
            until(|| forward.depth() == 0).await;
            let late = rig.post("/elasticsearch/i/_bulk", &[NDJSON], b"{\"index\":{}}\n{}\n").await;
            assert_eq!(late.status, 503, "{}", late.text());
        };
        run.run_until(test).await;
        let books = rig.books_of("elasticsearch");
        assert_eq!(books.forwarded.fates, [(Fate::Unanswered, 1), (Fate::Refused, 1)]);
        assert_eq!(books.refused, [(Refusal::Shutdown, 1), (Refusal::Destination, 1)]);
    }
}

/// A journal that takes nothing keeps nobody from what is not for it.
#[tokio::test]
async fn a_full_journal_is_no_obstacle() {
    let (rig, _, driver) = ruled(small(), BulkActions::ALL, 1);
    let fake = Fake::default();
    let answer = driven(&rig, driver, &fake, async || {
        let refused = rig.post("/ingest/logs", &[("content-type", "text/plain")], b"a line\n").await;
        assert!(refused.status >= 400, "{}", refused.text());
        rig.post("/elasticsearch/i/_bulk", &[NDJSON], b"{\"index\":{}}\n{}\n").await
    })
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn until(done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            tokio::time::sleep(MS).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("it comes to that");
}
