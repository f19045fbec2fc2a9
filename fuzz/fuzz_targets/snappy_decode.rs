//! Any body is decoded or refused as a decoder written from the format description does it; what decodes
//! also decodes when it is joined to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::snappy;

/// Larger claims are left out: they cost time and say nothing new.
const LARGEST: usize = 1 << 20;

fuzz_target!(|body: &[u8]| {
    let Ok(len) = snappy::plausible(body) else {
        assert!(snappy::decoded_len(body).is_err() || reference(body, LARGEST).is_none());
        return;
    };
    if len > LARGEST {
        return;
    }
    let mut out = vec![0; len];
    let decoded = snappy::decode(body, &mut out).ok().map(|_| out);
    assert_eq!(decoded, reference(body, LARGEST));
    if let Some(raw) = decoded {
        let (preamble, pieces) = snappy::join::join([body, body]).unwrap();
        let joined = pieces.fold(preamble.as_bytes().to_vec(), |joined, piece| [&joined, piece].concat());
        let mut out = vec![0; snappy::plausible(&joined).unwrap()];
        snappy::decode(&joined, &mut out).unwrap();
        assert_eq!(out, raw.repeat(2));
    }
});

/// Decodes byte by byte; `None` for what is not a valid body of at most `largest` bytes.
fn reference(body: &[u8], largest: usize) -> Option<Vec<u8>> {
    let elements = snappy::join::elements(body).ok()?;
    let claimed = snappy::decoded_len(body).ok()?;
    if claimed > largest {
        return None;
    }
    let mut bytes = elements.iter().copied();
    let number = |bytes: &mut dyn Iterator<Item = u8>, len: usize| -> Option<usize> {
        (0..len).try_fold(0, |sum, place| Some(sum | usize::from(bytes.next()?) << (8 * place)))
    };
    let mut out = Vec::new();
    while let Some(tag) = bytes.next() {
        let high = usize::from(tag >> 2);
        let (offset, len) = match tag & 3 {
            0 => {
                let len = if high < 60 { high } else { number(&mut bytes, high - 59)? } + 1;
                for _ in 0..len {
                    out.push(bytes.next()?);
                }
                continue;
            }
            1 => (number(&mut bytes, 1)? | usize::from(tag >> 5) << 8, (high & 7) + 4),
            2 => (number(&mut bytes, 2)?, high + 1),
            _ => (number(&mut bytes, 4)?, high + 1),
        };
        if offset == 0 || offset > out.len() || out.len() + len > claimed {
            return None;
        }
        for _ in 0..len {
            out.push(out[out.len() - offset]);
        }
    }
    (out.len() == claimed).then_some(out)
}
