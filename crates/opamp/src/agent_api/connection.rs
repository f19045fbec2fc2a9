//! One WebSocket connection of an agent.

use super::retry_seconds;
use super::routes::{Ticket, Transport};
use crate::control::{Answer, Opamp, ReceiveError, Session};
use crate::message::{ErrorKind, ServerToAgent};
use crate::registry::Push;
use crate::websocket::{CloseCode, Event, WebSocket, switching_protocols};
use std::io;
use std::task::Poll;
use std::time::Duration;
use tidegate_arena::Window;
use tidegate_http1::{ConnectionEnd, Stream, Upgraded};

/// An agent that has sent nothing for so long is asked whether it is there; after the same again it is not.
const SILENCE: Duration = Duration::from_secs(75);
/// How long a connection whose message was not taken stays open, about: its client comes back as soon as it is closed, whatever it was
/// told, and says the same again.
const PAUSE: Duration = Duration::from_secs(5);
/// In front of each message: a header that is 0.
const HEADER: &[u8] = &[0];

/// Serves a connection to its end.
#[expect(clippy::manual_async_fn, reason = "an async function would have its arguments twice")]
pub(super) fn serve<T: Stream>(
    opamp: &Opamp,
    ticket: Ticket,
    link: Upgraded<'_, T>,
) -> impl Future<Output = ConnectionEnd> + Send {
    async move {
        let Transport::WebSocket(accept) = ticket.0 else { return ConnectionEnd::Refused };
        let opened = Box::pin(WebSocket::open(link, &accept_answer(accept), longest(opamp))).await;
        let Ok(mut socket) = opened else { return ConnectionEnd::Lost };
        let mut guard = SessionGuard { opamp, session: Session::default() };
        let code = converse(&mut socket, &mut guard).await;
        drop(guard);
        match code {
            Some(CloseCode::GoingAway) => {
                Box::pin(socket.close(CloseCode::GoingAway)).await;
                ConnectionEnd::Shutdown
            }
            Some(code) => {
                if !matches!(code, CloseCode::Normal | CloseCode::Policy) {
                    Box::pin(socket.pause(PAUSE.mul_f64(0.5 + rand::random::<f64>()))).await;
                }
                Box::pin(socket.close(code)).await;
                ConnectionEnd::Refused
            }
            None => ConnectionEnd::ByClient,
        }
    }
}

/// The session of a connection; the agent is not connected any more when it ends, however it ends.
struct SessionGuard<'a> {
    opamp: &'a Opamp,
    session: Session,
}

impl Drop for SessionGuard<'_> {
    fn drop(&mut self) {
        self.opamp.leave(&mut self.session);
    }
}

fn accept_answer(accept: [u8; 28]) -> Vec<u8> {
    switching_protocols(&accept)
}

/// The longest message with its header.
fn longest(opamp: &Opamp) -> usize {
    opamp.settings().max_message + HEADER.len()
}

/// Answers messages until the end: the code to close with, or none where the client is gone.
async fn converse<T: Stream>(
    socket: &mut WebSocket<'_, T>,
    guard: &mut SessionGuard<'_>,
) -> Option<CloseCode> {
    let opamp = guard.opamp;
    let mut was_asked = false;
    loop {
        let agent = guard.session.agent;
        let event = socket.next(SILENCE, |context| match agent {
            Some((id, number)) => opamp.registry().poll_push(id, number, context),
            None => Poll::Pending,
        });
        let event = event.await;
        let was_asked_before = std::mem::take(&mut was_asked);
        let sent = match event {
            // On the heap: what an answer needs would be in every idle connection.
            Event::Message(message) => match Box::pin(answer(socket, guard, message)).await {
                Ok(Some(code)) => return Some(code),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            },
            Event::Pushed(Push::News) => match agent.and_then(|(id, _)| opamp.pushed(id)) {
                Some(pushed) => Box::pin(send(socket, &pushed)).await,
                None => Ok(()),
            },
            Event::Pushed(Push::Replaced) => return Some(CloseCode::Policy),
            Event::Alive => Ok(()),
            Event::Silent if was_asked_before => return None,
            Event::Silent => {
                was_asked = true;
                Box::pin(socket.ping()).await
            }
            Event::Shutdown => return Some(CloseCode::GoingAway),
            Event::Closed => return None,
            Event::Failed(CloseCode::TryAgain) => {
                let _told = Box::pin(unavailable(socket, &guard.session)).await;
                return Some(CloseCode::TryAgain);
            }
            Event::Failed(code) => return Some(code),
        };
        if sent.is_err() {
            return None;
        }
    }
}

/// Answers a message; a code where the connection is to be closed.
async fn answer<T: Stream>(
    socket: &mut WebSocket<'_, T>,
    guard: &mut SessionGuard<'_>,
    message: Window,
) -> io::Result<Option<CloseCode>> {
    let received = match message.strip_prefix(HEADER) {
        Some(bytes) => guard.opamp.receive(bytes, Some(&mut guard.session)).await,
        None => Err(ReceiveError::Malformed("it does not begin with a header that is 0".to_owned())),
    };
    drop(message);
    match received {
        Ok(answer) => {
            send(socket, &answer).await?;
            Ok(None)
        }
        Err(ReceiveError::Malformed(error)) => {
            let error =
                ServerToAgent::error(&uid(&guard.session), ErrorKind::BadRequest, &error).into_bytes();
            socket.send(&[HEADER, &error]).await?;
            Ok(Some(CloseCode::Invalid))
        }
        Err(error) => {
            tracing::debug!(%error, "a message of an agent was not taken");
            unavailable(socket, &guard.session).await?;
            Ok(Some(CloseCode::TryAgain))
        }
    }
}

async fn send<T: Stream>(socket: &mut WebSocket<'_, T>, answer: &Answer) -> io::Result<()> {
    let config = answer.config.as_ref().map(|config| config.field()).unwrap_or_default();
    socket.send(&[HEADER, &answer.bytes, config]).await
}

async fn unavailable<T: Stream>(socket: &mut WebSocket<'_, T>, session: &Session) -> io::Result<()> {
    let kind = ErrorKind::Unavailable(u64::from(retry_seconds()));
    let error =
        ServerToAgent::error(&uid(session), kind, "there is too much to do; try again later").into_bytes();
    socket.send(&[HEADER, &error]).await
}

fn uid(session: &Session) -> Vec<u8> {
    session.agent.map(|(id, _)| id.to_bytes().to_vec()).unwrap_or_default()
}
