//! Promise: the sink holds no more than its part, whatever its members do; what is larger is borrowed for a while.

use crate::member::{Member, Reply};
use crate::messages::{Label, Series};
use crate::rig::{Rig, settings, until};
use std::time::Duration;
use tidegate_sinks::ThanosReceiveSettings;

/// A series with a label of `len` bytes that does not shrink.
fn long(number: u64, len: usize) -> Series {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + (state >> 32) as u8 % 95)
    };
    let mut series = Series::numbered(number, &[1]);
    series.labels.push(Label { name: "text".to_owned(), value: (0..len).map(|_| next()).collect() });
    series
}

/// A record that is larger than the part borrows. What a stalled member should get goes to disk, so the turn is given back.
#[tokio::test]
async fn a_stalled_member_does_not_keep_the_turn() {
    let part = 1 << 20;
    let members = Member::some(3);
    let all: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(part);
    let patience = Duration::from_millis(100);
    let settings = ThanosReceiveSettings { patience, ..settings(&rig, &all, 3) };
    members[0].always(Reply::Stall);
    rig.run(&settings, async |rig| {
        rig.put_series(None, (0..40).map(|number| long(number, 50_000)).collect()).await;
        rig.put_series(None, (40..50).map(|number| long(number, 100)).collect()).await;
        until("the others take everything", || all[1..].iter().all(|m| m.taken().len() == 50)).await;
        until("the turn is given back", || !rig.turn.is_taken() && rig.held() <= part as u64).await;
        members[0].release();
        rig.settled().await;
        until("it takes everything", || members[0].taken().len() == 50).await;
    })
    .await;
    assert!(rig.peak() > part as u64, "it borrowed");
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

/// Many open requests in a small part: each needs a little more memory before it can be sealed.
#[tokio::test]
async fn many_open_requests_in_a_small_part_are_sent() {
    for is_compressed in [true, false] {
        let part = 600 << 10;
        let members = Member::some(6);
        let all: Vec<_> = members.iter().collect();
        let mut rig = Rig::new(part);
        let linger = Duration::from_secs(5);
        let settings = ThanosReceiveSettings { is_compressed, linger, ..settings(&rig, &all, 3) };
        for batch in 0..20 {
            let numbers = 50 * batch..50 * batch + 50;
            rig.put_series(None, numbers.map(|number| long(number, 1000)).collect()).await;
        }
        rig.drain(&settings).await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
        assert_eq!(members.iter().map(|member| member.taken().len()).sum::<usize>(), 3000);
    }
}

/// A backlog that is larger than the part: requests are sealed for want of memory, and are long all the same. Short ones would each
/// take an answer to give back a page, which is taken by the next short one.
#[tokio::test]
async fn requests_are_long_where_memory_is_short() {
    let members = Member::some(3);
    let all: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(1500 << 10);
    let settings = ThanosReceiveSettings { is_compressed: false, ..settings(&rig, &all, 1) };
    for batch in 0..40 {
        let numbers = 1000 * batch..1000 * batch + 1000;
        rig.put_series(None, numbers.map(|number| long(number, 300)).collect()).await;
    }
    rig.drain(&settings).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    let requests: usize = members.iter().map(Member::requests).sum();
    assert!(requests < 500, "{requests} requests with 40,000 series");
}

/// A record that fills the part when it is decompressed: what is left of it is too little for requests, so memory is borrowed for them.
#[tokio::test]
async fn a_record_that_fills_the_part_goes_out_in_long_requests() {
    let series = |number| {
        let mut series = Series::numbered(number, &[1]);
        series.labels.push(Label { name: "text".to_owned(), value: "a".repeat(300) });
        series
    };
    let members = Member::some(3);
    let all: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(1180 << 10);
    let settings = ThanosReceiveSettings { is_compressed: false, ..settings(&rig, &all, 1) };
    rig.put_series(None, (0..3000).map(series).collect()).await;
    rig.drain(&settings).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    let requests: usize = members.iter().map(Member::requests).sum();
    assert!(requests < 30, "{requests} requests with 3,000 series");
}

/// Long series while a member holds memory: each waits for room, and no request goes out without series meanwhile.
#[tokio::test]
async fn no_request_is_empty() {
    let part = 900 << 10;
    let members = Member::some(3);
    let all: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(part);
    let patience = Duration::from_millis(300);
    let settings = ThanosReceiveSettings { patience, ..settings(&rig, &all, 1) };
    members.iter().for_each(|member| member.always(Reply::Stall));
    rig.run(&settings, async |rig| {
        for batch in 0..4 {
            rig.put_series(None, (4 * batch..4 * batch + 4).map(|number| long(number, 100_000)).collect())
                .await;
        }
        until("requests are in flight", || members.iter().any(|member| member.stalled() > 0)).await;
        members.iter().for_each(Member::release);
        rig.settled().await;
    })
    .await;
    assert_eq!(members.iter().map(|member| member.taken().len()).sum::<usize>(), 16);
    let requests: usize = members.iter().map(Member::requests).sum();
    assert!(requests <= 16 + members.len(), "{requests} requests with 16 series");
}
