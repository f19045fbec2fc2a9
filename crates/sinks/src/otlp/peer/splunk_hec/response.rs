//! Answers of the collector: `{"text":"Success","code":0,"ackId":7}`.

use crate::http_peer::delay;
use crate::otlp::answer::{ErrorDetails, OtlpAnswer};
use crate::otlp::peer::read::{Body, excerpt};
use hyper::header::RETRY_AFTER;
use hyper::{Response, StatusCode, body::Incoming};
use std::time::Duration;
use tidegate_wire::intake::Value;

/// "Data channel is missing", and "Invalid data channel".
const BAD_CHANNEL: [u64; 2] = [10, 11];

/// An answer of the collector.
pub(super) struct HecResponse {
    pub(super) status: StatusCode,
    /// Of the request, where the server will say when it is indexed.
    pub(super) ack_id: Option<u64>,
    code: Option<u64>,
    retry: Option<Duration>,
    /// Its beginning.
    body: Vec<u8>,
}

impl HecResponse {
    /// Reads an answer. An error says why it could not be read.
    pub(super) async fn read(response: Response<Incoming>) -> Result<HecResponse, String> {
        let (head, incoming) = response.into_parts();
        let body = Body::read(incoming, 0).await?.start;
        let number = |name| match Value::of(&body).object()?.at(&[name]) {
            Some(Value::Number(number)) => u64::try_from(number.integer()?).ok(),
            _ => None,
        };
        let (code, ack_id) = (number(b"code"), number(b"ackId"));
        let retry = head.headers.get(RETRY_AFTER).and_then(delay);
        Ok(HecResponse { status: head.status, ack_id, code, retry, body })
    }

    /// Whether the server does not know the channel.
    pub(super) fn is_bad_channel(&self) -> bool {
        self.code.is_some_and(|code| BAD_CHANNEL.contains(&code))
    }

    /// Which of these ids are indexed: `{"acks":{"0":true,"1":false}}`.
    pub(super) fn acknowledged(&self, ids: &[u64]) -> Vec<u64> {
        let acks = Value::of(&self.body).object().and_then(|all| all.at(&[b"acks"])?.object());
        let Some(acks) = acks else { return Vec::new() };
        let is_indexed = |id: &u64| matches!(acks.at(&[id.to_string().as_bytes()]), Some(Value::Bool(true)));
        ids.iter().copied().filter(is_indexed).collect()
    }

    /// The meaning of the answer to events.
    pub(super) fn answer(self) -> OtlpAnswer {
        let words = match self.status.is_success() {
            true => String::new(),
            false => excerpt(&self.body),
        };
        let said = ErrorDetails { words, retry: self.retry, rejected: 0 };
        OtlpAnswer::of_splunk(self.status, self.code, said)
    }
}
