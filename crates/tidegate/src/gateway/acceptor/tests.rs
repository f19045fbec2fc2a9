//! Promises, with sockets of several addresses: each address has its number of connections and leaves the others
//! theirs; who is one too many is told so and when to come back; and what a connection took is given back once,
//! whatever became of it.

use super::*;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream as Client};
use std::time::Instant;
use tidegate_http1::Settings;
use tokio::io::AsyncReadExt as _;

const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps connections until the client ends them, and counts those that were too many.
#[derive(Default)]
struct Keep {
    turned_away: AtomicUsize,
}

impl Serve for Keep {
    async fn serve(&self, _worker: usize, mut stream: TcpStream) -> ConnectionEnd {
        while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        ConnectionEnd::ByClient
    }

    fn count_turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    fn one_too_many(&self) -> Option<Reply> {
        Some(Reply::new(503).retry_after(7).text("too many\n"))
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        if let Some(reply) = self.one_too_many() {
            tidegate_http1::reject(stream, reply, &Settings::default()).await;
        }
    }
}

struct Rig {
    address: SocketAddr,
    door: Arc<ConnectionLimiter>,
    service: Arc<Keep>,
    workers: Arc<Workers>,
}

impl Rig {
    fn new(places: usize, per_peer: Option<u32>) -> Rig {
        Rig::within(places, per_peer, places)
    }

    /// With no more open than `most`.
    fn within(places: usize, per_peer: Option<u32>, most: usize) -> Rig {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "listen.http").unwrap();
        let address = listener.local_addr().unwrap();
        let door =
            ConnectionLimiter::new(ConnectionSlots::new(places)).within(most, LEAVING).with_peers(per_peer);
        let door = Arc::new(door);
        let (service, workers) = (Arc::new(Keep::default()), Arc::new(Workers::start(2).unwrap()));
        let accepting = accept(listener, Arc::clone(&workers), Arc::clone(&door), Arc::clone(&service));
        workers.worker(0).spawn(accepting);
        Rig { address, door, service, workers }
    }

    /// A connection from 127.0.0.`host`.
    fn connect(&self, host: u8) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.bind(&SocketAddr::from((peer(host), 0)).into()).unwrap();
        socket.connect(&self.address.into()).unwrap();
        let client = Client::from(socket);
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// One that is let in.
    fn enters(&self, host: u8) -> Client {
        let before = self.door.open();
        let client = self.connect(host);
        until(|| self.door.open() == before + 1);
        client
    }

    /// One that is not; what it is told.
    fn refused(&self, host: u8) -> String {
        let before = self.service.turned_away.load(Relaxed);
        let mut client = self.connect(host);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let (mut told, mut end) = ([0; 4096], 0);
        loop {
            match client.read(&mut told[end..]).unwrap() {
                0 => break,
                read => end += read,
            }
        }
        assert_eq!(self.service.turned_away.load(Relaxed), before + 1);
        String::from_utf8_lossy(&told[..end]).into_owned()
    }

    /// Waits until `count` connections are open.
    fn has_open(&self, count: usize) {
        until(|| self.door.open() == count);
    }

    /// How many more connections this address may have.
    fn free(&self, host: u8) -> usize {
        let seats: Vec<_> =
            (0..100).map_while(|_| self.door.seat(Some(IpAddr::V4(peer(host)))).ok().flatten()).collect();
        let free = seats.len();
        seats.into_iter().for_each(|seat| self.door.leave(Some(seat)));
        free
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.workers.stop();
    }
}

fn peer(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, host)
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain");
        std::thread::yield_now();
    }
}

#[test]
fn each_address_has_its_number_and_leaves_the_others_theirs() {
    let rig = Rig::new(100, Some(2));
    let (first, _second) = (rig.enters(2), rig.enters(2));
    for _ in 0..20 {
        let told = rig.refused(2);
        assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
        assert!(told.to_ascii_lowercase().contains("retry-after: 7\r\n"), "{told}");
        assert!(told.ends_with("too many\n"), "{told}");
    }
    let _other = rig.enters(3);
    drop(first);
    rig.has_open(2);
    let _third = rig.enters(2);
    assert!(rig.refused(2).starts_with("HTTP/1.1 503 "));
}

/// However many places there are, no more are open than may be: each is an open file.
#[test]
fn open_files_are_a_limit_of_their_own() {
    let rig = Rig::within(100, None, 2);
    let (first, _second) = (rig.enters(2), rig.enters(3));
    assert!(rig.refused(4).starts_with("HTTP/1.1 503 "));
    drop(first);
    rig.has_open(1);
    let _third = rig.enters(4);
    assert_eq!((rig.door.most(), rig.door.places.taken()), (2, 2));
}

/// Whoever was let in, turned away for its address, or turned away for want of a place: afterwards each address has
/// exactly what it had before.
#[test]
fn a_connection_releases_its_slots_once() {
    let rig = Rig::new(3, Some(2));
    let clients = [rig.enters(2), rig.enters(2), rig.enters(3)];
    assert!(rig.refused(2).starts_with("HTTP/1.1 503 "), "its address has as many as it may");
    assert!(rig.refused(3).starts_with("HTTP/1.1 503 "), "there is no place for more");
    assert!(rig.refused(4).starts_with("HTTP/1.1 503 "));
    drop(clients);
    rig.has_open(0);
    until(|| rig.door.leaving.load(Relaxed) == 0);
    assert_eq!([2, 3, 4].map(|host| rig.free(host)), [2, 2, 2]);
    assert_eq!(rig.door.places.taken(), 0);
    let _again = [rig.enters(2), rig.enters(2), rig.enters(3)];
    assert_eq!([2, 3, 4].map(|host| rig.free(host)), [0, 1, 2]);
}

/// A number that is changed counts for those who come, and what is open is still counted out.
#[test]
fn another_number_counts_from_the_next_connection_on() {
    let rig = Rig::new(100, None);
    let clients: Vec<_> = (0..5).map(|_| rig.enters(2)).collect();
    rig.door.change_peers(Some(3));
    assert!(rig.refused(2).starts_with("HTTP/1.1 503 "));
    assert_eq!(rig.door.open(), 5, "what is open stays open");
    drop(clients);
    rig.has_open(0);
    assert_eq!(rig.free(2), 3);
    rig.door.change_peers(None);
    assert_eq!(rig.free(2), 100);
}
