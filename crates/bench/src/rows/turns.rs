//! Two gateways that take the same spans in turns, so that the difference of their costs is that of their settings.

use super::otlp::{CONNECTIONS, PROBE, ROUNDS, accepted};
use crate::Failure;
use crate::figure::{Bench, median};
use crate::subject::Subject;
use std::time::Duration;
use tidegate_load::OnRefused;
use tidegate_load::otlp::{ContentCoding, OtlpProfile, OtlpReport, Signal, Transport};

/// Spans in a request.
pub(super) const PER_REQUEST: u64 = 200;

/// The processor time that each of two gateways takes per span, in nanoseconds: medians of the rounds.
pub(super) fn costs_in_turns(bench: &Bench, subjects: [&Subject; 2]) -> Result<[f64; 2], Failure> {
    let length = (bench.seconds / ROUNDS).as_secs_f64();
    let (mut costs, mut first, mut requests) = ([Vec::new(), Vec::new()], 0, PROBE);
    for round in 0..=ROUNDS {
        for (subject, costs) in subjects.into_iter().zip(&mut costs) {
            let before = subject.used()?;
            let report = send(subject, first, requests)?;
            subject.wait_until_settled()?;
            let used = subject.used()?.since(before);
            // The first is short, and says how long the others are.
            match round {
                0 => {
                    let rate = PROBE as f64 / report.elapsed.as_secs_f64().max(1e-3);
                    requests = ((rate * length) as u64).max(PROBE);
                }
                _ => costs.push(used.total().as_nanos() as f64 / report.items as f64),
            }
        }
        first += CONNECTIONS * requests * PER_REQUEST;
    }
    Ok(costs.map(median))
}

/// Sends so many requests over each connection, with spans from number `first` on; every one must be accepted.
pub(super) fn send(subject: &Subject, first: u64, requests: u64) -> Result<OtlpReport, Failure> {
    let profile = OtlpProfile {
        transport: Transport::Http,
        signal: Signal::Traces,
        coding: ContentCoding::Identity,
        connections: CONNECTIONS,
        items: PER_REQUEST,
        requests,
        first,
        on_refused: OnRefused::Count,
        deadline: Duration::from_secs(600),
        ..OtlpProfile::default()
    };
    accepted(subject, &profile)
}
