//! Writes the envelope of items once, and copies it for the items behind the first.
//!
//! The data of a metric holds all of its points, and a resource may hold more than is ever written. To look through them for
//! each item would take time by the square of their length.

use super::LONGEST_STEP;

/// The longest text that is kept. Longer ones are written anew: then each item writes as much.
const LONGEST: usize = LONGEST_STEP;
/// The most memory of all that is kept.
pub(super) const ENVELOPE_BYTES: usize = 2 * LONGEST;

/// The envelope of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Envelope {
    /// The resource and the scope.
    Group,
    /// The metric, and its data without the points.
    Metric,
}

/// The envelope of the last item, as it was written.
#[derive(Default)]
pub(super) struct Envelopes<'a> {
    group: Written<'a>,
    metric: Written<'a>,
}

#[derive(Default)]
struct Written<'a> {
    /// The messages that it is made of.
    of: [&'a [u8]; 4],
    /// The text, once it is whole. Its memory is used again for the next.
    text: Vec<u8>,
    is_whole: bool,
    /// Where in this part it began.
    from: Option<usize>,
}

impl<'a> Envelopes<'a> {
    fn of(&mut self, envelope: Envelope) -> &mut Written<'a> {
        match envelope {
            Envelope::Group => &mut self.group,
            Envelope::Metric => &mut self.metric,
        }
    }

    /// Forgets the written envelopes: the next bytes go elsewhere.
    pub(super) fn begin_part(&mut self) {
        (self.group.from, self.metric.from) = (None, None);
    }

    /// Whether a text has begun that may be kept, if it ends in this part.
    pub(super) fn is_begun(&self, written: usize) -> bool {
        let is_short = |of: &Written<'_>| of.from.is_some_and(|from| written - from <= LONGEST);
        is_short(&self.group) || is_short(&self.metric)
    }

    /// Whether the text of what is made of these messages is known. If not, it is about to be written.
    pub(super) fn has(&mut self, envelope: Envelope, messages: [&'a [u8]; 4]) -> bool {
        let written = self.of(envelope);
        let is_same = written.of.iter().zip(messages).all(|(known, new)| std::ptr::eq(*known, new));
        if !is_same {
            written.of = messages;
            written.is_whole = false;
        }
        written.is_whole
    }

    /// The text begins or ends behind what was `written` in this part.
    pub(super) fn mark(&mut self, envelope: Envelope, is_end: bool, written: &[u8]) {
        let of = self.of(envelope);
        if !is_end {
            of.from = Some(written.len());
        } else if let Some(text) = of.from.take().and_then(|from| written.get(from..))
            && text.len() <= LONGEST
        {
            of.text.clear();
            of.text.reserve_exact(text.len());
            of.text.extend_from_slice(text);
            of.is_whole = true;
        }
    }

    /// The text.
    pub(super) fn text(&self, envelope: Envelope) -> &[u8] {
        let written = match envelope {
            Envelope::Group => &self.group,
            Envelope::Metric => &self.metric,
        };
        if written.is_whole { &written.text } else { &[] }
    }
}
