//! The bare cost of reading a body: what measurements of receivers are held against.

/// The barest walk over a 1.0 request that still finds every name, value and sample: one pass, no checks but of
/// bounds. For bodies as the generators here make them: tags of one byte, lengths below 16,384.
///
/// Returns something that depends on all that was found, so that none of it can be left out.
pub fn bare_scan(raw: &[u8]) -> usize {
    let mut request = raw;
    let mut sum = 0;
    while let Some((_, mut series)) = field(&mut request) {
        while let Some((tag, mut message)) = field(&mut series) {
            if tag == 0x0a {
                let (name, value) = (field(&mut message), field(&mut message));
                sum += name.map_or(0, |(_, name)| name.len()) ^ value.map_or(0, |(_, value)| value.len());
            } else if let Some(bits) = message.get(1..9) {
                sum += usize::from(bits == [0; 8]);
                sum += message.get(10..).unwrap_or_default().iter().take_while(|&&byte| byte >= 0x80).count();
            }
        }
    }
    sum
}

/// A field with a one-byte tag and a length below 16,384.
#[inline(always)]
fn field<'a>(message: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, low], rest) = message.split_first_chunk()?;
    let (len, rest) = match low {
        0x80.. => {
            let (&high, rest) = rest.split_first()?;
            (usize::from(low & 0x7f) | usize::from(high) << 7, rest)
        }
        low => (usize::from(low), rest),
    };
    let (payload, rest) = rest.split_at_checked(len)?;
    *message = rest;
    Some((tag, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::{SampleBatch, Version};
    use crate::{SeriesModel, Timeline};

    #[test]
    fn the_scan_reads_every_series_of_the_traffic_to_its_end() {
        let model = SeriesModel::new(1, 50, Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 });
        let mut raw = Vec::new();
        SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
        let (mut request, mut series) = (raw.as_slice(), 0);
        while field(&mut request).is_some() {
            series += 1;
        }
        assert_eq!((series, request.len()), (50, 0));
        assert!(bare_scan(&raw) > 0);
    }
}
