//! Connections that do nothing give way to those that come: so that idle ones, however many, never keep a probe out.
//!
//! The stream reveals a connection's state: between two requests the codec waits until it is readable, within a
//! request it reads, and during a request it does neither. To free a slot, the longest idle connection is told that
//! its peer has closed it, which it handles as usual. A request that has arrived meanwhile is still served.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tidegate_http1::Stream;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// The connections of a listener, and what each is at.
#[derive(Debug, Default)]
pub(super) struct IdleConnections {
    all: Mutex<Vec<Arc<Mutex<Activity>>>>,
    /// Counts changes, so that the oldest can be found.
    changes: AtomicU64,
    /// A connection has begun to wait for its peer.
    waits: Notify,
}

/// The state of a connection.
#[derive(Debug)]
struct Activity {
    state: ConnectionState,
    since: u64,
    /// Its number.
    turn: u64,
    /// Wakes its task, where that waits for its peer.
    waker: Option<Waker>,
    /// It is to end as soon as its peer lets it wait.
    is_evicted: bool,
}

/// In the order in which they have to give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionState {
    /// Its peer sends nothing.
    Idle,
    /// Its peer has begun something and does not go on.
    Receiving,
    /// Its peer does not take its answer.
    Sending,
    /// A request is being served.
    Busy,
}

impl IdleConnections {
    /// Numbers a connection, in the order in which they come.
    pub(super) fn turn(&self) -> u64 {
        self.changes.fetch_add(1, Relaxed) + 1
    }

    /// Has the connection end that has waited for its peer the longest, of those that came before the one with the number
    /// `turn`: so those that come at once do not end each other's. Where none waits yet, since its task has not begun,
    /// the first that does.
    pub(super) async fn evict_before(&self, turn: u64) {
        loop {
            // Told of what begins to wait from here on, whenever it is polled.
            let waits = self.waits.notified();
            if self.evict(turn) {
                return;
            }
            waits.await;
        }
    }

    /// Says whether one waited.
    fn evict(&self, turn: u64) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.iter().filter_map(|activity| {
            let at = lock(activity);
            let may_end = at.state != ConnectionState::Busy && !at.is_evicted && at.turn < turn;
            may_end.then_some(((at.state, at.since), activity))
        });
        let Some((_, activity)) = waiting.min_by_key(|(order, _)| *order) else { return false };
        let mut at = lock(activity);
        at.is_evicted = true;
        if let Some(waker) = at.waker.take() {
            waker.wake();
        }
        true
    }
}

fn lock(activity: &Mutex<Activity>) -> MutexGuard<'_, Activity> {
    activity.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stream of a connection that may have to give way.
pub(super) struct Evictable {
    stream: TcpStream,
    activity: Arc<Mutex<Activity>>,
    connections: Arc<IdleConnections>,
}

impl Evictable {
    /// `turn` is its [number](IdleConnections::turn).
    pub(super) fn new(stream: TcpStream, connections: &Arc<IdleConnections>, turn: u64) -> Evictable {
        let since = connections.changes.fetch_add(1, Relaxed);
        let activity = Activity { state: ConnectionState::Idle, since, turn, waker: None, is_evicted: false };
        let activity = Arc::new(Mutex::new(activity));
        connections.all.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&activity));
        connections.waits.notify_waiters();
        Evictable { stream, activity, connections: Arc::clone(connections) }
    }

    /// Notes what a poll has come to; where it waits, says whether that is over.
    fn note<T>(&self, polled: &Poll<T>, state: ConnectionState, context: &Context<'_>) -> bool {
        let mut at = lock(&self.activity);
        let state = if polled.is_ready() { ConnectionState::Busy } else { state };
        if at.state != state {
            at.state = state;
            at.since = self.connections.changes.fetch_add(1, Relaxed);
            if state != ConnectionState::Busy {
                self.connections.waits.notify_waiters();
            }
        }
        at.waker = polled.is_pending().then(|| context.waker().clone());
        polled.is_pending() && at.is_evicted
    }
}

impl Drop for Evictable {
    fn drop(&mut self) {
        let mut all = self.connections.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|activity| !Arc::ptr_eq(activity, &self.activity));
    }
}

impl Stream for Evictable {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.stream.poll_readable(context);
        // It will be read from, and that says that there is nothing more.
        if self.note(&polled, ConnectionState::Idle, context) { Poll::Ready(Ok(())) } else { polled }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let polled = self.stream.poll_read(context, buffer);
        if self.note(&polled, ConnectionState::Receiving, context) { Poll::Ready(Ok(0)) } else { polled }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = self.stream.poll_write(context, bytes);
        let is_over = self.note(&polled, ConnectionState::Sending, context);
        if is_over { Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())) } else { polled }
    }

    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_closed(context)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_end(context)
    }
}

#[cfg(test)]
mod tests;
