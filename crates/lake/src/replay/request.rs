//! Puts items together to a request: what encloses several of them is in it once.

use super::Protocol;
use super::message::Message;
use std::collections::HashMap;
use xxhash_rust::xxh64::xxh64;

/// An item and what encloses it, encoded.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) protocol: Protocol,
    /// The messages around it, the outermost first.
    pub(super) levels: Vec<Level>,
    /// Its fields in the innermost of them, keys included.
    pub(super) fields: Message,
    /// A message that the request must have once, beside it.
    pub(super) beside: Option<Level>,
}

/// A message around items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Its field in the message around it.
    pub(super) field: u32,
    /// Its own fields, without what it encloses. Messages are the same when these are.
    pub(super) head: Vec<u8>,
    /// Tells it from others with the same fields.
    pub(super) kind: u64,
}

/// A message of the request.
#[derive(Debug)]
struct Node {
    parent: u32,
    level: Level,
    children: Vec<u32>,
    items: Vec<u8>,
}

/// The request itself, as a parent.
const ROOT: u32 = u32::MAX;

/// More than the key and the length of a message take.
const ENVELOPE: usize = 16;

/// A request under construction.
#[derive(Debug, Default)]
pub(super) struct RequestBuilder {
    protocol: Protocol,
    nodes: Vec<Node>,
    /// Children of the request.
    roots: Vec<u32>,
    /// Nodes by the hash of their parent and their level. Of two with one hash, the later one is found.
    by_hash: HashMap<u64, u32>,
    /// At least as long as the request will be.
    bytes: usize,
    items: u32,
}

impl RequestBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.items == 0
    }

    pub(super) fn items(&self) -> u32 {
        self.items
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Adds an item, unless the request would be longer than `most` or is of another protocol. An empty one takes every
    /// item. Whether it was added.
    pub(super) fn add(&mut self, item: &Item, most: usize) -> bool {
        let mut longer = item.fields.len();
        let mut parent = Some(ROOT);
        for level in &item.levels {
            parent = parent.and_then(|parent| self.find(parent, level));
            if parent.is_none() {
                longer += level.head.len() + ENVELOPE;
            }
        }
        let beside = item.beside.as_ref().filter(|level| self.find(ROOT, level).is_none());
        longer += beside.map_or(0, |level| level.head.len() + ENVELOPE);
        let fits = self.protocol == item.protocol && self.bytes.saturating_add(longer) <= most;
        if !self.is_empty() && (!fits || self.items == u32::MAX) {
            return false;
        }
        self.protocol = item.protocol;
        if let Some(level) = beside {
            self.insert(ROOT, level);
        }
        let mut parent = ROOT;
        for level in &item.levels {
            parent = self.find(parent, level).unwrap_or_else(|| self.insert(parent, level));
        }
        if let Some(innermost) = self.nodes.get_mut(parent as usize) {
            innermost.items.extend_from_slice(item.fields.as_bytes());
        }
        self.bytes += longer;
        self.items += 1;
        true
    }

    /// The request, encoded. The next one is begun.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = Message::default();
        self.write(&self.roots, &mut out);
        *self = RequestBuilder::default();
        out.into_bytes()
    }

    /// Calls itself for each level, of which an item has four at most.
    fn write(&self, nodes: &[u32], out: &mut Message) {
        for node in nodes.iter().filter_map(|&at| self.nodes.get(at as usize)) {
            let open = out.begin(node.level.field);
            out.put(&node.level.head);
            self.write(&node.children, out);
            out.put(&node.items);
            out.end(open);
        }
    }

    fn find(&self, parent: u32, level: &Level) -> Option<u32> {
        let found = *self.by_hash.get(&hash(parent, level))?;
        let node = self.nodes.get(found as usize)?;
        (node.parent == parent && node.level == *level).then_some(found)
    }

    fn insert(&mut self, parent: u32, level: &Level) -> u32 {
        // There are no more nodes than bytes in a request, and that is below 4 GiB.
        let at = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        let level = level.clone();
        self.by_hash.insert(hash(parent, &level), at);
        self.nodes.push(Node { parent, level, children: Vec::new(), items: Vec::new() });
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.children.push(at),
            None => self.roots.push(at),
        }
        at
    }
}

fn hash(parent: u32, level: &Level) -> u64 {
    let seed = u64::from(parent) << 32 ^ u64::from(level.field) ^ level.kind.rotate_left(8);
    xxh64(&level.head, seed)
}

impl Item {
    /// Begins another item: forgets the fields.
    pub(super) fn begin(&mut self, protocol: Protocol) -> &mut Message {
        self.protocol = protocol;
        self.fields.clear();
        self.beside = None;
        &mut self.fields
    }

    /// Puts it into these messages.
    pub(super) fn enclose<'l>(&mut self, levels: impl Iterator<Item = &'l Level>) {
        let mut places = self.levels.iter_mut();
        let mut used = 0;
        let mut more = Vec::new();
        for level in levels {
            match places.next() {
                Some(place) if place == level => {}
                Some(place) => place.clone_from(level),
                None => more.push(level.clone()),
            }
            used += 1;
        }
        self.levels.append(&mut more);
        self.levels.truncate(used);
    }
}
