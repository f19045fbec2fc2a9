//! One request over HTTP/2: its body into a window, its message out of that, and the answer.

use super::answer;
use super::flow::Flow;
use super::server::Inner;
use crate::clock::Stamp;
use crate::grpc::{self, Fault, PREFIX, Prefix};
use crate::otlp::{Form, Otlp, Received};
use bytes::{Buf, Bytes};
use h2::RecvStream;
use h2::server::SendResponse;
use std::future::poll_fn;
use std::time::Duration;
use tidegate_admission::{Gate, Refused};
use tidegate_arena::{Arena, Charge, Refused as NoMemory, Share, Window};
use tidegate_http1::{Pace, Settings};
use tidegate_ledger::{Open, Refusal};
use tokio::time::{Instant, timeout, timeout_at};

/// What a call is charged beside its window: its task, its stream in the codec, its answer.
pub(super) const BYTES: u64 = 4 << 10;

/// A request that was let in.
pub(super) struct Start {
    pub(super) open: Open,
    pub(super) form: Form,
    pub(super) kind: Kind,
    pub(super) deadline: Option<Instant>,
    /// What the request's state is charged.
    pub(super) charge: Charge,
}

/// How a request is framed and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Grpc,
    /// With the length that its head announces.
    Http(Option<usize>),
}

/// Serves one request to its answer.
pub(super) async fn serve(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    start: Start,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
) {
    let Start { open, form, kind, deadline, charge } = start;
    let exchange = exchange(server, otlp, flow, open, form, kind, &mut body);
    let outcome = match deadline {
        None => exchange.await,
        Some(deadline) => timeout_at(deadline, exchange).await.unwrap_or_else(|_late| {
            let words = "the deadline that the call came with has passed\n";
            Err(Refused::new(Refusal::Timeout, words).into())
        }),
    };
    match kind {
        Kind::Grpc => answer::grpc(&mut respond, outcome.as_ref().err()),
        Kind::Http(_) => answer::http(&mut respond, outcome.map_err(|fault| fault.refused), form.media),
    }
    flow.keep(charge);
}

async fn exchange(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    open: Open,
    form: Form,
    kind: Kind,
    body: &mut RecvStream,
) -> Result<(), Fault> {
    let gate = server.http.gate();
    let most = otlp.max_received();
    let intake = Intake { arena: &server.arena, settings: &server.settings, gate, flow, most };
    let received = match kind {
        Kind::Grpc => intake.message(body, form).await,
        Kind::Http(length) => intake.whole(body, length, form).await,
    };
    let (form, received) = match received {
        Ok(received) => received,
        Err(fault) => {
            open.refuse(fault.refused.reason);
            return Err(fault);
        }
    };
    let arrived = Stamp::now();
    let outcome = otlp.receive(gate, open, form, received).await;
    server.http.durations().observe(arrived.elapsed_ns());
    Ok(outcome?)
}

/// Receives a body: memory first, then the bytes, then the peer may send as many more.
struct Intake<'a> {
    arena: &'a Arena,
    settings: &'a Settings,
    gate: &'a Gate,
    flow: &'a Flow,
    most: usize,
}

impl Intake<'_> {
    /// The one message of a call, and how it turned out to be compressed.
    async fn message(&self, body: &mut RecvStream, form: Form) -> Result<(Form, Received), Fault> {
        let (mut pace, mut window, mut prefix) = (Pace::new(), None::<Window>, None::<Prefix>);
        let mut receiving = None;
        while let Some(chunk) = self.chunk(body, &mut pace).await? {
            let before = window.as_ref().map_or(0, |window| window.len());
            let known = if before == 0 { Prefix::of(&chunk) } else { None };
            if let Some(known) = known {
                prefix = Some(self.possible(known?)?);
            }
            let end = before + chunk.len();
            let whole = prefix.map_or(end, |prefix| PREFIX + prefix.len);
            if end > whole {
                return Err(grpc::not_one_message("a call of this method has one message, and not more\n"));
            }
            let window = self.room(&mut window, whole).await?;
            receiving.get_or_insert_with(|| self.flow.receive());
            self.take(window, &chunk, body)?;
            if prefix.is_none() {
                prefix = Prefix::of(window).transpose()?.map(|prefix| self.possible(prefix)).transpose()?;
            }
        }
        let Some(prefix) = prefix else {
            let words =
                "a call of this method has one message, and this one has none, or not all of its head\n";
            return Err(grpc::not_one_message(words));
        };
        let form = Form { encoding: prefix.encoding(form.encoding)?, ..form };
        match window {
            Some(window) if window.len() == PREFIX + prefix.len => {
                Ok((form, Received { range: PREFIX..window.len(), window }))
            }
            _ => Err(grpc::broken("the call ended before its message did\n")),
        }
    }

    /// The message that is announced, if it can be taken.
    fn possible(&self, prefix: Prefix) -> Result<Prefix, Refused> {
        if prefix.len > self.most.min(self.arena.window_len().saturating_sub(PREFIX)) {
            return Err(Refused::too_large(self.most));
        }
        Ok(prefix)
    }

    /// All of a request's body.
    async fn whole(
        &self,
        body: &mut RecvStream,
        length: Option<usize>,
        form: Form,
    ) -> Result<(Form, Received), Fault> {
        let most = self.most.min(self.arena.window_len());
        if length.is_some_and(|length| length > most) {
            return Err(Refused::too_large(most).into());
        }
        let (mut pace, mut window, mut receiving) = (Pace::new(), None::<Window>, None);
        if let Some(length) = length {
            self.room(&mut window, length.max(1)).await?;
            receiving = Some(self.flow.receive());
        }
        while let Some(chunk) = self.chunk(body, &mut pace).await? {
            let end = window.as_ref().map_or(0, |window| window.len()) + chunk.len();
            if end > most {
                return Err(Refused::too_large(most).into());
            }
            let window = self.room(&mut window, end).await?;
            receiving.get_or_insert_with(|| self.flow.receive());
            self.take(window, &chunk, body)?;
        }
        let window = match window {
            Some(window) => window,
            None => self.arena.try_window(Share::Ingest, 1).map_err(|_| self.gate.no_memory())?,
        };
        Ok((form, Received { range: 0..window.len(), window }))
    }

    /// The next bytes of the body, or its end.
    async fn chunk(&self, body: &mut RecvStream, pace: &mut Pace) -> Result<Option<Bytes>, Refused> {
        let next = poll_fn(|context| body.poll_data(context));
        match timeout_at(pace.deadline(self.settings), next).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(chunk))) => {
                pace.hear(chunk.len());
                Ok(Some(chunk))
            }
            Ok(Some(Err(_reset))) => Err(Refused::new(
                Refusal::Abandoned,
                "the stream was reset before the request was complete\n",
            )),
            Err(_late) => {
                let words = "the body arrived too slowly, or stopped arriving\n";
                Err(Refused::new(Refusal::Timeout, words).retry_after(self.gate.memory_delay()))
            }
        }
    }

    /// The window, able to hold `whole` bytes. While it is waited for, nothing is read from the connection; so
    /// it is waited for only while no other stream has a window that is to be filled from there. Else what is
    /// waited for might be what that one holds.
    async fn room<'w>(
        &self,
        window: &'w mut Option<Window>,
        whole: usize,
    ) -> Result<&'w mut Window, Refused> {
        let granted = match &mut *window {
            Some(window) => window.try_reserve(whole.saturating_sub(window.len())),
            None => self.arena.try_window(Share::Ingest, whole).map(|taken| _ = window.insert(taken)),
        };
        if let Err(NoMemory::Short) = granted {
            let own = usize::from(window.is_some());
            if self.flow.receiving() > own {
                return Err(self.gate.no_memory());
            }
            let _pause = self.flow.pause();
            tokio::select! {
                biased;
                granted = self.wait(window, whole) => granted?,
                () = self.flow.begun() => return Err(self.gate.no_memory()),
            }
        } else {
            granted.map_err(|refused| self.refused(refused))?;
        }
        window.as_mut().ok_or_else(|| self.gate.no_memory())
    }

    async fn wait(&self, window: &mut Option<Window>, whole: usize) -> Result<(), Refused> {
        let wait: Duration = self.settings.memory_wait;
        let granted = match &mut *window {
            Some(window) => timeout(wait, window.reserve(whole.saturating_sub(window.len()))).await,
            None => {
                let taken = timeout(wait, self.arena.window(Share::Ingest, whole)).await;
                taken.map(|taken| taken.map(|taken| _ = window.insert(taken)))
            }
        };
        granted.unwrap_or(Err(NoMemory::Short)).map_err(|refused| self.refused(refused))
    }

    fn refused(&self, refused: NoMemory) -> Refused {
        match refused {
            NoMemory::Never { most, .. } => Refused::too_large(usize::try_from(most).unwrap_or(usize::MAX)),
            NoMemory::Short | NoMemory::Crowded => self.gate.no_memory(),
        }
    }

    /// Copies `chunk` into the window, which has room for it, and lets the peer send as much again.
    fn take(&self, window: &mut Window, chunk: &Bytes, body: &mut RecvStream) -> Result<(), Refused> {
        window.append(chunk.chunk()).map_err(|refused| self.refused(refused))?;
        // It fails only for more than was received.
        let _ = body.flow_control().release_capacity(chunk.len());
        Ok(())
    }
}
