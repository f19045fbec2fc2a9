//! An edge that is to be counted, and the key of its series.

use super::PairSettings;
use super::half::Half;
use tidegate_pipeline::MeasureKey;

/// An edge of two halves, or of one where the other node is virtual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge<'a> {
    client: Node<'a>,
    server: Node<'a>,
    connection: &'static str,
    /// The label of an edge with a virtual node.
    virtual_node: &'static str,
    has_failed: bool,
    is_cut: bool,
}

/// A service in an edge.
#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    name: Name<'a>,
    /// Listed values; empty where there are none.
    dimensions: &'a [u8],
    latency: f64,
}

#[derive(Debug, Clone, Copy)]
enum Name<'a> {
    /// A listed value.
    Of(&'a [u8]),
    Fixed(&'static str),
}

/// The part of an edge that is not in the key of its series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) client_latency: f64,
    pub(crate) server_latency: f64,
    pub(crate) has_failed: bool,
    /// The key has no room for it.
    pub(crate) is_cut: bool,
}

impl<'a> Edge<'a> {
    /// The edge of two spans.
    pub(crate) fn of_pair(client: Half<'a>, server: Half<'a>, connection: &'static str) -> Edge<'a> {
        Edge {
            client: Node::of(client),
            server: Node::of(server),
            connection,
            virtual_node: "",
            has_failed: client.has_failed || server.has_failed,
            is_cut: client.is_cut || server.is_cut,
        }
    }

    /// The edge of a client and its database, which took as long. A server's span that was waiting leaves its dimensions, and whether it failed.
    pub(crate) fn of_database(client: Half<'a>, waiting: Option<Half<'a>>, has_failed: bool) -> Edge<'a> {
        let dimensions = waiting.map_or(&[][..], |server| server.dimensions);
        Edge {
            client: Node::of(client),
            server: Node { name: Name::Of(client.peer), dimensions, latency: client.latency },
            connection: "database",
            virtual_node: "",
            has_failed: client.has_failed || has_failed,
            is_cut: client.is_cut || waiting.is_some_and(|server| server.is_cut),
        }
    }

    /// The edge of a span that stayed alone: of a client to the peer that it names, or of a user to a server that `is_root`, with no parent. The
    /// client of another server is in no edge.
    pub(crate) fn of_virtual(half: Half<'a>, is_root: bool) -> Option<Edge<'a>> {
        let node = |name| Node { name, dimensions: &[], latency: 0.0 };
        let (client, server, virtual_node) = match half.is_client {
            true if half.peer.is_empty() => (Node::of(half), node(Name::Fixed("unknown")), "server"),
            true => (Node::of(half), node(Name::Of(half.peer)), "server"),
            false if is_root => (node(Name::Fixed("user")), Node::of(half), "client"),
            false => return None,
        };
        let (has_failed, is_cut) = (half.has_failed, half.is_cut);
        Some(Edge { client, server, connection: "virtual_node", virtual_node, has_failed, is_cut })
    }

    /// Puts the key of its series into `key`, which is empty.
    pub(crate) fn write_key(&self, settings: &PairSettings, key: &mut MeasureKey) -> Counted {
        if !self.is_cut {
            [self.client.name, self.server.name].into_iter().for_each(|name| name.push(key));
            push_text(self.connection, key);
            // The length and one, and an `AnyValue` with `bool_value`.
            key.push(&[3, 2 << 3, self.has_failed.into()]);
            for node in [self.client, self.server] {
                match node.dimensions {
                    [] => (0..settings.dimensions).for_each(|_| key.push(&[0])),
                    dimensions => key.push(dimensions),
                }
            }
            if settings.has_virtual_node_label {
                push_text(self.virtual_node, key);
            }
        }
        Counted {
            client_latency: self.client.latency,
            server_latency: self.server.latency,
            has_failed: self.has_failed,
            is_cut: self.is_cut || key.is_cut(),
        }
    }
}

impl<'a> Node<'a> {
    fn of(half: Half<'a>) -> Node<'a> {
        Node { name: Name::Of(half.service), dimensions: half.dimensions, latency: half.latency }
    }
}

impl Name<'_> {
    fn push(self, key: &mut MeasureKey) {
        match self {
            Name::Of(value) => key.push(value),
            Name::Fixed(text) => push_text(text, key),
        }
    }
}

/// Puts a short text as a listed value.
fn push_text(text: &'static str, key: &mut MeasureKey) {
    let len = text.len() as u8;
    key.push(&[len + 3, 1 << 3 | 2, len]);
    key.push(text.as_bytes());
}
