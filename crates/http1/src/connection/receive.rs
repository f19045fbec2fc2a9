//! Receiving a request into its window: memory first, bytes second.

use super::body_deadlines::BodyDeadlines;
use super::body_receiver::{BodyRange, BodyReceiver, ReceiveStep};
use super::timed_stream::ReadOutcome;
use super::{Connection, ReceiveError};
use crate::head::{Framing, HeadScanner, ScanProgress};
use crate::refusal::Refusal;
use crate::service::Service;
use crate::stream::Stream;
use std::pin::pin;
use tidegate_arena::{ChargeError, PAGE, Window, rounded};
use tokio::time::Instant;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl<S: Service, T: Stream> Connection<'_, '_, S, T> {
    /// Takes a window with about `hint` bytes, or a page where memory is short, waiting for that if need
    /// be.
    pub(super) async fn window(&mut self, hint: usize, at_once: bool) -> Result<Window, Refusal> {
        let (arena, share) = (&self.server.arena, self.server.settings.share);
        match arena.try_window(share, hint).or_else(|_| arena.try_window(share, PAGE)) {
            Ok(window) => return Ok(window),
            Err(ChargeError::Short) if !at_once => {}
            Err(_) => return Err(Refusal::Memory),
        }
        let deadline = Instant::now() + self.server.settings.memory_wait;
        let waiting = pin!(arena.window(share, PAGE));
        match self.link.within(waiting, deadline).await {
            Some(Ok(window)) => Ok(window),
            _ => Err(Refusal::Memory),
        }
    }

    /// Charges what is missing for `more` bytes behind the filled ones.
    pub(super) async fn reserve(&mut self, window: &mut Window, more: usize) -> Result<(), Refusal> {
        match window.try_reserve(more) {
            Err(ChargeError::Short) => {}
            answer => return answer.map_err(refusal_of),
        }
        let deadline = Instant::now() + self.server.settings.memory_wait;
        let waiting = pin!(window.reserve(more));
        match self.link.within(waiting, deadline).await {
            Some(answer) => answer.map_err(refusal_of),
            None => Err(Refusal::Memory),
        }
    }

    /// Receives a head. Returns where it begins and ends in the window.
    pub(super) async fn receive_head(&mut self, window: &mut Window) -> Result<(usize, usize), ReceiveError> {
        let deadline = Instant::now() + self.server.settings.head;
        let mut scan = HeadScanner::default();
        // A read needs this buffer after one that was too small.
        let mut room = 0;
        loop {
            let progress = scan.advance(window, self.server.settings.max_head)?;
            if let ScanProgress::Complete { start, end } = progress {
                return Ok((start, end));
            }
            if room == 0 {
                self.shrink(window);
            }
            if window.spare() < room.max(1) {
                self.reserve(window, room.max(PAGE)).await?;
            }
            match self.link.read(window.spare_mut(), deadline).await? {
                ReadOutcome::Bytes(read) => {
                    window.advance(read);
                    room = 0;
                }
                ReadOutcome::Short(needed) => room = needed,
                ReadOutcome::End => return Err(Refusal::Truncated.into()),
                ReadOutcome::Late => return Err(Refusal::HeadTooSlow.into()),
            }
        }
    }

    /// Moves half a request to as few pages as hold it: whoever stalls here holds no more.
    fn shrink(&self, window: &mut Window) {
        if window.charged() <= rounded(window.len() + 1) {
            return;
        }
        let small = self.server.arena.try_window(self.server.settings.share, window.len() + 1);
        if let Ok(mut small) = small
            && small.charged() < window.charged()
            && small.append(window).is_ok()
        {
            *window = small;
        }
    }

    /// Receives the body behind the head. What was received of it with the head is in the window.
    pub(super) async fn receive_body(
        &mut self,
        window: &mut Window,
        framing: &Framing,
        max_body: usize,
        patient: bool,
        ticket: &mut S::RequestState,
    ) -> Result<BodyRange, ReceiveError> {
        let mut intake = BodyReceiver::new(framing, max_body, self.server.arena.window_len())?;
        // A client that has begun to send needs no telling.
        let awaits_telling = framing.expects && window.len() == framing.head;
        let mut pace = None;
        // A read needs this buffer after one that was too small.
        let mut short = 0;
        loop {
            let room = match intake.step(window)? {
                ReceiveStep::Done(extent) => return Ok(extent),
                ReceiveStep::More { room } => room,
            };
            if patient && pace.is_none() {
                // The last request's buffer is larger than a new one needs.
                self.shrink(window);
            }
            let body = window.len().saturating_sub(framing.head).saturating_add(room);
            if room > 0 && !self.server.service.may_grow(ticket, body) {
                return Err(Refusal::Memory.into());
            }
            self.reserve(window, room.max(short)).await?;
            if pace.is_none() && awaits_telling {
                let deadline = Instant::now() + self.server.settings.write;
                self.link.write_all(CONTINUE, deadline).await?;
            }
            // The time counts from when there is memory to read into.
            let pace = pace.get_or_insert_with(|| {
                if patient { BodyDeadlines::with_timeouts() } else { BodyDeadlines::new() }
            });
            let deadline = pace.deadline(&self.server.settings);
            match self.link.read(window.spare_mut(), deadline).await? {
                ReadOutcome::Bytes(read) => {
                    window.advance(read);
                    short = 0;
                    pace.extend(read);
                }
                ReadOutcome::Short(needed) => short = needed,
                ReadOutcome::End => return Err(Refusal::Truncated.into()),
                ReadOutcome::Late => return Err(Refusal::BodyTooSlow.into()),
            }
        }
    }
}

fn refusal_of(refused: ChargeError) -> Refusal {
    match refused {
        ChargeError::Never { most, .. } => {
            Refusal::BodyTooLarge { limit: usize::try_from(most).unwrap_or(usize::MAX) }
        }
        ChargeError::Short | ChargeError::Crowded => Refusal::Memory,
    }
}
