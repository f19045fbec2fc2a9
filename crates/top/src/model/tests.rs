//! Promise: rates follow the gateway's own clock and counters, through restarts and changes of the sinks.

use super::*;
use crate::frame::{Sink, SourceBook};
use std::collections::BTreeMap;

/// An answer after `uptime` seconds, with these items of a source, and these of each sink.
fn frame(uptime: f64, items: u64, sinks: &[(&str, u64)]) -> Frame {
    let source = SourceBook {
        name: "otlp".to_owned(),
        items: BTreeMap::from([("traces".to_owned(), items)]),
        refused: BTreeMap::from([("memory".to_owned(), items / 10)]),
        bytes: items * 100,
        ..SourceBook::default()
    };
    let sink = |(name, delivered): &(&str, u64)| Sink {
        name: (*name).to_owned(),
        delivered: *delivered,
        ..Sink::default()
    };
    let mut frame = Frame { uptime_seconds: uptime, ..Frame::default() };
    frame.books.sources = vec![source];
    frame.sinks = sinks.iter().map(sink).collect();
    frame
}

fn model(frames: impl IntoIterator<Item = Frame>) -> Model {
    let mut model = Model::default();
    frames.into_iter().for_each(|frame| model.take(frame));
    model
}

#[test]
fn rates_are_per_second_of_the_gateway() {
    let model = model([frame(10.0, 1_000, &[("a", 500)]), frame(12.0, 3_000, &[("a", 700)])]);
    assert_eq!(model.received.rate(), Some(1_000.0));
    assert_eq!(model.received_bytes.rate(), Some(100_000.0));
    assert_eq!(model.refused.rate(), Some(100.0));
    assert_eq!(model.delivered.rate(), Some(100.0));
    assert_eq!(model.source("otlp").unwrap().items.rate(), Some(1_000.0));
    assert_eq!(model.sink("a").unwrap().items.rate(), Some(100.0));
    assert!(model.source("other").is_none() && model.sink("b").is_none());
}

#[test]
fn the_first_answer_has_no_rates() {
    let model = model([frame(10.0, 1_000, &[("a", 500)])]);
    assert_eq!((model.received.rate(), model.delivered.rate()), (None, None));
}

#[test]
fn a_restarted_gateway_begins_anew() {
    let frames = [
        frame(10.0, 1_000, &[("a", 500)]),
        frame(11.0, 2_000, &[("a", 600)]),
        frame(0.5, 10, &[("a", 650)]),
        frame(1.5, 30, &[("a", 657)]),
    ];
    let model = model(frames);
    assert_eq!((model.received.rate(), model.delivered.rate()), (Some(20.0), Some(7.0)));
}

/// An added sink's past is no burst of the present, and a removed one leaves nothing behind.
#[test]
fn changed_sinks_are_no_traffic() {
    let mut model = model([frame(1.0, 0, &[("a", 500)]), frame(2.0, 0, &[("a", 510)])]);
    model.take(frame(3.0, 0, &[("a", 520), ("b", 1_000_000)]));
    assert_eq!(model.delivered.rate(), None);
    model.take(frame(4.0, 0, &[("a", 530), ("b", 1_000_005)]));
    assert_eq!(model.delivered.rate(), Some(15.0));
    model.take(frame(5.0, 0, &[("b", 1_000_010)]));
    assert_eq!(model.delivered.rate(), None);
    assert!(model.sink("a").is_none());
}
