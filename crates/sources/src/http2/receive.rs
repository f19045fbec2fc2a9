//! Receives the bodies of requests into windows.

use super::flow::{Body, Flow};
use super::server::Inner;
use crate::body::Received;
use crate::grpc::{self, CallError, PREFIX, Prefix};
use crate::otlp::BodyFormat;
use bytes::{Buf, Bytes};
use h2::RecvStream;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tidegate_admission::{Gate, Permit, Rejection};
use tidegate_arena::{ChargeError as NoMemory, Share, Window};
use tidegate_ledger::Refusal;
use tokio::time::{Instant, timeout};

/// The rest of a refused request's body is charged so much while it is thrown away.
pub(super) const REST_BYTES: u64 = 1 << 10;
/// As much of it is thrown away at most, and for as long, before its stream is reset.
const REST: usize = 256 << 10;
const REST_TIME: Duration = Duration::from_secs(1);

/// Receives a body: memory first, then the bytes, then the peer may send as many more.
pub(super) struct BodyReceiver<'a> {
    pub(super) server: &'a Inner,
    pub(super) flow: &'a Flow,
    pub(super) way: &'a Body<'a>,
    /// The longest body, in bytes.
    pub(super) most: usize,
    /// The request's claims on the limits.
    pub(super) passage: &'a Permit,
}

impl BodyReceiver<'_> {
    /// The one message of a call, and how it turned out to be compressed.
    /// `past` says that the message goes past the codec.
    pub(super) async fn message(
        &self,
        body: &mut RecvStream,
        form: BodyFormat,
        past: bool,
    ) -> Result<(BodyFormat, Received), CallError> {
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
                && past
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
        let form = BodyFormat { encoding: prefix.encoding(form.encoding)?, ..form };
        match window {
            Some(window) if window.len() == PREFIX + prefix.len => {
                Ok((form, Received { range: PREFIX..window.len(), window }))
            }
            _ => Err(grpc::broken("the call ended before its message did\n")),
        }
    }

    fn gate(&self) -> &Gate {
        self.server.http.gate()
    }

    /// The message that is announced, if it can be taken.
    fn possible(&self, prefix: Prefix) -> Result<Prefix, Rejection> {
        if prefix.len > self.most.min(self.server.arena.window_len().saturating_sub(PREFIX)) {
            return Err(Rejection::too_large(self.most));
        }
        self.gate().grow(self.passage, prefix.len)?;
        Ok(prefix)
    }

    /// All of a request's body, behind its head in the window. `length` is that of the body, where the head announces it.
    pub(super) async fn whole(
        &self,
        body: &mut RecvStream,
        head: &[u8],
        length: Option<usize>,
    ) -> Result<Window, Rejection> {
        let most = self.most.min(self.server.arena.window_len().saturating_sub(head.len()));
        let (mut window, mut receiving) = (None::<Window>, None);
        match length {
            Some(length) if length > most => return Err(Rejection::too_large(most)),
            Some(length @ 1..) => {
                self.begin(&mut window, head, length).await?;
                receiving = Some(self.flow.receive());
            }
            _ => {}
        }
        let mut received = 0;
        while let Some(chunk) = self.chunk(body).await? {
            received += chunk.len();
            if received > most {
                return Err(Rejection::too_large(most));
            }
            self.gate().grow(self.passage, received)?;
            let window = self.begin(&mut window, head, received).await?;
            receiving.get_or_insert_with(|| self.flow.receive());
            self.take(window, &chunk, body)?;
        }
        self.begin(&mut window, head, received).await?;
        window.ok_or_else(|| self.gate().no_memory())
    }

    /// The window, able to hold `len` bytes of the body behind the head.
    async fn begin<'w>(
        &self,
        window: &'w mut Option<Window>,
        head: &[u8],
        len: usize,
    ) -> Result<&'w mut Window, Rejection> {
        let window = self.room(window, head.len() + len).await?;
        if window.is_empty() {
            window.append(head).map_err(|refused| self.refused(refused))?;
        }
        Ok(window)
    }

    /// The next bytes of the body that come through the codec, or its end.
    async fn chunk(&self, body: &mut RecvStream) -> Result<Option<Bytes>, Rejection> {
        poll_fn(|context| match body.poll_data(context) {
            Poll::Ready(None) => Poll::Ready(Ok(None)),
            Poll::Ready(Some(Ok(chunk))) => {
                self.way.hear(chunk.len());
                Poll::Ready(Ok(Some(chunk)))
            }
            Poll::Ready(Some(Err(_reset))) => Poll::Ready(Err(Rejection::new(
                Refusal::Abandoned,
                "the stream was reset before the request was complete\n",
            ))),
            Poll::Pending => self.way.poll_late(context, &self.server.settings).map(|()| {
                let words = "the body arrived too slowly, or stopped arriving\n";
                Err(Rejection::new(Refusal::Timeout, words).retry_after(self.gate().memory_delay()))
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
    ) -> Result<&'w mut Window, Rejection> {
        let granted = match &mut *window {
            Some(window) => window.try_reserve(whole.saturating_sub(window.len())),
            None => self.server.arena.try_window(Share::Ingest, whole).map(|taken| _ = window.insert(taken)),
        };
        if let Err(NoMemory::Short) = granted {
            let refused = self.gate().memory_rejection(NoMemory::Short, whole, 0, whole / 2);
            if refused.reason == Refusal::TooLarge {
                return Err(refused);
            }
            let own = usize::from(window.is_some());
            if self.flow.receiving() > own {
                return Err(self.gate().no_memory());
            }
            let _pause = self.flow.pause();
            tokio::select! {
                biased;
                granted = self.wait(window, whole) => granted?,
                () = self.flow.begun() => return Err(self.gate().no_memory()),
            }
        } else {
            granted.map_err(|refused| self.refused(refused))?;
        }
        window.as_mut().ok_or_else(|| self.gate().no_memory())
    }

    async fn wait(&self, window: &mut Option<Window>, whole: usize) -> Result<(), Rejection> {
        let wait: Duration = self.server.settings.memory_wait;
        let granted = match &mut *window {
            Some(window) => timeout(wait, window.reserve(whole.saturating_sub(window.len()))).await,
            None => {
                let taken = timeout(wait, self.server.arena.window(Share::Ingest, whole)).await;
                taken.map(|taken| taken.map(|taken| _ = window.insert(taken)))
            }
        };
        granted.unwrap_or(Err(NoMemory::Short)).map_err(|refused| self.refused(refused))
    }

    fn refused(&self, refused: NoMemory) -> Rejection {
        match refused {
            NoMemory::Never { most, .. } => Rejection::too_large(usize::try_from(most).unwrap_or(usize::MAX)),
            NoMemory::Short | NoMemory::Crowded => self.gate().no_memory(),
        }
    }

    /// Copies `chunk` into the window, which has room for it, and lets the peer send as much again.
    fn take(&self, window: &mut Window, chunk: &Bytes, body: &mut RecvStream) -> Result<(), Rejection> {
        window.append(chunk.chunk()).map_err(|refused| self.refused(refused))?;
        // It fails only for more than was received.
        let _ = body.flow_control().release_capacity(chunk.len());
        Ok(())
    }
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
