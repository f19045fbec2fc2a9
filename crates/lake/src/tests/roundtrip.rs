//! Property: for any bodies, the rows of the lake are the samples of the bodies, to the bit.

use super::*;
use proptest::prelude::*;
use tidegate_wire::remote_write::STALE_NAN;

fn any_labels() -> impl Strategy<Value = Labels> {
    let name = prop_oneof![
        Just("job".to_owned()),
        Just("instance".to_owned()),
        Just("host.name".to_owned()),
        "[a-zé\"\\\\\u{1}]{1,3}",
    ];
    (proptest::option::of("[a-c]{1,2}"), proptest::collection::btree_map(name, ".{0,12}", 0..5)).prop_map(
        |(metric, mut labels)| {
            labels.extend(metric.map(|metric| ("__name__".to_owned(), metric)));
            labels.into_iter().collect()
        },
    )
}

fn any_bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(STALE_NAN),
        Just(0x7ff8_0000_0000_0001),
        Just(f64::NEG_INFINITY.to_bits()),
        any::<f64>().prop_map(f64::to_bits),
    ]
}

type AnySeries = (Labels, Vec<(i64, u64)>);

fn any_body() -> impl Strategy<Value = Vec<AnySeries>> {
    let samples = proptest::collection::vec((NOW_MS - 5..NOW_MS + 5, any_bits()), 0..4);
    proptest::collection::vec((any_labels(), samples), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn points_read_back_as_they_were_written(bodies in proptest::collection::vec((any_body(), any::<bool>()), 1..6)) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let mut expected = Vec::new();
        for (sequence, (series, close)) in bodies.iter().enumerate() {
            let mut body = Body::default();
            for (labels, samples) in series {
                body = body.series(labels, samples);
                expected.extend(samples.iter().map(|&(time, bits)| Point {
                    labels: labels.clone(),
                    time_us: time * 1000,
                    bits: Some(bits),
                    flags: i32::from(bits == STALE_NAN),
                }));
            }
            let samples: usize = series.iter().map(|(_, samples)| samples.len()).sum();
            let pushed = push(&mut writer, sequence as u64, NOW_NS, &body);
            prop_assert_eq!((pushed.rows, pushed.dropped.items()), (samples as u64, 0));
            if *close {
                writer.close_files().unwrap();
            }
        }
        writer.close_files().unwrap();
        let mut found = points(dir.path());
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
        prop_assert!(crate::verify(dir.path()).unwrap().is_sound());
    }
}

/// More rows, series and text than one row group takes: they are spread over several and none is lost.
#[test]
fn many_row_groups_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut sent = 0;
    for sequence in 0..4 {
        let mut body = Body::default();
        for series in 0..3000 {
            let labels = body::labels(&[
                ("__name__", &format!("metric_{}", series % 7)),
                ("job", "test"),
                ("serial", &format!("{series:0>200}")),
            ]);
            body = body.series(&labels, &[(NOW_MS + sequence, series), (NOW_MS, series)]);
            sent += 2;
        }
        assert_eq!(push(&mut writer, sequence.cast_unsigned(), NOW_NS, &body).dropped.items(), 0);
    }
    writer.close_files().unwrap();
    assert_eq!(points(dir.path()).len(), sent);
}

/// Items that cannot fit are counted and do not affect the others.
#[test]
fn oversize_rows_are_dropped_by_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let huge = body::labels(&[("__name__", "huge"), ("text", &"x".repeat(10 << 20))]);
    let fine = body::labels(&[("__name__", "fine")]);
    let body = Body::default()
        .series(&huge, &[(NOW_MS, 1), (NOW_MS, 2)])
        .series(&fine, &[(NOW_MS, 1), (i64::MAX, 2)]);
    let pushed = push(&mut writer, 1, NOW_NS, &body);
    assert_eq!((pushed.rows, pushed.dropped.too_large, pushed.dropped.malformed), (1, 2, 1));
    writer.close_files().unwrap();
    assert_eq!(points(dir.path()).len(), 1);
}
