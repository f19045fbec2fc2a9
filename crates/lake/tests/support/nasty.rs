//! The worst case for memory: many series, long labels, exemplars, wide histograms.

use crate::body::{self, Body, custom_histogram, int_histogram, labels};

pub(crate) const NOW_NS: u64 = 1_700_000_000_000_000_000;
const NOW_MS: i64 = 1_700_000_000_000;

/// Bodies of at most 2,000 series, made one after the other.
pub(crate) fn bodies(rounds: u64) -> impl Iterator<Item = Body> {
    let plain = (0..50).flat_map(move |chunk| {
        (0..rounds).map(move |round| {
            (0..2000).fold(Body::default(), |body, series| {
                let serial = chunk * 2000 + series;
                let labels = labels(&[
                    ("__name__", &format!("http_request_duration_seconds_{}", serial % 400)),
                    ("a_long_label_as_some_people_have_them", &format!("{serial:0>64x}")),
                    ("instance", &format!("10.0.{}.{}:9100", chunk, serial % 256)),
                    ("job", "node"),
                    ("path", &format!("/api/{}/{}", serial * 7919 % 100_003, round % 2)),
                ]);
                let value = (serial * 31 + round) as f64 * 0.1;
                body.series(&labels, &[(NOW_MS + round as i64 * 1000, value.to_bits())])
            })
        })
    });
    let wide = (0..40).map(|series| {
        let values: Vec<(String, String)> = (0..64)
            .map(|label| (format!("l{label:02}"), format!("{series:x}{label:x}").repeat(300)))
            .collect();
        let pairs: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), &value[..1024.min(value.len())])).collect();
        let body = Body::default().series(&labels(&pairs), &[(NOW_MS, 1); 50]);
        body.metadata(&"m".repeat(series % 900), 1, "", &"h".repeat(1000))
    });
    let traced = (0..20).map(|chunk| {
        (0..500).fold(Body::default(), |body, series| {
            let labels = labels(&[("__name__", "traced"), ("serial", &format!("{}", chunk * 500 + series))]);
            let trace = body::labels(&[("trace_id", &format!("{series:032x}")), ("user", &"u".repeat(100))]);
            body.exemplar(&labels, &[(NOW_MS, 1)], &trace, (NOW_MS, 2))
        })
    });
    let histograms = (0..40).map(|chunk| {
        (0..200).fold(Body::default(), |body, series| {
            let labels = labels(&[("__name__", "native"), ("serial", &format!("{}", chunk * 200 + series))]);
            let deltas: Vec<i64> = (0..160).map(|bucket| (bucket * series) % 13 - 6).collect();
            let counts: Vec<f64> = (0..300).map(|bucket| f64::from(bucket) * 0.7).collect();
            body.histogram(&labels, &int_histogram(NOW_MS, series - 100, &deltas))
                .histogram(&labels, &custom_histogram(NOW_MS, &counts[1..], &counts))
        })
    });
    plain.chain(wide).chain(traced).chain(histograms)
}
