//! A request of OTLP for one receiver, while it fills and when it is sealed.
//!
//! It is not compressed before it is sent: what waits on disk for a receiver that leaves is read again, item by item.

use super::protocol::RoutedProtocol;
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::otlp::outbound_request::write_prefix;
use crate::otlp::peer::PREFIX;
use crate::spread::{OpenMessage, RequestForm, RequestLen};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::{Encoding, Signal};
use tidegate_wire::otlp::route::{RouteWriter, Run};

/// The signal of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form(pub(super) Signal);

/// Signals that have keys, with their bytes in notes on disk.
const CODES: [(Signal, u8); 3] = [(Signal::Traces, 1), (Signal::Metrics, 2), (Signal::Logs, 3)];

impl RequestForm for Form {
    fn code(self) -> u8 {
        CODES.iter().find(|(signal, _)| *signal == self.0).map_or(0, |(_, code)| *code)
    }

    fn of_code(code: u8) -> Option<Form> {
        CODES.iter().find(|(_, known)| *known == code).map(|(signal, _)| Form(*signal))
    }
}

/// A run of items, and the number of the body that it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoutedRun<'i> {
    pub(super) run: Run<'i>,
    pub(super) body: u64,
}

/// [`PREFIX`] bytes and a request that takes more items.
pub(super) struct Message {
    frame: Charged<Window>,
    writer: RouteWriter,
}

impl Message {
    /// A request without items.
    ///
    /// # Errors
    /// When there is no memory now.
    pub(super) async fn new(last: RequestLen, room: &EgressBudget) -> Result<Message, BudgetError> {
        let mut frame = room.growing_window(last.sealed).await?;
        frame.clear();
        frame.skip(PREFIX);
        Ok(Message { frame, writer: RouteWriter::new() })
    }
}

impl OpenMessage<RoutedProtocol> for Message {
    fn raw_len(&self) -> usize {
        self.frame.len().saturating_sub(PREFIX)
    }

    fn held(&self) -> usize {
        self.frame.bytes()
    }

    fn push(&mut self, RoutedRun { run, body }: &RoutedRun<'_>, _: &mut u64) -> Result<(), BudgetError> {
        self.frame.try_reserve(self.writer.len_of(run, *body))?;
        let at = self.raw_len();
        let written = self.writer.write(run, *body, at, self.frame.spare_mut());
        self.frame.advance(written.map_err(|_| BudgetError::Never)?);
        self.writer.close(self.frame.get_mut(PREFIX..).unwrap_or_default());
        Ok(())
    }

    fn seal(mut self, _: &mut u64) -> Result<Bytes, Message> {
        write_prefix(&mut self.frame, Encoding::Identity);
        Ok(Bytes::from_owner(self.frame))
    }
}
