//! Memory under churn: pods that come and go for an hour.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::json;
use std::time::Duration;
use tidegate_kube_pods::{Change, Decoder, Event, Fields, PodLimits, PodTable};
use tokio::time::Instant;

/// 30,000 pods in an hour, each alive for half a minute: what is known is what there is and what ended within the last
/// minute, and the heap holds no more at the end than after the first ten minutes.
#[test]
fn thirty_thousand_pods_leave_nothing_behind() {
    const PODS: u32 = 30_000;
    let fields = Fields { labels: vec!["app".into()], ..Fields::default() };
    let table = PodTable::new(PodLimits::default(), Duration::from_secs(60));
    let mut decoder = Decoder::watch(&fields, PodLimits::default().pod_bytes);
    let begin = Instant::now();
    let (mut most, mut after_ten_minutes) = (0, 0);
    let measured = allocation_counter::measure(|| {
        for number in 0..PODS {
            let now = begin + Duration::from_millis(u64::from(number) * 120);
            let mut feed = |kind: &str, number: u32| {
                let text = json!({"type": kind, "object": {
                    "metadata": {"name": format!("job-{number}"), "namespace": "n", "uid": format!("uid-{number}"),
                        "labels": {"app": "job"}, "annotations": {"note": "x".repeat(500)}},
                    "spec": {"containers": [{"name": "main", "image": "job:1"}]},
                }});
                decoder.feed(text.to_string().as_bytes(), |event| {
                    let Event::Pod(change, pod) = event else { return };
                    match change {
                        Change::Applied => table.apply(*pod, now),
                        Change::Deleted => table.delete(*pod, now),
                    }
                })
            };
            feed("ADDED", number).unwrap();
            if let Some(ended) = number.checked_sub(250) {
                feed("DELETED", ended).unwrap();
            }
            let (pods, bytes) = table.len_and_bytes();
            most = most.max(pods);
            if number == PODS / 6 {
                after_ten_minutes = bytes;
            }
        }
    });
    // 250 that live and 500 that ended within the last minute.
    assert!((745..=755).contains(&most), "{most}");
    let (_, bytes) = table.len_and_bytes();
    assert!(bytes <= PodLimits::default().table_bytes && bytes <= after_ten_minutes + 16_000, "{bytes}");
    assert_eq!(table.counters().not_kept.load(std::sync::atomic::Ordering::Relaxed), 0);
    // The heap never held more than what the table says, and little besides.
    assert!(measured.bytes_max < 1 << 20, "{} bytes", measured.bytes_max);
}
