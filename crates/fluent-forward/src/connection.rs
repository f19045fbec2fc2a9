//! One connection: reads messages, appends their records, acknowledges.
//!
//! A connection that has nothing to say holds no memory. When bytes come it takes a batch first, which waits while the journal
//! accepts nothing, and then a buffer for the message: so a peer waits with its data, and nothing is held for it. While it
//! holds a part of a message it waits for memory and for the peer only for so long, and then closes: clients send again what
//! was not acknowledged, or could not be written. So no two connections wait for each other for ever.

mod batches;
mod gunzip;

use crate::handshake::{Handshake, HandshakeError, MAX_PING, Nonces, put_ack};
use crate::message::{Message, MessageError, Packing};
use crate::msgpack::{MsgpackError, Scan};
use crate::service::Shared;
use batches::{BatchOutcome, BatchWriter, Position};
use gunzip::Gunzip;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{ChargeError, GROWTH_STEP, PAGE, Share, Window};
use tidegate_journal::Checkpoints;
use tidegate_ledger::Refusal;
use tidegate_log_intake::{IntakeError, Stopping, Stream, read, readable, write_all};
use tokio::time::{Instant, timeout};

/// How long a connection that holds a part of a message waits for more memory.
const MEMORY_PATIENCE: Duration = Duration::from_secs(10);
/// The longest batch that a connection encodes at a time, in bytes.
const MAX_BATCH: usize = 1 << 20;

/// One connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    stream: Box<dyn Stream>,
    peer: Option<SocketAddr>,
    /// A batch that is not begun.
    batch: Option<Window>,
    /// Acknowledgements of messages that are encoded: they are sent once the batch is durable.
    acks: Vec<u8>,
    ack_count: u64,
    message_count: u64,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The gateway stops, or the client has closed it.
    #[error("closed")]
    Closed,
    #[error(transparent)]
    Stream(#[from] io::Error),
    #[error("the client took too long")]
    Timeout,
    #[error("there was no memory for a message")]
    Memory,
    #[error("a message is longer than `max_body`, or than the memory allows")]
    TooLong,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("a message cannot be decompressed")]
    Gzip,
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

impl From<Stopping> for End {
    fn from(_: Stopping) -> End {
        End::Closed
    }
}

impl From<MsgpackError> for End {
    fn from(error: MsgpackError) -> End {
        End::Message(error.into())
    }
}

impl From<ChargeError> for End {
    fn from(_: ChargeError) -> End {
        End::Memory
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, stream: Box<dyn Stream>, peer: Option<SocketAddr>) -> Connection {
        Connection { shared, stream, peer, batch: None, acks: Vec::new(), ack_count: 0, message_count: 0 }
    }

    /// Serves the connection to its end.
    pub(crate) async fn serve(mut self) {
        let Err(end) = Box::pin(self.serve_to_end()).await;
        let Shared { intake, meters, .. } = &*self.shared;
        match &end {
            End::Closed | End::Stream(_) | End::Timeout => return,
            End::Memory => {
                intake.refuse(Refusal::Memory, 1);
                return;
            }
            End::Handshake(_) => intake.refuse(Refusal::Unauthorized, 1),
            End::TooLong => intake.refuse(Refusal::TooLarge, 1),
            End::Message(_) | End::Gzip => intake.refuse(Refusal::Malformed, 1),
        }
        let count = match end {
            End::Handshake(_) => meters.count_failed_handshake(),
            _ => meters.count_malformed(),
        };
        // The first, and then ever fewer of them.
        if count.is_power_of_two() {
            let peer = self.peer.map(|peer| peer.ip().to_string());
            tracing::warn!(peer, count, reason = %end, "closed a connection of the source `fluent_forward`");
        }
    }

    async fn serve_to_end(&mut self) -> Result<std::convert::Infallible, End> {
        let shared = Arc::clone(&self.shared);
        if shared.settings.authentication.is_some() {
            Box::pin(self.authenticate()).await?;
        }
        loop {
            tokio::select! {
                biased;
                () = shared.intake.shutdown().begun() => return Err(End::Closed),
                ready = readable(&mut *self.stream) => ready?,
            }
            self.batch = Some(shared.intake.window(GROWTH_STEP).await?);
            let arena = shared.intake.arena();
            let buffer = timeout(MEMORY_PATIENCE, arena.window(Share::Ingest, GROWTH_STEP)).await;
            let outcome = Box::pin(self.read_messages(buffer.map_err(|_| End::Memory)??)).await;
            self.batch = None;
            outcome?;
        }
    }

    /// Reads and appends messages until nothing of one is left.
    async fn read_messages(&mut self, mut buffer: Window) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        // The time for a message, not for a part of it: what this side waits for does not count.
        let mut patience = shared.settings.timeout;
        let mut scan = Scan::default();
        loop {
            let began = Instant::now();
            let len = tokio::select! {
                biased;
                () = shared.intake.shutdown().begun() => return Err(End::Closed),
                received = timeout(patience, read(&mut *self.stream, buffer.spare_mut())) => {
                    received.map_err(|_| End::Timeout)??
                }
            };
            if len == 0 {
                return Err(End::Closed);
            }
            buffer.advance(len);
            patience = patience.saturating_sub(began.elapsed());
            let mut done = 0;
            let scanned = loop {
                match scan.advance(buffer.get(done..).unwrap_or_default()) {
                    Ok(Some(len)) => (done, scan) = (done + len, Scan::default()),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            // The messages before an error are whole.
            Box::pin(self.append_all(buffer.get(..done).unwrap_or_default())).await?;
            scanned?;
            let left = buffer.len() - done;
            if left == 0 {
                return Ok(());
            }
            if done > 0 {
                patience = shared.settings.timeout;
            }
            buffer.copy_within(done.., 0);
            buffer.truncate(left);
            let max = shared.settings.max_message;
            if scan.least().max(left as u64) > max as u64 {
                return Err(End::TooLong);
            }
            // TLS gives a whole record or nothing.
            if buffer.spare() < GROWTH_STEP / 2 {
                let more = left.min(max).max(GROWTH_STEP).min(buffer.spare() + self.growth(&buffer));
                if more < GROWTH_STEP / 2 {
                    // Waiting is no use: what is missing is held by this connection.
                    return Err(End::TooLong);
                }
                timeout(MEMORY_PATIENCE, buffer.reserve(more)).await.map_err(|_| End::Memory)??;
            }
        }
    }

    /// By how many bytes the buffer of a message could grow, beside a batch of its records, if no other connection held memory.
    /// A message for whose batches there is no room would be accepted in part, again and again.
    fn growth(&self, buffer: &Window) -> usize {
        let arena = self.shared.intake.arena();
        let held = buffer.len() + buffer.spare();
        let most = usize::try_from(arena.ceiling(Share::Ingest)).unwrap_or(usize::MAX);
        let batch = MAX_BATCH.max(self.one_record_batch());
        let growth = most.saturating_sub(held + batch).min(arena.window_len().saturating_sub(held));
        growth / PAGE * PAGE
    }

    /// The longest batch of one record, in bytes.
    fn one_record_batch(&self) -> usize {
        let Shared { settings, intake, .. } = &*self.shared;
        settings.max_record.saturating_mul(2).min(intake.largest_batch())
    }

    /// Appends the records of these messages, which are whole, and acknowledges the messages.
    async fn append_all(&mut self, messages: &[u8]) -> Result<(), End> {
        let mut position = Position::default();
        while position.message < messages.len() {
            let rest = messages.get(position.message..).unwrap_or_default();
            let mut cursor = crate::msgpack::Cursor::new(rest);
            let bytes = cursor.value()?;
            let message = Message::read(bytes)?;
            match message {
                Some(message) if message.packing == Packing::Gzip => {
                    Box::pin(self.append_compressed(&message)).await?;
                    self.finish_message(message.chunk);
                    position.message += bytes.len();
                }
                _ => position = Box::pin(self.append_batch(messages, position)).await?,
            }
            self.acknowledge().await?;
        }
        Ok(())
    }

    /// Appends as many records as fit in a batch, from `from` on to the first message that is compressed: where to go on.
    async fn append_batch(&mut self, messages: &[u8], from: Position) -> Result<Position, End> {
        let left = messages.len().saturating_sub(from.message);
        let encode = |writer: BatchWriter<'_, '_>| batches::encode(writer, messages, from);
        let outcome = self.append_encoded(left, encode).await?;
        outcome.finished.into_iter().for_each(|chunk| self.finish_message(chunk));
        Ok(outcome.next)
    }

    /// Appends the records of a message in gzip, a part at a time.
    async fn append_compressed(&mut self, message: &Message<'_>) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        let arena = shared.intake.arena();
        let gunzip = Gunzip::new(arena, message.entries, shared.settings.max_message);
        let mut gunzip = Box::pin(gunzip).await?;
        Box::pin(gunzip.verify()).await?;
        while gunzip.fill().await? {
            let entries = gunzip.decoded();
            let mut from = 0;
            loop {
                let rest = entries.get(from..).unwrap_or_default();
                let encode = |writer: BatchWriter<'_, '_>| batches::encode_entries(writer, message.tag, rest);
                let outcome = self.append_encoded(rest.len(), encode).await?;
                from += outcome.next.entry;
                if outcome.next.entry == 0 {
                    break;
                }
            }
            gunzip.consume(from)?;
        }
        Ok(())
    }

    /// All of a message is durable.
    fn finish_message(&mut self, chunk: Option<&[u8]>) {
        self.message_count += 1;
        if let Some(chunk) = chunk {
            put_ack(&mut self.acks, chunk);
            self.ack_count += 1;
        }
    }

    /// Encodes a batch of about `len` bytes of messages and appends it, as often as it takes.
    async fn append_encoded<'m>(
        &mut self,
        len: usize,
        encode: impl Fn(BatchWriter<'_, '_>) -> Result<BatchOutcome<'m>, MsgpackError>,
    ) -> Result<BatchOutcome<'m>, End> {
        let shared = Arc::clone(&self.shared);
        let intake = &shared.intake;
        let (mut least, mut max_items) = (1, u32::MAX);
        let mut wanted = len.saturating_mul(2).clamp(GROWTH_STEP, MAX_BATCH);
        loop {
            let mut window = self.window(least, wanted).await?;
            let size = window.spare();
            let mut outcome = encode(BatchWriter::new(&shared, window.spare_mut(), max_items))?;
            if outcome.items == 0 && outcome.is_full {
                let most = self.one_record_batch();
                // The window may be the small one that was taken before the message.
                if size < most {
                    wanted = wanted.max(size).saturating_mul(2).min(most);
                    least = wanted;
                    continue;
                }
                outcome.pass_over();
            }
            if outcome.items == 0 {
                self.batch = Some(window);
            } else {
                window.advance(outcome.len);
                match Box::pin(intake.append(outcome.batch(window), Checkpoints::default())).await {
                    Ok(()) => {}
                    Err(IntakeError::Stopping(stopping)) => return Err(stopping.into()),
                    Err(IntakeError::TooLarge) if outcome.items > 1 => {
                        max_items = outcome.items / 2;
                        continue;
                    }
                    Err(IntakeError::TooLarge) => outcome.too_large += 1,
                    // Also after the shutdown: a client that asks for no acknowledgement does not send again what was
                    // read, and the stop has a deadline.
                    Err(IntakeError::Retry(after)) => {
                        tokio::time::sleep(after).await;
                        continue;
                    }
                }
            }
            intake.refuse(Refusal::TooLarge, outcome.too_large);
            intake.refuse(Refusal::Malformed, outcome.malformed);
            return Ok(outcome);
        }
    }

    /// Memory for a batch: that taken before the message, if it has at least `least` bytes, or else up to `wanted` bytes.
    async fn window(&mut self, least: usize, wanted: usize) -> Result<Window, End> {
        let taken = self.batch.take().filter(|batch| batch.spare() >= least);
        if let Some(batch) = taken {
            return Ok(batch);
        }
        let intake = &self.shared.intake;
        // Where memory is short, the rest of a message goes in small batches, of the share that a sink cannot hold all of: it may
        // be waiting for what this message holds.
        let least = least.max(GROWTH_STEP);
        let waiting = async {
            match intake.window_beside_message(least, wanted).await {
                // The shutdown began during the wait: from here on it does not end it.
                Err(Stopping) => intake.window_beside_message(least, wanted).await,
                taken => taken,
            }
        };
        Ok(timeout(MEMORY_PATIENCE, Box::pin(waiting)).await.map_err(|_| End::Memory)??)
    }

    /// Sends the acknowledgements of what is durable.
    async fn acknowledge(&mut self) -> Result<(), End> {
        let Shared { settings, intake, meters, .. } = &*self.shared;
        meters.count_messages(std::mem::take(&mut self.message_count));
        if self.acks.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            sent = timeout(settings.timeout, write_all(&mut *self.stream, &self.acks)) => {
                sent.map_err(|_| End::Timeout)??;
            }
            // A client that reads no acknowledgements does not hold up the stop.
            () = intake.shutdown().begun() => return Err(End::Closed),
        }
        // A connection that waits holds no memory.
        self.acks = Vec::new();
        meters.count_acknowledgements(std::mem::take(&mut self.ack_count));
        Ok(())
    }

    /// Agrees on a key with the client.
    async fn authenticate(&mut self) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        let Some(authentication) = &shared.settings.authentication else { return Ok(()) };
        let exchange = async {
            let handshake = Handshake::new(authentication, Nonces::random());
            write_all(&mut *self.stream, &handshake.helo()).await?;
            readable(&mut *self.stream).await?;
            let mut ping = shared.intake.arena().window(Share::Ingest, TLS_RECORD).await?;
            let mut scan = Scan::default();
            let end = loop {
                let received = read(&mut *self.stream, ping.spare_mut()).await?;
                ping.advance(received);
                if received == 0 || ping.len() > MAX_PING {
                    return Err(HandshakeError::NoPing.into());
                }
                match scan.advance(&ping) {
                    Ok(Some(end)) if end == ping.len() => break end,
                    Ok(None) => {}
                    // Nothing may follow before the answer.
                    Ok(Some(_)) | Err(_) => return Err(HandshakeError::NoPing.into()),
                }
            };
            let (pong, outcome) = handshake.pong(ping.get(..end).unwrap_or_default());
            write_all(&mut *self.stream, &pong).await?;
            Ok::<(), End>(outcome?)
        };
        tokio::select! {
            biased;
            () = shared.intake.shutdown().begun() => Err(End::Closed),
            done = timeout(shared.settings.timeout, exchange) => done.map_err(|_| End::Timeout)?,
        }
    }
}

/// The buffer that reading through TLS needs.
const TLS_RECORD: usize = 17 << 10;
