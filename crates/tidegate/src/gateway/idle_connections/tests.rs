//! Promises: idle connections keep nobody out, in whatever state their peers leave them; the oldest goes first; and one
//! whose request is being served stays.

use super::super::acceptor::{ConnectionLimiter, Serve, accept, listen};
use super::super::workers::Workers;
use super::*;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream as Client};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{
    Admitted, Body, ConnectionEnd, Head, Refusal, RefusalContext as Refused, Reply, Server, Service,
    Settings, Shutdown,
};
use tidegate_sources::ConnectionSlots;
use tokio::sync::Semaphore;

const PATIENCE: Duration = Duration::from_secs(60);

/// Answers at once, and under `/wait` when it is told to.
struct Pages {
    go_on: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Service for Pages {
    type RequestState = bool;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<bool>, Reply> {
        Ok(Admitted { max_body: 0, ticket: head.path() == "/wait" })
    }

    async fn answer(&self, waits: bool, _: Body) -> Reply {
        if waits {
            self.waiting.fetch_add(1, Relaxed);
            self.go_on.acquire().await.unwrap().forget();
        }
        Reply::new(200)
    }

    fn refuse(&self, refusal: Refusal, _: Refused<'_, bool>) -> Reply {
        refusal.reply()
    }
}

struct Door {
    server: Arc<Server<Pages>>,
    idle: Arc<IdleConnections>,
}

impl Serve for Door {
    const GIVES_WAY: bool = true;

    async fn serve(&self, _worker: usize, stream: TcpStream) -> ConnectionEnd {
        self.serve_in_turn(0, stream, 0).await
    }

    fn one_too_many(&self) -> Option<Reply> {
        Some(Reply::new(503).text("too many\n"))
    }

    fn count_turned_away(&self) {}

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        tidegate_http1::reject(stream, Reply::new(503).text("too many\n"), &Settings::default()).await;
    }

    fn turn(&self) -> u64 {
        self.idle.turn()
    }

    async fn make_room(&self, turn: u64) {
        self.idle.evict_before(turn).await;
    }

    async fn serve_in_turn(&self, _worker: usize, stream: TcpStream, turn: u64) -> ConnectionEnd {
        let peer = stream.peer_addr().unwrap();
        self.server.serve(Evictable::new(stream, &self.idle, turn), peer).await
    }
}

struct Rig {
    address: SocketAddr,
    workers: Arc<Workers>,
    go_on: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    idle: Arc<IdleConnections>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.workers.stop();
    }
}

fn rig(places: usize) -> Rig {
    let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "listen.admin").unwrap();
    let address = listener.local_addr().unwrap();
    let workers = Arc::new(Workers::start(2).unwrap());
    let pages = Pages { go_on: Arc::new(Semaphore::new(0)), waiting: Arc::default() };
    let (go_on, waiting) = (Arc::clone(&pages.go_on), Arc::clone(&pages.waiting));
    let arena = Arena::new(4 << 20, Floors::NONE, 1 << 16, 64, 64).unwrap();
    let settings = Settings { idle: PATIENCE * 2, head: PATIENCE * 2, ..Settings::default() };
    let server = Server::new(pages, settings, arena, Shutdown::new());
    let idle = Arc::new(IdleConnections::default());
    let door = Arc::new(Door { server, idle: Arc::clone(&idle) });
    let doorkeeper = Arc::new(ConnectionLimiter::new(ConnectionSlots::new(places)));
    workers.worker(0).spawn(accept(listener, Arc::clone(&workers), doorkeeper, door));
    Rig { address, workers, go_on, waiting, idle }
}

impl Rig {
    fn connect(&self) -> Client {
        let client = Client::connect(self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// Waits until so many requests are being served.
    fn serves(&self, expected: usize) {
        let until = std::time::Instant::now() + PATIENCE;
        while self.waiting.load(Relaxed) < expected {
            assert!(std::time::Instant::now() < until, "{} of {expected}", self.waiting.load(Relaxed));
            std::thread::yield_now();
        }
    }

    /// Waits until so many connections are in these states.
    fn has(&self, expected: &[(ConnectionState, usize)]) {
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            let states: Vec<ConnectionState> =
                self.idle.all.lock().unwrap().iter().map(|at| lock(at).state).collect();
            let count = |state| states.iter().filter(|known| **known == state).count();
            if expected.iter().all(|(state, many)| count(*state) == *many) {
                return;
            }
            assert!(std::time::Instant::now() < until, "{states:?}");
            std::thread::yield_now();
        }
    }
}

/// Asks, and gives the status.
fn ask(client: &mut Client, path: &str) -> String {
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    status(client)
}

fn status(client: &mut Client) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(client.read(&mut byte).unwrap(), 1, "ended: {}", String::from_utf8_lossy(&answer));
        answer.push(byte[0]);
    }
    String::from_utf8_lossy(&answer[9..12]).into_owned()
}

#[test]
fn idle_connections_give_way_to_new_ones() {
    let rig = rig(4);
    // As many as there are places, again and again: silent ones, those that have been served, and halves of heads.
    let mut old = Vec::new();
    for kind in 0..12 {
        let mut client = rig.connect();
        match kind % 3 {
            0 => {}
            1 => assert_eq!(ask(&mut client, "/"), "200"),
            _ => client.write_all(b"GET / HTTP/1.1\r\nHo").unwrap(),
        }
        old.push(client);
        let mut probe = rig.connect();
        assert_eq!(ask(&mut probe, "/health"), "200");
    }
}

/// Also when they all come at once, and most have not begun to wait when the next is accepted.
#[test]
fn many_simultaneous_connections_give_way_to_new_ones() {
    let rig = rig(4);
    // Fewer in all than may wait at a time.
    for _ in 0..5 {
        let _idle: Vec<Client> = (0..40).map(|_| rig.connect()).collect();
        assert_eq!(ask(&mut rig.connect(), "/health"), "200");
    }
}

#[test]
fn the_oldest_idle_connection_is_closed_first() {
    let rig = rig(3);
    let mut served = rig.connect();
    served.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    rig.serves(1);
    let mut older = rig.connect();
    rig.has(&[(ConnectionState::Idle, 1)]);
    let mut newer = rig.connect();
    rig.has(&[(ConnectionState::Idle, 2)]);
    let mut probe = rig.connect();
    assert_eq!(ask(&mut probe, "/"), "200");
    assert_eq!(older.read(&mut [0]).unwrap(), 0, "it is told so by the end");
    assert_eq!(ask(&mut newer, "/"), "200");
    // Where all are served there is no room.
    for client in [&mut probe, &mut newer] {
        client.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    rig.serves(3);
    assert_eq!(ask(&mut rig.connect(), "/"), "503");
    rig.go_on.add_permits(3);
    for client in [&mut served, &mut probe, &mut newer] {
        assert_eq!(status(client), "200");
    }
}
