//! One request over HTTP/2: its body into a window, its message out of that, and the answer.

use super::answer;
use super::flow::{Body, Flow};
use super::server::Inner;
use crate::clock::Stamp;
use crate::grpc::{self, Fault, PREFIX, Prefix};
use crate::otlp::{Form, LeftOut, Otlp, Received};
use bytes::{Buf, Bytes};
use h2::RecvStream;
use h2::server::SendResponse;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tidegate_admission::{Gate, Passage, Refused};
use tidegate_arena::{Arena, Charge, Refused as NoMemory, Share, Window};
use tidegate_http1::Settings;
use tidegate_ledger::{Open, Refusal};
use tokio::time::{Instant, timeout};

/// What a call is charged beside its window: its task, its stream in the codec, its answer.
pub(super) const BYTES: u64 = 4 << 10;
/// What the rest of a refused request's body is charged while it is thrown away.
pub(super) const REST_BYTES: u64 = 1 << 10;
/// As much of it is thrown away at most, and for as long, before its stream is reset.
const REST: usize = 256 << 10;
const REST_TIME: Duration = Duration::from_secs(1);

/// A request that was let in.
pub(super) struct Start {
    pub(super) open: Open,
    pub(super) form: Form,
    pub(super) kind: Kind,
    /// The length of the body, where the head announces it.
    pub(super) length: Option<usize>,
    pub(super) deadline: Option<Instant>,
    /// Whether it was waited for something before it was let in: its body began to come through the codec then.
    pub(super) has_waited: bool,
    /// What the request's state is charged.
    pub(super) charge: Charge,
    /// What it holds of the limits, until it is answered.
    pub(super) passage: Passage,
}

impl Start {
    /// Whether its message goes past the codec. The codec would miss it where a length is announced.
    pub(super) fn goes_past(&self) -> bool {
        self.kind == Kind::Grpc && self.length.is_none() && !self.has_waited
    }
}

/// How a request is framed and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Grpc,
    Http,
}

/// Serves one request to its answer.
pub(super) async fn serve(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    start: Start,
    way: Body<'_>,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
) {
    let (form, kind) = (start.form, start.kind);
    let (outcome, charge) = outcome(server, otlp, flow, start, &way, &mut body).await;
    let is_refused = outcome.is_err();
    match kind {
        Kind::Grpc => answer::grpc(&mut respond, outcome.as_ref()),
        Kind::Http => {
            let outcome = outcome.map(|left_out| answer::response(left_out, form));
            answer::http(&mut respond, outcome.map_err(|fault| fault.refused), form.media);
        }
    }
    if is_refused && kind == Kind::Http {
        discard(&way, body).await;
    }
    flow.keep(charge);
}

/// Throws away what still comes of a body whose request is refused. A stream that is reset at once is taken for a failure
/// by clients that are about to send the next piece, curl 7.88 among them: they never look at the answer.
pub(super) async fn discard(way: &Body<'_>, mut body: RecvStream) {
    let (until, mut left) = (Instant::now() + REST_TIME, REST);
    poll_fn(|context| {
        while let Poll::Ready(next) = body.poll_data(context) {
            let Some(Ok(chunk)) = next else { return Poll::Ready(()) };
            if chunk.len() >= left {
                return Poll::Ready(());
            }
            left -= chunk.len();
            // It fails only for more than was received.
            let _ = body.flow_control().release_capacity(chunk.len());
        }
        way.poll_until(context, until)
    })
    .await;
}

/// What becomes of a request, and the charge that its answer is still to be kept for.
async fn outcome(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    start: Start,
    way: &Body<'_>,
    body: &mut RecvStream,
) -> (Result<LeftOut, Fault>, Charge) {
    let (past, Start { open, form, kind, length, deadline, charge, passage, .. }) =
        (start.goes_past(), start);
    let gate = server.http.gate();
    let most = otlp.max_received();
    let intake = Intake {
        arena: &server.arena,
        settings: &server.settings,
        gate,
        flow,
        way,
        past,
        most,
        passage: &passage,
    };
    let mut exchange = pin!(exchange(server, otlp, &intake, open, form, kind, length, body));
    let outcome = poll_fn(|context| {
        if let Poll::Ready(outcome) = exchange.as_mut().poll(context) {
            return Poll::Ready(outcome);
        }
        let Some(deadline) = deadline else { return Poll::Pending };
        way.poll_until(context, deadline).map(|()| {
            let words = "the deadline that the call came with has passed\n";
            Err(Refused::new(Refusal::Timeout, words).into())
        })
    })
    .await;
    (outcome, charge)
}

#[expect(clippy::too_many_arguments, reason = "what makes up a request")]
async fn exchange(
    server: &Inner,
    otlp: &Otlp,
    intake: &Intake<'_>,
    open: Open,
    form: Form,
    kind: Kind,
    length: Option<usize>,
    body: &mut RecvStream,
) -> Result<LeftOut, Fault> {
    let received = match kind {
        Kind::Grpc => intake.message(body, form).await,
        Kind::Http => intake.whole(body, length, form).await,
    };
    let (form, received) = match received {
        Ok(received) => received,
        Err(fault) => {
            open.refuse(fault.refused.reason);
            return Err(fault);
        }
    };
    let arrived = Stamp::now();
    let outcome = otlp.receive(intake.gate, intake.passage, open, form, received).await;
    server.http.durations().observe(arrived.elapsed_ns());
    Ok(outcome?)
}

/// Receives a body: memory first, then the bytes, then the peer may send as many more.
struct Intake<'a> {
    arena: &'a Arena,
    settings: &'a Settings,
    gate: &'a Gate,
    flow: &'a Flow,
    way: &'a Body<'a>,
    /// Whether the message goes past the codec.
    past: bool,
    most: usize,
    passage: &'a Passage,
}

impl Intake<'_> {
    /// The one message of a call, and how it turned out to be compressed.
    async fn message(&self, body: &mut RecvStream, form: Form) -> Result<(Form, Received), Fault> {
        let (mut window, mut prefix, mut opened) = (None::<Window>, None::<Prefix>, false);
        let mut receiving = None;
        while let Some(chunk) = self.chunk(body).await? {
            if chunk.is_empty() {
                continue;
            }
            let before = window.as_ref().map_or(0, |window| window.len());
            let known = if before == 0 && !opened { Prefix::of(&chunk) } else { None };
            if let Some(known) = known {
                prefix = Some(self.possible(known?)?);
            }
            let end = before + chunk.len();
            let whole = prefix.map_or(end, |prefix| PREFIX + prefix.len);
            if end > whole || opened {
                return Err(grpc::not_one_message("a call of this method has one message, and not more\n"));
            }
            let filled = self.room(&mut window, whole).await?;
            receiving.get_or_insert_with(|| self.flow.receive());
            self.take(filled, &chunk, body)?;
            if prefix.is_none()
                && let Some(known) = Prefix::of(filled)
            {
                let known = self.possible(known?)?;
                self.room(&mut window, PREFIX + known.len).await?;
                prefix = Some(known);
            }
            if let Some(prefix) = prefix
                && self.past
                && let Some(window) = window.take()
            {
                self.way.open(window, PREFIX + prefix.len);
                opened = true;
            }
        }
        if opened {
            window = self.way.close();
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
        self.gate.grow(self.passage, prefix.len)?;
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
        let (mut window, mut receiving) = (None::<Window>, None);
        if let Some(length) = length {
            self.room(&mut window, length.max(1)).await?;
            receiving = Some(self.flow.receive());
        }
        while let Some(chunk) = self.chunk(body).await? {
            let end = window.as_ref().map_or(0, |window| window.len()) + chunk.len();
            if end > most {
                return Err(Refused::too_large(most).into());
            }
            self.gate.grow(self.passage, end)?;
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

    /// The next bytes of the body that come through the codec, or its end.
    async fn chunk(&self, body: &mut RecvStream) -> Result<Option<Bytes>, Refused> {
        poll_fn(|context| match body.poll_data(context) {
            Poll::Ready(None) => Poll::Ready(Ok(None)),
            Poll::Ready(Some(Ok(chunk))) => {
                self.way.hear(chunk.len());
                Poll::Ready(Ok(Some(chunk)))
            }
            Poll::Ready(Some(Err(_reset))) => Poll::Ready(Err(Refused::new(
                Refusal::Abandoned,
                "the stream was reset before the request was complete\n",
            ))),
            Poll::Pending => self.way.poll_late(context, self.settings).map(|()| {
                let words = "the body arrived too slowly, or stopped arriving\n";
                Err(Refused::new(Refusal::Timeout, words).retry_after(self.gate.memory_delay()))
            }),
        })
        .await
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
            let refused = self.gate.short_of(NoMemory::Short, whole, 0, whole / 2);
            if refused.reason == Refusal::TooLarge {
                return Err(refused);
            }
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
