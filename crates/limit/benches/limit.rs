//! The cost of a decision: `cargo bench -p tidegate-limit`. To count instructions, which do not depend on the
//! machine's load, run one case many times and subtract two counts: `perf stat -e instructions:u <this program> --run
//! 'limiter: rate, maximum' 1000000`.
#![allow(missing_docs, reason = "a bench")]

use criterion::Criterion;
use std::hint::black_box;
use std::time::Duration;
use tidegate_limit::{ConnectionCounts, Limiter, LimiterSettings, Moment, PerSecond, Throttle, Token};

/// Every measured step, by name.
fn each(measure: &mut dyn FnMut(&str, &mut dyn FnMut())) {
    let now = Moment::now();
    let rate = |rate| Some(PerSecond { rate, burst: rate });
    let maximum = Limiter::new(&LimiterSettings { concurrency: Some(1000), ..LimiterSettings::default() });
    measure("limiter: maximum", &mut || drop(black_box(maximum.acquire(black_box(now), 0))));
    let both = Limiter::new(&LimiterSettings {
        requests: rate(1_000_000_000),
        concurrency: Some(1000),
        ..LimiterSettings::default()
    });
    let mut at = now;
    measure("limiter: rate, maximum", &mut || {
        at.0 += 10;
        drop(black_box(both.acquire(black_box(at), 0)));
    });
    let all = Limiter::new(&LimiterSettings {
        requests: rate(1_000_000_000),
        items: rate(1_000_000_000),
        bytes: rate(1_000_000_000_000),
        concurrency: Some(1000),
        in_flight: Some(1 << 30),
        ..LimiterSettings::default()
    });
    measure("limiter: all five", &mut || {
        at.0 += 10;
        drop(black_box(all.acquire(black_box(at), 1000)));
    });
    let spent = Limiter::new(&LimiterSettings { requests: rate(1), ..LimiterSettings::default() });
    while spent.acquire(now, 0).is_ok() {}
    measure("limiter: refused", &mut || drop(black_box(spent.acquire(black_box(now), 0))));
    measure("clock", &mut || _ = black_box(Moment::now()));

    let throttle = Throttle::new(8, Duration::from_secs(60));
    let mut key = 0_u64;
    measure("throttle: acquire, release", &mut || {
        key += 1;
        drop(black_box(throttle.acquire(black_box(now), black_box(key))));
    });
    for most in [8_u32, 10_000] {
        let throttle = Throttle::new(most, Duration::from_secs(60));
        let held: Vec<Token<u64>> =
            (0..u64::from(most)).filter_map(|key| throttle.acquire(now, key).ok()).collect();
        measure(&format!("throttle: refused, {most} keys"), &mut || {
            key += 1;
            drop(black_box(throttle.acquire(black_box(now), black_box(key | 1 << 40))));
        });
        drop(held);
    }
    let peers = ConnectionCounts::new(Some(100));
    let peer = std::net::IpAddr::from([192, 0, 2, 1]);
    measure("peers: enter, leave", &mut || {
        if let Some(counted) = peers.try_add(black_box(peer)) {
            peers.remove(counted);
        }
    });
    measure("nothing", &mut || _ = black_box(now));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, wanted, times, ..] = arguments.as_slice()
        && run == "--run"
    {
        let times: u64 = times.parse().unwrap_or(0);
        each(&mut |name, step| {
            if name == wanted {
                (0..times).for_each(|_| step());
            }
        });
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    each(&mut |name, step| _ = criterion.bench_function(name, |bench| bench.iter(&mut *step)));
    criterion.final_summary();
}
