//! Promise: edges are those of a map of all spans, whatever their order, and whenever the process was restarted.

use super::pairs::{CLIENT, CONSUMER, Half, PRODUCER, SERVER, TTL_MS, half, pair_settings, tell};
use super::*;
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use proptest::prelude::*;

const MAX_ITEMS: usize = 3;
const TENANTS: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
enum Step {
    /// A tenant, and the milliseconds since the record before.
    Begin(usize, u64),
    Tell(Half),
    Flush,
    Restart,
}

/// Tenant, and the id of the client's span.
type EdgeKey = (&'static str, u8);

#[derive(Debug, Clone, Copy)]
struct Waiting {
    half: Half,
    has_failed: bool,
    created_ms: u64,
}

/// Counts of edges, of failed ones, and the times of servers and clients in milliseconds.
type Sums = (u64, u64, i64, i64);

#[derive(Default)]
struct Model {
    tenant: &'static str,
    now_ms: u64,
    waiting: BTreeMap<EdgeKey, Waiting>,
    edges: BTreeMap<(&'static str, String), Sums>,
    expired: u64,
    dropped: u64,
}

fn is_client(half: &Half) -> bool {
    matches!(half.kind, CLIENT | PRODUCER)
}

impl Model {
    fn begin(&mut self, tenant: usize, step_ms: u64) {
        (self.tenant, self.now_ms) = (TENANTS[tenant], self.now_ms + step_ms);
        let expired: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, it)| self.now_ms > it.created_ms + TTL_MS)
            .map(|(key, it)| (*key, *it))
            .collect();
        for ((tenant, id), Waiting { half, has_failed, .. }) in expired {
            self.waiting.remove(&(tenant, id));
            self.expired += 1;
            let zone = half.key[1];
            if is_client(&half) {
                let peer = half.key[2].or(half.key[3]).unwrap_or("unknown");
                let services = [half.key[0].unwrap(), peer];
                self.count(
                    tenant,
                    services,
                    "virtual_node",
                    has_failed,
                    [zone, None],
                    "server",
                    [half.took_ms, 0],
                );
            } else if id == 0 {
                let services = ["user", half.key[0].unwrap()];
                self.count(
                    tenant,
                    services,
                    "virtual_node",
                    has_failed,
                    [None, zone],
                    "client",
                    [0, half.took_ms],
                );
            }
        }
    }

    fn tell(&mut self, half: &Half) {
        let connection = match half.kind {
            CLIENT | SERVER => "",
            PRODUCER | CONSUMER => "messaging_system",
            _ => return,
        };
        let key = (self.tenant, if is_client(half) { half.id } else { half.parent });
        let waiting = self.waiting.get(&key).copied();
        let has_failed = half.has_failed || waiting.is_some_and(|it| it.has_failed);
        let other = waiting.filter(|it| is_client(&it.half) != is_client(half)).map(|it| it.half);
        let service = half.key[0].unwrap();
        if let Some(database) = half.key[4].filter(|_| is_client(half)) {
            self.waiting.remove(&key);
            let zones = [half.key[1], other.and_then(|other| other.key[1])];
            let took = [half.took_ms; 2];
            return self.count(self.tenant, [service, database], "database", has_failed, zones, "", took);
        }
        if let Some(other) = other {
            self.waiting.remove(&key);
            let [client, server] = if is_client(half) { [*half, other] } else { [other, *half] };
            let services = [client.key[0].unwrap(), server.key[0].unwrap()];
            let (zones, took) = ([client.key[1], server.key[1]], [client.took_ms, server.took_ms]);
            return self.count(self.tenant, services, connection, has_failed, zones, "", took);
        }
        let half = *half;
        match waiting {
            Some(waiting) => drop(self.waiting.insert(key, Waiting { half, has_failed, ..waiting })),
            None if self.waiting.len() == MAX_ITEMS => self.dropped += 1,
            None => {
                let new = Waiting { half, has_failed, created_ms: self.now_ms };
                self.waiting.insert(key, new);
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "all that an edge is")]
    fn count(
        &mut self,
        tenant: &'static str,
        [client, server]: [&str; 2],
        connection: &str,
        has_failed: bool,
        [client_zone, server_zone]: [Option<&str>; 2],
        virtual_node: &str,
        [of_client, of_server]: [i64; 2],
    ) {
        let zone = |name: &str, zone: Option<&str>| {
            zone.map_or(String::new(), |zone| format!("{name}_zone={zone},"))
        };
        let attributes = format!(
            "client={client},server={server},connection_type={connection},failed=BoolValue({has_failed}),{}{}virtual_node={virtual_node}",
            zone("client", client_zone),
            zone("server", server_zone),
        );
        let sums = self.edges.entry((tenant, attributes)).or_default();
        *sums = (sums.0 + 1, sums.1 + u64::from(has_failed), sums.2 + of_server, sums.3 + of_client);
    }

    /// As the points of a flush are summed up by [`seen`].
    fn sums(&self) -> BTreeMap<PointKey, (u64, i64)> {
        let mut sums = BTreeMap::new();
        for ((tenant, attributes), (total, failed, of_server, of_client)) in &self.edges {
            let mut put = |metric: &str, value| {
                sums.insert(key(tenant, "", metric, attributes), value);
            };
            put("total", (*total, 0));
            if *failed > 0 {
                put("failed", (*failed, 0));
            }
            put("server", (*total, *of_server));
            put("client", (*total, *of_client));
        }
        sums
    }
}

/// Counts, and the sums of histograms in milliseconds.
fn seen(points: &Points) -> BTreeMap<PointKey, (u64, i64)> {
    let value = |data: &Data| match data {
        Data::Sum(sum) => match sum.data_points[0].value {
            Some(otlp::number_data_point::Value::AsInt(value)) => (value as u64, 0),
            other => panic!("{other:?}"),
        },
        Data::Histogram(it) => {
            (it.data_points[0].count, (it.data_points[0].sum.unwrap() * 1e3).round() as i64)
        }
        other => panic!("{other:?}"),
    };
    points.iter().map(|(key, data)| (key.clone(), value(data))).collect()
}

fn step() -> impl Strategy<Value = Step> {
    let text = |texts: &'static [Option<&'static str>]| prop::sample::select(texts);
    let key = (
        text(&[Some("x"), Some("y")]),
        text(&[None, None, Some("eu")]),
        text(&[None, None, Some("p")]),
        text(&[None, None, Some("q")]),
        text(&[None, None, None, Some("db")]),
    );
    let tell = (0_i64..6, 0_u8..3, 0_u8..3, any::<bool>(), 0_i64..300, key).prop_map(
        |(kind, id, parent, has_failed, took_ms, (service, zone, first, second, database))| {
            let key = [service, zone, first, second, database];
            Step::Tell(Half { has_failed, took_ms, key, ..half(kind, id, parent, "") })
        },
    );
    prop_oneof![
        3 => (0_usize..2, 0_u64..1_500).prop_map(|(tenant, step_ms)| Step::Begin(tenant, step_ms)),
        10 => tell,
        1 => Just(Step::Flush),
        1 => Just(Step::Restart),
    ]
}

fn run(temporality: Temporality, steps: &[Step]) {
    let mut aggregator = Aggregator::new(pair_settings(temporality, MAX_ITEMS as u32));
    let mut model = Model { now_ms: START_MS, ..Model::default() };
    let mut before = Counts::default();
    let begin = |aggregator: &mut Aggregator, model: &mut Model, tenant, step_ms| {
        model.begin(tenant, step_ms);
        aggregator.begin(model.tenant.as_bytes(), model.now_ms);
    };
    begin(&mut aggregator, &mut model, 0, 0);
    for step in steps {
        match step {
            Step::Begin(tenant, step_ms) => begin(&mut aggregator, &mut model, *tenant, *step_ms),
            Step::Tell(half) => {
                model.tell(half);
                tell(&mut aggregator, half);
            }
            Step::Flush => {
                assert_eq!(seen(&flush(&mut aggregator, model.now_ms)), model.sums());
                if temporality == Temporality::Delta {
                    model.edges.clear();
                }
            }
            Step::Restart => {
                let bytes = state(&aggregator, 1);
                let read = Aggregator::read_state(aggregator.settings().clone(), &mut &*bytes).unwrap().0;
                assert_eq!(state(&read, 1), bytes, "a state is whole");
                before.expired_edges += aggregator.counts().expired_edges;
                before.dropped_spans += aggregator.counts().dropped_spans;
                aggregator = read;
                begin(&mut aggregator, &mut model, 1, 0);
            }
        }
        assert_eq!(aggregator.waiting_spans(), model.waiting.len());
    }
    assert_eq!(seen(&flush(&mut aggregator, model.now_ms)), model.sums());
    let counts = aggregator.counts();
    assert_eq!(before.expired_edges + counts.expired_edges, model.expired);
    assert_eq!(before.dropped_spans + counts.dropped_spans, model.dropped);
    assert_eq!((counts.lost, counts.overflowed), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Cumulative edges are those of a map of all spans.
    #[test]
    fn cumulative_edges_are_those_of_a_map(steps in prop::collection::vec(step(), 1..150)) {
        run(Temporality::Cumulative, &steps);
    }

    /// Delta edges are those of a map of all spans since the last flush.
    #[test]
    fn delta_edges_are_those_of_a_map(steps in prop::collection::vec(step(), 1..150)) {
        run(Temporality::Delta, &steps);
    }
}
