//! The part of a protocol that the engine needs.

use super::{BodyInfo, Distributor, RequestHead, RequestLen, Verdict};
use crate::batch::DropReason;
use crate::delivery::EndpointError;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::journal_consumer::JournalConsumer;
use crate::losses::Losses;
use bytes::Bytes;
use std::fmt::Debug;
use tidegate_journal::{Meta, Tenant};

/// A protocol whose items are spread over members. The value holds its settings.
pub(crate) trait SpreadProtocol: Sized + Send + Sync + 'static {
    /// The first byte of notes in handoff logs. Protocols have different ones, so that none reads another's requests.
    const NOTE: u8;
    /// Whether a receiver that has some items of a request already may refuse all of it.
    const REFUSES_WHOLE: bool = false;
    /// The difference between requests of one tenant, besides their items. The items of a request share it.
    type Form: RequestForm;
    /// An item of a body, as bytes.
    type Item<'i>: Send + Sync;
    /// Maps the hash of a key to members.
    type Placement: Send + Sync;
    /// Where members come from.
    type Source: MemberSource<Self>;
    /// A request that takes more items.
    type Message: OpenMessage<Self>;
    /// The connection to a member.
    type Peer: MemberPeer<Self>;
    /// Coders and hashers, which the distributor has.
    type Tools: Send;

    /// The tools of a distributor.
    fn tools(&self) -> Self::Tools;

    /// The tenant of requests with this tenant's data.
    fn tenant(&self, tenant: Tenant) -> Tenant {
        tenant
    }

    /// Has the consumer pass over what the protocol cannot express.
    fn attached(&self, _consumer: &mut JournalConsumer) {}

    /// The connection to the member at `target`, which is not opened yet.
    ///
    /// # Errors
    /// When the address or the TLS settings cannot be used.
    fn peer(&self, target: &str) -> Result<Self::Peer, EndpointError>;

    /// A request without items, which may become as long as the `last` one of the same member and replica.
    ///
    /// # Errors
    /// When there is no memory now.
    fn open(
        &self,
        head: &RequestHead<Self::Form>,
        last: RequestLen,
        room: &EgressBudget,
    ) -> impl Future<Output = Result<Self::Message, BudgetError>> + Send;

    /// The part of the keys that each of so many members holds, from 0 to 1, where it has one.
    fn shares(&self, placement: &Self::Placement, members: usize) -> Vec<Option<f64>>;

    /// Walks over a decompressed body and gives each item to [`Distributor::place`]. The current tenant is the body's.
    ///
    /// # Errors
    /// When the rest of the body cannot be sent.
    fn spread(
        distributor: &mut Distributor<Self>,
        meta: &Meta,
        raw: &[u8],
        info: &BodyInfo,
    ) -> impl Future<Output = Result<Losses, DropReason>> + Send;

    /// The same with the body of a sealed request, from the log of a member that left. Returns the items that have no member any more.
    ///
    /// # Errors
    /// When the rest of the body cannot be sent.
    fn spread_again(
        distributor: &mut Distributor<Self>,
        head: &RequestHead<Self::Form>,
        body: Bytes,
        info: &BodyInfo,
    ) -> impl Future<Output = Result<u64, DropReason>> + Send;
}

/// The difference between requests of one tenant, as a byte of the note on disk.
pub(crate) trait RequestForm: Copy + Eq + Debug + Send + Sync + 'static {
    /// Its byte.
    fn code(self) -> u8;

    /// The form with this byte.
    fn of_code(code: u8) -> Option<Self>;
}

/// A request that takes more items. Everything that it holds is charged.
pub(crate) trait OpenMessage<P: SpreadProtocol>: Send {
    /// Bytes of its items, before compression.
    fn raw_len(&self) -> usize;

    /// The memory that it holds, in bytes.
    fn held(&self) -> usize;

    /// Adds an item, and pays for all that sealing needs: where memory is short, sealing is how some is given back. When there is no
    /// memory, nothing changes.
    ///
    /// # Errors
    /// When there is no memory now.
    fn push(&mut self, item: &P::Item<'_>, tools: &mut P::Tools) -> Result<(), BudgetError>;

    /// The bytes of the request, which hold the memory that they live in. When there is no memory, the request is given back.
    ///
    /// # Errors
    /// The request.
    fn seal(self, tools: &mut P::Tools) -> Result<Bytes, Self>
    where
        Self: Sized;
}

/// The connection to a member. One request is sent at a time, and another one while an earlier one is given up.
pub(crate) trait MemberPeer<P: SpreadProtocol>: Send + Sync {
    /// Sends a request and waits for the answer, for the timeout at most. `room` is the sink's memory.
    fn send(
        &self,
        room: &EgressBudget,
        head: &RequestHead<P::Form>,
        body: Bytes,
    ) -> impl Future<Output = Verdict> + Send;

    /// Ends all connections that no request waits on.
    fn hang_up(&self);

    /// Ends all connections, and waits until what they hold is given back.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Where members come from.
pub(crate) trait MemberSource<P: SpreadProtocol>: Send {
    /// Waits until others are described than were returned last, or known at the start. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Why they cannot be used: the old ones stay. Once for each change.
    fn changed(
        &mut self,
        protocol: &P,
    ) -> impl Future<Output = Result<Membership<P::Placement>, String>> + Send;

    /// Says whether the members that were returned last are used now. If not, they are returned again after a while, unless others are
    /// described: what stood in the way may be gone.
    fn settled(&mut self, is_used: bool);
}

/// Members, and which keys each has.
pub(crate) struct Membership<T> {
    /// Maps the hash of a key to the numbers of members.
    pub(crate) placement: T,
    /// The members, by their numbers. Each is there once. While there is none, nothing is read.
    pub(crate) addresses: Vec<MemberAddress>,
}

/// Where a member is.
pub(crate) struct MemberAddress {
    /// For people, and for the member's log, which outlives the process: without secrets.
    pub(crate) name: Box<str>,
    /// For [`SpreadProtocol::peer`].
    pub(crate) target: Box<str>,
}

impl From<&str> for MemberAddress {
    fn from(address: &str) -> MemberAddress {
        MemberAddress { name: address.into(), target: address.into() }
    }
}
