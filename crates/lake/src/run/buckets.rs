//! The buckets of a native histogram: from spans and deltas to counts per bucket.

use tidegate_wire::remote_write::Span;

/// With more buckets than this, gaps included, the gaps are not filled.
pub(crate) const DENSE: usize = 4096;

/// Why a histogram's buckets cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketError {
    /// More buckets than a histogram may have here.
    TooMany,
    /// Spans and counts do not belong together.
    Malformed,
}

/// How the buckets of one side will be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketLayout {
    /// Index of the first bucket as OpenTelemetry counts (one less than Prometheus does); `None` when the
    /// gaps are not filled and the spans are kept beside the counts.
    pub(crate) offset: Option<i32>,
    /// Numbers of counts.
    pub(crate) counts: usize,
    /// Numbers of spans, two for each, when they are kept.
    pub(crate) spans: usize,
}

/// Looks at the spans of one side and its number of counts. Walks at most `most` spans, so lying lengths
/// cost nothing. Gaps are filled where that makes at most `widest` buckets.
pub(crate) fn look(
    spans: impl Iterator<Item = Span>,
    counts: usize,
    most: usize,
    widest: usize,
) -> Result<BucketLayout, BucketError> {
    let (mut given, mut spanned, mut gaps) = (0, 0_u64, 0_u64);
    let mut first = 1;
    for span in spans {
        if given == most {
            return Err(BucketError::TooMany);
        }
        if given == 0 {
            first = span.offset;
        } else {
            gaps += u64::try_from(span.offset).map_err(|_| BucketError::Malformed)?;
        }
        spanned += u64::from(span.length);
        given += 1;
    }
    if counts > most {
        return Err(BucketError::TooMany);
    }
    if spanned != counts as u64 {
        return Err(BucketError::Malformed);
    }
    let dense = usize::try_from(spanned + gaps).unwrap_or(usize::MAX);
    Ok(match first.checked_sub(1).filter(|_| dense <= widest) {
        Some(offset) => BucketLayout { offset: Some(offset), counts: dense, spans: 0 },
        None => BucketLayout { offset: None, counts, spans: 2 * given },
    })
}

/// Appends the counts of one side, gaps filled, to `out`: as many as [`look`] said.
pub(crate) fn fill<T: Copy + Default>(
    spans: impl Iterator<Item = Span>,
    mut values: impl Iterator<Item = T>,
    out: &mut Vec<T>,
) {
    for (place, span) in spans.enumerate() {
        let gap = if place > 0 { usize::try_from(span.offset).unwrap_or(0) } else { 0 };
        out.resize(out.len() + gap, T::default());
        out.extend(values.by_ref().take(span.length as usize));
    }
}

/// The counts of an integer histogram, from the differences between them.
pub(crate) fn absolute(deltas: impl Iterator<Item = i64>) -> impl Iterator<Item = i64> {
    deltas.scan(0_i64, |count, delta| {
        *count = count.wrapping_add(delta);
        Some(*count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(i32, u32)]) -> impl Iterator<Item = Span> + Clone {
        spans.iter().map(|&(offset, length)| Span { offset, length })
    }

    #[test]
    fn gaps_are_filled_and_counts_are_absolute() {
        let sent = spans(&[(-2, 2), (3, 1)]);
        let kept = look(sent.clone(), 3, 100, DENSE).unwrap();
        assert_eq!(kept, BucketLayout { offset: Some(-3), counts: 6, spans: 0 });
        let mut counts = vec![7];
        fill(sent, absolute([1, 1, -1].into_iter()), &mut counts);
        assert_eq!(counts, [7, 1, 2, 0, 0, 0, 1]);
    }

    /// A few bytes that span gigabytes are kept as they came.
    #[test]
    fn wide_gaps_are_not_filled() {
        let kept = look(spans(&[(0, 1), (i32::MAX, 1)]), 2, 100, DENSE).unwrap();
        assert_eq!(kept, BucketLayout { offset: None, counts: 2, spans: 4 });
        let kept = look(spans(&[(i32::MIN, 1)]), 1, 100, DENSE).unwrap();
        assert_eq!(kept, BucketLayout { offset: None, counts: 1, spans: 2 });
    }

    #[test]
    fn lying_spans_are_refused() {
        let look = |all: &[(i32, u32)], counts| look(spans(all), counts, 10, DENSE).unwrap_err();
        assert_eq!(look(&[(0, u32::MAX)], 1), BucketError::Malformed);
        assert_eq!(look(&[(0, 1), (-1, 1)], 2), BucketError::Malformed);
        assert_eq!(look(&[(0, 11)], 11), BucketError::TooMany);
        assert_eq!(look(&[(0, 0); 11], 0), BucketError::TooMany);
    }
}
