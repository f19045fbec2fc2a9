//! P1, P3: bodies that lie, a thousand at once: each is answered, none costs more than is charged, and a
//! client that means well does not notice.

use crate::support::{MIB, Storm, TIMELINE, alone, phase};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_load::hostile::{bomb, copy_out_of_range, most_compressed, with_preamble};
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{Connection, LoadProfile, OnRefused, RunLimit, SeriesModel, Target};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const ATTACKERS: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);
/// A request is disturbed when it takes longer than this.
const NOTICEABLE: Duration = Duration::from_secs(10);

/// The requests, and their correct answers.
struct Lie {
    name: &'static str,
    body: Vec<u8>,
    right: &'static [u16],
}

fn lies() -> Vec<Lie> {
    let model = SeriesModel::new(3, 500, TIMELINE);
    let (mut raw, mut honest) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
    compress(&raw, &mut honest);
    let len = raw.len() as u64;
    let lie = |name, body: Vec<u8>, right| Lie { name, body, right };
    vec![
        lie("preamble one less", with_preamble(&honest, len - 1), &[400, 503]),
        lie("preamble of nothing", with_preamble(&honest, 0), &[400, 503]),
        lie("preamble one more", with_preamble(&honest, len + 1), &[400, 503]),
        lie("preamble of 4 MiB", with_preamble(&honest, 4 << 20), &[400, 503]),
        lie("preamble of 4 GiB", with_preamble(&honest, u64::from(u32::MAX)), &[400, 413]),
        lie("preamble beyond 4 GiB", with_preamble(&honest, 1 << 32), &[400, 413]),
        lie("preamble without end", vec![0xff; 64], &[400]),
        lie("half a body", honest[..honest.len() / 2].to_vec(), &[400, 503]),
        lie("a body without its end", honest[..honest.len() - 1].to_vec(), &[400, 503]),
        lie("copy out of range", copy_out_of_range(), &[400, 503]),
        lie("bomb that lies", bomb(), &[400, 413]),
        lie("bomb of 1 MiB", most_compressed(1 << 20), &[400, 503]),
        lie("bomb of 1 GiB", most_compressed(1 << 30)[..330].to_vec(), &[400, 413]),
        lie("not Snappy", raw[..raw.len().min(4000)].to_vec(), &[400, 413, 503]),
    ]
}

/// Sends one lie after the other on as many connections at once, until `until`.
async fn attack(target: Target, lies: Arc<Vec<Lie>>, until: Instant) -> BTreeMap<(usize, u16), u64> {
    let mut attackers = JoinSet::new();
    for number in 0..ATTACKERS {
        let (target, lies) = (target.clone(), Arc::clone(&lies));
        attackers.spawn(async move {
            let mut answers = BTreeMap::<_, u64>::new();
            let mut connection = None;
            for kind in (0..lies.len()).cycle().skip(number % lies.len()) {
                if Instant::now() >= until {
                    break;
                }
                let mut open: Connection = match connection.take().filter(Connection::is_reusable) {
                    Some(open) => open,
                    None => Connection::open(&target, PATIENCE).await.unwrap(),
                };
                let lie = &lies[kind];
                let answer = open.write(&target, Version::V1, &lie.body, PATIENCE).await;
                let answer = answer.unwrap_or_else(|failure| panic!("{} is answered: {failure}", lie.name));
                assert!(lie.right.contains(&answer.status), "{}: {answer:?}", lie.name);
                *answers.entry((kind, answer.status)).or_default() += 1;
                connection = Some(open);
            }
            answers
        });
    }
    let mut all = BTreeMap::new();
    while let Some(answers) = attackers.join_next().await {
        answers.unwrap().into_iter().for_each(|(which, n)| *all.entry(which).or_default() += n);
    }
    all
}

#[test]
fn lies_cost_the_liar() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 2000, &json!({ "limits": { "connections": 1200 } }));
    let honest = LoadProfile {
        connections: 4,
        series_per_request: 100,
        rate: Some(100.0),
        limit: RunLimit::Time(phase() + Duration::from_secs(2)),
        on_refused: OnRefused::Count,
        ..LoadProfile::default()
    };
    let driving = storm.drive(&honest);
    let lies = Arc::new(lies());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let until = Instant::now() + phase();
    let answers = runtime.block_on(attack(storm.gateway.target(), Arc::clone(&lies), until));
    for ((kind, status), count) in &answers {
        println!("{}: {count} answered {status}", lies[*kind].name);
    }
    let mut report = driving.join().unwrap();
    println!("meanwhile: {report}");
    assert_eq!((report.refused(), report.failed), (0, 0), "the honest client is served: {report}");
    let p99 = Duration::from_nanos(report.latency.quantile(0.99).unwrap());
    assert!(p99 < NOTICEABLE, "the honest client does not notice: {p99:?}");
    let verdict = storm.is_over(&report.acked);
    assert_eq!(verdict.duplicates, 0, "{verdict:?}");
    storm.is_normal(&mut report.acked, 1 << 40);
}
