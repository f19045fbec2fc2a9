//! A router before three ingestors of Thanos: processor time per million samples, and that of Thanos' own router beside it.

use super::thanos_router::ThanosRouter;
use super::traffic::Traffic;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject, Used, free_address};
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_load::{Check, RunLimit, Target, ThanosIngestors};

pub(super) const ROW: Row = Row {
    name: "router",
    what: "processor time per million samples, remote write in, kept with fsync, spread over three ingestors over gRPC",
    measure,
};

const ROUNDS: u32 = 5;
const INGESTORS: usize = 3;

/// One way to route.
pub(super) struct Routing {
    what: &'static str,
    bar: f64,
    pub(super) replication: u32,
    pub(super) compression: &'static str,
}

const ROUTINGS: [Routing; 3] = [
    Routing { what: "as framed Snappy", bar: 0.35, replication: 1, compression: "snappy" },
    Routing { what: "uncompressed", bar: 0.30, replication: 1, compression: "none" },
    Routing { what: "three copies as framed Snappy", bar: 0.75, replication: 3, compression: "snappy" },
];

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let traffic = Traffic::routed();
    ROUTINGS.iter().map(|routing| cost(bench, &traffic, routing)).collect()
}

fn cost(bench: &Bench, traffic: &Traffic, routing: &Routing) -> Result<Figure, Failure> {
    let ingestors = ThanosIngestors::start(INGESTORS, Check::Nothing)?;
    let gateway = Gateway::start(bench, routing, &ingestors)?;
    let thanos =
        bench.thanos.as_deref().map(|program| ThanosRouter::start(bench, program, routing, &ingestors));
    let thanos = thanos.transpose()?;
    let (mut own, mut foreign) = (Rounds::default(), Rounds::default());
    // The first one connects.
    let first = Duration::from_secs(1);
    let each = bench.seconds / (2 * ROUNDS);
    for round in 0..=ROUNDS {
        let time = RunLimit::Time(if round == 0 { first } else { each });
        let (samples, used, rate) = gateway.load(traffic, time)?;
        if round > 0 {
            own.add(samples, used, rate);
        }
        if let Some(thanos) = &thanos {
            let (samples, used, rate) = thanos.load(traffic, time)?;
            if round > 0 {
                foreign.add(samples, used, rate);
            }
        }
    }
    let bytes: u64 = (0..INGESTORS).map(|member| ingestors.bytes_of(member)).sum();
    let requests: u64 = (0..INGESTORS).map(|member| ingestors.requests_of(member)).sum();
    let measured = median(own.costs);
    let mut details = vec![
        ("of it user s", median(own.users)),
        ("million samples a second", median(own.rates)),
        ("peak resident MiB", gateway.subject.memory("VmHWM")? / f64::from(1 << 20)),
    ];
    if let Some(thanos) = thanos {
        let theirs = median(foreign.costs);
        details.extend([
            ("Thanos' router s", theirs),
            ("times this", theirs / measured),
            ("its million samples a second", median(foreign.rates)),
            ("its peak resident MiB", thanos.peak()? / f64::from(1 << 20)),
        ]);
    } else {
        details.push(("bytes a request to an ingestor", bytes as f64 / requests.max(1) as f64));
    }
    let what = format!("CPU s per million samples, router before three ingestors, {}", routing.what);
    Ok(Figure { name: ROW.name, what, bar: Bar::AtMost(routing.bar), measured, details })
}

/// The gateway as a router.
struct Gateway {
    subject: Subject,
    address: SocketAddr,
    _folder: Folder,
}

impl Gateway {
    fn start(bench: &Bench, routing: &Routing, ingestors: &ThanosIngestors) -> Result<Gateway, Failure> {
        let (folder, address) = (Folder::new(bench)?, free_address()?);
        let endpoints = ingestors.addresses();
        let settings = format!(
            "memory: 64MiB\nsinks: {{ out: {{ type: thanos_receive, algorithm: ketama, replication_factor: {}, \
             compression: {}, hashrings: [{{ endpoints: {endpoints:?} }}] }} }}",
            routing.replication, routing.compression
        );
        let listen = format!("thanos_receive: {{ address: {address} }}");
        let subject = Subject::start_listening(&folder, &listen, &settings)?;
        Ok(Gateway { subject, address, _folder: folder })
    }

    /// The samples sent, the processor time for them, and how many million were sent a second.
    fn load(&self, traffic: &Traffic, time: RunLimit) -> Result<(u64, Used, f64), Failure> {
        let before = self.subject.used()?;
        let report = traffic.send(&receive(self.address), time)?;
        // The cost of an accepted request includes sending it on.
        self.subject.wait_until_settled()?;
        let used = self.subject.used()?.since(before);
        Ok((report.samples, used, report.samples as f64 / report.elapsed.as_secs_f64() / 1e6))
    }
}

/// The remote write of Thanos Receive at this address.
pub(super) fn receive(address: SocketAddr) -> Target {
    Target { authority: address.to_string(), path: "/api/v1/receive".to_owned() }
}

/// The cost of rounds: seconds per million samples.
#[derive(Default)]
struct Rounds {
    costs: Vec<f64>,
    users: Vec<f64>,
    rates: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, samples: u64, used: Used, rate: f64) {
        let millions = samples as f64 / 1e6;
        self.costs.push(used.total().as_secs_f64() / millions);
        self.users.push(used.user.as_secs_f64() / millions);
        self.rates.push(rate);
    }
}
