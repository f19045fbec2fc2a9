//! Items for one document are carried out in the order in which they were handed over.

use crate::server::{Server, Step};
use crate::{MS, driven, settings};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tidegate_bulk::{FailureKind, Refresh, Settings, Target};
use tokio::time::Instant;

/// An item whose document is under way waits, and one whose document is not does not.
#[tokio::test(start_paused = true)]
async fn only_items_of_documents_under_way_wait() {
    let (release, held) = tokio::sync::oneshot::channel();
    let server = Server::scripted([Step::Hold(held)]);
    driven(settings(), &server, async |bulk, _| {
        let index = |id: &'static str, n: u32| {
            bulk.index(Target::new("i", id), format!("{{\"n\":{n}}}").as_bytes()).unwrap()
        };
        let first = index("a", 0);
        tokio::time::sleep(20 * MS).await;
        let (waits, free) = (index("a", 1), index("b", 2));
        let started = Instant::now();
        assert!(free.await.is_ok());
        assert!(started.elapsed() < 50 * MS);
        assert_eq!(server.written("a").len(), 0);
        let refreshed = bulk.index(Target::new("i", "a").refresh(Refresh::Now), b"{\"n\":3}").unwrap();
        drop(release);
        assert!(first.await.is_ok() && waits.await.is_ok() && refreshed.await.is_ok());
    })
    .await;
    assert_eq!(server.written("a"), [json!({"n": 0}), json!({"n": 1}), json!({"n": 3})]);
}

/// An item that was rejected does not follow a later one of the same document that was carried out.
#[tokio::test(start_paused = true)]
async fn an_overtaken_item_is_not_retried() {
    let server = Server::scripted([Step::Reject(vec![0, 2], 429)]);
    driven(settings(), &server, async |bulk, _| {
        let index = |id: &'static str, n: u32| {
            bulk.index(Target::new("i", id), format!("{{\"n\":{n}}}").as_bytes()).unwrap()
        };
        let (old, new, other) = (index("a", 0), index("a", 1), index("b", 2));
        assert!(new.await.is_ok());
        assert_eq!(old.await.unwrap_err().kind, FailureKind::Rejected);
        assert!(other.await.is_ok());
    })
    .await;
    assert_eq!(server.written("a"), [json!({"n": 1})]);
    assert_eq!(server.sizes(), [3, 1]);
}

#[derive(Debug, Clone)]
enum Deed {
    Write { id: u8, refresh: u8, long: bool },
    Leave(usize),
    Pass(u8),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let write =
        (0u8..6, 0u8..3, any::<bool>()).prop_map(|(id, refresh, long)| Deed::Write { id, refresh, long });
    let deed = prop_oneof![8 => write, 2 => any::<usize>().prop_map(Deed::Leave), 3 => (0u8..30).prop_map(Deed::Pass)];
    prop::collection::vec(deed, 1..120)
}

fn steps() -> impl Strategy<Value = Vec<(u8, Vec<usize>, u8)>> {
    prop::collection::vec((0u8..8, prop::collection::vec(0usize..12, 0..8), 0u8..60), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever callers and the server do: for each document, what was carried out is a subsequence of what was
    /// handed over; who was told that it was carried out is right; everybody is answered; nothing is left.
    #[test]
    fn no_document_is_written_out_of_order(deeds in deeds(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = Server::default();
            let mut releases = Vec::new();
            for (kind, items, delay) in steps {
                server.push(match kind {
                    0 | 1 => Step::Reject(items, 429),
                    2 => Step::Status(503, None),
                    3 => Step::NotSent,
                    4 => Step::Broken(items.len() * 60),
                    5 => Step::Hang,
                    6 => {
                        let (release, held) = tokio::sync::oneshot::channel::<()>();
                        releases.push((release, u64::from(delay)));
                        Step::Hold(held)
                    }
                    _ => Step::Serve,
                });
            }
            let tight = Settings {
                batch_items: 7,
                batch_bytes: 2000,
                slots: 60,
                batches: 6,
                timeout: 200 * MS,
                deadline: Duration::from_secs(2),
                backoff: (5 * MS, 40 * MS),
                ..settings()
            };
            let opener = async {
                for (release, delay) in releases {
                    tokio::time::sleep(delay as u32 * MS).await;
                    drop(release);
                }
            };
            let callers = driven(tight, &server, async |bulk, _| {
                let (mut tickets, mut number) = (Vec::new(), 0u32);
                for deed in deeds {
                    match deed {
                        Deed::Write { id, refresh, long } => {
                            let refresh = [Refresh::No, Refresh::Now, Refresh::Wait][usize::from(refresh)];
                            let padding = "x".repeat(if long { 400 } else { 0 });
                            let body = format!("{{\"n\":{number},\"p\":\"{padding}\"}}");
                            let name = id.to_string();
                            let target = Target::new("i", &name).refresh(refresh);
                            if let Ok(ticket) = bulk.index(target, body.as_bytes()) {
                                tickets.push((name, number, ticket));
                            }
                            number += 1;
                        }
                        Deed::Leave(at) if !tickets.is_empty() => drop(tickets.remove(at % tickets.len())),
                        Deed::Leave(_) => {}
                        Deed::Pass(ms) => tokio::time::sleep(u32::from(ms) * MS).await,
                    }
                }
                for (id, number, ticket) in tickets {
                    let carried_out = server.written(&id).iter().any(|body| body["n"] == number);
                    match ticket.await {
                        Ok(_) => assert!(server.written(&id).iter().any(|body| body["n"] == number)),
                        Err(failure) if failure.kind != FailureKind::Unanswered => {
                            assert!(!carried_out, "{number} was carried out: {failure}");
                        }
                        Err(_) => {}
                    }
                }
            });
            futures_util::future::join(callers, opener).await;
            for id in 0..6 {
                let numbers: Vec<_> = server.written(&id.to_string()).iter().map(|body| body["n"].as_u64()).collect();
                assert!(numbers.is_sorted_by(|a, b| a < b), "document {id} was written as {numbers:?}");
            }
        });
    }
}
