//! The acceptor: takes connections and gives each to the least loaded worker, up to a number.

use super::workers::{WorkerSlot, Workers};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_http1::{ConnectionEnd, Reply, reply_and_close};
use tidegate_limit::{ConnectionCounts, CountedConnection};
use tidegate_sources::ConnectionSlots;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Connections that the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 4096;
/// How long to wait when the system has no means for another connection, and how often that is said.
const EXHAUSTED: Duration = Duration::from_millis(50);
const SAID: Duration = Duration::from_secs(60);

/// Listens on `address`.
///
/// # Errors
/// In words: what was tried and what the system said.
pub(crate) fn listen(address: SocketAddr, setting: &str) -> Result<std::net::TcpListener, String> {
    let listen = || -> io::Result<std::net::TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listen().map_err(|error| {
        format!("listening on {address} (`{setting}`): {error}; is another program, or another tidegate, using it?")
    })
}

/// The fate of a connection.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Serves a connection on this worker, from its first byte to its end. Not an `async fn`: each of those on the
    /// way would keep the stream once more in every connection's task.
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ConnectionEnd> + Send;
    /// The answer to one that is too many; none where nothing can be said that would be understood.
    fn one_too_many(&self) -> Option<Reply>;
    /// Counts it.
    fn count_turned_away(&self);
    /// Whether connections that do nothing give way to one that comes when all places are taken.
    const GIVES_WAY: bool = false;
    /// Numbers a connection, in the order in which they come, where they give way.
    fn turn(&self) -> u64 {
        0
    }
    /// Tells a connection that came before this one, and waits for its peer, to end; as soon as there is one.
    fn make_room(&self, _turn: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
    /// Serves a connection of that number to its end, or until it gives way.
    fn serve_in_turn(
        &self,
        worker: usize,
        stream: TcpStream,
        _turn: u64,
    ) -> impl Future<Output = ConnectionEnd> + Send {
        self.serve(worker, stream)
    }
    /// Answers it, once it has sent something.
    fn turn_away(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ()> + Send;
}

/// Connections by number: how many are open, and whether there is a place for one more.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    places: ConnectionSlots,
    /// How many each address may have open; nothing where that does not matter.
    peers: Option<ConnectionCounts>,
    open: AtomicUsize,
    /// How many may be, whatever they take of the memory: each is an open file.
    most: usize,
    /// Of those that are turned away, how many are being told so.
    leaving: AtomicUsize,
    /// How many can be told at a time; more are closed.
    most_leaving: usize,
    /// A place has become free.
    freed: Notify,
}

/// How many connections can be told at a time that they are too many, where nothing else is said.
const LEAVING: usize = 256;
/// How long a connection waits for the place of one that is about to end.
const SOON: Duration = Duration::from_secs(1);
/// How long a connection usually takes to end when it is told to.
const GIVES_WAY_WITHIN: Duration = Duration::from_millis(20);

impl ConnectionLimiter {
    pub(crate) fn new(places: ConnectionSlots) -> ConnectionLimiter {
        let most = places.most();
        ConnectionLimiter {
            places,
            peers: None,
            open: AtomicUsize::default(),
            most,
            leaving: AtomicUsize::default(),
            most_leaving: LEAVING,
            freed: Notify::new(),
        }
    }

    /// The same, with no more than `most` open at a time, and no more than `leaving` being told that they are too many.
    pub(crate) fn within(self, most: usize, leaving: usize) -> ConnectionLimiter {
        ConnectionLimiter { most: most.min(self.most), most_leaving: leaving, ..self }
    }

    /// The same, with a bound for each address.
    pub(crate) fn with_peers(self, most: Option<u32>) -> ConnectionLimiter {
        ConnectionLimiter { peers: Some(ConnectionCounts::new(most)), ..self }
    }

    /// Has another bound for each address from now on, where there is one.
    pub(crate) fn change_peers(&self, most: Option<u32>) {
        if let Some(peers) = &self.peers {
            peers.set_limit(most);
        }
    }

    fn leave(&self, seat: Option<CountedConnection>) {
        if let (Some(seat), Some(peers)) = (seat, &self.peers) {
            peers.remove(seat);
        }
    }

    /// A seat for a connection of `peer`, if it has an address; an error when it has as many as it may.
    fn seat(&self, peer: Option<IpAddr>) -> Result<Option<CountedConnection>, ()> {
        self.peers.as_ref().zip(peer).map(|(peers, peer)| peers.try_add(peer).ok_or(())).transpose()
    }

    /// Counts one that is too many, where it can be told so.
    fn begins_leaving(&self) -> bool {
        let begins = self.leaving.fetch_add(1, Relaxed) < self.most_leaving;
        if !begins {
            self.leaving.fetch_sub(1, Relaxed);
        }
        begins
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Counts a connection in once there is a place for it, and has others give way to it.
    async fn enter_in_turn<S: Serve>(&self, service: &S, turn: u64) {
        let mut is_promised = false;
        while !self.enter() {
            if is_promised {
                // Whether somebody else had that place or it takes longer than usual: another is asked for.
                let _in_time = timeout(GIVES_WAY_WITHIN, self.freed.notified()).await;
                is_promised = false;
            } else {
                tokio::select! {
                    biased;
                    () = self.freed.notified() => {}
                    () = service.make_room(turn) => is_promised = true,
                }
            }
        }
        // Several places that become free while nobody waits are told of once: so each passes it on.
        self.freed.notify_one();
    }

    /// Counts a connection in, where there is a place for it.
    fn enter(&self) -> bool {
        let entered = self.open.fetch_add(1, Relaxed) < self.most && self.places.claim(1);
        if !entered {
            self.open.fetch_sub(1, Relaxed);
        }
        entered
    }
}

/// Accepts from `listener` for as long as the task runs; returns only when it cannot be used at all.
pub(crate) async fn accept<S: Serve>(
    listener: std::net::TcpListener,
    workers: Arc<Workers>,
    door: Arc<ConnectionLimiter>,
    service: Arc<S>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut said: Option<Instant> = None;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error, &mut said).await;
                continue;
            }
        };
        let Ok(stream) = stream.into_std() else { continue };
        let (worker, handle, place) = workers.least_loaded();
        admit(&door, worker, handle, place, stream, Some(peer.ip()), Arc::clone(&service));
    }
}

/// The same from a Unix socket, whose peers have no addresses and no bounds of their own.
pub(crate) async fn accept_unix<S: Serve>(
    listener: std::os::unix::net::UnixListener,
    workers: Arc<Workers>,
    door: Arc<ConnectionLimiter>,
    service: Arc<S>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    let mut said = None;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                pause_after(&error, &mut said).await;
                continue;
            }
        };
        let Ok(stream) = stream.into_std() else { continue };
        // From here on it is a stream like any other: nobody but `accept` asks what kind it is, and the setting that
        // it lacks, no delay, is not needed.
        let stream = std::net::TcpStream::from(OwnedFd::from(stream));
        let (worker, handle, place) = workers.least_loaded();
        admit(&door, worker, handle, place, stream, None, Arc::clone(&service));
    }
}

/// Waits before another try where the system has no means for a connection; `said` is when that was said last.
async fn pause_after(error: &io::Error, said: &mut Option<Instant>) {
    if !is_of_the_connection(error) {
        if said.is_none_or(|said| said.elapsed() >= SAID) {
            *said = Some(Instant::now());
            tracing::warn!(%error, "connections cannot be accepted now; trying again");
        }
        tokio::time::sleep(EXHAUSTED).await;
    }
}

fn admit<S: Serve>(
    door: &Arc<ConnectionLimiter>,
    worker: usize,
    handle: &Handle,
    place: WorkerSlot,
    stream: std::net::TcpStream,
    peer: Option<IpAddr>,
    service: Arc<S>,
) {
    // As small as the socket's number, beside which it lies in the task.
    let number = u32::try_from(worker).unwrap_or(0);
    match door.seat(peer) {
        Ok(seat) if S::GIVES_WAY => {
            let has_place = door.enter();
            // Until it has a place it is one of those that are too many, which it may come to be.
            if has_place || door.begins_leaving() {
                let mut guest =
                    AcceptedConnection { door: Arc::clone(door), seat, has_place, _worker: place };
                let turn = service.turn();
                handle.spawn(async move {
                    let Ok(stream) = TcpStream::from_std(stream) else { return };
                    if guest.has_place || guest.enters_soon(&*service, turn).await {
                        let _ended = Box::pin(service.serve_in_turn(number as usize, stream, turn)).await;
                    } else {
                        service.count_turned_away();
                        service.turn_away(worker, stream).await;
                    }
                });
                return;
            }
            door.leave(seat);
        }
        Ok(seat) if door.enter() => {
            let guest = AcceptedConnection { door: Arc::clone(door), seat, has_place: true, _worker: place };
            handle.spawn(async move {
                // Kept until the end where it is: bound anew it would be in the task twice.
                let _ = &guest;
                let _ = stream.set_nodelay(true);
                // From here on the socket is registered with this worker's reactor.
                if let Ok(stream) = TcpStream::from_std(stream) {
                    let _ended = service.serve(number as usize, stream).await;
                }
            });
            return;
        }
        Ok(seat) => door.leave(seat),
        Err(()) => {}
    }
    service.count_turned_away();
    if door.begins_leaving() {
        let guest =
            AcceptedConnection { door: Arc::clone(door), seat: None, has_place: false, _worker: place };
        handle.spawn(async move {
            let _ = &guest;
            if let Ok(stream) = TcpStream::from_std(stream) {
                service.turn_away(worker, stream).await;
            }
        });
    } else {
        // Too many even to be waited for: told at once, without a task, which a client may miss.
        if let Some(reply) = service.one_too_many() {
            let _told = reply_and_close(stream, &reply);
        }
    }
}

/// A connection's count at the door; dropping it counts it out.
struct AcceptedConnection {
    door: Arc<ConnectionLimiter>,
    seat: Option<CountedConnection>,
    /// Not one that is turned away.
    has_place: bool,
    _worker: WorkerSlot,
}

impl AcceptedConnection {
    /// Counts it in once there is a place for it, which should be soon; says whether there was one.
    async fn enters_soon<S: Serve>(&mut self, service: &S, turn: u64) -> bool {
        self.has_place = timeout(SOON, self.door.enter_in_turn(service, turn)).await.is_ok();
        if self.has_place {
            self.door.leaving.fetch_sub(1, Relaxed);
        }
        self.has_place
    }
}

impl Drop for AcceptedConnection {
    fn drop(&mut self) {
        self.door.leave(self.seat.take());
        if self.has_place {
            self.door.open.fetch_sub(1, Relaxed);
            self.door.places.free(1);
            self.door.freed.notify_one();
        } else {
            self.door.leaving.fetch_sub(1, Relaxed);
        }
    }
}

/// The connection was gone before it was accepted, which says nothing about the next one.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
