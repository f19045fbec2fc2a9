//! The attribute names of event fields. Other fields keep their name, after the table's prefix.

/// The treatment of an object's member.
#[derive(Debug, Clone, Copy)]
pub(super) enum AttributeMapping {
    /// It is said elsewhere.
    Skip,
    /// The attribute of this name; a list or an object as its JSON.
    As(&'static str),
    /// The attributes of a table.
    Into(&'static MemberTable),
    /// A list of texts under this name.
    Texts(&'static str),
    /// Labels of the user: `labels.` and the name.
    Labels,
}

/// The members of an object.
#[derive(Debug)]
pub(super) struct MemberTable {
    /// The prefix for names of unknown members.
    pub(super) rest: &'static str,
    pub(super) known: &'static [(&'static str, AttributeMapping)],
}

impl MemberTable {
    /// The treatment of a member, and its index among the known ones.
    pub(super) fn of(&self, name: &[u8]) -> Option<(u32, AttributeMapping)> {
        let found = (0..).zip(self.known).find(|(_, (known, _))| known.as_bytes() == name);
        found.map(|(place, (_, to))| (place, *to))
    }
}

const fn table(rest: &'static str, known: &'static [(&'static str, AttributeMapping)]) -> MemberTable {
    MemberTable { rest, known }
}

use AttributeMapping::{As, Into, Labels, Skip, Texts};

pub(super) static METADATA: MemberTable = table(
    "elastic.metadata.",
    &[
        ("service", Into(&SERVICE)),
        ("process", Into(&PROCESS)),
        ("system", Into(&SYSTEM)),
        ("cloud", Into(&CLOUD)),
        ("user", Into(&METADATA_USER)),
        ("labels", Labels),
        ("network", Into(&NETWORK)),
        ("tidegate", Into(&REQUESTED)),
    ],
);

/// The source's knowledge of a browser's request.
static REQUESTED: MemberTable = table(
    "elastic.metadata.tidegate.",
    &[
        ("client", As("client.address")),
        ("source", As("source.address")),
        ("port", As("source.port")),
        ("nat", As("source.nat.ip")),
        ("user_agent", As("user_agent.original")),
    ],
);

static SERVICE: MemberTable = table(
    "elastic.metadata.service.",
    &[
        ("name", As("service.name")),
        ("version", As("service.version")),
        ("environment", As("deployment.environment.name")),
        ("node", Into(&NODE)),
        ("agent", Into(&AGENT)),
        ("language", Into(&LANGUAGE)),
        ("runtime", Into(&RUNTIME)),
        ("framework", Into(&FRAMEWORK)),
    ],
);

static NODE: MemberTable =
    table("elastic.metadata.service.node.", &[("configured_name", As("service.instance.id"))]);

static AGENT: MemberTable = table(
    "elastic.metadata.service.agent.",
    // The name is said with a prefix, by itself.
    &[("name", Skip), ("version", As("telemetry.sdk.version"))],
);

static LANGUAGE: MemberTable =
    table("elastic.metadata.service.language.", &[("name", As("telemetry.sdk.language"))]);

static RUNTIME: MemberTable = table(
    "elastic.metadata.service.runtime.",
    &[("name", As("process.runtime.name")), ("version", As("process.runtime.version"))],
);

static FRAMEWORK: MemberTable = table("elastic.metadata.service.framework.", &[]);

static PROCESS: MemberTable = table(
    "elastic.metadata.process.",
    &[
        ("pid", As("process.pid")),
        ("ppid", As("process.parent_pid")),
        ("title", As("process.title")),
        ("argv", Texts("process.command_args")),
    ],
);

static SYSTEM: MemberTable = table(
    "elastic.metadata.system.",
    &[
        ("architecture", As("host.arch")),
        ("platform", As("os.type")),
        ("container", Into(&CONTAINER)),
        ("kubernetes", Into(&KUBERNETES)),
    ],
);

static CONTAINER: MemberTable = table("elastic.metadata.system.container.", &[("id", As("container.id"))]);

static KUBERNETES: MemberTable = table(
    "elastic.metadata.system.kubernetes.",
    &[("namespace", As("k8s.namespace.name")), ("node", Into(&KUBERNETES_NODE)), ("pod", Into(&POD))],
);

static KUBERNETES_NODE: MemberTable =
    table("elastic.metadata.system.kubernetes.node.", &[("name", As("k8s.node.name"))]);

static POD: MemberTable = table(
    "elastic.metadata.system.kubernetes.pod.",
    &[("name", As("k8s.pod.name")), ("uid", As("k8s.pod.uid"))],
);

static CLOUD: MemberTable = table(
    "elastic.metadata.cloud.",
    &[
        ("provider", As("cloud.provider")),
        ("region", As("cloud.region")),
        ("availability_zone", As("cloud.availability_zone")),
        ("account", Into(&ACCOUNT)),
        ("instance", Into(&INSTANCE)),
        ("machine", Into(&MACHINE)),
        ("project", Into(&PROJECT)),
        ("service", Into(&CLOUD_SERVICE)),
    ],
);

static ACCOUNT: MemberTable = table("elastic.metadata.cloud.account.", &[("id", As("cloud.account.id"))]);
static INSTANCE: MemberTable = table("elastic.metadata.cloud.instance.", &[("id", As("host.id"))]);
static MACHINE: MemberTable = table("elastic.metadata.cloud.machine.", &[("type", As("host.type"))]);
static PROJECT: MemberTable = table("elastic.metadata.cloud.project.", &[]);
static CLOUD_SERVICE: MemberTable =
    table("elastic.metadata.cloud.service.", &[("name", As("cloud.platform"))]);
static METADATA_USER: MemberTable = table(
    "elastic.metadata.user.",
    &[("id", As("user.id")), ("username", As("user.name")), ("email", As("user.email"))],
);
static NETWORK: MemberTable = table("elastic.metadata.network.", &[("connection", Into(&CONNECTION))]);
static CONNECTION: MemberTable =
    table("elastic.metadata.network.connection.", &[("type", As("network.connection.type"))]);

/// The dedicated fields that spans, errors and metrics share.
macro_rules! said_elsewhere {
    ($($name:literal),*; $($other:tt)*) => { &[$(($name, Skip),)* $($other)*] };
}

pub(super) static TRANSACTION: MemberTable = table(
    "elastic.transaction.",
    said_elsewhere!["id", "trace_id", "parent_id", "name", "timestamp", "duration", "sample_rate", "outcome", "links";
        ("type", As("transaction.type")),
        ("result", As("transaction.result")),
        ("sampled", As("transaction.sampled")),
        ("span_count", Into(&SPAN_COUNT)),
        ("context", Into(&CONTEXT)),
        ("session", Into(&SESSION)),
        ("faas", Into(&FAAS)),
        ("otel", Into(&OTEL)),
    ],
);

static SPAN_COUNT: MemberTable = table(
    "elastic.transaction.span_count.",
    &[("started", As("transaction.span_count.started")), ("dropped", As("transaction.span_count.dropped"))],
);

static SESSION: MemberTable = table("elastic.transaction.session.", &[("id", As("session.id"))]);

static FAAS: MemberTable = table(
    "elastic.faas.",
    &[
        ("name", As("faas.name")),
        ("version", As("faas.version")),
        ("coldstart", As("faas.coldstart")),
        ("execution", As("faas.invocation_id")),
    ],
);

static OTEL: MemberTable = table("elastic.otel.", &[("attributes", Into(&OTEL_ATTRIBUTES))]);
static OTEL_ATTRIBUTES: MemberTable = table("elastic.otel.attributes.", &[]);

static CONTEXT: MemberTable = table(
    "elastic.context.",
    &[
        ("tags", Labels),
        ("user", Into(&USER)),
        ("request", Into(&REQUEST)),
        ("response", Into(&RESPONSE)),
        ("message", Into(&MESSAGE)),
        ("service", Into(&CONTEXT_SERVICE)),
    ],
);

static USER: MemberTable = table(
    "elastic.context.user.",
    &[
        ("id", As("user.id")),
        ("username", As("user.name")),
        ("email", As("user.email")),
        ("domain", As("user.domain")),
    ],
);

static REQUEST: MemberTable = table(
    "elastic.context.request.",
    &[
        ("method", As("http.request.method")),
        ("http_version", As("network.protocol.version")),
        ("url", Into(&URL)),
        ("socket", Into(&SOCKET)),
    ],
);

static URL: MemberTable = table(
    "elastic.context.request.url.",
    &[
        ("full", As("url.full")),
        ("raw", As("url.original")),
        ("hostname", As("url.domain")),
        ("port", As("url.port")),
        ("pathname", As("url.path")),
        ("search", As("url.query")),
        ("hash", As("url.fragment")),
    ],
);

static SOCKET: MemberTable =
    table("elastic.context.request.socket.", &[("remote_address", As("network.peer.address"))]);

static RESPONSE: MemberTable =
    table("elastic.context.response.", &[("status_code", As("http.response.status_code"))]);

static MESSAGE: MemberTable = table("elastic.context.message.", &[("queue", Into(&QUEUE))]);
static QUEUE: MemberTable =
    table("elastic.context.message.queue.", &[("name", As("messaging.destination.name"))]);
static CONTEXT_SERVICE: MemberTable = table("elastic.context.service.", &[]);

pub(super) static SPAN: MemberTable = table(
    "elastic.span.",
    said_elsewhere!["id", "trace_id", "parent_id", "name", "timestamp", "duration", "sample_rate", "outcome", "links";
        ("type", As("span.type")),
        ("subtype", As("span.subtype")),
        ("action", As("span.action")),
        ("sync", As("span.sync")),
        ("transaction_id", As("transaction.id")),
        ("composite", Into(&COMPOSITE)),
        ("context", Into(&SPAN_CONTEXT)),
        ("otel", Into(&OTEL)),
    ],
);

static COMPOSITE: MemberTable = table(
    "elastic.span.composite.",
    &[
        ("count", As("span.composite.count")),
        ("sum", As("span.composite.sum")),
        ("compression_strategy", As("span.composite.compression_strategy")),
    ],
);

static SPAN_CONTEXT: MemberTable = table(
    "elastic.context.",
    &[
        ("tags", Labels),
        ("db", Into(&DB)),
        ("destination", Into(&DESTINATION)),
        ("http", Into(&SPAN_HTTP)),
        ("message", Into(&MESSAGE)),
        ("service", Into(&CONTEXT_SERVICE)),
    ],
);

static DB: MemberTable = table(
    "elastic.context.db.",
    &[("statement", As("db.query.text")), ("instance", As("db.namespace")), ("user", As("db.user"))],
);

static DESTINATION: MemberTable = table(
    "elastic.context.destination.",
    &[
        ("address", As("server.address")),
        ("port", As("server.port")),
        ("service", Into(&DESTINATION_SERVICE)),
    ],
);

static DESTINATION_SERVICE: MemberTable = table("elastic.context.destination.service.", &[]);

static SPAN_HTTP: MemberTable = table(
    "elastic.context.http.",
    &[
        ("url", As("url.full")),
        ("method", As("http.request.method")),
        ("status_code", As("http.response.status_code")),
    ],
);

pub(super) static ERROR: MemberTable = table(
    "elastic.error.",
    said_elsewhere!["trace_id", "parent_id", "timestamp";
        ("id", As("error.id")),
        ("transaction_id", As("transaction.id")),
        ("transaction", Into(&ERROR_TRANSACTION)),
        ("context", Into(&CONTEXT)),
        ("exception", Into(&EXCEPTION)),
        ("log", Into(&ERROR_LOG)),
    ],
);

static ERROR_TRANSACTION: MemberTable = table(
    "elastic.error.transaction.",
    &[
        ("sampled", As("transaction.sampled")),
        ("type", As("transaction.type")),
        ("name", As("transaction.name")),
    ],
);

static EXCEPTION: MemberTable =
    table("elastic.exception.", &[("type", As("exception.type")), ("message", As("exception.message"))]);

static ERROR_LOG: MemberTable = table("elastic.error.log.", &[]);

pub(super) static METRICSET: MemberTable = table(
    "elastic.metricset.",
    said_elsewhere!["samples", "timestamp";
        ("tags", Labels),
        ("span", Into(&METRICSET_SPAN)),
        ("transaction", Into(&METRICSET_TRANSACTION)),
        ("service", Into(&CONTEXT_SERVICE)),
        ("faas", Into(&FAAS)),
    ],
);

static METRICSET_SPAN: MemberTable =
    table("elastic.metricset.span.", &[("type", As("span.type")), ("subtype", As("span.subtype"))]);

static METRICSET_TRANSACTION: MemberTable = table(
    "elastic.metricset.transaction.",
    &[("type", As("transaction.type")), ("name", As("transaction.name"))],
);

/// A metric, but for what OTLP has fields for.
pub(super) static SAMPLE: MemberTable =
    table("elastic.sample.", said_elsewhere!["value", "values", "counts", "type", "unit";]);
