//! P2, P3, P4: a disk or a quota that is full is an answer, 503 with a delay, and it goes on by itself when
//! there is room; or the oldest is dropped, counted, where that is what was asked for.

use crate::support::{MIB, Storm, alone};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tidegate_load::{Behaviour, LoadProfile, LoadReport, OnRefused, RunLimit, compare};
use tidegate_tests::{MOUNT, SOON, skip, until};

/// The most samples that the sink sends at once.
const IN_FLIGHT: u64 = 20_000;

/// A small file system; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    /// Mounts one of `size`; `None`, said loudly, where that is not possible.
    fn mount(at: &Path, size: &str) -> Option<Disk> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tidegate-test"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Disk(at.to_owned()));
        }
        skip(MOUNT, "a small disk cannot be mounted here: that takes root");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the gateway may still have files open when a test fails.
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn refused_for(storm: &Storm, reason: &str) -> u64 {
    let sources = storm.gateway.status()["books"]["sources"].clone();
    sources.as_array().unwrap().iter().filter_map(|source| source["refused"][reason].as_u64()).sum()
}

/// Until accepted, with short waits; everybody is answered 204, or 503 with a delay.
fn persistent(passes: u64) -> LoadProfile {
    LoadProfile {
        connections: 16,
        series_per_request: 250,
        limit: RunLimit::Passes(passes),
        on_refused: OnRefused::Retry { at_most: Duration::from_millis(100) },
        deadline: Duration::from_secs(200),
        ..LoadProfile::default()
    }
}

#[track_caller]
fn only_waited(report: &LoadReport) {
    assert_eq!(report.failed, 0, "{report}");
    assert!(report.answers.keys().all(|status| [204, 503].contains(status)), "{report}");
    assert_eq!(report.with_retry_after, report.refused(), "every refusal says when to return: {report}");
}

/// The disk is filled by the journal, since the sink is gone, and is emptied when it is back.
#[test]
fn a_full_disk_refuses_until_there_is_room() {
    let _alone = alone();
    // Not in a cgroup: the pages of this disk would count in it.
    let mut storm = Storm::plan(64 * MIB, 4000, &json!({ "journal": { "segment": "4MiB" } }));
    let Some(_disk) = Disk::mount(&storm.gateway.data(), "24m") else { return };
    storm.sink.set(Behaviour::Refuse);
    storm.gateway.start();
    let driving = storm.drive(&persistent(600));
    until(SOON, "the disk to be full", || refused_for(&storm, "disk") > 200);
    assert_eq!(storm.gateway.page("/health").status, 200, "it is alive");
    println!("while full: {}", storm.gateway.status()["reason"]);
    storm.sink.set(Behaviour::Healthy);
    let mut report = driving.join().unwrap();
    println!("{report}");
    only_waited(&report);
    assert_eq!(report.samples, 600 * 4000);
    assert_eq!(storm.is_over(&report.acked).duplicates, 0);
    storm.is_normal(&mut report.acked, 1 << 40);
}

/// Somebody else fills the disk, and makes room again.
#[test]
fn a_disk_that_others_fill_refuses_until_there_is_room() {
    let _alone = alone();
    let mut storm = Storm::plan(64 * MIB, 4000, &json!({ "journal": { "segment": "2MiB" } }));
    let Some(disk) = Disk::mount(&storm.gateway.data(), "16m") else { return };
    storm.gateway.start();
    let ballast = disk.0.join("ballast");
    // As much as there is room for.
    let mut file = std::fs::File::create(&ballast).unwrap();
    let page = vec![1; 64 << 10];
    while std::io::Write::write_all(&mut file, &page).is_ok() {}
    let driving = storm.drive(&persistent(300));
    until(SOON, "the disk to be full", || refused_for(&storm, "disk") > 100);
    std::fs::remove_file(&ballast).unwrap();
    drop(file);
    let mut report = driving.join().unwrap();
    println!("{report}");
    only_waited(&report);
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}

/// A quota that is used up is the same to clients as a full disk. The gateway starts on a full one as well.
#[test]
fn a_full_quota_refuses_until_there_is_room() {
    let _alone = alone();
    let settings = json!({ "journal": { "segment": "2MiB", "quota": "8MiB" } });
    let mut storm = Storm::plan(64 * MIB, 4000, &settings);
    storm.limit();
    storm.sink.set(Behaviour::Refuse);
    storm.gateway.start();
    let driving = storm.drive(&persistent(300));
    until(SOON, "the quota to be used up", || refused_for(&storm, "disk") > 100);
    storm.sink.set(Behaviour::Healthy);
    let mut report = driving.join().unwrap();
    println!("{report}");
    only_waited(&report);
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}

/// Told to drop the oldest, it refuses nobody, and says how much it dropped: to the sample.
#[test]
fn the_oldest_is_dropped_where_asked_for() {
    let _alone = alone();
    let settings = json!({ "journal": { "segment": "1MiB", "quota": "6MiB", "when_full": "drop_oldest" } });
    let mut storm = Storm::plan(64 * MIB, 4000, &settings);
    storm.limit();
    storm.sink.set(Behaviour::Refuse);
    storm.gateway.start();
    let report = storm.drive(&persistent(300)).join().unwrap();
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    let bytes = storm.gateway.status()["journal"]["bytes"].as_u64().unwrap();
    assert!(bytes <= 6 * MIB, "{bytes}");
    storm.sink.set(Behaviour::Healthy);
    let status = storm.gateway.at_rest(crate::support::drained());
    storm.is_sound();
    let arrived = storm.sink.report();
    let book = &status["books"]["sinks"][0];
    let dropped: u64 = book["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    println!("of {} samples {} arrived; dropped: {}", report.samples, arrived.samples(), book["dropped"]);
    assert!(dropped > 0 && arrived.samples() > 0);
    let delivered = book["delivered"].as_u64().unwrap();
    assert_eq!(delivered + dropped, report.samples, "{book}");
    // A request that was on its way when its records were dropped may arrive nevertheless.
    let surplus = arrived.samples() - delivered;
    assert!(surplus <= IN_FLIGHT, "{surplus}");
    let verdict = compare(&storm.model, &report.acked, &arrived);
    let expected = (dropped - surplus, 0, 0);
    assert_eq!((verdict.missing, verdict.out_of_order, verdict.wrong_time), expected, "{verdict:?}");
    // Back to normal: what comes now arrives in full.
    let first = 1 << 40;
    let report = storm.drive(&LoadProfile { first, ..persistent(1) }).join().unwrap();
    storm.gateway.at_rest(crate::support::drained());
    assert_eq!(storm.sink.report().samples(), arrived.samples() + report.samples);
}

/// Rejections and the quota's drops are counted once each, even if both affect one request; and nothing is refused
/// while the oldest data may be dropped.
#[test]
fn items_dropped_twice_are_counted_once() {
    let _alone = alone();
    let settings = json!({ "journal": { "segment": "1MiB", "quota": "4MiB", "when_full": "drop_oldest" } });
    let mut storm = Storm::plan(64 * MIB, 16_000, &settings);
    storm.limit();
    storm.sink.set(Behaviour::Status { code: 400, retry_after: None });
    storm.gateway.start();
    // Faster than requests can be rejected one by one.
    let profile =
        LoadProfile { connections: 32, series_per_request: 500, prebuilt: Some(1), ..persistent(1) };
    let profile = LoadProfile { limit: RunLimit::Requests(10_000), ..profile };
    let report = storm.drive(&profile).join().unwrap();
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    let status = storm.gateway.at_rest(crate::support::drained());
    let book = &status["books"]["sinks"][0];
    println!("of {} samples: {book}", report.samples);
    let dropped = book["dropped"].as_object().unwrap();
    let of = |reason: &str| dropped.get(reason).and_then(Value::as_u64).unwrap_or(0);
    assert!(of("quota") > 0 && of("rejected") > 0, "{book}");
    assert_eq!(dropped.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), report.samples, "{book}");
    assert!(!dropped.contains_key("damaged"), "nothing is damaged: {book}");
    storm.is_sound();
}
