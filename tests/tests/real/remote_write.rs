//! Load for a gateway with one `prometheus_remote_write` sink, while either side is killed.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::{LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, drive_blocking};
use tidegate_tests::promql::{self, SamplesByLabels};
use tidegate_tests::{Gateway, SOON, now_ms, until};

/// The name of the sink.
pub(crate) const SINK: &str = "receiver";

/// A program that receives remote write and can be asked what it has.
pub(crate) trait Receiver {
    /// The URL for remote write.
    fn write_url(&self) -> String;
    /// Starts it again.
    fn start(&mut self);
    /// Ends it as hard as it keeps its word: what it has answered it has later.
    fn end(&mut self);
    /// Sends it a signal.
    fn signal(&self, signal: Signal);
    /// Every sample that it has.
    fn samples(&self) -> SamplesByLabels;
}

/// Numbered samples of some series, sent in passes.
pub(crate) struct Load {
    model: Arc<SeriesModel>,
    sent: u64,
}

impl Load {
    /// Series whose samples are of the last minutes; one in `histograms` has native histograms.
    pub(crate) fn new(seed: u64, series: usize, histograms: usize) -> Load {
        let timeline = Timeline { base_ms: now_ms() - 400_000, interval_ms: 1000 };
        let model = match histograms {
            0 => SeriesModel::new(seed, series, timeline),
            every => SeriesModel::with_histograms(seed, series, timeline, every),
        };
        Load { model: Arc::new(model), sent: 0 }
    }

    /// Sends some more samples of each series, until the gateway has acknowledged all of them.
    pub(crate) fn send(&mut self, gateway: &Gateway, passes: u64) {
        let profile = LoadProfile {
            connections: 2,
            series_per_request: 50,
            first: self.sent,
            limit: RunLimit::Passes(passes),
            on_refused: OnRefused::Retry { at_most: Duration::from_millis(200) },
            ..LoadProfile::default()
        };
        let report = drive_blocking(&gateway.target(), &self.model, &profile).unwrap();
        assert_eq!(report.acked.samples(), passes * self.model.len() as u64, "{report}");
        self.sent += passes;
    }

    /// Waits until the receiver has exactly what was sent.
    #[track_caller]
    pub(crate) fn arrives_at(&self, receiver: &impl Receiver) {
        let expected = promql::samples_of(&self.model, self.sent);
        let mut found = SamplesByLabels::new();
        let started = std::time::Instant::now();
        until(SOON * 2, "the samples to arrive", || {
            found = receiver.samples();
            found == expected || started.elapsed() > SOON
        });
        let wrong = promql::differences(&expected, &found);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        println!("the receiver has all {} samples", self.sent * self.model.len() as u64);
    }
}

/// A gateway that writes to this receiver, with these settings of the sink besides.
pub(crate) fn gateway(receiver: &impl Receiver, more: Value) -> Gateway {
    let mut sink = json!({
        "type": "prometheus_remote_write", "url": receiver.write_url(), "backoff": {"min": "20ms", "max": "200ms"},
    });
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gateway::started(json!({"memory": "96MiB", "sinks": {SINK: sink}}))
}

/// P2: nothing is missing after the receiver was gone for a while and the gateway was killed with a request in flight.
/// Nothing is dropped either, where the receiver takes a sample a second time.
pub(crate) fn everything_arrives(receiver: &mut impl Receiver, gateway: &mut Gateway, load: &mut Load) {
    load.send(gateway, 20);
    load.arrives_at(receiver);

    receiver.end();
    load.send(gateway, 20);
    until(SOON, "the sink to notice", || gateway.sink(SINK)["failures"].as_u64() > Some(2));
    receiver.start();
    load.arrives_at(receiver);

    for _ in 0..3 {
        // Stopped, the receiver has the request in its socket, and takes it when it goes on.
        receiver.signal(Signal::STOP);
        load.send(gateway, 20);
        until(SOON, "a request to be in flight", || gateway.sink(SINK)["in_flight"].as_u64() > Some(0));
        gateway.kill9();
        receiver.signal(Signal::CONT);
        gateway.start();
    }
    load.arrives_at(receiver);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(gateway.sink(SINK)["dropped"], json!({}), "{}", gateway.sink(SINK));
}
