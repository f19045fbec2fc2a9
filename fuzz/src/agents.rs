//! A control plane on a state in memory, and the connection of an agent.

use crate::folder::Folder;
use crate::pipe::pipe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Floors};
use tidegate_fleet::{EmbeddedStore, Store as _};
use tidegate_http1::{Server, Service, Settings, Shutdown};
use tokio::runtime::{Builder, Runtime};

/// Connections until the state is made anew: agents are made up all the time.
const CONNECTIONS: usize = 500;

const SOON: Duration = Duration::from_secs(10);

/// A control plane.
pub struct Plane<S: Service> {
    runtime: Runtime,
    server: Arc<Server<S>>,
    store: EmbeddedStore,
    connections: usize,
    _folder: Folder,
}

pub fn arena() -> Arena {
    Arena::new(16 << 20, Floors::NONE, 2 << 20, 64, 64).expect("memory")
}

impl<S: Service> Plane<S> {
    /// One with the service that `make` gives.
    pub fn new(make: impl AsyncFnOnce(EmbeddedStore, &Folder, Arena) -> S) -> Plane<S> {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let folder = Folder::empty();
        let store = EmbeddedStore::open(&folder.path().join("state.redb")).expect("a state");
        let requests = arena();
        let service = runtime.block_on(make(store.clone(), &folder, requests.clone()));
        let server = Server::new(service, Settings::default(), requests, Shutdown::new());
        Plane { runtime, server, store, connections: 0, _folder: folder }
    }

    /// What a client is answered that sends these bytes, so many at a time, and then no more.
    pub fn talk(&mut self, bytes: &[u8], size: usize) -> Vec<u8> {
        self.connections += 1;
        let (client, server) = pipe();
        bytes.chunks(size).for_each(|piece| client.send(piece));
        client.close();
        self.runtime.block_on(self.server.serve(server, ([192, 0, 2, 1], 4000).into()));
        // What the thread of the state has written it gives back a moment later.
        let (held, begun) = (
            || self.server.arena().usage().shares.iter().map(|share| share.used).sum::<u64>(),
            Instant::now(),
        );
        while held() > 0 {
            assert!(begun.elapsed() < SOON, "a connection that has ended holds {} bytes", held());
            std::thread::yield_now();
        }
        client.answers()
    }

    /// Itself, as long as it is small.
    pub fn kept(self) -> Option<Plane<S>> {
        if self.connections < CONNECTIONS {
            return Some(self);
        }
        assert!(self.store.close(Instant::now() + Duration::from_secs(60)), "the state is written");
        None
    }
}
