//! The kinds of listeners, a descriptor for each: the gateway walks over them to listen, to accept and to watch.

use super::acceptor::{ConnectionLimiter, Serve, accept, accept_unix, listen};
use super::fleet::RunningFleet;
use super::ingest::{Admin, Ingest, IngestTls};
use super::opamp::RunningOpamp;
use super::reloaded_files::TlsAcceptors;
use super::sinks::SinkSet;
use super::thanos_receive;
use super::unix_socket::{self, SocketFile};
use super::workers::Workers;
use crate::Failure;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use tidegate_admission::Gate;
use tidegate_arena::Arena;
use tidegate_config::{Config, Listen, Listener};
use tidegate_http1::{Server, Settings, Shutdown};
use tidegate_sources::{self as sources, ConnectionSlots, Http, Http2, ThanosMeters};
use tokio::task::AbortHandle;

/// A kind of listener.
pub(crate) struct ListenerKind {
    /// The setting with its address.
    pub(crate) setting: &'static str,
    /// Where it listens, if the configuration says so.
    address: fn(&Listen) -> Option<Address<'_>>,
    /// Accepts connections from now on.
    accept: fn(&Services<'_>, Socket) -> AbortHandle,
    /// A label and an address for people, where no source has shown the address already.
    pub(crate) shown: fn(&Listen) -> Option<(&'static str, String)>,
}

/// All kinds of listeners, in the order in which they begin to listen.
pub(crate) static KINDS: [ListenerKind; 9] = [
    ListenerKind {
        setting: "listen.http",
        address: |listen| Listener::Http.address(listen).map(Address::Tcp),
        accept: |services, socket| services.sources(socket, Listener::Http, Http::clone),
        shown: |_| None,
    },
    ListenerKind {
        setting: "listen.grpc",
        // The address of `listen.http` twice is one listener.
        address: |listen| {
            Listener::Grpc.address(listen).filter(|address| *address != listen.http).map(Address::Tcp)
        },
        accept: |services, socket| services.sources(socket, Listener::Grpc, Http::clone),
        shown: |_| None,
    },
    ListenerKind {
        setting: "listen.elasticsearch",
        address: |listen| Listener::Elasticsearch.address(listen).map(Address::Tcp),
        accept: |services, socket| {
            services.sources(socket, Listener::Elasticsearch, Http::elasticsearch_alone)
        },
        shown: |_| None,
    },
    ListenerKind {
        setting: "listen.apm",
        address: |listen| Listener::Apm.address(listen).map(Address::Tcp),
        accept: |services, socket| services.sources(socket, Listener::Apm, Http::clone),
        shown: |_| None,
    },
    ListenerKind {
        setting: "listen.thanos_receive",
        address: |listen| Listener::ThanosReceive.address(listen).map(Address::Tcp),
        accept: |services, socket| {
            services.sources(socket, Listener::ThanosReceive, |http| {
                thanos_receive::of(http, services.config, services.thanos_meters, services.sinks)
            })
        },
        shown: |listen| {
            let address = listen.thanos_receive.as_ref()?.address;
            Some(("Thanos Receive", format!("http://{address}/api/v1/receive")))
        },
    },
    ListenerKind {
        setting: "listen.fleet",
        address: |listen| Listener::Fleet.address(listen).map(Address::Tcp),
        accept: |services, socket| services.fleet(socket),
        shown: |listen| {
            let address = listen.fleet.as_ref()?.address;
            Some(("agents", format!("{address}   enrol with `tidegate fleet enroll-command`")))
        },
    },
    ListenerKind {
        setting: "listen.opamp",
        address: |listen| Listener::Opamp.address(listen).map(Address::Tcp),
        accept: |services, socket| services.opamp(socket),
        shown: |listen| {
            let address = listen.opamp.as_ref()?.address;
            Some(("OpAMP", format!("ws://{address}/v1/opamp")))
        },
    },
    ListenerKind {
        setting: "listen.admin",
        address: |listen| Some(Address::Tcp(listen.admin)),
        accept: |services, socket| services.admin(socket),
        shown: |listen| {
            let address = listen.admin;
            Some(("status", format!("http://{address}/status   metrics http://{address}/metrics")))
        },
    },
    ListenerKind {
        setting: "listen.unix",
        address: |listen| listen.unix.as_ref().map(|socket| Address::Unix(socket.path())),
        accept: |services, socket| services.sources(socket, Listener::Http, Http::clone),
        shown: |listen| listen.unix.as_ref().map(|socket| ("the same", socket.to_string())),
    },
];

/// Where a listener listens.
pub(crate) enum Address<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// The listening sockets.
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A listener that listens, and does not accept yet.
pub(crate) struct Bound {
    kind: &'static ListenerKind,
    socket: Socket,
    file: Option<SocketFile>,
}

/// A listener that accepts connections.
pub(crate) struct Acceptor {
    kind: &'static ListenerKind,
    task: AbortHandle,
    /// Of a Unix socket.
    file: Option<SocketFile>,
}

/// Listens wherever the configuration says.
///
/// # Errors
/// In words: which setting it is, what was tried, what is wrong.
pub(crate) fn bind(config: &Listen) -> Result<Vec<Bound>, Failure> {
    let bound = KINDS.iter().filter_map(|kind| Some(kind.bind((kind.address)(config)?)));
    Ok(bound.collect::<Result<_, String>>()?)
}

/// Where the configuration listens, each with its setting.
pub(crate) fn addresses(config: &Listen) -> impl Iterator<Item = (&'static str, Address<'_>)> {
    KINDS.iter().filter_map(|kind| Some((kind.setting, (kind.address)(config)?)))
}

/// All addresses that the configuration listens on, each with its setting.
pub(crate) fn shown(config: &Listen) -> String {
    let shown = addresses(config).map(|(setting, address)| format!("{setting} {address}"));
    shown.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ListenerKind {
    fn bind(&'static self, address: Address<'_>) -> Result<Bound, String> {
        let (socket, file) = match address {
            Address::Tcp(address) => (Socket::Tcp(listen(address, self.setting)?), None),
            Address::Unix(path) => {
                let (socket, file) = unix_socket::listen(path, self.setting)?;
                (Socket::Unix(socket), Some(file))
            }
        };
        Ok(Bound { kind: self, socket, file })
    }
}

impl Bound {
    /// Accepts connections from now on.
    pub(super) fn accept(self, services: &Services<'_>) -> Acceptor {
        let Bound { kind, socket, file } = self;
        Acceptor { kind, task: (kind.accept)(services, socket), file }
    }
}

impl Acceptor {
    /// The words for one that has ended.
    pub(super) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let (setting, task) = (self.kind.setting, self.task.clone());
        move || task.is_finished().then(|| format!("the acceptor of `{setting}`"))
    }

    /// Accepts no more.
    pub(super) fn close(self) {
        // First, so that whoever comes from now on sees that nobody is there.
        drop(self.file);
        self.task.abort();
    }

    #[cfg(test)]
    pub(super) fn setting(&self) -> &'static str {
        self.kind.setting
    }

    #[cfg(test)]
    pub(super) fn abort(&self) {
        self.task.abort();
    }
}

/// The receivers of accepted connections.
pub(super) struct Services<'a> {
    pub(super) workers: &'a Arc<Workers>,
    pub(super) arena: &'a Arena,
    pub(super) gate: &'a Gate,
    /// All sources.
    pub(super) http: Http,
    pub(super) settings: Settings,
    /// One for each worker.
    pub(super) shutdowns: &'a [Shutdown],
    pub(super) places: ConnectionSlots,
    pub(super) door: &'a Arc<ConnectionLimiter>,
    pub(super) config: &'a Config,
    pub(super) acceptors: &'a TlsAcceptors,
    pub(super) admin: Arc<Admin>,
    /// Where requests to `listen.thanos_receive` are counted by Thanos' names, if anywhere.
    pub(super) thanos_meters: Option<&'a ThanosMeters>,
    pub(super) admin_door: Arc<ConnectionLimiter>,
    /// Where there is one.
    pub(super) fleet: Option<&'a RunningFleet>,
    /// Where there is one.
    pub(super) opamp: Option<&'a RunningOpamp>,
    /// The running sinks; the address of Thanos Receive is ready when its sinks are.
    pub(super) sinks: &'a Arc<SinkSet>,
}

impl Services<'_> {
    /// Accepts for the sources: as `served` chooses of them, with the certificate and the default tenant of
    /// `listener`.
    fn sources(&self, socket: Socket, listener: Listener, served: impl Fn(&Http) -> Http) -> AbortHandle {
        // Behind the addresses that have no tenant of their own there is the same.
        let all = match self.config.tenants.default_at(listener) {
            Some(tenant) => self.http.with_default_tenant(tenant.as_str()),
            None => self.http.clone(),
        };
        let service = served(&all);
        let http2 = Http2::new(service.clone(), self.settings, self.arena.clone(), self.places.clone());
        let on_worker = |shutdown: &Shutdown| {
            let http1 = Server::new(service.clone(), self.settings, self.arena.clone(), shutdown.clone());
            sources::Ingest::new(http1, http2.clone(), self.settings, shutdown.clone())
        };
        let doors = self.shutdowns.iter().map(on_worker).collect();
        let ingest = Arc::new(Ingest::new(doors, service.clone(), self.gate.clone()));
        match (&socket, self.acceptors.at(self.config, listener)) {
            (Socket::Tcp(_), Some(acceptor)) => {
                self.accept(socket, self.door, Arc::new(IngestTls::new(ingest, Arc::clone(acceptor))))
            }
            _ => self.accept(socket, self.door, ingest),
        }
    }

    /// Accepts for the fleet.
    fn fleet(&self, socket: Socket) -> AbortHandle {
        let Some(fleet) = self.fleet else {
            // Where there is an address there is a fleet.
            unreachable!("an address of the fleet without one");
        };
        let service = fleet.listener(self.settings, self.shutdowns);
        match self.acceptors.at(self.config, Listener::Fleet) {
            Some(acceptor) => {
                self.accept(socket, self.door, Arc::new(service.with_tls(Arc::clone(acceptor))))
            }
            None => self.accept(socket, self.door, Arc::new(service)),
        }
    }

    /// Accepts for agents that speak OpAMP.
    fn opamp(&self, socket: Socket) -> AbortHandle {
        let Some(opamp) = self.opamp else {
            // Where there is an address there is the part behind it.
            unreachable!("an address of OpAMP without it");
        };
        let service = opamp.listener(self.settings, self.shutdowns);
        match self.acceptors.at(self.config, Listener::Opamp) {
            Some(acceptor) => {
                self.accept(socket, self.door, Arc::new(service.with_tls(Arc::clone(acceptor))))
            }
            None => self.accept(socket, self.door, Arc::new(service)),
        }
    }

    /// Accepts for the console.
    fn admin(&self, socket: Socket) -> AbortHandle {
        self.accept(socket, &self.admin_door, Arc::clone(&self.admin))
    }

    fn accept<S: Serve>(
        &self,
        socket: Socket,
        door: &Arc<ConnectionLimiter>,
        service: Arc<S>,
    ) -> AbortHandle {
        let (first, workers, door) = (self.workers.worker(0), Arc::clone(self.workers), Arc::clone(door));
        match socket {
            Socket::Tcp(socket) => first.spawn(accept(socket, workers, door, service)).abort_handle(),
            Socket::Unix(socket) => first.spawn(accept_unix(socket, workers, door, service)).abort_handle(),
        }
    }
}
