//! Several tickets, awaited together.

use crate::engine::Ticket;
use crate::outcome::{Answer, Failure};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Tickets that are awaited together, with their answers in the same order.
///
/// Each item in it is an item like any other: counted, with its own options, and taken back when the list is
/// dropped before it is sent.
#[derive(Debug)]
#[must_use = "dropping a list takes its items back"]
pub struct TicketList<'a, T> {
    tickets: Vec<Ticket<'a, T>>,
    answers: Vec<Result<T, Failure>>,
}

impl<'a, T: Answer> TicketList<'a, T> {
    /// A list with capacity for `items`.
    pub fn with_capacity(items: usize) -> TicketList<'a, T> {
        TicketList { tickets: Vec::with_capacity(items), answers: Vec::with_capacity(items) }
    }

    /// Adds an item. There are never more than the engine has slots.
    pub fn push(&mut self, ticket: Ticket<'a, T>) {
        self.tickets.push(ticket);
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        self.tickets.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }
}

impl<'a, T: Answer> FromIterator<Ticket<'a, T>> for TicketList<'a, T> {
    fn from_iter<I: IntoIterator<Item = Ticket<'a, T>>>(tickets: I) -> Self {
        let tickets: Vec<_> = tickets.into_iter().collect();
        TicketList { answers: Vec::with_capacity(tickets.len()), tickets }
    }
}

// A ticket is not pinned in place, and neither is an answer.
impl<T> Unpin for TicketList<'_, T> {}

impl<T: Answer> Future for TicketList<'_, T> {
    type Output = Vec<Result<T, Failure>>;

    /// Polls one ticket at a time: the others keep their answers, and wake nothing.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let list = &mut *self;
        while let Some(ticket) = list.tickets.get_mut(list.answers.len()) {
            match Pin::new(ticket).poll(context) {
                Poll::Ready(answer) => list.answers.push(answer),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(std::mem::take(&mut list.answers))
    }
}
