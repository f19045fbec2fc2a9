//! One connection's part of a run.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tidegate_meters::Histogram;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{LoadProfile, LoadReport, OnRefused, RunLimit};
use crate::http::{Connection, RequestError, Response};
use crate::model::SeriesModel;
use crate::remote_write::{SampleBatch, compress};
use crate::target::Target;

pub(super) struct SenderPlan {
    pub(super) target: Target,
    pub(super) model: Arc<SeriesModel>,
    pub(super) profile: LoadProfile,
    /// The series of this connection.
    pub(super) series: Range<usize>,
    /// The requests of this connection.
    pub(super) requests: u64,
    pub(super) interval: Option<Duration>,
    pub(super) latency: Histogram,
}

/// The contents of a request.
#[derive(Clone)]
struct RequestContents {
    series: Range<usize>,
    first: u64,
    body: Arc<Vec<u8>>,
}

/// The wait before trying again when the answer names none.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Runs the plan to its end.
pub(super) async fn send(plan: &SenderPlan, report: &mut LoadReport) {
    let mut beat = plan.interval.map(|every| {
        let mut beat = interval(every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Burst);
        beat
    });
    let ring: Vec<RequestContents> =
        parts(plan).take(plan.profile.prebuilt.unwrap_or(0)).map(|p| encoded(plan, p)).collect();
    let replayed = ring.iter().cycle().cloned();
    let passes = if let RunLimit::Passes(passes) = plan.profile.limit { passes } else { u64::MAX };
    let per_pass = plan.series.len().div_ceil(plan.profile.series_per_request.max(1)) as u64;
    let requests = plan.requests.min(passes.saturating_mul(per_pass));
    let made = parts(plan).map(|part| encoded(plan, part));
    let all: Box<dyn Iterator<Item = RequestContents> + Send> =
        if ring.is_empty() { Box::new(made) } else { Box::new(replayed) };

    let mut connection = None;
    for part in all.take(usize::try_from(requests).unwrap_or(usize::MAX)) {
        if let Some(beat) = &mut beat {
            beat.tick().await;
        }
        until_settled(plan, &part, &mut connection, report).await;
    }
}

/// Series and first numbers, pass after pass, without end.
fn parts(plan: &SenderPlan) -> impl Iterator<Item = RequestContents> + Send {
    let LoadProfile { series_per_request, samples_per_series, first, .. } = plan.profile;
    let (series, size) = (plan.series.clone(), series_per_request.max(1));
    let passes = if series.is_empty() { 0 } else { u64::MAX };
    (0..passes).flat_map(move |pass| {
        let end = series.end;
        let first = first + pass * samples_per_series;
        let part = move |from: usize| RequestContents {
            series: from..end.min(from + size),
            first,
            body: Arc::default(),
        };
        series.clone().step_by(size).map(part)
    })
}

fn encoded(plan: &SenderPlan, mut part: RequestContents) -> RequestContents {
    let series = plan.model.range(part.series.clone());
    let samples = plan.profile.samples_per_series;
    let batch = SampleBatch {
        extras: plan.profile.extras,
        ..SampleBatch::of(&plan.model, series, part.first, samples)
    };
    let (mut raw, mut body) = (Vec::with_capacity(series.len() * 340), Vec::new());
    batch.encode(plan.profile.version, &mut raw);
    compress(&raw, &mut body);
    part.body = Arc::new(body);
    part
}

/// Sends a part, again and again if the profile says so, until it is accepted or finally refused.
async fn until_settled(
    plan: &SenderPlan,
    part: &RequestContents,
    connection: &mut Option<Connection>,
    report: &mut LoadReport,
) {
    loop {
        let wait = match attempt(plan, part, connection, report).await {
            Ok(response) if (200..300).contains(&response.status) => {
                accepted(plan, part, report);
                return;
            }
            Ok(response) => {
                report.reason(response.body.trim());
                report.with_retry_after += u64::from(response.retry_after.is_some());
                if response.status < 500 && response.status != 429 {
                    return;
                }
                response.retry_after.map_or(DEFAULT_RETRY_DELAY, Duration::from_secs)
            }
            Err(failure) => {
                report.reason(&failure.to_string());
                report.failed += 1;
                *connection = None;
                DEFAULT_RETRY_DELAY
            }
        };
        match plan.profile.on_refused {
            OnRefused::Count => return,
            OnRefused::Retry { at_most } => sleep(wait.min(at_most)).await,
        }
    }
}

async fn attempt(
    plan: &SenderPlan,
    part: &RequestContents,
    connection: &mut Option<Connection>,
    report: &mut LoadReport,
) -> Result<Response, RequestError> {
    let LoadProfile { answer_within, version, .. } = plan.profile;
    let mut open = match connection.take().filter(Connection::is_reusable) {
        Some(open) => open,
        None => {
            let open = Connection::open(&plan.target, answer_within).await?;
            report.connections += 1;
            open
        }
    };
    let started = Instant::now();
    let response = open.write(&plan.target, version, &part.body, answer_within).await?;
    plan.latency.observe_duration(started.elapsed());
    *report.answers.entry(response.status).or_default() += 1;
    *connection = Some(open);
    Ok(response)
}

fn accepted(plan: &SenderPlan, part: &RequestContents, report: &mut LoadReport) {
    let samples = plan.profile.samples_per_series;
    report.samples += samples * part.series.len() as u64;
    report.body_bytes += part.body.len() as u64;
    if plan.profile.prebuilt.is_none() {
        let mine = part.series.start - plan.series.start..part.series.end - plan.series.start;
        report.acked.add(mine, part.first, part.first + samples);
    }
}
