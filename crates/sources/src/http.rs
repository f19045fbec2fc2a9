//! Every HTTP source on one listener, told apart by path.

use crate::clock::Stamp;
use crate::prometheus_remote_write::{self, RemoteWrite};
use std::cell::Cell;
use std::sync::Arc;
use tidegate_admission::{Gate, Protocol, Refused, answer, codec};
use tidegate_http1::{Admitted, Body, Context, Head, Refusal as Codec, Reply, Service};
use tidegate_ledger::{Open, Refusal, Source};
use tidegate_meters::Histogram;

/// The service behind `listen.http`.
#[derive(Clone)]
pub struct Http(Arc<Inner>);

struct Inner {
    gate: Gate,
    /// Where requests are entered that lead to no source.
    stray: Source,
    remote_write: RemoteWrite,
    durations: Histogram,
}

/// What was decided on a request's head.
pub struct Ticket {
    /// The request's entry in the books, until somebody has a verdict.
    open: Cell<Option<Open>>,
    route: Route,
}

enum Route {
    RemoteWrite(prometheus_remote_write::Form),
}

impl Http {
    /// Serves `remote_write`; what leads nowhere is entered under `stray`. `durations` observes how long it
    /// takes from the last byte of a request to its answer, which is mostly the wait for the disk.
    pub fn new(gate: Gate, stray: Source, remote_write: RemoteWrite, durations: Histogram) -> Http {
        Http(Arc::new(Inner { gate, stray, remote_write, durations }))
    }

    /// Enters a connection that was refused before it could send a request.
    pub fn refuse_stray(&self, reason: Refusal) {
        self.0.stray.open().refuse(reason);
    }
}

impl Service for Http {
    type Ticket = Ticket;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Ticket>, Reply> {
        let source = &self.0.remote_write;
        if !RemoteWrite::PATHS.contains(&head.path()) {
            self.0.stray.open().refuse(Refusal::NotFound);
            let nothing = "nothing is served under this path; remote write is taken at /api/v1/write\n";
            return Err(answer(Refused::new(Refusal::NotFound, nothing), Protocol::Http));
        }
        let open = source.books().open();
        let form = self.0.gate.head().and_then(|()| RemoteWrite::form(head));
        match form {
            Ok(form) => {
                let ticket = Ticket { open: Cell::new(Some(open)), route: Route::RemoteWrite(form) };
                Ok(Admitted { max_body: source.max_received(), ticket })
            }
            Err(refused) => {
                open.refuse(refused.reason);
                let allowed: &[_] =
                    if refused.reason == Refusal::Method { &[("Allow", "POST")] } else { &[] };
                Err(answer(refused, Protocol::RemoteWrite).headers(allowed))
            }
        }
    }

    async fn answer(&self, ticket: Ticket, body: Body) -> Reply {
        let received = Stamp::now();
        let Ticket { open, route: Route::RemoteWrite(form) } = ticket;
        let reply = match open.into_inner() {
            Some(open) => self.0.remote_write.receive(&self.0.gate, open, form, body).await,
            // The codec answers a request once; there is nothing to enter.
            None => Reply::new(500),
        };
        self.0.durations.observe(received.elapsed_ns());
        reply
    }

    fn refuse(&self, refusal: Codec, context: Context<'_, Ticket>) -> Reply {
        let protocol = if context.ticket.is_some() { Protocol::RemoteWrite } else { Protocol::Http };
        let (reply, reason) = codec(refusal, protocol, self.0.gate.memory_delay());
        let open = context.ticket.and_then(|ticket| ticket.open.take());
        open.unwrap_or_else(|| self.0.stray.open()).refuse(reason);
        reply
    }
}
