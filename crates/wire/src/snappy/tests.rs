//! Joins decode to the concatenation; lies in a body are found, before or while decoding.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::join::{elements, join, joined_preamble};
use super::*;
use crate::proto::write::Varint;

/// One element to be encoded, whose offsets and lengths are cut to what is valid where it comes.
#[derive(Debug, Clone)]
enum Element {
    Literal(Vec<u8>),
    /// Offset below 2,048 in one byte and three bits, 4 to 11 long.
    Copy1(Index, u8),
    /// Offset in two bytes, 1 to 64 long.
    Copy2(Index, u8),
    /// Offset in four bytes, 1 to 64 long: no known encoder writes these.
    Copy4(Index, u8),
}

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        vec(any::<u8>(), 1..70).prop_map(Element::Literal),
        vec(any::<u8>(), 250..300).prop_map(Element::Literal),
        (any::<Index>(), 4u8..=11).prop_map(|(offset, len)| Element::Copy1(offset, len)),
        (any::<Index>(), 1u8..=64).prop_map(|(offset, len)| Element::Copy2(offset, len)),
        (any::<Index>(), 1u8..=64).prop_map(|(offset, len)| Element::Copy4(offset, len)),
    ]
}

/// Encodes `script` as a Snappy body; returned with what it must decode to, worked out byte by byte.
fn encode(script: &[Element]) -> (Vec<u8>, Vec<u8>) {
    let (mut elements, mut decoded) = (Vec::new(), Vec::new());
    for element in script {
        let (offset, len, kind) = match element {
            Element::Literal(bytes) => {
                match bytes.len() - 1 {
                    short @ 0..60 => elements.push(u8::try_from(short << 2).unwrap()),
                    long @ 60..256 => elements.extend([60 << 2, u8::try_from(long).unwrap()]),
                    long => {
                        elements.push(61 << 2);
                        elements.extend(u16::try_from(long).unwrap().to_le_bytes());
                    }
                }
                elements.extend(bytes);
                decoded.extend(bytes);
                continue;
            }
            Element::Copy1(offset, len) => (offset, *len, 1),
            Element::Copy2(offset, len) => (offset, *len, 2),
            Element::Copy4(offset, len) => (offset, *len, 4),
        };
        if decoded.is_empty() {
            continue;
        }
        let reach = if kind == 1 { decoded.len().min(2047) } else { decoded.len().min(65_535) };
        let offset = offset.index(reach) + 1;
        let bytes = u32::try_from(offset).unwrap().to_le_bytes();
        match kind {
            1 => elements.extend([0b01 | (len - 4) << 2 | bytes[1] << 5, bytes[0]]),
            2 => elements.extend([0b10 | (len - 1) << 2, bytes[0], bytes[1]]),
            _ => elements.extend([&[0b11 | (len - 1) << 2], &bytes[..]].concat()),
        }
        for _ in 0..len {
            decoded.push(decoded[decoded.len() - offset]);
        }
    }
    let mut body = Varint::new(decoded.len() as u64).as_bytes().to_vec();
    body.extend(elements);
    (body, decoded)
}

fn compress(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; max_compressed_len(raw.len()).unwrap()];
    let len = Encoder::new().compress(raw, &mut out).unwrap();
    out.truncate(len);
    out
}

fn decoded(body: &[u8]) -> Result<Vec<u8>, SnappyError> {
    let mut out = vec![0; plausible(body)?];
    let len = decode(body, &mut out)?;
    assert_eq!(len, out.len());
    Ok(out)
}

/// A body and what it decodes to: from an own encoder that uses every element, or from a usual one.
fn body() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    prop_oneof![
        vec(element(), 0..20).prop_map(|script| encode(&script)),
        vec(0u8..4, 0..3000).prop_map(|raw| (compress(&raw), raw)),
        vec(any::<u8>(), 0..300).prop_map(|raw| (compress(&raw), raw)),
    ]
}

proptest! {
    /// Every valid body is plausible and decodes to what it says.
    #[test]
    fn valid_bodies_decode((body, raw) in body()) {
        prop_assert_eq!(decoded_len(&body).unwrap(), raw.len());
        prop_assert_eq!(decoded(&body).unwrap(), raw);
    }

    /// A joined body decodes to the concatenation of its parts.
    #[test]
    fn a_join_decodes_to_the_concatenation(bodies in vec(body(), 0..6)) {
        let raw: Vec<u8> = bodies.iter().flat_map(|(_, raw)| raw.clone()).collect();
        let (preamble, pieces) = join(bodies.iter().map(|(body, _)| body.as_slice())).unwrap();
        let mut joined = preamble.as_bytes().to_vec();
        pieces.for_each(|piece| joined.extend(piece));
        prop_assert_eq!(decoded(&joined).unwrap(), raw);
    }

    /// A preamble that says anything but the truth is refused.
    #[test]
    fn a_lying_preamble_is_refused((body, raw) in body(), claimed in any::<u32>()) {
        prop_assume!(claimed as usize != raw.len());
        let claimed = claimed.min(1 << 20);
        let mut lie = Varint::new(u64::from(claimed)).as_bytes().to_vec();
        lie.extend(elements(&body).unwrap());
        prop_assert!(claimed as usize == raw.len() || decoded(&lie).is_err());
    }

    /// Noise is decoded or refused as snap does it, and never panics; the preamble is read as snap reads it.
    #[test]
    fn noise_is_survived(body in vec(prop_oneof![any::<u8>(), 0u8..0x14], 0..200)) {
        if !body.is_empty() {
            prop_assert_eq!(decoded_len(&body).ok(), snap::raw::decompress_len(&body).ok());
        }
        if plausible(&body).is_ok() {
            prop_assert_eq!(decoded(&body).ok(), snap::raw::Decoder::new().decompress_vec(&body).ok());
        }
    }

    /// A damaged body is refused or decodes to the length that its preamble claims.
    #[test]
    fn damage_is_survived((body, _) in body(), at in any::<Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = body;
        if !body.is_empty() {
            let at = at.index(body.len());
            if cut { body.truncate(at) } else { body[at] = byte }
        }
        if let Ok(raw) = decoded(&body) {
            prop_assert_eq!(raw.len(), decoded_len(&body).unwrap());
        }
    }
}

/// The bound on expansion is tight: a stream of the densest copies reaches it but for its first literal,
/// and no element is denser.
#[test]
fn the_expansion_bound_is_tight() {
    let mut elements = vec![0, b'x'];
    elements.extend([0b10 | 63 << 2, 1, 0].repeat(1000));
    let len = 1 + 64 * 1000;
    let mut body = Varint::new(len).as_bytes().to_vec();
    body.extend(&elements);
    assert_eq!(decoded(&body).unwrap().len() as u64, len);
    assert!(most_decoded(elements.len()) - len < 64);
    for (bytes, yields) in [(2, 1), (2, 11), (3, 64), (5, 64), (61, 60)] {
        assert!(most_decoded(bytes) >= yields);
    }
}

/// 330 bytes that claim gigabytes are refused from the preamble alone.
#[test]
fn a_small_body_cannot_claim_gigabytes() {
    let mut body = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
    body.extend([0b10 | 63 << 2, 1, 0].repeat(108));
    assert_eq!(decoded_len(&body), Ok(u32::MAX as usize));
    let error = plausible(&body).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the Snappy preamble claims 4294967295 bytes, but 329 bytes of body can hold 6912 at most"
    );
}

/// The whole 32-bit range is read, and nothing beyond it.
#[test]
fn preambles_are_32_bits() {
    let cases: [(&[u8], Result<usize, SnappyError>); 8] = [
        (&[0], Ok(0)),
        (&[0x80, 0x00], Ok(0)),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f], Ok(u32::MAX as usize)),
        (&[0xff, 0xff, 0xff, 0xff, 0x1f], Err(SnappyError::Preamble)),
        (&[0x80, 0x80, 0x80, 0x80, 0x10], Err(SnappyError::Preamble)),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], Err(SnappyError::Preamble)),
        (&[0x80], Err(SnappyError::Preamble)),
        (&[], Err(SnappyError::Preamble)),
    ];
    for (body, expected) in cases {
        assert_eq!(decoded_len(body), expected, "{body:?}");
    }
    assert_eq!(joined_preamble(u64::from(u32::MAX)).unwrap().as_bytes(), [0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(joined_preamble(1 << 32).unwrap_err(), SnappyError::TooLong { bytes: 1 << 32 });
}

/// Copies that reach back further than two bytes can say stay inside their own part of a joined body.
#[test]
fn far_copies_join() {
    let mut body = Varint::new(100_064).as_bytes().to_vec();
    let literal: Vec<u8> =
        (0..100_000u32).flat_map(|number| (number % 251).to_le_bytes().into_iter().take(1)).collect();
    body.extend([62 << 2, 0x9f, 0x86, 0x01]);
    body.extend(&literal);
    body.extend([0b11 | 63 << 2, 0x90, 0x5f, 0x01, 0x00]);
    let raw = [&literal[..], &literal[10_000..10_064]].concat();
    assert_eq!(decoded(&body).unwrap(), raw);
    let (preamble, pieces) = join([&body[..], &body[..]]).unwrap();
    let joined = pieces.fold(preamble.as_bytes().to_vec(), |joined, piece| [&joined[..], piece].concat());
    assert_eq!(decoded(&joined).unwrap(), [&raw[..], &raw[..]].concat());
}

/// Too little room is said and not overrun.
#[test]
fn room_is_respected() {
    let body = compress(&[7; 1000]);
    let error = decode(&body, &mut [0; 999]).unwrap_err();
    assert_eq!(error, SnappyError::OutputFull { given: 999, needed: 1000 });
    let error = Encoder::new().compress(&[7; 1000], &mut [0; 100]).unwrap_err();
    assert_eq!(error, SnappyError::OutputFull { given: 100, needed: max_compressed_len(1000).unwrap() });
}
