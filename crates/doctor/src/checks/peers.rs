//! What the peers of sinks answered, and what to do where it is not what they should.

mod advice;

use crate::finding::Finding;
use crate::probe::{Answer, LooksLike, Outcome, PeerReport, Step};
use crate::subject::{Peer, Setup};
use std::time::SystemTime;
use tidegate_tls::Validity;

/// A peer's certificate that ends so soon is told.
const SOON: u64 = 7 * 86_400;

pub(crate) fn check(
    setup: &Setup,
    reports: &[(Peer, PeerReport)],
    is_offline: bool,
    now: SystemTime,
) -> Vec<Finding> {
    let unusable = setup.peers.iter().filter_map(|peer| peer.as_ref().err());
    let mut findings: Vec<Finding> = unusable
        .map(|error| {
            Finding::broken(error.clone(), "the endpoints of the sink")
                .remedy("correct the settings of the sink")
        })
        .collect();
    if is_offline {
        if !setup.peers.is_empty() {
            let what = format!(
                "NO PEER WAS ASKED: {} endpoints of sinks may fail without this being seen",
                setup.peers.len()
            );
            findings.push(Finding::note(what, "--offline").remedy("run the doctor without --offline"));
        }
        return findings;
    }
    findings.extend(setup.left_out.iter().map(|(sink, count)| {
        let what = format!("`sinks.{sink}`: {count} of its endpoints were not asked");
        Finding::note(what, "it has more than are asked of one sink").remedy("see the findings on the others")
    }));
    findings.extend(reports.iter().flat_map(|(peer, report)| {
        std::iter::once(judge(peer, report)).chain(certificate(peer, report, now))
    }));
    findings
}

fn judge(peer: &Peer, report: &PeerReport) -> Finding {
    let sink = format!("`sinks.{}`", peer.sink);
    let target = peer.probe.target();
    let path = report.path.address.map_or_else(String::new, |address| format!(", at {address}"));
    let proxy =
        report.path.proxy.as_ref().map_or_else(String::new, |proxy| format!(", through the proxy {proxy}"));
    let asked = format!("{} to {target}{path}{proxy}", peer.probe.what);
    match &report.outcome {
        Outcome::NotAsked => Finding::note(
            format!("{sink}: {target} was not asked"),
            "there was no time left after others that do not answer",
        )
        .remedy("see the findings on other peers"),
        Outcome::Failed(failure) => {
            let what = match failure.step {
                Step::Resolve => format!("{sink}: the name of {target} does not resolve"),
                Step::Connect => format!("{sink}: {target} cannot be connected to"),
                Step::Proxy => format!("{sink}: the proxy makes no connection to {target}"),
                Step::Tls => format!("{sink}: TLS to {target} fails"),
                Step::Request => format!("{sink}: {target} does not answer"),
            };
            Finding::broken(what, format!("{failure} ({} ms)", report.took.as_millis()))
                .quoting(&*failure.said)
                .remedy(advice::of_failure(failure, peer.kind))
        }
        Outcome::Answered(answer) => answered(&sink, &target, &asked, peer, report, answer),
    }
}

fn answered(
    sink: &str,
    target: &str,
    asked: &str,
    peer: &Peer,
    report: &PeerReport,
    answer: &Answer,
) -> Finding {
    let took = report.took.as_millis();
    let status = match &answer.grpc {
        Some((status, _)) => format!("gRPC status {status}"),
        None => format!("status {}", answer.status),
    };
    let evidence = format!("{asked} was answered with {status} in {took} ms");
    let excerpt = match &answer.grpc {
        Some((_, message)) if !message.is_empty() => peer.probe.mask(message).chars().take(300).collect(),
        _ => answer.excerpt.clone(),
    };
    let harmless = peer.probe.harmless.iter().find(|refusal| {
        refusal.statuses.contains(&answer.status) && answer.excerpt.contains(refusal.contains)
    });
    let is_fine = match &answer.grpc {
        Some((status, _)) => *status == 0,
        // A gRPC server always says its own.
        None => (200..300).contains(&answer.status) && !peer.probe.is_http2(),
    };
    if is_fine {
        return Finding::fine(format!("{sink}: {target} takes requests"), evidence);
    }
    if let Some(refusal) = harmless {
        return Finding::fine(
            format!("{sink}: {target} takes requests"),
            format!("{evidence}: {}", refusal.meaning),
        );
    }
    advice::of_answer(sink, target, peer, answer, evidence).quoting(excerpt)
}

/// Judges when the peer's own certificate ends.
fn certificate(peer: &Peer, report: &PeerReport, now: SystemTime) -> Option<Finding> {
    let until = report.path.certificate_until?;
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let left = until.checked_sub(now).filter(|left| *left <= SOON)?;
    let what = format!(
        "`sinks.{}`: the certificate of {} expires in {} hours",
        peer.sink,
        peer.probe.target(),
        left / 3600
    );
    let validity = Validity { not_before: 0, not_after: until };
    let until =
        super::clocks::shown(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(validity.not_after));
    Some(
        Finding::at_risk(what, format!("it showed one that is valid until {until}"))
            .remedy("tell who runs the peer"),
    )
}

/// Words for a protocol that the peer speaks instead.
fn looks_like(found: LooksLike) -> &'static str {
    match found {
        LooksLike::Tls => "it speaks TLS: write `https://` in the URL",
        LooksLike::Plain => {
            "it speaks no TLS there: write `http://` in the URL, or the port at which it does"
        }
        LooksLike::Http1 => {
            "it speaks HTTP/1.1: for OTLP over HTTP set `protocol: http`, and its port, which is usually 4318"
        }
        LooksLike::Http2 => {
            "it speaks HTTP/2: for OTLP over gRPC set `protocol: grpc`, or the port for HTTP, which is usually 4318"
        }
        LooksLike::Silent => {
            "it accepts connections and does not answer: is it the right port, is the peer overloaded, does something between drop what is sent?"
        }
    }
}

#[cfg(test)]
mod tests;
