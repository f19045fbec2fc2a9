//! What becomes of the fields of intake events: the fields of Elastic APM's documents.

/// What becomes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// It is an object, whose members are looked at.
    Enter,
    /// This field, as a text.
    Text(&'static str),
    /// This field, as it stands.
    Json(&'static str),
    /// Two fields, as texts.
    Both(&'static str, &'static str),
    /// Milliseconds, which become this field in microseconds.
    Duration(&'static str),
    /// A sampling rate, which becomes the number that stands for it.
    Rate(&'static str),
    /// An IP address, for both.
    Address(&'static str, &'static str),
    /// An object of labels.
    Labels,
    /// Headers of a request, for this field; one may name the user's agent.
    Headers(&'static str),
    /// A list of frames, for this field.
    Frames(&'static str),
    /// A list of links.
    Links,
    /// An exception with its causes.
    Exception,
    /// An object of metrics.
    Samples,
    /// When it happened.
    Time,
    /// It is said elsewhere.
    Elsewhere,
}

use To::{
    Address, Both, Duration, Elsewhere, Enter, Exception, Frames, Headers, Json, Labels, Links, Rate,
    Samples, Text, Time,
};

/// What becomes of a member of the metadata.
pub(super) fn of_metadata(path: &[u8]) -> Option<To> {
    Some(match path {
        b"process"
        | b"system"
        | b"system.container"
        | b"system.kubernetes"
        | b"system.kubernetes.node"
        | b"system.kubernetes.pod"
        | b"cloud"
        | b"cloud.account"
        | b"cloud.instance"
        | b"cloud.machine"
        | b"cloud.project"
        | b"cloud.service"
        | b"user"
        | b"network"
        | b"network.connection" => Enter,
        b"process.pid" => Json("process.pid"),
        b"process.ppid" => Json("process.parent.pid"),
        b"process.title" => Text("process.title"),
        b"process.argv" => Json("process.args"),
        b"system.architecture" => Text("host.architecture"),
        b"system.platform" => Text("host.os.platform"),
        b"system.hostname" | b"system.detected_hostname" | b"system.configured_hostname" => Elsewhere,
        b"system.container.id" => Text("container.id"),
        b"system.kubernetes.namespace" => Text("kubernetes.namespace"),
        b"system.kubernetes.node.name" => Text("kubernetes.node.name"),
        b"system.kubernetes.pod.name" => Text("kubernetes.pod.name"),
        b"system.kubernetes.pod.uid" => Text("kubernetes.pod.uid"),
        b"cloud.provider" => Text("cloud.provider"),
        b"cloud.region" => Text("cloud.region"),
        b"cloud.availability_zone" => Text("cloud.availability_zone"),
        b"cloud.account.id" => Text("cloud.account.id"),
        b"cloud.account.name" => Text("cloud.account.name"),
        b"cloud.instance.id" => Text("cloud.instance.id"),
        b"cloud.instance.name" => Text("cloud.instance.name"),
        b"cloud.machine.type" => Text("cloud.machine.type"),
        b"cloud.project.id" => Text("cloud.project.id"),
        b"cloud.project.name" => Text("cloud.project.name"),
        b"cloud.service.name" => Text("cloud.service.name"),
        b"network.connection.type" => Text("network.connection.type"),
        b"labels" => Labels,
        _ => return of_user(path).or_else(|| of_service(path)),
    })
}

/// What becomes of a member of a transaction.
pub(super) fn of_transaction(path: &[u8]) -> Option<To> {
    Some(match path {
        b"id" => Both("transaction.id", "span.id"),
        b"type" => Text("transaction.type"),
        b"name" => Text("transaction.name"),
        b"result" => Text("transaction.result"),
        b"duration" => Duration("transaction.duration.us"),
        b"sampled" => Json("transaction.sampled"),
        b"sample_rate" => Rate("transaction.representative_count"),
        b"span_count" | b"session" => Enter,
        b"span_count.started" => Json("transaction.span_count.started"),
        b"span_count.dropped" => Json("transaction.span_count.dropped"),
        b"session.id" => Text("session.id"),
        b"session.sequence" => Json("session.sequence"),
        b"dropped_spans_stats" => Json("transaction.dropped_spans_stats"),
        b"marks" => Json("transaction.marks"),
        b"experience" => Json("transaction.experience"),
        b"context.custom" => Json("transaction.custom"),
        b"context.message.queue.name" => Text("transaction.message.queue.name"),
        b"context.message.routing_key" => Text("transaction.message.routing_key"),
        b"context.message.body" => Text("transaction.message.body"),
        b"context.message.headers" => Json("transaction.message.headers"),
        b"context.message.age.ms" => Json("transaction.message.age.ms"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// What becomes of a member of a span.
pub(super) fn of_span(path: &[u8]) -> Option<To> {
    Some(match path {
        b"id" => Text("span.id"),
        b"transaction_id" => Text("transaction.id"),
        b"name" => Text("span.name"),
        b"type" => Text("span.type"),
        b"subtype" => Text("span.subtype"),
        b"action" => Text("span.action"),
        b"start" => Duration("span.start.us"),
        b"duration" => Duration("span.duration.us"),
        b"sync" => Json("span.sync"),
        b"sample_rate" => Rate("span.representative_count"),
        b"stacktrace" => Frames("span.stacktrace"),
        b"child_ids" => Json("child.id"),
        b"composite"
        | b"context.db"
        | b"context.destination"
        | b"context.destination.service"
        | b"context.http"
        | b"context.http.request"
        | b"context.http.response" => Enter,
        b"composite.count" => Json("span.composite.count"),
        b"composite.sum" => Duration("span.composite.sum.us"),
        b"composite.compression_strategy" => Text("span.composite.compression_strategy"),
        b"context.db.instance" => Text("span.db.instance"),
        b"context.db.statement" => Text("span.db.statement"),
        b"context.db.type" => Text("span.db.type"),
        b"context.db.user" => Text("span.db.user.name"),
        b"context.db.link" => Text("span.db.link"),
        b"context.db.rows_affected" => Json("span.db.rows_affected"),
        b"context.destination.address" => Text("destination.address"),
        b"context.destination.port" => Json("destination.port"),
        b"context.destination.service.name" => Text("span.destination.service.name"),
        b"context.destination.service.resource" => Text("span.destination.service.resource"),
        b"context.destination.service.type" => Text("span.destination.service.type"),
        b"context.http.url" => Text("url.original"),
        b"context.http.method" => Text("http.request.method"),
        b"context.http.status_code" => Json("http.response.status_code"),
        b"context.http.request.id" => Text("http.request.id"),
        b"context.http.request.body" => Text("http.request.body.original"),
        b"context.http.response.status_code" => Json("http.response.status_code"),
        b"context.http.response.headers" => Json("http.response.headers"),
        b"context.http.response.transfer_size" => Json("http.response.transfer_size"),
        b"context.http.response.encoded_body_size" => Json("http.response.encoded_body_size"),
        b"context.http.response.decoded_body_size" => Json("http.response.decoded_body_size"),
        b"context.message.queue.name" => Text("span.message.queue.name"),
        b"context.message.routing_key" => Text("span.message.routing_key"),
        b"context.message.body" => Text("span.message.body"),
        b"context.message.headers" => Json("span.message.headers"),
        b"context.message.age.ms" => Json("span.message.age.ms"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// What becomes of a member of an error.
pub(super) fn of_error(path: &[u8]) -> Option<To> {
    Some(match path {
        b"id" => Text("error.id"),
        b"transaction_id" => Both("transaction.id", "span.id"),
        b"culprit" => Text("error.culprit"),
        b"transaction" | b"log" => Enter,
        b"transaction.sampled" => Json("transaction.sampled"),
        b"transaction.type" => Text("transaction.type"),
        b"transaction.name" => Text("transaction.name"),
        b"exception" => Exception,
        b"log.message" => Text("error.log.message"),
        b"log.level" => Text("error.log.level"),
        b"log.logger_name" => Text("error.log.logger_name"),
        b"log.param_message" => Text("error.log.param_message"),
        b"log.stacktrace" => Frames("error.log.stacktrace"),
        b"context.custom" => Json("error.custom"),
        b"context.message.queue.name" => Text("transaction.message.queue.name"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// What becomes of a member of a metricset.
pub(super) fn of_metricset(path: &[u8]) -> Option<To> {
    Some(match path {
        b"samples" => Samples,
        b"tags" => Labels,
        b"transaction" | b"span" => Enter,
        b"transaction.name" => Text("transaction.name"),
        b"transaction.type" => Text("transaction.type"),
        b"span.type" => Text("span.type"),
        b"span.subtype" => Text("span.subtype"),
        _ => return of_any(path).or_else(|| of_service(path)),
    })
}

/// What becomes of a member of a log record, whose fields are named as those of the document already.
pub(super) fn of_log(path: &[u8]) -> Option<To> {
    Some(match path {
        b"@timestamp" => Time,
        b"log" | b"log.origin" | b"log.origin.file" | b"trace" | b"transaction" | b"span" | b"process"
        | b"process.thread" | b"error" | b"event" | b"service" | b"service.node" => Enter,
        b"message" => Text("message"),
        b"log.level" => Text("log.level"),
        b"log.logger" => Text("log.logger"),
        b"log.origin.function" => Text("log.origin.function"),
        b"log.origin.file.name" => Text("log.origin.file.name"),
        b"log.origin.file.line" => Json("log.origin.file.line"),
        b"trace.id" => Text("trace.id"),
        b"transaction.id" => Text("transaction.id"),
        b"span.id" => Text("span.id"),
        b"process.thread.name" => Text("process.thread.name"),
        b"error.type" => Text("error.type"),
        b"error.message" => Text("error.message"),
        b"error.stack_trace" => Text("error.stack_trace"),
        b"event.dataset" => Text("event.dataset"),
        b"service.name" => Text("service.name"),
        b"service.version" => Text("service.version"),
        b"service.environment" => Text("service.environment"),
        b"service.node.name" => Text("service.node.name"),
        b"ecs.version" => Text("ecs.version"),
        b"labels" => Labels,
        _ => return of_faas(path),
    })
}

fn of_any(path: &[u8]) -> Option<To> {
    Some(match path {
        b"timestamp" => Time,
        b"trace_id" => Text("trace.id"),
        b"parent_id" => Text("parent.id"),
        b"outcome" => Text("event.outcome"),
        b"otel" | b"context" => Enter,
        b"otel.span_kind" => Text("span.kind"),
        b"otel.attributes" => Labels,
        b"links" => Links,
        _ => return of_faas(path),
    })
}

fn of_context(path: &[u8]) -> Option<To> {
    let path = path.strip_prefix(b"context.")?;
    Some(match path {
        b"tags" => Labels,
        b"request"
        | b"request.url"
        | b"request.socket"
        | b"response"
        | b"page"
        | b"message"
        | b"message.queue"
        | b"message.age"
        | b"cloud"
        | b"cloud.origin"
        | b"cloud.origin.account"
        | b"cloud.origin.service"
        | b"user" => Enter,
        b"request.method" => Text("http.request.method"),
        b"request.headers" => Headers("http.request.headers"),
        b"request.cookies" => Json("http.request.cookies"),
        b"request.env" => Json("http.request.env"),
        b"request.body" => Json("http.request.body.original"),
        b"request.http_version" => Text("http.version"),
        b"request.socket.remote_address" => Address("client.ip", "source.ip"),
        b"request.url.full" => Text("url.full"),
        b"request.url.raw" => Text("url.original"),
        b"request.url.protocol" => Text("url.scheme"),
        b"request.url.hostname" => Text("url.domain"),
        b"request.url.port" => Text("url.port"),
        b"request.url.pathname" => Text("url.path"),
        b"request.url.search" => Text("url.query"),
        b"request.url.hash" => Text("url.fragment"),
        b"response.status_code" => Json("http.response.status_code"),
        b"response.headers" => Json("http.response.headers"),
        b"response.finished" => Json("http.response.finished"),
        b"response.headers_sent" => Json("http.response.headers_sent"),
        b"response.transfer_size" => Json("http.response.transfer_size"),
        b"response.encoded_body_size" => Json("http.response.encoded_body_size"),
        b"response.decoded_body_size" => Json("http.response.decoded_body_size"),
        b"page.url" => Text("url.full"),
        b"page.referer" => Text("http.request.referrer"),
        b"cloud.origin.account.id" => Text("cloud.origin.account.id"),
        b"cloud.origin.provider" => Text("cloud.origin.provider"),
        b"cloud.origin.region" => Text("cloud.origin.region"),
        b"cloud.origin.service.name" => Text("cloud.origin.service.name"),
        _ => return of_user(path).or_else(|| of_service(path)),
    })
}

fn of_user(path: &[u8]) -> Option<To> {
    Some(match path {
        b"user.id" => Text("user.id"),
        b"user.username" => Text("user.name"),
        b"user.email" => Text("user.email"),
        b"user.domain" => Text("user.domain"),
        _ => return None,
    })
}

fn of_service(path: &[u8]) -> Option<To> {
    let path = path.strip_prefix(b"service")?;
    Some(match path {
        b"" | b".agent" | b".language" | b".runtime" | b".framework" | b".node" | b".target" | b".origin" => {
            Enter
        }
        b".name" => Text("service.name"),
        b".version" => Text("service.version"),
        b".environment" => Text("service.environment"),
        b".id" => Text("service.id"),
        b".agent.name" => Text("agent.name"),
        b".agent.version" => Text("agent.version"),
        b".agent.ephemeral_id" => Text("agent.ephemeral_id"),
        b".agent.activation_method" => Text("agent.activation_method"),
        b".language.name" => Text("service.language.name"),
        b".language.version" => Text("service.language.version"),
        b".runtime.name" => Text("service.runtime.name"),
        b".runtime.version" => Text("service.runtime.version"),
        b".framework.name" => Text("service.framework.name"),
        b".framework.version" => Text("service.framework.version"),
        b".node.configured_name" => Text("service.node.name"),
        b".target.type" => Text("service.target.type"),
        b".target.name" => Text("service.target.name"),
        b".origin.id" => Text("service.origin.id"),
        b".origin.name" => Text("service.origin.name"),
        b".origin.version" => Text("service.origin.version"),
        _ => return None,
    })
}

fn of_faas(path: &[u8]) -> Option<To> {
    let path = path.strip_prefix(b"faas")?;
    Some(match path {
        b"" | b".trigger" => Enter,
        b".id" => Text("faas.id"),
        b".name" => Text("faas.name"),
        b".version" => Text("faas.version"),
        b".coldstart" => Json("faas.coldstart"),
        b".execution" => Text("faas.execution"),
        b".trigger.type" => Text("faas.trigger.type"),
        b".trigger.request_id" => Text("faas.trigger.request_id"),
        _ => return None,
    })
}

/// Whether APM keeps a metric with those of its own agents, for which its templates know the fields.
pub(super) fn is_internal(metric: &[u8]) -> bool {
    const FAMILIES: [(&str, &[&str]); 8] = [
        (
            "agent.",
            &[
                "background.cpu.overhead.pct",
                "background.cpu.total.pct",
                "background.memory.allocation.bytes",
                "events.dropped",
                "events.queue.max_size.pct",
                "events.queue.min_size.pct",
                "events.requests.bytes",
                "events.requests.count",
                "events.total",
            ],
        ),
        ("clr.gc.", &["count", "gen0size", "gen1size", "gen2size", "gen3size", "time"]),
        ("faas.", &["billed_duration", "coldstart_duration", "duration", "timeout"]),
        (
            "golang.",
            &[
                "goroutines",
                "heap.allocations.active",
                "heap.allocations.allocated",
                "heap.allocations.frees",
                "heap.allocations.idle",
                "heap.allocations.mallocs",
                "heap.allocations.objects",
                "heap.allocations.total",
                "heap.gc.cpu_fraction",
                "heap.gc.next_gc_limit",
                "heap.gc.total_count",
                "heap.gc.total_pause.ns",
                "heap.system.obtained",
                "heap.system.released",
                "heap.system.stack",
                "heap.system.total",
            ],
        ),
        (
            "jvm.",
            &[
                "fd.max",
                "fd.used",
                "gc.alloc",
                "gc.count",
                "gc.time",
                "memory.heap.committed",
                "memory.heap.max",
                "memory.heap.pool.committed",
                "memory.heap.pool.max",
                "memory.heap.pool.used",
                "memory.heap.used",
                "memory.non_heap.committed",
                "memory.non_heap.max",
                "memory.non_heap.pool.committed",
                "memory.non_heap.pool.max",
                "memory.non_heap.pool.used",
                "memory.non_heap.used",
                "thread.count",
            ],
        ),
        (
            "nodejs.",
            &[
                "eventloop.delay.avg.ms",
                "handles.active",
                "memory.arrayBuffers.bytes",
                "memory.external.bytes",
                "memory.heap.allocated.bytes",
                "memory.heap.used.bytes",
                "requests.active",
            ],
        ),
        (
            "ruby.",
            &[
                "gc.count",
                "gc.time",
                "heap.allocations.total",
                "heap.slots.free",
                "heap.slots.live",
                "threads",
            ],
        ),
        (
            "system.",
            &[
                "cpu.total.norm.pct",
                "memory.actual.free",
                "memory.total",
                "process.cgroup.cpu.cfs.period.us",
                "process.cgroup.cpu.cfs.quota.us",
                "process.cgroup.cpu.stats.periods",
                "process.cgroup.cpu.stats.throttled.ns",
                "process.cgroup.cpu.stats.throttled.periods",
                "process.cgroup.cpuacct.total.ns",
                "process.cgroup.memory.mem.limit.bytes",
                "process.cgroup.memory.mem.usage.bytes",
                "process.cgroup.memory.stats.inactive_file.bytes",
                "process.cpu.system.norm.pct",
                "process.cpu.total.norm.pct",
                "process.cpu.user.norm.pct",
                "process.memory.rss.bytes",
                "process.memory.size",
            ],
        ),
    ];
    FAMILIES.iter().any(|(family, names)| {
        metric
            .strip_prefix(family.as_bytes())
            .is_some_and(|rest| names.iter().any(|name| name.as_bytes() == rest))
    })
}
