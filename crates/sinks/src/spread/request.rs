//! A request for one member, while it fills and when it is sealed: what is known of it besides its bytes.

use super::distributor::CurrentTenant;
use super::protocol::{OpenMessage, RequestForm, SpreadProtocol};
use crate::egress_budget::BudgetError;
use bytes::Bytes;
use tidegate_handoff::Note;
use tidegate_journal::Tenant;
use tokio::time::Instant;

/// A request's facts besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead<F> {
    pub(crate) tenant: Tenant,
    pub(crate) form: F,
    /// Which of the copies its items are, from 0.
    pub(crate) replica: u8,
    /// Copies of items in it.
    pub(crate) copies: u32,
}

impl<F: RequestForm> RequestHead<F> {
    /// The note of a protocol that goes to disk with a request.
    pub(super) fn note(&self, protocol: u8) -> Option<Note> {
        let mut bytes = vec![protocol, self.form.code(), self.replica];
        bytes.extend(self.copies.to_le_bytes());
        bytes.extend(self.tenant.as_str().as_bytes());
        Note::new(&bytes)
    }

    /// The head that a note has; nothing where another protocol, or another version, wrote it.
    pub(super) fn of_note(note: &Note, protocol: u8) -> Option<RequestHead<F>> {
        let (&[kind, form, replica], rest) = note.as_bytes().split_first_chunk()?;
        let (copies, tenant) = rest.split_first_chunk()?;
        let (copies, tenant) = (u32::from_le_bytes(*copies), Tenant::new(str::from_utf8(tenant).ok()?)?);
        (kind == protocol).then_some(RequestHead { tenant, form: F::of_code(form)?, replica, copies })
    }
}

/// How long a request became.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestLen {
    /// Bytes of its items, before compression.
    pub(crate) raw: usize,
    /// Bytes of the sealed request.
    pub(crate) sealed: usize,
}

/// The items of one journal record in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The record.
    pub(super) sequence: u64,
    /// Its items that count in the books: those of first replicas.
    pub(super) items: u64,
}

/// A request that takes more items.
pub(super) struct OpenRequest<P: SpreadProtocol> {
    head: RequestHead<P::Form>,
    /// The last generation in which the current tenant was known to be this one's.
    generation: u64,
    message: P::Message,
    parts: Vec<Part>,
    /// Whether it has items from the log of a member that left.
    is_rerouted: bool,
    /// Those of them that count in the books.
    rerouted: u64,
    received_at_ns: u64,
    /// When it began to wait for more items: when it was opened, or postponed last.
    pub(super) opened: Instant,
}

/// A request that is ready to be sent. Clones are the same bytes.
#[derive(Debug, Clone)]
pub(super) struct SealedRequest<F> {
    pub(super) head: RequestHead<F>,
    /// Holds the memory that it lives in.
    pub(super) body: Bytes,
    pub(super) parts: Vec<Part>,
    /// Whether it has items from the log of a member that left.
    pub(super) is_rerouted: bool,
    /// Those of them that count in the books.
    pub(super) rerouted: u64,
    pub(super) received_at_ns: u64,
}

impl<F> SealedRequest<F> {
    /// Its items that count in the books.
    pub(super) fn items(&self) -> u64 {
        self.parts.iter().map(|part| part.items).sum::<u64>() + self.rerouted
    }
}

/// Where items come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// A record of the journal.
    Record(u64),
    /// The log of a member that left.
    Log,
}

impl<P: SpreadProtocol> OpenRequest<P> {
    /// The most journal records that a request has items of.
    const MOST_PARTS: usize = 512;
    /// The memory that one takes beyond its message's, in bytes.
    pub(super) const BYTES: usize =
        size_of::<Option<OpenRequest<P>>>() + 2 * Self::MOST_PARTS * size_of::<Part>();

    /// A request without items.
    pub(super) fn new(
        head: RequestHead<P::Form>,
        generation: u64,
        message: P::Message,
        received_at_ns: u64,
    ) -> OpenRequest<P> {
        OpenRequest {
            head,
            generation,
            message,
            parts: Vec::new(),
            is_rerouted: false,
            rerouted: 0,
            received_at_ns,
            opened: Instant::now(),
        }
    }

    /// Whether items of the current tenant and this form may be added.
    #[inline]
    pub(super) fn is_for(&mut self, current: &CurrentTenant, form: P::Form) -> bool {
        if self.generation != current.generation() {
            if self.head.tenant != *current.tenant() {
                return false;
            }
            self.generation = current.generation();
        }
        self.head.form == form
    }

    /// Bytes of its items.
    pub(super) fn raw_len(&self) -> usize {
        self.message.raw_len()
    }

    /// Copies of items in it.
    pub(super) fn copies(&self) -> u32 {
        self.head.copies
    }

    /// The memory that it holds, in bytes.
    pub(super) fn held(&self) -> usize {
        self.message.held()
    }

    /// Whether it has as many journal records as a request may have.
    pub(super) fn is_full_of_records(&self) -> bool {
        self.parts.len() >= Self::MOST_PARTS
    }

    /// Adds an item, which counts as so many. When there is no memory, nothing changes.
    ///
    /// # Errors
    /// When there is no memory now.
    #[inline]
    pub(super) fn push(
        &mut self,
        item: &P::Item<'_>,
        items: u64,
        origin: Origin,
        tools: &mut P::Tools,
    ) -> Result<(), BudgetError> {
        self.message.push(item, tools)?;
        self.head.copies = self.head.copies.saturating_add(u32::try_from(items).unwrap_or(u32::MAX));
        let booked = if self.head.replica == 0 { items } else { 0 };
        match (origin, self.parts.last_mut()) {
            (Origin::Log, _) => (self.is_rerouted, self.rerouted) = (true, self.rerouted + booked),
            (Origin::Record(sequence), Some(last)) if last.sequence == sequence => last.items += booked,
            (Origin::Record(sequence), _) => self.parts.push(Part { sequence, items: booked }),
        }
        Ok(())
    }

    /// Whether items of this origin are in it already.
    pub(super) fn has(&self, origin: Origin) -> bool {
        match origin {
            Origin::Record(sequence) => self.parts.last().is_some_and(|last| last.sequence == sequence),
            Origin::Log => self.is_rerouted,
        }
    }

    /// The request, ready to be sent. When there is no memory, it is given back.
    ///
    /// # Errors
    /// The request.
    #[expect(clippy::result_large_err, reason = "it is handed back, and is no error")]
    pub(super) fn seal(self, tools: &mut P::Tools) -> Result<SealedRequest<P::Form>, OpenRequest<P>> {
        let OpenRequest { head, generation, message, parts, is_rerouted, rerouted, received_at_ns, opened } =
            self;
        match message.seal(tools) {
            Ok(body) => Ok(SealedRequest { head, body, parts, is_rerouted, rerouted, received_at_ns }),
            Err(message) => Err(OpenRequest {
                head,
                generation,
                message,
                parts,
                is_rerouted,
                rerouted,
                received_at_ns,
                opened,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Form(bool);

    impl RequestForm for Form {
        fn code(self) -> u8 {
            u8::from(self.0)
        }

        fn of_code(code: u8) -> Option<Form> {
            (code < 2).then_some(Form(code == 1))
        }
    }

    #[test]
    fn a_note_keeps_the_head_of_a_request() {
        let tenant = Tenant::new("team-a").unwrap();
        let head = RequestHead { tenant, form: Form(true), replica: 2, copies: 0x0102_0304 };
        let note = head.note(1).unwrap();
        assert_eq!(note.as_bytes(), b"\x01\x01\x02\x04\x03\x02\x01team-a", "logs on disk have this");
        assert_eq!(RequestHead::of_note(&note, 1), Some(head));
        assert_eq!(RequestHead::<Form>::of_note(&note, 2), None, "another protocol's");
        assert_eq!(RequestHead::<Form>::of_note(&Note::new(b"\x01\x02\x02\0\0\0\0").unwrap(), 1), None);
        assert_eq!(RequestHead::<Form>::of_note(&Note::new(b"\x01").unwrap(), 1), None);
    }
}
