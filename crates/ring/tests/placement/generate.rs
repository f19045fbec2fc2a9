//! Random rings and series.

use crate::case::{Case, Query};
use serde_json::{Map, Value, json};

/// Numbers by SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const TENANTS: &[&str] = &[
    "default-tenant",
    "team-a",
    "team-b",
    "team-c1",
    "team-c2",
    "prod/eu",
    "prod/us",
    "a",
    "ab",
    "日本",
    "x-日-y",
    "[a]",
    "*",
    "",
    "staging-17",
    "staging-x",
];
const PATTERNS: &[&str] = &[
    "team-*",
    "team-?",
    "team-c[0-9]",
    "*",
    "prod/*",
    "*/*",
    "[^a-m]*",
    "staging-[0-9]*",
    "a",
    "?",
    "日*",
    "*日*",
    "\\[a\\]",
    "\\*",
    "*-*",
    "t*m-*b",
    "[a-c][a-c]",
    "",
    "[",
    "a[",
    "team-[",
    "[]a]",
    "[a-]",
    "[-a]",
    "\\",
    "*[",
    "x*[",
    "[^]",
    "[日-本]?",
];
const ALGORITHMS: &[&str] =
    &["ketama", "ketama", "ketama", "ketama", "ketama", "ketama", "hashmod", "hashmod", "", "rendezvous"];
const NAMES: &[&str] = &[
    "__name__",
    "cluster",
    "code",
    "container",
    "endpoint",
    "handler",
    "instance",
    "job",
    "le",
    "method",
    "namespace",
    "pod",
    "ü",
];

/// A random file of hashrings with `queries` series.
pub(crate) fn case(random: &mut Random, queries: usize) -> Case {
    let replication = [1, 1, 2, 2, 3, 3, 3, 4, 5, 7][random.below(10)];
    let rings: Vec<Value> = (0..[0, 1, 1, 1, 1, 2, 2, 3, 4][random.below(9)]
        .max(usize::from(random.percent(99))))
        .map(|_| ring(random, replication))
        .collect();
    Case {
        algorithm: random.one(ALGORITHMS).to_owned(),
        replication,
        config: json!(rings).to_string(),
        queries: (0..queries).map(|_| query(random)).collect(),
    }
}

fn ring(random: &mut Random, replication: usize) -> Value {
    let mut ring = Map::new();
    let shards = random.percent(35);
    // Two rings with shards and one name make Thanos register its metrics twice and panic.
    if shards || random.percent(50) {
        ring.insert("hashring".to_owned(), json!(format!("ring-{:x}", random.next())));
    }
    let ketama = shards && random.percent(95);
    if ketama || random.percent(50) {
        let algorithm = if ketama { "ketama" } else { random.one(ALGORITHMS) };
        ring.insert("algorithm".to_owned(), json!(algorithm));
    }
    let endpoints = endpoints(random, replication, ketama);
    if shards {
        ring.insert("shuffle_sharding_config".to_owned(), shuffle_sharding(random, endpoints.len()));
    }
    ring.insert("endpoints".to_owned(), json!(endpoints));
    if random.percent(40) {
        tenants(random, &mut ring);
    }
    if random.percent(20) {
        ring.insert("external_labels".to_owned(), json!({"region": "eu", "replica": "1"}));
    }
    Value::Object(ring)
}

fn tenants(random: &mut Random, object: &mut Map<String, Value>) {
    let matcher = ["", "exact", "glob", "glob", "glob", "regex"][random.below(6)];
    let from = if matcher == "glob" { PATTERNS } else { TENANTS };
    let tenants: Vec<_> = (0..random.below(4)).map(|_| random.one(from)).collect();
    object.insert("tenants".to_owned(), json!(tenants));
    if !matcher.is_empty() || random.percent(10) {
        object.insert("tenant_matcher_type".to_owned(), json!(matcher));
    }
}

fn shuffle_sharding(random: &mut Random, endpoints: usize) -> Value {
    let overrides: Vec<_> = (0..random.below(4))
        .map(|_| {
            let mut one = Map::new();
            tenants(random, &mut one);
            one.insert("shard_size".to_owned(), json!(random.below(endpoints + 4).cast_signed() - 2));
            one
        })
        .collect();
    json!({
        "shard_size": random.below(endpoints * 12 / 10 + 1),
        "cache_size": random.below(4),
        "zone_awareness_disabled": random.percent(30),
        "overrides": overrides,
    })
}

fn endpoints(random: &mut Random, replication: usize, ketama: bool) -> Vec<Value> {
    let most = [4, 8, 8, 12, 12, 30][random.below(6)];
    let count = if random.percent(95) { replication } else { 0 } + random.below(most);
    let style = random.below(5);
    let zones = if ketama || random.percent(10) { random.below(5) } else { 0 };
    let unzoned = random.percent(10);
    let mut all: Vec<Value> = Vec::new();
    for number in 0..count {
        if random.percent(1)
            && let Some(last) = all.last()
        {
            all.push(last.clone());
            continue;
        }
        let address = match style {
            0 => format!("receive-{number}.receive.monitoring.svc.cluster.local:10901"),
            1 => format!("10.{}.{}.{number}:10901", random.below(256), random.below(256)),
            2 => format!("[fd00::{number:x}]:10901"),
            3 => format!("n{number}"),
            _ => format!("ingestor-{}:{number}", random.next() % 1_000_000),
        };
        let zone = if unzoned && random.percent(20) { 0 } else { zones };
        all.push(match (zone, random.percent(10)) {
            (0, false) => json!(address),
            (0, true) => json!({"address": address, "capnproto_address": format!("c{number}:1")}),
            (zones, false) => json!({"address": address, "az": zone_name(number % zones)}),
            (zones, true) => json!({"address": address, "az": zone_name(random.below(zones))}),
        });
    }
    // Lists are not in the order of their addresses.
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all
}

fn zone_name(number: usize) -> String {
    format!("zone-{}", ["a", "b", "c", "d", "e"][number])
}

fn query(random: &mut Random) -> Query {
    let tenant = match random.below(3) {
        0 => format!("tenant-{}", random.below(1_000_000)),
        _ => random.one(TENANTS).to_owned(),
    };
    let long = random.percent(2);
    let labels = NAMES.iter().take(random.below(NAMES.len() + 1)).filter(|_| random.percent(30));
    let names: Vec<_> = labels.copied().collect();
    let value = |random: &mut Random| match random.below(if long { 3 } else { 2 }) {
        0 => format!("{:x}", random.next()),
        1 => format!("wert-{}é", random.below(100)),
        _ => "0123456789".repeat(random.below(60)),
    };
    Query { tenant, labels: names.into_iter().map(|name| (name.to_owned(), value(random))).collect() }
}
