//! The worst case of OTLP for memory: many resources, long attributes, many events, wide histograms, and alternating
//! signals.

use crate::body::{bytes, fixed64};
use crate::otlp::{Attr, START_NS, attributes, log_record, logs, metrics, span, trace_id, traces};
use tidegate_wire::otlp::Signal;

/// Requests of some hundred kilobytes, made one after the other.
pub(crate) fn bodies(rounds: u64) -> impl Iterator<Item = (Signal, Vec<u8>)> {
    (0..rounds * 120).map(|serial| {
        let name = format!("service-{serial}");
        let about = "r".repeat((serial % 7) as usize * 500);
        let resource = [("service.name", Attr::Text(&name)), ("about", Attr::Text(&about))];
        match serial % 5 {
            0 => (Signal::Traces, traces(&resource, &many_spans(serial))),
            1 => (Signal::Logs, logs(&resource, &many_records(serial))),
            2 => (Signal::Metrics, metrics(&resource, &[many_points(serial)])),
            3 => (Signal::Metrics, metrics(&resource, &[wide_histograms(serial)])),
            _ => (Signal::Traces, traces(&resource, &[large_span(serial)])),
        }
    })
}

fn many_spans(serial: u64) -> Vec<Vec<u8>> {
    let route = format!("/a/route/{}", serial % 9);
    let value = |place: u64| format!("{:0>40}", serial * 7919 + place);
    let spans = (0..600).map(|place| {
        let (path, user) = (value(place), value(place + 1));
        let all = [
            ("http.route", Attr::Text(&route)),
            ("url.path", Attr::Text(&path)),
            ("enduser.id", Attr::Text(&user)),
            ("http.response.status_code", Attr::Int(200)),
            ("other", Attr::Text(&path)),
        ];
        span(serial * 600 + place, &user, &all)
    });
    spans.collect()
}

/// A thousand attributes and as many events and links as are taken.
fn large_span(serial: u64) -> Vec<u8> {
    let keys: Vec<String> = (0..1000).map(|place| format!("key{place}")).collect();
    let all: Vec<(&str, Attr<'_>)> = keys.iter().map(|key| (key.as_str(), Attr::Text(key))).collect();
    let mut span = span(serial << 32, "large", &all);
    for place in 0..2000 {
        let (mut event, mut link) = (Vec::new(), Vec::new());
        fixed64(&mut event, 1, START_NS + place);
        bytes(&mut event, 2, format!("event {place}").as_bytes());
        attributes(&mut event, 3, &[("n", Attr::Int(place.cast_signed()))]);
        bytes(&mut span, 11, &event);
        bytes(&mut link, 1, &trace_id(place));
        bytes(&mut link, 2, &place.to_be_bytes());
        bytes(&mut span, 13, &link);
    }
    span
}

fn many_records(serial: u64) -> Vec<Vec<u8>> {
    let records = (0..300).map(|place| {
        let body = format!("{serial} {place} ").repeat((place % 50) as usize);
        let file = format!("/var/log/pods/{}", serial * 300 + place);
        log_record(serial * 300 + place, Attr::Text(&body), &[("log.file.path", Attr::Text(&file))])
    });
    records.collect()
}

fn many_points(serial: u64) -> Vec<u8> {
    let (mut gauge, mut metric) = (Vec::new(), Vec::new());
    for place in 0..1000 {
        let mut point = Vec::new();
        let id = format!("{:0>64}", serial * 1000 + place);
        fixed64(&mut point, 3, START_NS);
        fixed64(&mut point, 4, place);
        attributes(&mut point, 7, &[("id", Attr::Text(&id))]);
        bytes(&mut gauge, 1, &point);
    }
    bytes(&mut metric, 1, b"points");
    bytes(&mut metric, 5, &gauge);
    metric
}

fn wide_histograms(serial: u64) -> Vec<u8> {
    let (mut histogram, mut metric) = (Vec::new(), Vec::new());
    let counts: Vec<u8> = (0..400_u64).flat_map(|count| (count * serial).to_le_bytes()).collect();
    let bounds: Vec<u8> = (0..399).flat_map(|bound| (f64::from(bound) * 0.7).to_le_bytes()).collect();
    for place in 0..100_i64 {
        let mut point = Vec::new();
        fixed64(&mut point, 3, START_NS);
        fixed64(&mut point, 4, 9);
        bytes(&mut point, 6, &counts);
        bytes(&mut point, 7, &bounds);
        attributes(&mut point, 9, &[("place", Attr::Int(place))]);
        bytes(&mut histogram, 1, &point);
    }
    bytes(&mut metric, 1, b"wide");
    bytes(&mut metric, 9, &histogram);
    metric
}
