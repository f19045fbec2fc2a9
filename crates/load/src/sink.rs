mod arrivals;
mod serve;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

pub use arrivals::{Arrivals, SeriesArrivals};

use crate::model::Timeline;
use crate::target::Target;

/// A remote-write receiver on loopback that checks what arrives, and misbehaves when told to. It runs on a
/// thread of its own and stops when dropped.
#[derive(Debug)]
pub struct VerifyingReceiver {
    address: SocketAddr,
    /// `None` once stopped.
    orders: Option<watch::Sender<BehaviourChange>>,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// How a sink treats requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Checks, records, and answers 204 with the `Written` headers.
    Healthy,
    /// Accepts connections and never answers. Ordered to do otherwise, it closes those it kept waiting,
    /// without having recorded anything of them.
    Stall,
    /// Answers with this status, without recording anything.
    Status {
        /// The status.
        code: u16,
        /// `Retry-After`, in seconds.
        retry_after: Option<u64>,
    },
    /// Nobody listens, and open connections are closed.
    Refuse,
    /// Healthy, but reads bodies at this pace.
    Slow {
        /// Bytes per second and connection.
        bytes_per_second: u64,
    },
    /// Healthy for version 1; answers 415 to version 2.
    OnlyV1,
    /// As receivers that know only version 1 and do not look: answers 204 without the `Written` headers,
    /// and drops what is not version 1.
    Oblivious,
}

/// How closely a sink looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Numbers, order, label sets.
    Everything,
    /// The same, and whether each sample's time is the one that its number has here.
    Timed(Timeline),
    /// Counts requests and bytes and answers at once, for benches: it does not even decompress.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct BehaviourChange {
    number: u64,
    behaviour: Behaviour,
}

#[derive(Debug)]
struct State {
    check: Check,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    arrivals: Arrivals,
    obeyed: u64,
}

/// How long an order may take.
const OBEY: Duration = Duration::from_secs(10);

impl VerifyingReceiver {
    /// Starts a sink on a free port.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start(behaviour: Behaviour, check: Check) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (orders, received) = watch::channel(BehaviourChange { number: 0, behaviour: Behaviour::Healthy });
        let state = Arc::new(State { check, seen: Mutex::default(), changed: Condvar::new() });
        let shared = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("checking-sink".to_owned())
            .spawn(move || runtime.block_on(serve::serve(listener, address, received, shared)))?;
        let sink = Self { address, orders: Some(orders), state, thread: Some(thread) };
        sink.set(behaviour);
        Ok(sink)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where to write to.
    pub fn target(&self) -> Target {
        Target::remote_write(self.address)
    }

    /// Behaves differently from now on: when this returns, the order has been obeyed.
    pub fn set(&self, behaviour: Behaviour) {
        let Some(orders) = &self.orders else { return };
        let mut number = 0;
        orders.send_modify(|order| {
            number = order.number + 1;
            *order = BehaviourChange { number, behaviour };
        });
        let obeying = |seen: &mut Seen| seen.obeyed < number;
        let waited = self.state.changed.wait_timeout_while(self.state.seen(), OBEY, obeying);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The items received so far.
    pub fn report(&self) -> Arrivals {
        self.state.seen().arrivals.clone()
    }

    /// Waits until `enough` of what arrived, at most `limit`; says whether it came to that.
    pub fn wait_for(&self, limit: Duration, mut enough: impl FnMut(&Arrivals) -> bool) -> bool {
        let missing = |seen: &mut Seen| !enough(&seen.arrivals);
        let waited = self.state.changed.wait_timeout_while(self.state.seen(), limit, missing);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Closes all connections and stops; what arrived.
    pub fn stop(mut self) -> Arrivals {
        self.end();
        std::mem::take(&mut self.state.seen().arrivals)
    }

    fn end(&mut self) {
        // The server ends when nobody is left to give it orders.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for VerifyingReceiver {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.changed.notify_all();
    }
}
