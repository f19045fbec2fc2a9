//! A trickle of telemetry as a small machine makes it, for people who want to see something move.

use std::f64::consts::TAU;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::http::Connection;
use crate::model::{SampleKind, Series};
use crate::remote_write::{Sample, Version, compress, encode_sampled};
use crate::target::Target;

/// How many series the trickle has.
pub const DEMO_SERIES: usize = HOSTS.len() * PER_HOST;

/// The largest memory of the demo traffic, for the memory plan of the gateway that runs it.
pub const DEMO_BYTES: usize = 512 * 1024;

const HOSTS: [&str; 4] = ["web-1:9100", "web-2:9100", "db-1:9100", "cache-1:9100"];
const CORES: [&str; 4] = ["0", "1", "2", "3"];
const MODES: [&str; 4] = ["idle", "iowait", "system", "user"];
const LE: [&str; 8] = ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "1", "+Inf"];
const CODES: [&str; 3] = ["200", "404", "500"];
const PER_HOST: usize = 1 + CORES.len() * MODES.len() + 3 + CODES.len() * (LE.len() + 2);

/// An answer takes at most this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The result of the demo traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemoReport {
    /// Requests that were accepted.
    pub accepted: u64,
    /// Requests that were not. Their samples are gone, as those of a scrape that failed.
    pub failed: u64,
}

/// Sends [`DEMO_SERIES`] samples `every` so often until `stop` is true or its sender is gone.
pub async fn trickle(target: &Target, every: Duration, mut stop: watch::Receiver<bool>) -> DemoReport {
    let fleet = fleet();
    let mut trickled = DemoReport::default();
    let mut connection: Option<Connection> = None;
    let mut beat = interval(every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            _stopped = stop.wait_for(|stop| *stop) => return trickled,
            _ = beat.tick() => {}
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sampled = fleet.iter().map(|gauge| gauge.sample(now));
        encode_sampled(sampled, &mut raw);
        compress(&raw, &mut body);
        let sent = async {
            let mut open = match connection.take().filter(Connection::is_reusable) {
                Some(open) => open,
                None => Connection::open(target, TIMEOUT).await?,
            };
            let response = open.write(target, Version::V1, &body, TIMEOUT).await?;
            connection = Some(open);
            Ok::<_, crate::RequestError>((200..300).contains(&response.status))
        };
        if Box::pin(sent).await.unwrap_or(false) {
            trickled.accepted += 1;
        } else {
            trickled.failed += 1;
        }
    }
}

/// One series and how its value moves.
struct DemoSeries {
    series: Series,
    shape: SeriesShape,
    /// By how many seconds its host is ahead of the others in the swing of its load.
    phase: f64,
}

enum SeriesShape {
    /// Always this.
    Constant(f64),
    /// Grows at a rate that swings around this many a second.
    Counter(f64),
    /// Swings around this, by a fifth of it.
    Wave(f64),
}

impl DemoSeries {
    fn sample(&self, now: Duration) -> Sample<'_> {
        // A value follows from the time alone, so that a restart continues where the last run ended.
        let seconds = now.as_secs_f64();
        let swing = ((seconds + self.phase) * TAU / 600.0).sin();
        let value = match self.shape {
            SeriesShape::Constant(value) => value,
            // The integral of rate * (1 + 0.5 cos): never falls. Counted from some day in 2023.
            SeriesShape::Counter(rate) => (rate * (seconds - 1.7e9 + 0.5 * swing * 600.0 / TAU)).floor(),
            SeriesShape::Wave(around) => (around * (1.0 + 0.2 * swing)).round(),
        };
        let time_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Sample { series: &self.series, value, time_ms }
    }
}

fn fleet() -> Vec<DemoSeries> {
    let mut fleet = Vec::with_capacity(DEMO_SERIES);
    for (host, phase) in HOSTS.iter().zip([0.0, 150.0, 300.0, 450.0]) {
        let mut add = |name: &str, extra: &[(&'static str, &str)], shape: SeriesShape| {
            let fixed = [("__name__", name), ("env", "demo"), ("instance", *host), ("job", "demo")];
            let all = fixed.into_iter().chain(extra.iter().copied());
            let mut labels: Vec<(&'static str, Box<str>)> = all.map(|(n, v)| (n, v.into())).collect();
            labels.sort_unstable_by_key(|(name, _)| *name);
            fleet.push(DemoSeries { series: Series::new(labels.into(), SampleKind::Float), shape, phase });
        };
        add("up", &[], SeriesShape::Constant(1.0));
        for core in CORES {
            for (mode, share) in MODES.iter().zip([0.7, 0.02, 0.08, 0.2]) {
                add("node_cpu_seconds_total", &[("cpu", core), ("mode", mode)], SeriesShape::Counter(share));
            }
        }
        add("node_memory_MemTotal_bytes", &[], SeriesShape::Constant(16e9));
        add("node_memory_MemAvailable_bytes", &[], SeriesShape::Wave(9e9));
        add("node_load1", &[], SeriesShape::Wave(20.0));
        for (code, per_second) in CODES.iter().zip([40.0, 2.0, 0.5]) {
            let name = "http_request_duration_seconds";
            // A host's series swing together, so each bucket holds at least what the one below it does.
            for (le, below) in LE.iter().zip([0.3, 0.5, 0.75, 0.88, 0.95, 0.99, 0.999, 1.0]) {
                let labels = [("code", *code), ("le", *le)];
                add(&format!("{name}_bucket"), &labels, SeriesShape::Counter(per_second * below));
            }
            add(&format!("{name}_count"), &[("code", code)], SeriesShape::Counter(per_second));
            add(&format!("{name}_sum"), &[("code", code)], SeriesShape::Counter(per_second * 0.03));
        }
    }
    fleet
}
