//! Promise: a query is read as documented, and an invalid one is refused with a reason.

use crate::{LONGEST_WAIT, TapFilter};
use proptest::prelude::*;
use std::time::Duration;
use tidegate_journal::Signal;

fn signal() -> impl Strategy<Value = Option<Signal>> {
    prop::option::of(prop::sample::select(vec![Signal::Metrics, Signal::Logs, Signal::Traces]))
}

proptest! {
    #[test]
    fn queries_read_back(
        texts in prop::collection::vec(prop::option::of("\\PC{0,20}"), 4),
        id in "[a-z0-9-]{0,30}",
        source in prop::option::of(prop::sample::select(vec!["otlp", "*", "remote_write_1"])),
        signal in signal(),
        every in 1u32..,
        wait in 0u64..10_000,
    ) {
        let mut texts = texts.into_iter();
        let mut text = || texts.next().flatten();
        let look = TapFilter {
            id,
            source: source.map(str::to_owned),
            sink: text(),
            signal,
            service: text(),
            name: text(),
            contains: text(),
            every,
            wait: Duration::from_millis(wait), bound: every.is_multiple_of(2), ..TapFilter::default() };
        prop_assert_eq!(TapFilter::from_query(&look.to_query()), Ok(look));
    }

    /// Whatever is asked for.
    #[test]
    fn no_query_panics(query in "\\PC{0,200}") {
        let _ = TapFilter::from_query(&query);
    }
}

#[test]
fn invalid_filters_are_reported() {
    let table = [
        ("sorce=otlp", "no parameter `sorce`"),
        (
            "source=kafka",
            "the sources are elastic_apm, elasticsearch, file, fluent_forward, http, journald, kubernetes_logs, loki, otlp, ",
        ),
        ("signal=spans", "the signals are metrics, logs, traces"),
        ("every=0", "a number from 1 on"),
        ("every=x", "a number from 1 on"),
        ("wait=1h", "up to 10s"),
        ("wait=11s", "up to 10s"),
        ("wait=10001ms", "up to 10s"),
        ("name=%zz", "not UTF-8"),
        ("name=%ff", "not UTF-8"),
        ("name=%f", "not UTF-8"),
    ];
    for (query, words) in table {
        let error = TapFilter::from_query(query).unwrap_err().to_string();
        assert!(error.contains(words), "{query}: {error}");
    }
    assert!(TapFilter::from_query(&format!("name={}", "x".repeat(513))).is_err());
    assert_eq!(TapFilter::from_query("wait=10s&&").unwrap().wait, LONGEST_WAIT);
    assert_eq!(TapFilter::from_query("contains=a+b%2Bc").unwrap().contains.as_deref(), Some("a b+c"));
}
