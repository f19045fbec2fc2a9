//! The address of the fleet.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::declare::settings;
use crate::values::{Bytes, Duration, Secret, Url};

settings! {
    /// An address where Elastic Agents enrol, get their policies and actions, and acknowledge them. `tidegate fleet` manages
    /// them.
    pub struct FleetListener {
        /// The address. 8220 is Fleet Server's port.
        address: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8220)),
        /// How long a check-in waits for something to do, where the agent does not say how long it can wait.
        long_poll: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::minutes(5),
        /// The longest body of a request of an agent, as received and decompressed. Agents with many inputs send long
        /// check-ins.
        max_body: Bytes [Bytes::kib(64)..=Bytes::mib(64)] = Bytes::mib(4),
        /// Memory of requests and answers in progress. It also sets the pace at which a policy goes to many agents. At least five
        /// times `max_body`.
        memory: Bytes [Bytes::mib(1)..=Bytes::gib(4)] = Bytes::mib(20),
        /// The URLs by which agents reach `listen.elasticsearch`, such as `https://gateway.example:9200`. Policies with an output of
        /// type `tidegate` get them, and for each agent an API key of its own.
        elasticsearch_hosts: Option<Vec<Url>> = None,
        /// Room in the data folder for files: what agents upload, such as diagnostics, artifacts, and files for agents. An upload for
        /// which there is none is refused. Uploads are removed after seven days.
        files: Bytes [Bytes::mib(1)..=Bytes::gib(16_384)] = Bytes::gib(1),
        /// How long an action, and what agents said of it, is kept once no agent has it to do any more: all have answered it or are
        /// gone, or it expired a day ago. With less than a day, that day and the time in which agents may upload for an action that
        /// they have acknowledged are as short.
        keep_actions: Duration [Duration::seconds(1)..=Duration::days(3650)] = Duration::days(30),
        /// File with the public key by which agents verify the packages of an upgrade. They get it by TLS alone.
        pgp_key_file: Option<PathBuf> = None,
        /// Keeps the state in PostgreSQL, for several gateways behind a balancer. Without it the state is a file in the data folder,
        /// of this gateway alone.
        postgres: Option<FleetPostgres> = None,
    }
}

settings! {
    /// The database with the state of the fleet: PostgreSQL 13 or newer. The tables are made by the first gateway that
    /// connects.
    pub struct FleetPostgres {
        /// Where the database is: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require`. Several hosts, with commas between
        /// them, are those of one database: the one that can be written to is used. Without `sslmode`, a connection to another
        /// machine is encrypted, and the server's certificate has to fit its name.
        url: Secret,
        /// Authorities of the server's certificate, as PEM. Default: those of the system.
        ca_file: Option<PathBuf> = None,
    }
}
