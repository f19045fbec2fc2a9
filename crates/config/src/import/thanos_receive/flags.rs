//! The flags of `thanos receive` as of v0.42.0, from its `cmd/thanos/receive.go`, `config.go` and `main.go`.

/// A flag.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) values: Values,
    /// Why it has no counterpart; empty for flags that are converted.
    pub(super) reason: &'static str,
}

/// The values that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// One.
    One,
    /// One each time, and it may be repeated.
    Many,
    /// None: `--flag` and `--no-flag`.
    Switch,
}

use Values::{Many, One, Switch};

const LOG: &str = "not needed: `--log` and `--log-format` of `tidegate run` say what is logged";
const TRACING: &str = "left out: tidegate exports no traces of its own";
const MEMORY: &str = "not needed: `memory` bounds the whole process";
const STORE: &str = "not needed: a router stores nothing";
const STORE_API: &str = "left out: tidegate has no StoreAPI and no gRPC server for ingestors: remove it from the endpoints of queriers";
const GRACE: &str =
    "left out: at the end tidegate answers what it has read and closes; the journal keeps the rest";
const CIPHERS: &str = "left out: cipher suites and curves cannot be chosen";
const CAPNPROTO: &str =
    "left out: there is no Cap'n Proto; tidegate sends gRPC to `address` of each endpoint";

/// Every flag.
pub(super) const FLAGS: &[Flag] = &[
    flag("log.level", One, LOG),
    flag("log.format", One, LOG),
    flag("debug.name", One, LOG),
    flag("tracing.config-file", One, TRACING),
    flag("tracing.config", One, TRACING),
    flag("enable-auto-gomemlimit", Switch, MEMORY),
    flag("auto-gomemlimit.ratio", One, MEMORY),
    flag("http-address", One, ""),
    flag("http-grace-period", One, GRACE),
    flag(
        "http.config",
        One,
        "left out: `access.admin_credentials_file` protects the admin address, which has no TLS",
    ),
    flag("grpc-address", One, STORE_API),
    flag("grpc-server-tls-cert", One, STORE_API),
    flag("grpc-server-tls-key", One, STORE_API),
    flag("grpc-server-tls-client-ca", One, STORE_API),
    flag("grpc-server-tls-min-version", One, STORE_API),
    flag("grpc-server-tls-ciphers", Many, STORE_API),
    flag("grpc-server-tls-curves", Many, STORE_API),
    flag("grpc-server-max-connection-age", One, STORE_API),
    flag("grpc-grace-period", One, STORE_API),
    flag("store.limits.request-series", One, STORE_API),
    flag("store.limits.request-samples", One, STORE_API),
    flag("remote-write.address", One, ""),
    flag("remote-write.server-tls-cert", One, ""),
    flag("remote-write.server-tls-key", One, ""),
    flag("remote-write.server-tls-client-ca", One, ""),
    flag("remote-write.server-tls-min-version", One, ""),
    flag("remote-write.server-tls-ciphers", Many, CIPHERS),
    flag("remote-write.server-tls-curves", Many, CIPHERS),
    flag("remote-write.client-tls-cert", One, ""),
    flag("remote-write.client-tls-key", One, ""),
    flag("remote-write.client-tls-secure", Switch, ""),
    flag("remote-write.client-tls-skip-verify", Switch, ""),
    flag("remote-write.client-tls-ca", One, ""),
    flag("remote-write.client-server-name", One, ""),
    flag("remote-write.client-tls-min-version", One, ""),
    flag("tsdb.path", One, STORE),
    flag("label", Many, "not needed: the ingestors announce their own labels"),
    flag("objstore.config-file", One, STORE),
    flag("objstore.config", One, STORE),
    flag("tsdb.retention", One, STORE),
    flag("receive.hashrings-file", One, ""),
    flag("receive.hashrings", One, ""),
    flag("receive.hashrings-algorithm", One, ""),
    flag(
        "receive.hashrings-file-refresh-interval",
        One,
        "not needed: the file is looked at every five seconds",
    ),
    flag("receive.local-endpoint", One, ""),
    flag("receive.tenant-header", One, ""),
    flag("receive.artificial-max-delay", One, "left out: requests are not delayed"),
    flag("receive.tenant-certificate-field", One, ""),
    flag("receive.default-tenant-id", One, ""),
    flag("receive.split-tenant-label-name", One, ""),
    flag(
        "receive.tenant-label-name",
        One,
        "not needed: the ingestors announce tenants, with the flag of the same name",
    ),
    flag("receive.replica-header", One, ""),
    flag(
        "receive.forward.async-workers",
        One,
        "left out: each ingestor gets one request at a time, in order",
    ),
    flag("receive.grpc-compression", One, ""),
    flag("receive.replication-factor", One, ""),
    flag("receive.replication-protocol", One, ""),
    flag("receive.capnproto-address", One, CAPNPROTO),
    flag(
        "receive.grpc-service-config",
        One,
        "left out: `timeout`, `backoff` and `handoff` of the sink say how it retries",
    ),
    flag("receive-forward-timeout", One, ""),
    flag("receive-forward-max-backoff", One, ""),
    flag("receive.relabel-config-file", One, ""),
    flag("receive.relabel-config", One, ""),
    flag("tsdb.min-block-duration", One, STORE),
    flag("tsdb.max-block-duration", One, STORE),
    flag("tsdb.too-far-in-future.time-window", One, STORE),
    flag("tsdb.out-of-order.time-window", One, STORE),
    flag("tsdb.out-of-order.cap-max", One, STORE),
    flag("tsdb.allow-overlapping-blocks", Switch, STORE),
    flag("tsdb.max-retention-bytes", One, STORE),
    flag("tsdb.wal-compression", Switch, STORE),
    flag("tsdb.no-lockfile", Switch, STORE),
    flag("tsdb.head.expanded-postings-cache-size", One, STORE),
    flag("tsdb.block.expanded-postings-cache-size", One, STORE),
    flag("tsdb.max-exemplars", One, STORE),
    flag("tsdb.write-queue-size", One, STORE),
    flag("tsdb.memory-snapshot-on-shutdown", Switch, STORE),
    flag("tsdb.enable-native-histograms", Switch, STORE),
    flag("writer.intern", Switch, STORE),
    flag("hash-func", One, STORE),
    flag("shipper.allow-out-of-order-uploads", Switch, STORE),
    flag("shipper.skip-corrupted-blocks", Switch, STORE),
    flag("shipper.upload-concurrency", One, STORE),
    flag("matcher-cache-size", One, STORE_API),
    flag("request.logging-config-file", One, "left out: `tidegate tap` shows requests"),
    flag("request.logging-config", One, "left out: `tidegate tap` shows requests"),
    flag("receive.limits-config-file", One, ""),
    flag("receive.limits-config", One, ""),
    flag("receive.limits-config-reload-timer", One, "not needed: SIGHUP reloads the limits"),
    flag("receive.otlp-enable-target-info", Switch, ""),
    flag("receive.otlp-promote-resource-attributes", Many, ""),
    flag("enable-feature", Many, "left out: the features of Thanos Receive are about its StoreAPI"),
    flag("receive.lazy-retrieval-max-buffered-responses", One, STORE_API),
];

const fn flag(name: &'static str, values: Values, reason: &'static str) -> Flag {
    Flag { name, values, reason }
}

/// The flag of this name.
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}
