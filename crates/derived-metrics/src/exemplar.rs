//! The last span of a series.

use crate::number;
use tidegate_pipeline::{MeasuredSpan, Number, TraceId};

/// The last span that a series observed since the last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Exemplar {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: [u8; 8],
    /// Zero where no span was observed.
    pub(crate) value: [u64; 2],
    /// When its record was received, in milliseconds since 1970.
    pub(crate) at_ms: u64,
}

impl Exemplar {
    /// The bytes of an exemplar in a state.
    pub(crate) const STATE_BYTES: usize = 48;

    pub(crate) fn new(span: &MeasuredSpan, value: Number, at_ms: u64) -> Exemplar {
        Exemplar { trace_id: span.trace_id, span_id: span.span_id, value: number::to_words(value), at_ms }
    }

    /// The value of the span, where there is one.
    pub(crate) fn number(&self) -> Option<Number> {
        number::from_words(self.value)
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::STATE_BYTES] {
        let [kind, bits] = self.value;
        let mut bytes = [0; Self::STATE_BYTES];
        let parts: [&[u8]; 5] = [
            &self.trace_id,
            &self.span_id,
            &kind.to_le_bytes(),
            &bits.to_le_bytes(),
            &self.at_ms.to_le_bytes(),
        ];
        bytes.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::STATE_BYTES]) -> Exemplar {
        let mut words = bytes.as_chunks::<8>().0.iter().copied();
        let mut word = || words.next().unwrap_or_default();
        let mut trace_id = TraceId::default();
        let (first, second) = (word(), word());
        trace_id.iter_mut().zip(first.iter().chain(&second)).for_each(|(to, from)| *to = *from);
        Exemplar {
            trace_id,
            span_id: word(),
            value: [u64::from_le_bytes(word()), u64::from_le_bytes(word())],
            at_ms: u64::from_le_bytes(word()),
        }
    }
}
