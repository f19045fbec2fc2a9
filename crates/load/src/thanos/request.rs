//! Reads `thanos.WriteRequest` back. Specification: `pkg/store/storepb/rpc.proto` of Thanos.

use std::borrow::Cow;
use std::io::Read;

use crate::remote_write::proto::Fields;
use crate::remote_write::{DecodeError, ReceivedSample, RequestTotals, decode_series};

/// A request to an ingestor, with its series as they came, of whatever tenants.
#[derive(Debug)]
pub(super) struct WriteRequest<'a> {
    /// Which of the copies its series are, from 1.
    pub(super) replica: u64,
    series: Vec<&'a [u8]>,
}

impl<'a> WriteRequest<'a> {
    /// The series are in field 1, or, since 0.43, with their tenant in field 4.
    pub(super) fn read(message: &'a [u8]) -> Result<WriteRequest<'a>, DecodeError> {
        let mut request = WriteRequest { replica: 0, series: Vec::new() };
        for field in Fields(message) {
            match field? {
                (1, series) => request.series.push(series.bytes()?),
                (3, replica) => request.replica = replica.uint()?,
                (4, tuple) => {
                    for field in Fields(tuple.bytes()?) {
                        if let (1, series) = field? {
                            request.series.push(series.bytes()?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(request)
    }

    /// Hands every sample to `visit`, in order.
    pub(super) fn samples(
        &self,
        visit: &mut dyn FnMut(ReceivedSample),
    ) -> Result<RequestTotals, DecodeError> {
        decode_series(self.series.iter().copied(), visit)
    }
}

/// The one message of a call, decompressed; at most `max` bytes of it.
pub(super) fn message(body: &[u8], is_compressed: bool, max: usize) -> Result<Cow<'_, [u8]>, DecodeError> {
    let ([flag, len @ ..], message) = body.split_first_chunk::<5>().ok_or(DecodeError::Truncated)?;
    if u32::from_be_bytes(*len) as usize != message.len() {
        return Err(DecodeError::Truncated);
    }
    if *flag == 0 || !is_compressed {
        return Ok(Cow::Borrowed(message));
    }
    let mut raw = Vec::new();
    let mut decoder = snap::read::FrameDecoder::new(message).take(max as u64);
    std::io::copy(&mut decoder, &mut raw).map_err(|_| DecodeError::Snappy)?;
    Ok(Cow::Owned(raw))
}
