//! Divides a request that a receiver rejects, to find the series that it does not take.
//!
//! Prometheus stores nothing of a request with one sample that is out of order, and a receiver with limits nothing of one that is too long.
//! So halves are sent, one after the other: the samples of a series stay in order. Where most of a request is rejected all the
//! same, the next ones are not divided for a while: each of them would cost dozens of requests.

use super::answer::Meaning;
use super::message::{Coder, Message};
use super::peer::Peer;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::spread::{MOST_REQUESTS, RequestLen, Tally, Verdict};
use bytes::Bytes;
use std::ops::Range;
use tidegate_journal::Tenant;
use tidegate_wire::proto::{Reader, WireType};
use tidegate_wire::remote_write::v1;
use tidegate_wire::snappy;

impl Peer {
    /// Sends the parts of a request that was rejected with these words.
    pub(super) async fn divide(
        &self,
        room: &EgressBudget,
        tenant: &Tenant,
        body: Bytes,
        words: String,
    ) -> Verdict {
        if self.division.is_paused() {
            return Verdict::Rejected { words };
        }
        let divided = self.send_parts(room, tenant, body, words.clone()).await;
        match divided {
            Ok(verdict) => verdict,
            Err(error) if self.division.is_passing(error) => Verdict::Later { words, after: None },
            Err(_) => Verdict::Rejected { words },
        }
    }

    async fn send_parts(
        &self,
        room: &EgressBudget,
        tenant: &Tenant,
        body: Bytes,
        words: String,
    ) -> Result<Verdict, BudgetError> {
        // It was compressed here, so it can be read.
        let len = snappy::decoded_len(&body).unwrap_or(0);
        let mut raw = room.window(len).await?;
        let written = snappy::decode(&body, raw.spare_mut()).unwrap_or(0);
        raw.advance(written);
        drop(body);
        let _coder = room.charge(Coder::BYTES).await?;
        let mut coder = Coder::new();
        let mut tally = Tally::default();
        let Some([first, second]) = halves(&raw, 0..raw.len()) else {
            return Ok(Verdict::Rejected { words });
        };
        let mut parts = vec![second, first];
        let mut requests = 0;
        while let Some(part) = parts.pop() {
            let fields = raw.get(part.clone()).unwrap_or_default();
            let body = encode(room, fields, &mut coder).await?;
            requests += 1;
            match self.post(tenant, body).await {
                Meaning::Accepted => tally.take(items(fields)),
                Meaning::Later(words, after) => return Ok(Verdict::Later { words, after }),
                Meaning::Rejected(words) => tally.reject(words, items(fields)),
                Meaning::Divisible(words) => match halves(&raw, part) {
                    Some([first, second]) if requests < MOST_REQUESTS => parts.extend([second, first]),
                    _ => tally.reject(words, items(fields)),
                },
            }
        }
        Ok(self.division.divided(tally))
    }
}

/// A request with these fields.
async fn encode(room: &EgressBudget, fields: &[u8], coder: &mut Coder) -> Result<Bytes, BudgetError> {
    let mut message = Message::new(RequestLen::default(), room).await?;
    let mut reader = Reader::new(fields);
    while let Ok(Some(key)) = reader.key() {
        match key.wire {
            WireType::Length => {
                let Ok(bytes) = reader.bytes(key) else { break };
                message.add((key.field, bytes), coder)?;
            }
            _ if reader.skip(key).is_err() => break,
            _ => {}
        }
    }
    Ok(message.finish(coder))
}

/// The samples, histograms, exemplars and metadata in these fields.
fn items(fields: &[u8]) -> u64 {
    let request = v1::Request::new(fields);
    let series: u64 = request.series().map(|series| series.visit_labels(|_| ())).sum();
    series + request.metadata().count() as u64
}

/// The two halves of these fields, if there are at least two.
fn halves(raw: &[u8], part: Range<usize>) -> Option<[Range<usize>; 2]> {
    let mut reader = Reader::new(raw.get(part.clone())?);
    let (middle, mut split) = (part.len() / 2, 0);
    while split < middle || split == 0 {
        let end = {
            let key = reader.key().ok()??;
            reader.skip(key).ok()?;
            reader.offset()
        };
        if end == part.len() {
            break;
        }
        split = end;
    }
    let split = part.start + split;
    (split > part.start).then_some([part.start..split, split..part.end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of these lengths.
    fn fields(lengths: &[u8]) -> Vec<u8> {
        lengths.iter().flat_map(|&len| [&[0x0a, len][..], &vec![0; usize::from(len)]].concat()).collect()
    }

    /// However long its fields, a request is divided until each field is alone, in order.
    #[test]
    fn halves_end_with_single_fields() {
        for lengths in [&[1][..], &[1, 1], &[100, 1, 1], &[1, 1, 100], &[0, 0, 0, 7, 7], &[3; 33]] {
            let raw = fields(lengths);
            let (mut parts, mut found) = (Vec::new(), Vec::new());
            parts.push(0..raw.len());
            while let Some(part) = parts.pop() {
                match halves(&raw, part.clone()) {
                    Some([first, second]) => {
                        assert_eq!(
                            (first.start, first.end, second.end),
                            (part.start, second.start, part.end)
                        );
                        parts.extend([second, first]);
                    }
                    None => found.push(raw[part.start + 1]),
                }
            }
            assert_eq!(found, lengths);
        }
    }
}
