//! The load: requests of 2,000 series with one sample each, over 16 connections, made before they are sent.

use crate::Failure;
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{
    LoadProfile, LoadReport, OnRefused, RunLimit, SeriesModel, Target, Timeline, drive_blocking,
};

pub(super) const CONNECTIONS: usize = 16;
pub(super) const PER_REQUEST: usize = 2_000;
/// Requests that each connection sends in turn: with all connections 128,000 series.
const REQUESTS: usize = 4;
/// The number of the samples, and so their value: another than zero, which would not be sent at all.
const FIRST: u64 = 1;

/// The series, and how they are sent.
pub(super) struct Traffic {
    model: Arc<SeriesModel>,
    connections: usize,
    requests: usize,
    per_request: usize,
}

impl Traffic {
    /// At least 100,000 series.
    pub(super) fn fleet() -> Traffic {
        Traffic::of(CONNECTIONS, REQUESTS, PER_REQUEST)
    }

    /// As many requests as there are connections, so that they are made in no time.
    pub(super) fn brief() -> Traffic {
        Traffic::of(CONNECTIONS, 1, PER_REQUEST)
    }

    /// Requests of a thousand series, each connection with 10,000 of its own.
    pub(super) fn routed() -> Traffic {
        Traffic::of(8, 10, 1_000)
    }

    fn of(connections: usize, requests: usize, per_request: usize) -> Traffic {
        let timeline = Timeline { base_ms: 1_790_000_000_000, interval_ms: 15_000 };
        let model = Arc::new(SeriesModel::new(7, connections * requests * per_request, timeline));
        Traffic { model, connections, requests, per_request }
    }

    /// Sends until the limit; every request must be accepted.
    pub(super) fn send(&self, target: &Target, limit: RunLimit) -> Result<LoadReport, Failure> {
        let profile = LoadProfile {
            connections: self.connections,
            series_per_request: self.per_request,
            first: FIRST,
            limit,
            on_refused: OnRefused::Count,
            deadline: Duration::from_secs(600),
            prebuilt: Some(self.requests),
            ..LoadProfile::default()
        };
        let report = drive_blocking(target, &self.model, &profile)?;
        if report.refused() > 0 || report.failed > 0 || report.accepted() == 0 {
            return Err(Failure(format!("the gateway did not accept every request:\n{report}")));
        }
        Ok(report)
    }

    /// The compressed bodies of all requests.
    pub(super) fn bodies(&self) -> Vec<Vec<u8>> {
        let mut raw = Vec::new();
        let bodies = self.model.series().chunks(self.per_request).map(|series| {
            let mut body = Vec::new();
            SampleBatch::of(&self.model, series, FIRST, 1).encode(Version::V1, &mut raw);
            compress(&raw, &mut body);
            body
        });
        bodies.collect()
    }
}
