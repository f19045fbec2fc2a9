//! Four clients search without pause during a storm, as many pages are open as may be: the memory holds, everybody is answered, searches
//! find what was acknowledged or say that there is no memory, and the intake hardly notices.

use crate::support::{MIB, Storm, alone, full_speed, phase};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use tidegate_load::LoadProfile;
use tidegate_tests::http;

const CONNECTIONS: usize = 100;
const SEARCHING: usize = 4;
/// Phases without and with searches, by turns.
const PHASES: u64 = 4;

/// Counts answers.
#[derive(Default)]
struct Answered {
    found: AtomicU64,
    without_memory: AtomicU64,
}

/// Asks for the rate of a metric of which the load has many series, again and again.
fn searching(
    admin: SocketAddr,
    query: Value,
    stop: Arc<AtomicBool>,
    answered: Arc<Answered>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let session = http::get(admin, "/console/session").unwrap();
        let session: Value = serde_json::from_slice(&session.body).unwrap();
        let token = format!("X-Tidegate-Token: {}", session["token"].as_str().unwrap());
        let head = ["POST /console/search/metrics HTTP/1.1", token.as_str()];
        while !stop.load(Relaxed) {
            let answer = http::request(admin, &head, query.to_string().as_bytes()).unwrap();
            match answer.status {
                200 => answered.found.fetch_add(1, Relaxed),
                503 => answered.without_memory.fetch_add(1, Relaxed),
                status => panic!("{status}: {}", answer.text()),
            };
        }
    })
}

#[test]
fn searches_hardly_slow_the_intake() {
    let _alone = alone();
    let lake = json!({ "sinks": { "lake": { "type": "lake", "file_age": "1s" } } });
    let mut storm = Storm::start(64 * MIB, 20_000, &lake);
    let admin = storm.gateway.admin();
    let mut samples = [Vec::new(), Vec::new()];
    let mut acked = None;
    let answered = Arc::new(Answered::default());
    for number in 0..PHASES {
        let with_searches = number % 2 == 1;
        let stop = Arc::new(AtomicBool::new(!with_searches));
        let searchers: Vec<_> = (0..SEARCHING)
            .map(|_| searching(admin, json!({}), Arc::clone(&stop), Arc::clone(&answered)))
            .collect();
        let profile = LoadProfile { first: number * 1_000_000, ..full_speed(CONNECTIONS, phase()) };
        let report = storm.drive(&profile).join().unwrap();
        stop.store(true, Relaxed);
        searchers.into_iter().for_each(|searcher| searcher.join().unwrap());
        assert_eq!(report.failed, 0, "everybody is answered: {report}");
        samples[usize::from(with_searches)].push(report.samples as f64 / report.elapsed.as_secs_f64());
        match &mut acked {
            None => acked = Some(report.acked),
            Some(acked) => acked.merge(0, &report.acked),
        }
    }
    let [without, with] = samples.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let (found, refused) = (answered.found.load(Relaxed), answered.without_memory.load(Relaxed));
    println!(
        "samples a second: {without:.0} without searches, {with:.0} with ({:+.1} %)",
        (with / without - 1.0) * 100.0
    );
    println!("{found} searches were answered, for {refused} there was no memory");
    assert!(found > 0);
    storm.is_over(&acked.unwrap());
}
