//! `/v1/opamp`: WebSocket and plain HTTP.

mod connection;
mod routes;

pub use routes::Ticket;

use crate::control::{Answer, Opamp, ReceiveError};
use routes::{Transport, route};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_arena::{ChargeError, Share};
use tidegate_fleet::{GunzipError, gunzip};
use tidegate_http1::{
    Admitted, Body, ConnectionEnd, Head, Refusal, RefusalContext, Reply, Service, Stream, Upgraded,
};

/// The shortest `Retry-After` under overload, in seconds; up to the same again is added by chance.
pub(crate) const RETRY_S: u32 = 5;
const PROTOBUF: &str = "application/x-protobuf";

/// The routes for agents.
pub struct AgentApi(Arc<Opamp>);

impl AgentApi {
    /// Those of this control plane.
    pub fn new(opamp: Arc<Opamp>) -> AgentApi {
        AgentApi(opamp)
    }

    /// Counts a connection that was turned away.
    pub fn count_refused(&self) {
        self.0.counts().refused.fetch_add(1, Relaxed);
    }
}

impl Service for AgentApi {
    type RequestState = Ticket;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Ticket>, Reply> {
        let ticket = route(&self.0, head).inspect_err(|_| self.count_refused())?;
        let max_body = match ticket.0 {
            Transport::Http { .. } => self.0.settings().max_message,
            Transport::WebSocket(_) => 0,
        };
        Ok(Admitted { max_body, ticket })
    }

    fn answer(&self, ticket: Ticket, body: Body) -> impl Future<Output = Reply> + Send {
        let opamp = Arc::clone(&self.0);
        // On the heap: a connection has no room for what only some requests need.
        Box::pin(async move {
            match ticket.0 {
                Transport::Http { is_compressed } => answer(&opamp, body, is_compressed).await,
                // Those are taken over.
                Transport::WebSocket(_) => Reply::new(400).text("this connection cannot be upgraded\n"),
            }
        })
    }

    fn is_upgrade(&self, ticket: &Ticket) -> bool {
        matches!(ticket.0, Transport::WebSocket(_))
    }

    fn upgraded<T: Stream>(
        &self,
        ticket: Ticket,
        connection: Upgraded<'_, T>,
    ) -> impl Future<Output = ConnectionEnd> + Send {
        connection::serve(&self.0, ticket, connection)
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, Ticket>) -> Reply {
        self.count_refused();
        match refusal {
            Refusal::Memory => refusal.reply().retry_after(retry_seconds()),
            _ => refusal.reply(),
        }
    }
}

async fn answer(opamp: &Opamp, body: Body, is_compressed: bool) -> Reply {
    let received = match is_compressed {
        true => match gunzip(opamp.arena(), &body, opamp.settings().max_message) {
            Ok(window) => {
                drop(body);
                opamp.receive(&window, None).await
            }
            Err(error) => {
                opamp.counts().refused.fetch_add(1, Relaxed);
                return refused(&error);
            }
        },
        false => opamp.receive(&body, None).await,
    };
    match received {
        Ok(answer) => reply(opamp, &answer),
        Err(ReceiveError::Malformed(error)) => {
            Reply::new(400).content(format!("the message is malformed: {error}\n"))
        }
        Err(error) => Reply::new(503).retry_after(retry_seconds()).content(format!("{error}\n")),
    }
}

/// The answer in memory that is paid for, where it is not short.
fn reply(opamp: &Opamp, answer: &Answer) -> Reply {
    let reply = Reply::new(200).content_type(PROTOBUF);
    let Some(config) = &answer.config else { return reply.content(answer.bytes.clone()) };
    let len = answer.bytes.len() + config.field().len();
    let window = opamp.arena().try_window(Share::Egress, len).and_then(|mut window| {
        window.append(&answer.bytes)?;
        window.append(config.field())?;
        Ok(window)
    });
    match window {
        Ok(window) => reply.content(window),
        Err(ChargeError::Never { .. }) => {
            Reply::new(500).text("the configuration is longer than an answer may be\n")
        }
        Err(_) => {
            opamp.withdraw(answer);
            Reply::new(503).retry_after(retry_seconds()).text("the memory for answers is in use; try again\n")
        }
    }
}

fn refused(error: &GunzipError) -> Reply {
    match error {
        GunzipError::TooLarge(most) => Reply::new(413).content(format!(
            "the message has more than the {most} bytes, once decompressed, that are taken (`listen.opamp.max_message`)\n"
        )),
        GunzipError::Busy => Reply::new(503)
            .retry_after(retry_seconds())
            .text("there is no memory for the message now; try again\n"),
        GunzipError::Malformed(error) => {
            Reply::new(400).content(format!("the message is not valid gzip: {error}\n"))
        }
    }
}

/// How long an agent is told to wait: spread by chance, so that those refused together do not come back together.
pub(crate) fn retry_seconds() -> u32 {
    RETRY_S + rand::random::<u32>() % (RETRY_S + 1)
}
