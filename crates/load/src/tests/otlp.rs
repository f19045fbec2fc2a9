//! The driver and the receiver of OTLP agree with each other, over both transports.

use std::time::Duration;

use crate::otlp::{ContentCoding, OtlpProfile, OtlpSink, Signal, Transport, drive_blocking};
use crate::{Behaviour, OnRefused};

/// Every acknowledged item arrives under its number, however it travels.
#[test]
fn acknowledged_items_have_arrived() {
    let sink = OtlpSink::start(Behaviour::Healthy, true).unwrap();
    let mut profile = OtlpProfile { connections: 2, items: 30, requests: 3, ..OtlpProfile::default() };
    for transport in [Transport::Http, Transport::Grpc] {
        for coding in [ContentCoding::Identity, ContentCoding::Gzip, ContentCoding::Zstd] {
            for signal in Signal::ALL {
                profile = OtlpProfile { transport, coding, signal, first: profile.end(), ..profile };
                let report = drive_blocking(&sink.target(), &profile).unwrap();
                assert_eq!((report.accepted, report.refused, report.failed), (6, 0, 0), "{report:?}");
                assert_eq!(report.items, 180);
                let arrived = sink.report();
                assert_eq!(report.acked.missing_from(arrived.of(signal)), None);
                assert_eq!((arrived.duplicates, arrived.unnumbered, arrived.malformed), (0, 0, 0));
            }
        }
    }
}

/// Refusals are counted with what they say, and requests that may be are sent again.
#[test]
fn refusals_are_counted_by_status() {
    let sink = OtlpSink::start(Behaviour::Status { code: 503, retry_after: Some(1) }, true).unwrap();
    let profile =
        OtlpProfile { connections: 1, requests: 2, on_refused: OnRefused::Count, ..OtlpProfile::default() };
    let report = drive_blocking(&sink.target(), &profile).unwrap();
    assert_eq!((report.refused, report.with_delay, report.answers[&503]), (2, 2, 2));
    let grpc = OtlpProfile { transport: Transport::Grpc, ..profile.clone() };
    assert_eq!(drive_blocking(&sink.target(), &grpc).unwrap().answers[&14], 2);
    sink.set(Behaviour::Status { code: 400, retry_after: None });
    let patient = OtlpProfile { on_refused: OnRefused::Retry { at_most: Duration::ZERO }, ..profile };
    assert_eq!(drive_blocking(&sink.target(), &patient).unwrap().answers[&400], 2);
    sink.set(Behaviour::Refuse);
    let short = OtlpProfile { deadline: Duration::from_secs(1), ..patient };
    assert!(drive_blocking(&sink.target(), &short).unwrap().failed > 0);
    sink.set(Behaviour::Healthy);
    assert_eq!(
        drive_blocking(&sink.target(), &OtlpProfile { requests: 2, ..OtlpProfile::default() })
            .unwrap()
            .accepted,
        8
    );
}
