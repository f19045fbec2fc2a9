//! Pairs of spans: that of a client and that of its server make one edge in the graph of services.
//!
//! The rules are those of the Collector's `servicegraph` connector. The first span of a pair waits in a store; the other one takes it out, and
//! the two are counted as one observation of the group. A span that waited too long is dropped, or counted with a virtual node.
//!
//! An edge depends on its two spans alone, and not on their order, but for its connection type: that is of the span that came last.

mod edge;
mod half;
mod state;
mod store;

use crate::aggregator::{Aggregator, Tenant, divided};
use edge::{Counted, Edge};
use half::{HALF_MAX, SpanHalf};
use store::EdgeId;
pub(crate) use store::EdgeStore;
use tidegate_pipeline::{Number, Observation};

/// The pairs that a group counts.
///
/// The measure of such a group looks at spans, has no attributes of resources, and lists attributes in this order: the name of the service,
/// without which a span is not measured; the dimensions; the names of a peer; the names of a database. Its value is the time that the span
/// took. Spans count once.
///
/// The attributes of the group are `client`, `server`, `connection_type`, `failed`, each dimension for the client, each for the server, and
/// `virtual_node` where it is asked for. The group has four instruments at most: a count of edges, a count of those that failed, and a
/// histogram each of the times of servers and of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairSettings {
    /// How many attributes are dimensions of a service.
    pub dimensions: usize,
    /// How many attributes behind those may name the peer of a client. Without any, no node is virtual: a span that stays alone is dropped.
    pub peers: usize,
    /// Whether each series says if one of its nodes is virtual.
    pub has_virtual_node_label: bool,
    /// How long a span waits, by the times of records.
    pub ttl_ms: u64,
    /// The most spans that wait at a time. Each takes 580 bytes.
    pub max_items: u32,
}

impl Aggregator {
    pub(crate) fn has_pairs(&self, measure: usize) -> bool {
        matches!(self.edges.get(measure), Some(Some(_)))
    }

    /// The spans that wait for their other halves.
    #[must_use]
    pub fn waiting_spans(&self) -> usize {
        self.edges.iter().flatten().map(EdgeStore::len).sum()
    }

    /// Observes a span: it completes an edge, or waits. The key under construction has its attributes.
    pub(crate) fn observe_half(&mut self, measure: usize, observation: &Observation) {
        let group = self.settings.measures.get(measure);
        let settings = group.and_then(|group| group.pairs.as_ref());
        let store = self.edges.get_mut(measure).and_then(Option::as_mut);
        let (Some(settings), Some(store), Some(span)) = (settings, store, &observation.span) else { return };
        if self.flush.is_some() {
            self.counts.observations += 1;
            self.counts.lost += 1;
            return;
        }
        let (tenant, value) = (self.tenant.bytes(), observation.value.as_f64());
        let mut room = [0; HALF_MAX];
        // What is kept of a span has the same room whichever of the two comes first.
        let room = room.get_mut(tenant.len()..).unwrap_or_default();
        let Some(read) = SpanHalf::read(&self.key, span, value, settings, room) else { return };
        self.counts.observations += 1;
        let SpanHalf { mut half, key_span, is_database, connection } = read;
        let id = EdgeId { tenant, trace_id: span.trace_id, span_id: key_span };
        let found = store.find(&id);
        let waiting = found.and_then(|number| store.half(number));
        let other = waiting.filter(|waiting| waiting.is_client != half.is_client);
        let edge = match other {
            _ if is_database => Edge::of_database(half, other, waiting.is_some_and(|it| it.has_failed)),
            Some(other) if half.is_client => Edge::of_pair(half, other, connection),
            Some(other) => Edge::of_pair(other, half, connection),
            None => {
                half.has_failed |= waiting.is_some_and(|waiting| waiting.has_failed);
                if let Some(number) = found {
                    store.replace(number, tenant.len(), &half);
                } else if !store.insert(&id, &half, self.clock_ms) {
                    self.counts.dropped_spans += 1;
                }
                return;
            }
        };
        self.key.clear();
        let counted = edge.write_key(settings, &mut self.key);
        if let Some(number) = found {
            store.remove(number);
        }
        self.count_edge(measure, counted);
    }

    /// Takes out spans that waited too long. Not while a flush is under way, which would not have the edges that they make.
    pub(crate) fn expire_edges(&mut self) {
        if self.flush.is_none() {
            (0..self.edges.len()).for_each(|measure| while self.expire_edge(measure).is_some() {});
        }
    }

    /// Takes out the span of a measure that has waited longest, if that is too long.
    fn expire_edge(&mut self, measure: usize) -> Option<()> {
        let settings = self.settings.measures.get(measure)?.pairs.as_ref()?;
        let store = self.edges.get_mut(measure)?.as_mut()?;
        let number = store.oldest()?;
        if self.clock_ms <= store.created_ms(number)?.saturating_add(settings.ttl_ms) {
            return None;
        }
        self.counts.expired_edges += 1;
        let half = store.half(number)?;
        let is_root = store.span_id(number) == Some([0; 8]);
        let edge = (settings.peers > 0).then(|| Edge::of_virtual(half, is_root)).flatten();
        let counted = edge.map(|edge| {
            self.key.clear();
            edge.write_key(settings, &mut self.key)
        });
        let tenant = Tenant::new(store.tenant(number));
        store.remove(number);
        if let Some(counted) = counted {
            self.become_tenant(tenant);
            self.current.get_mut(measure)?.clear();
            self.count_edge(measure, counted);
            self.key.clear();
        }
        Some(())
    }

    /// Counts an edge, whose key is under construction.
    fn count_edge(&mut self, measure: usize, edge: Counted) {
        let found = self.series_of(measure, edge.is_cut);
        let Some((number, group)) = found.zip(self.settings.measures.get(measure)) else {
            self.counts.lost += 1;
            return;
        };
        self.has_news = true;
        self.series.at_mut(number).see((self.received_at_ms / 1000) as u32);
        let mut words = self.series.change(number).words;
        let one = Number::Int(1);
        let [of_server, of_client] =
            [edge.server_latency, edge.client_latency].map(|it| divided(Number::Double(it), group.divisor));
        let values = [(one, 1), (one, edge.has_failed.into()), (of_server, 1), (of_client, 1)];
        for (instrument, (value, count)) in group.instruments.iter().zip(values) {
            let Some((own, rest)) = words.split_at_mut_checked(instrument.kind.words()) else { return };
            instrument.kind.fold(own, value, count);
            words = rest;
        }
    }
}
