//! Promise: what time can mend is answered 503 with the time to return, and ends by itself.

use crate::rig::Rig;
use tidegate_arena::Share;
use tidegate_journal::Event;
use tidegate_ledger::Refusal;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};

fn body(series: usize) -> Vec<u8> {
    let model = SeriesModel::new(1, series, Timeline { base_ms: 1, interval_ms: 1 });
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
    compress(&raw, &mut body);
    body
}

#[tokio::test]
async fn a_body_without_memory_is_refused_retryably() {
    let rig = Rig::new();
    let held = rig.arena.try_charge(Share::Decode, rig.arena.ceiling(Share::Decode)).unwrap();
    let answer = rig.write(Version::V1, &body(500)).await;
    assert_eq!((answer.status, answer.written), (503, [Some(0); 3]), "{}", answer.body);
    assert!(answer.retry_after.is_some_and(|seconds| (1..=90).contains(&seconds)));
    assert!(answer.body.contains("memory"), "{}", answer.body);
    drop(held);
    rig.assert_refused(Refusal::Memory, "no decode memory");
    assert_eq!(rig.write(Version::V1, &body(500)).await.status, 204);
}

/// The codec itself has no memory to receive with.
#[tokio::test]
async fn a_request_without_receive_memory_is_refused_retryably() {
    let rig = Rig::new();
    let held = rig.arena.try_charge(Share::Ingest, rig.arena.ceiling(Share::Ingest)).unwrap();
    let answer = rig.write(Version::V1, &body(10)).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.retry_after.is_some());
    drop(held);
    let refused = [rig.books().refused, rig.books_of("http").refused].concat();
    assert_eq!(refused, [(Refusal::Memory, 1)]);
}

#[tokio::test]
async fn scratch_that_is_not_free_now_is_no_fault_of_the_body() {
    let rig = Rig::new();
    // 200,000 symbols want 800,000 bytes of table, behind 400,000 of body.
    let mut body = Vec::new();
    compress(&b"\x22\0".repeat(200_000), &mut body);
    let held = rig.arena.try_charge(Share::Decode, rig.arena.ceiling(Share::Decode) - (900 << 10)).unwrap();
    let answer = rig.write(Version::V2, &body).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.retry_after.is_some());
    drop(held);
    rig.assert_refused(Refusal::Memory, "no scratch");
    assert_eq!(rig.write(Version::V2, &body).await.status, 204);
}

#[tokio::test]
async fn a_stopping_gateway_refuses_retryably() {
    let rig = Rig::new();
    rig.gate.stop();
    let answer = rig.write(Version::V1, &body(10)).await;
    assert_eq!((answer.status, answer.written), (503, [Some(0); 3]));
    assert!(answer.retry_after.is_some());
    assert!(answer.body.contains("stopping"), "{}", answer.body);
    rig.assert_refused(Refusal::Shutdown, "stopping");
}

/// A journal that is full is known before a body is sent, and is open again when a sink has moved on.
#[tokio::test]
async fn a_barred_journal_refuses_before_the_body() {
    let rig = Rig::with_quota(256 << 10);
    let mut follower = rig.follow();
    let (body, mut accepted) = (body(500), 0);
    let answer = loop {
        let answer = rig.write(Version::V1, &body).await;
        if answer.status != 204 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 200, "the quota holds");
    };
    assert_eq!((answer.status, answer.written), (503, [Some(0); 3]), "{}", answer.body);
    assert!(answer.retry_after.is_some());
    assert!(answer.body.contains("quota"), "{}", answer.body);

    // No byte of this body is ever sent.
    let head =
        "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n";
    let early = rig.send_raw(head.into()).await;
    assert_eq!(early.status, 503, "{}", early.text);
    assert!(early.header("Retry-After").is_some());
    assert_eq!(rig.books().refused, [(Refusal::Disk, 2)]);

    for _ in 0..accepted {
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("a record is missing") };
        follower.commit(record.sequence);
    }
    while rig.gate.check_open().is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.write(Version::V1, &body).await.status, 204);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (accepted + 1, vec![(Refusal::Disk, 2)]));
}

/// A thread for what may hang (name resolution, say) that hangs holds up no body, however large.
#[test]
fn a_hanging_blocking_thread_does_not_delay_large_bodies() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (let_go, hangs) = std::sync::mpsc::sync_channel::<()>(0);
    runtime.block_on(async {
        let hanging = tokio::task::spawn_blocking(move || hangs.recv());
        let rig = Rig::new();
        let model = SeriesModel::new(1, 18_000, Timeline { base_ms: 1, interval_ms: 1 });
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
        assert!(raw.len() > 4 << 20, "large enough for the pool: {}", raw.len());
        compress(&raw, &mut body);
        assert_eq!(rig.write(Version::V1, &body).await.status, 204);
        drop(let_go);
        assert!(hanging.await.unwrap().is_err());
    });
}
