//! Requests as an SDK of a busy service sends them.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Signal;
use crate::remote_write::DecodeError;
use crate::remote_write::proto::{Fields, Value, bytes, message, uint, varint};

/// The attribute that holds an item's number.
pub const NUMBER: &str = "load.number";

/// Attributes of every item, its number among them.
pub const ITEM_ATTRIBUTES: usize = 8;

const SERVICES: u64 = 60;
const PODS: u64 = 4;
const ROUTES: [&str; 6] = [
    "/api/v1/checkout/{cart}",
    "/api/v1/products/{product}/reviews",
    "/api/v1/users/{user}/sessions",
    "/healthz",
    "/api/v2/search",
    "/internal/recommendations/{user}",
];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
const AGENTS: [&str; 3] = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36",
    "okhttp/4.12.0",
    "python-requests/2.31.0",
];

/// A request: items `first..first + items`, of one resource and one scope.
#[derive(Clone, Copy, Debug)]
pub struct ExportRequest {
    /// Its contents.
    pub signal: Signal,
    /// How many items.
    pub items: u64,
    /// The number of the first.
    pub first: u64,
    /// When it all happened, in nanoseconds since 1970.
    pub time_ns: u64,
}

impl ExportRequest {
    /// The `Export…ServiceRequest`, uncompressed. The same numbers make the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut random = SmallRng::seed_from_u64(self.first);
        let mut out = Vec::with_capacity(usize::try_from(self.items).unwrap_or(0) * 480 + 512);
        message(&mut out, 1, |out| {
            message(out, 1, |out| self.resource(out));
            message(out, 2, |out| {
                message(out, 1, |out| {
                    bytes(out, 1, b"io.opentelemetry.http-server");
                    bytes(out, 2, b"2.1.0");
                });
                match self.signal {
                    Signal::Traces => self.spans(&mut random, out),
                    Signal::Logs => self.logs(&mut random, out),
                    Signal::Metrics => self.points(&mut random, out),
                }
            });
        });
        out
    }

    fn resource(&self, out: &mut Vec<u8>) {
        let instance = self.first / self.items.max(1) % (SERVICES * PODS);
        let (service, pod) = (instance / PODS, instance % PODS);
        let pod =
            format!("service-{service}-{:010x}-{pod}", service.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24);
        text(out, 1, "service.name", &format!("service-{service}"));
        text(out, 1, "service.version", "1.14.3");
        text(out, 1, "service.instance.id", &pod);
        text(out, 1, "k8s.namespace.name", "production-europe");
        text(out, 1, "k8s.pod.name", &pod);
        text(out, 1, "host.name", &format!("node-{}", instance % 24));
        text(out, 1, "telemetry.sdk.language", "go");
        text(out, 1, "telemetry.sdk.name", "opentelemetry");
    }

    fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first.saturating_add(self.items)
    }

    fn spans(&self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let mut trace: [u8; 16] = random.random();
        let mut parent = Vec::new();
        for number in self.numbers() {
            if number % 8 == 0 {
                trace = random.random();
                parent.clear();
            }
            message(out, 2, |out| {
                let id: [u8; 8] = random.random();
                let failed = random.random_ratio(1, 50);
                bytes(out, 1, &trace);
                bytes(out, 2, &id);
                if !parent.is_empty() {
                    bytes(out, 4, &parent);
                }
                let route = pick(random, &ROUTES);
                bytes(out, 5, format!("{} {route}", pick(random, &METHODS)).as_bytes());
                uint(out, 6, 2);
                fixed64(out, 7, self.time_ns + number * 1_000);
                fixed64(out, 8, self.time_ns + number * 1_000 + random.random_range(100_000..50_000_000));
                attributes(random, out, 9, number, route, failed);
                message(out, 15, |out| {
                    if failed {
                        bytes(out, 2, b"context deadline exceeded");
                        uint(out, 3, 2);
                    }
                });
                parent = id.to_vec();
            });
        }
    }

    fn logs(&self, random: &mut SmallRng, out: &mut Vec<u8>) {
        for number in self.numbers() {
            message(out, 2, |out| {
                let failed = random.random_ratio(1, 50);
                let route = pick(random, &ROUTES);
                fixed64(out, 1, self.time_ns + number * 1_000);
                uint(out, 2, if failed { 17 } else { 9 });
                bytes(out, 3, if failed { b"ERROR" } else { b"INFO" });
                message(out, 5, |out| {
                    let user: u32 = random.random();
                    let took = random.random_range(1..900);
                    let line = format!("handled {route} for user {user} in {took} ms, 3 rows, cache hit");
                    bytes(out, 1, line.as_bytes());
                });
                attributes(random, out, 6, number, route, failed);
                bytes(out, 9, &random.random::<[u8; 16]>());
                bytes(out, 10, &random.random::<[u8; 8]>());
                fixed64(out, 11, self.time_ns + number * 1_000 + 40_000);
            });
        }
    }

    fn points(&self, random: &mut SmallRng, out: &mut Vec<u8>) {
        const NAMES: [&str; 5] = [
            "http.server.active_requests",
            "process.runtime.go.goroutines",
            "db.client.connections.usage",
            "messaging.consumer.lag",
            "http.server.request.count",
        ];
        let numbers: Vec<u64> = self.numbers().collect();
        for (name, numbers) in NAMES.iter().zip(numbers.chunks(numbers.len().div_ceil(NAMES.len()).max(1))) {
            message(out, 2, |out| {
                bytes(out, 1, name.as_bytes());
                bytes(out, 3, b"{request}");
                message(out, 5, |out| {
                    for number in numbers {
                        message(out, 1, |out| {
                            fixed64(out, 2, self.time_ns - 60_000_000_000);
                            fixed64(out, 3, self.time_ns + number * 1_000);
                            fixed64(out, 6, random.random_range(0..100_000));
                            let route = pick(random, &ROUTES);
                            attributes(random, out, 7, *number, route, false);
                        });
                    }
                });
            });
        }
    }
}

fn pick<'a>(random: &mut SmallRng, among: &[&'a str]) -> &'a str {
    among.get(random.random_range(0..among.len().max(1))).copied().unwrap_or_default()
}

fn attributes(random: &mut SmallRng, out: &mut Vec<u8>, field: u64, number: u64, route: &str, failed: bool) {
    integer(out, field, NUMBER, number);
    text(out, field, "http.request.method", pick(random, &METHODS));
    text(out, field, "http.route", route);
    integer(out, field, "http.response.status_code", if failed { 503 } else { 200 });
    text(out, field, "server.address", "shop-frontend.production.svc.cluster.local");
    text(out, field, "user_agent.original", pick(random, &AGENTS));
    text(out, field, "network.protocol.version", "1.1");
    text(out, field, "enduser.id", &format!("user-{:08x}", random.random::<u32>()));
}

fn text(out: &mut Vec<u8>, field: u64, name: &str, value: &str) {
    message(out, field, |out| {
        bytes(out, 1, name.as_bytes());
        message(out, 2, |out| bytes(out, 1, value.as_bytes()));
    });
}

fn integer(out: &mut Vec<u8>, field: u64, name: &str, value: u64) {
    message(out, field, |out| {
        bytes(out, 1, name.as_bytes());
        message(out, 2, |out| {
            varint(out, 3 << 3);
            varint(out, value);
        });
    });
}

fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// The numbers of all items of a request, in order; items without one are counted in the second place.
///
/// # Errors
/// When the request is not protobuf.
pub fn numbers(signal: Signal, body: &[u8], mut each: impl FnMut(u64)) -> Result<u64, DecodeError> {
    let mut unnumbered = 0;
    let mut item = |item: &[u8], field: u64| {
        match number(item, field)? {
            Some(number) => each(number),
            None => unnumbered += 1,
        }
        Ok(())
    };
    inside(body, &[1, 2], &mut |scope| {
        inside(scope, &[2], &mut |found| match signal {
            Signal::Traces => item(found, 9),
            Signal::Logs => item(found, 6),
            // Gauges and sums; nothing else is made here.
            Signal::Metrics => {
                for kind in [5, 7] {
                    inside(found, &[kind, 1], &mut |point| item(point, 7))?;
                }
                Ok(())
            }
        })
    })?;
    Ok(unnumbered)
}

/// Calls `each` with every message at the end of a path of fields.
fn inside(
    body: &[u8],
    path: &[u64],
    each: &mut dyn FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let Some((first, rest)) = path.split_first() else { return each(body) };
    for field in Fields(body) {
        if let (number, Value::Bytes(inner)) = field?
            && number == *first
        {
            inside(inner, rest, each)?;
        }
    }
    Ok(())
}

fn number(item: &[u8], field: u64) -> Result<Option<u64>, DecodeError> {
    let mut found = None;
    inside(item, &[field], &mut |attribute| {
        let (mut name, mut value) = (&[][..], None);
        for part in Fields(attribute) {
            match part? {
                (1, Value::Bytes(text)) => name = text,
                (2, Value::Bytes(any)) => {
                    for part in Fields(any) {
                        if let (3, Value::Varint(number)) = part? {
                            value = Some(number);
                        }
                    }
                }
                _ => {}
            }
        }
        if name == NUMBER.as_bytes() {
            found = value;
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_and_as_long_as_real_ones() {
        for signal in Signal::ALL {
            let request =
                ExportRequest { signal, items: 200, first: 1_000, time_ns: 1_700_000_000_000_000_000 };
            let body = request.encode();
            let mut found = Vec::new();
            assert_eq!(numbers(signal, &body, |number| found.push(number)).unwrap(), 0);
            assert_eq!(found, (1_000..1_200).collect::<Vec<_>>());
            let each = body.len() / 200;
            assert!((350..=500).contains(&each), "{signal:?}: {each} bytes an item");
        }
    }
}
