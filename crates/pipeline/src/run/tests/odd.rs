//! Bodies as no encoder writes them, although it might: fields in any order, unknown ones between.

use prost::encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field};

/// A message, as far as it has messages in it.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    LogsRequest,
    TracesRequest,
    MetricsRequest,
    Resources(Signal),
    Scopes(Signal),
    Metric,
    Data,
    Span,
    Plain,
}

#[derive(Clone, Copy)]
pub(super) enum Signal {
    Logs,
    Traces,
    Metrics,
}

impl Kind {
    fn inner(self, field: u32) -> Option<Kind> {
        match (self, field) {
            (Kind::LogsRequest, 1) => Some(Kind::Resources(Signal::Logs)),
            (Kind::TracesRequest, 1) => Some(Kind::Resources(Signal::Traces)),
            (Kind::MetricsRequest, 1) => Some(Kind::Resources(Signal::Metrics)),
            (Kind::Resources(signal), 2) => Some(Kind::Scopes(signal)),
            (Kind::Scopes(Signal::Logs), 2) => Some(Kind::Plain),
            (Kind::Scopes(Signal::Traces), 2) => Some(Kind::Span),
            (Kind::Scopes(Signal::Metrics), 2) => Some(Kind::Metric),
            (Kind::Resources(_) | Kind::Scopes(_), 1) => Some(Kind::Plain),
            (Kind::Metric, 5 | 7 | 9 | 10 | 11) => Some(Kind::Data),
            (Kind::Data, 1) | (Kind::Span, 11) => Some(Kind::Plain),
            _ => None,
        }
    }
}

/// The body with its fields in another order, and unknown ones; as it is without a seed.
pub(super) fn scrambled(body: &[u8], seed: Option<u64>, kind: Kind) -> Vec<u8> {
    let Some(mut seed) = seed else { return body.to_vec() };
    message(body, &mut seed, kind)
}

fn message(body: &[u8], seed: &mut u64, kind: Kind) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let before = rest;
        let (number, wire) = decode_key(&mut rest).unwrap();
        let value = rest;
        skip_field(wire, number, &mut rest, DecodeContext::default()).unwrap();
        let mut field = before[..before.len() - rest.len()].to_vec();
        if let (Some(inner), WireType::LengthDelimited) = (kind.inner(number), wire) {
            let mut payload = value;
            prost::encoding::decode_varint(&mut payload).unwrap();
            let inner = message(&payload[..payload.len() - rest.len()], seed, inner);
            field.clear();
            encode_key(number, wire, &mut field);
            encode_varint(inner.len() as u64, &mut field);
            field.extend(inner);
        }
        fields.push(field);
        if next(seed).is_multiple_of(8) {
            fields.push(vec![0xa2, 0x06, 0x03, 1, 2, 3]);
        }
        if next(seed).is_multiple_of(16) {
            fields.push(vec![0x98, 0x06, 0x05]);
        }
    }
    if next(seed).is_multiple_of(2) {
        for last in (1..fields.len()).rev() {
            fields.swap(last, (next(seed) % (last as u64 + 1)) as usize);
        }
    }
    fields.concat()
}

fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed >> 3
}
