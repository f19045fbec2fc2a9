//! The mapping from intake fields to fields of Elastic APM's documents.

use super::SpecialMapping;

/// The treatment of a member.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldMapping {
    /// It is an object, whose members are looked at.
    Enter,
    /// This field, as a text, if there is anything in it.
    Text(&'static str),
    /// Two fields, as texts.
    Both(&'static str, &'static str),
    /// This field, as an integer that is not negative; left out where it is 0.
    Whole(&'static str),
    /// This field, as an integer that is not negative.
    Count(&'static str),
    /// This field, as a number that is not negative.
    Number(&'static str),
    /// This field, as a truth.
    Truth(&'static str),
    /// This field, as it stands: it is not indexed.
    Free(&'static str),
    /// This field, in a shape of its own.
    Shaped(SpecialMapping, &'static str),
    /// Milliseconds, which become this field in microseconds.
    Duration(&'static str),
    /// A scheme with its colon, for this field.
    Scheme(&'static str),
    /// Influences other fields; may be a field as well.
    Known(EventProperty, Option<&'static FieldMapping>),
    /// An object of the user, instead of which nothing counts that the metadata say of one.
    User,
    /// An object of labels.
    Labels,
    /// An object of metrics.
    Samples,
    /// When it happened.
    Time,
    /// It is said elsewhere.
    Elsewhere,
}

/// A property of an event that influences other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventProperty {
    Type,
    Subtype,
    Action,
    Outcome,
    Status,
    SampleRate,
    Sampled,
    Start,
    Result,
    Resource,
    TargetType,
    TargetName,
    Destination,
    AgentName,
    Headers,
    Remote,
    PageUrl,
    RequestUrl,
    ServiceName,
    ServiceVersion,
    Exception,
    Log,
    Level,
    Otel,
    Kind,
    Experience,
    LongTask,
    Transaction,
    Span,
    Error,
}

/// How many facts there are.
pub(super) const EVENT_PROPERTIES: usize = EventProperty::Error as usize + 1;

use FieldMapping::{
    Both, Count, Duration, Elsewhere, Enter, Free, Known, Labels, Number, Samples, Scheme, Shaped, Text,
    Time, Truth, User, Whole,
};

/// The treatment of a metadata member.
pub(super) fn of_metadata(path: &[u8]) -> Option<FieldMapping> {
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
        | b"tidegate"
        | b"network"
        | b"network.connection" => Enter,
        b"process.pid" => Whole("process.pid"),
        b"process.ppid" => Whole("process.parent.pid"),
        b"process.title" => Text("process.title"),
        b"process.argv" => Shaped(SpecialMapping::Texts, "process.args"),
        b"system.architecture" => Text("host.architecture"),
        b"system.platform" => Text("host.os.platform"),
        b"system.hostname" | b"system.detected_hostname" | b"system.configured_hostname" => Elsewhere,
        b"system.host_id" => Text("host.id"),
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
        // The source's knowledge of a browser's request.
        b"tidegate.client" => Text("client.ip"),
        b"tidegate.source" => Text("source.ip"),
        b"tidegate.port" => Whole("source.port"),
        b"tidegate.nat" => Text("source.nat.ip"),
        b"tidegate.user_agent" => Text("user_agent.original"),
        _ => return of_user(path).or_else(|| of_service(path)),
    })
}

/// The treatment of a transaction's member.
pub(super) fn of_transaction(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"id" => Both("transaction.id", "span.id"),
        b"type" => Known(EventProperty::Type, Some(&Text("transaction.type"))),
        b"name" => Text("transaction.name"),
        b"result" => Known(EventProperty::Result, Some(&Text("transaction.result"))),
        b"duration" => Duration("transaction.duration.us"),
        b"sampled" => Known(EventProperty::Sampled, None),
        b"sample_rate" => Known(EventProperty::SampleRate, None),
        b"span_count" | b"session" | b"experience" | b"experience.longtask" => Enter,
        b"span_count.started" => Count("transaction.span_count.started"),
        b"span_count.dropped" => Count("transaction.span_count.dropped"),
        b"session.id" => Text("session.id"),
        b"session.sequence" => Whole("session.sequence"),
        b"dropped_spans_stats" => Free("transaction.dropped_spans_stats"),
        b"marks" => Shaped(SpecialMapping::Marks, "transaction.marks"),
        b"experience.cls" => Known(EventProperty::Experience, Some(&Number("transaction.experience.cls"))),
        b"experience.fid" => Known(EventProperty::Experience, Some(&Number("transaction.experience.fid"))),
        b"experience.tbt" => Known(EventProperty::Experience, Some(&Number("transaction.experience.tbt"))),
        b"experience.longtask.count" => {
            Known(EventProperty::LongTask, Some(&Count("transaction.experience.longtask.count")))
        }
        b"experience.longtask.sum" => {
            Known(EventProperty::LongTask, Some(&Number("transaction.experience.longtask.sum")))
        }
        b"experience.longtask.max" => {
            Known(EventProperty::LongTask, Some(&Number("transaction.experience.longtask.max")))
        }
        b"context.custom" => Shaped(SpecialMapping::Custom, "transaction.custom"),
        b"context.message.queue.name" => Text("transaction.message.queue.name"),
        b"context.message.routing_key" => Text("transaction.message.routing_key"),
        b"context.message.body" => Text("transaction.message.body"),
        b"context.message.headers" => Shaped(SpecialMapping::Headers, "transaction.message.headers"),
        b"context.message.age.ms" => Count("transaction.message.age.ms"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// The treatment of a span's member.
pub(super) fn of_span(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"id" => Text("span.id"),
        b"transaction_id" => Text("transaction.id"),
        b"name" => Text("span.name"),
        b"type" => Known(EventProperty::Type, None),
        b"subtype" => Known(EventProperty::Subtype, None),
        b"action" => Known(EventProperty::Action, None),
        b"start" => Known(EventProperty::Start, Some(&Duration("span.start.us"))),
        b"duration" => Duration("span.duration.us"),
        b"sync" => Truth("span.sync"),
        b"sample_rate" => Known(EventProperty::SampleRate, None),
        b"stacktrace" => Shaped(SpecialMapping::Frames, "span.stacktrace"),
        b"child_ids" => Shaped(SpecialMapping::Texts, "child.id"),
        b"composite"
        | b"context.db"
        | b"context.destination"
        | b"context.destination.service"
        | b"context.http"
        | b"context.http.request"
        | b"context.http.response" => Enter,
        b"composite.count" => Count("span.composite.count"),
        b"composite.sum" => Duration("span.composite.sum.us"),
        b"composite.compression_strategy" => Text("span.composite.compression_strategy"),
        b"context.db.instance" => Text("span.db.instance"),
        b"context.db.statement" => Text("span.db.statement"),
        b"context.db.type" => Text("span.db.type"),
        b"context.db.user" => Text("span.db.user.name"),
        b"context.db.link" => Text("span.db.link"),
        b"context.db.rows_affected" => Count("span.db.rows_affected"),
        b"context.destination.address" => {
            Known(EventProperty::Destination, Some(&Text("destination.address")))
        }
        b"context.destination.port" => Whole("destination.port"),
        b"context.destination.service.name" => Text("span.destination.service.name"),
        b"context.destination.service.resource" => {
            Known(EventProperty::Resource, Some(&Text("span.destination.service.resource")))
        }
        b"context.destination.service.type" => Text("span.destination.service.type"),
        b"context.http.url" => Text("url.original"),
        b"context.http.method" => Text("http.request.method"),
        b"context.http.status_code" => Known(EventProperty::Status, None),
        b"context.http.request.id" => Text("http.request.id"),
        b"context.http.request.body" => Free("http.request.body.original"),
        b"context.http.response.status_code" => Whole("http.response.status_code"),
        b"context.http.response.headers" => Shaped(SpecialMapping::Headers, "http.response.headers"),
        b"context.http.response.transfer_size" => Count("http.response.transfer_size"),
        b"context.http.response.encoded_body_size" => Count("http.response.encoded_body_size"),
        b"context.http.response.decoded_body_size" => Count("http.response.decoded_body_size"),
        b"context.message.queue.name" => Text("span.message.queue.name"),
        b"context.message.routing_key" => Text("span.message.routing_key"),
        b"context.message.body" => Text("span.message.body"),
        b"context.message.headers" => Shaped(SpecialMapping::Headers, "span.message.headers"),
        b"context.message.age.ms" => Count("span.message.age.ms"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// The treatment of an error's member.
pub(super) fn of_error(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"id" => Text("error.id"),
        b"transaction_id" => Both("transaction.id", "span.id"),
        b"culprit" => Text("error.culprit"),
        b"transaction" => Enter,
        b"log" => Known(EventProperty::Log, Some(&Enter)),
        b"transaction.sampled" => Known(EventProperty::Sampled, None),
        b"transaction.type" => Text("transaction.type"),
        b"transaction.name" => Text("transaction.name"),
        b"exception" => {
            Known(EventProperty::Exception, Some(&Shaped(SpecialMapping::Exception, "error.exception")))
        }
        b"log.message" => Text("error.log.message"),
        b"log.level" => Known(EventProperty::Level, Some(&Text("error.log.level"))),
        b"log.logger_name" => Text("error.log.logger_name"),
        b"log.param_message" => Text("error.log.param_message"),
        b"log.stacktrace" => Shaped(SpecialMapping::Frames, "error.log.stacktrace"),
        b"context.custom" => Shaped(SpecialMapping::Custom, "error.custom"),
        _ => return of_any(path).or_else(|| of_context(path)),
    })
}

/// The treatment of a metricset's member.
pub(super) fn of_metricset(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"samples" => Samples,
        b"tags" => Labels,
        b"transaction" | b"span" => Enter,
        b"transaction.name" => Known(EventProperty::Transaction, Some(&Text("transaction.name"))),
        b"transaction.type" => Known(EventProperty::Transaction, Some(&Text("transaction.type"))),
        b"span.type" => Known(EventProperty::Span, Some(&Text("span.type"))),
        b"span.subtype" => Known(EventProperty::Span, Some(&Text("span.subtype"))),
        b"service" => Enter,
        b"service.name" => Known(EventProperty::ServiceName, Some(&Text("service.name"))),
        b"service.version" => Known(EventProperty::ServiceVersion, Some(&Text("service.version"))),
        _ => return of_any(path),
    })
}

/// The treatment of a log record's member; its fields already have the document's names.
pub(super) fn of_log(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"@timestamp" => Time,
        b"log" | b"log.origin" | b"log.origin.file" | b"trace" | b"transaction" | b"span" | b"process"
        | b"process.thread" | b"error" | b"event" | b"service" | b"service.node" => Enter,
        b"message" => Text("message"),
        b"log.level" => Text("log.level"),
        b"log.logger" => Text("log.logger"),
        b"log.origin.function" => Text("log.origin.function"),
        b"log.origin.file.name" => Text("log.origin.file.name"),
        b"log.origin.file.line" => Whole("log.origin.file.line"),
        b"trace.id" => Text("trace.id"),
        b"transaction.id" => Known(EventProperty::Transaction, Some(&Text("transaction.id"))),
        b"span.id" => Known(EventProperty::Span, Some(&Text("span.id"))),
        b"process.thread.name" => Text("process.thread.name"),
        b"error.type" => Known(EventProperty::Error, Some(&Text("error.type"))),
        b"error.message" => Known(EventProperty::Error, Some(&Text("error.message"))),
        b"error.stack_trace" => Known(EventProperty::Error, Some(&Text("error.stack_trace"))),
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

fn of_any(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"timestamp" => Time,
        b"trace_id" => Text("trace.id"),
        b"parent_id" => Text("parent.id"),
        b"outcome" => Known(EventProperty::Outcome, Some(&Text("event.outcome"))),
        b"otel" | b"context" => Enter,
        b"otel.span_kind" => Known(EventProperty::Kind, Some(&Text("span.kind"))),
        b"otel.attributes" => Known(EventProperty::Otel, Some(&Labels)),
        b"links" => Shaped(SpecialMapping::Links, "span.links"),
        _ => return of_faas(path),
    })
}

fn of_context(path: &[u8]) -> Option<FieldMapping> {
    let path = path.strip_prefix(b"context.")?;
    Some(match path {
        b"tags" => Labels,
        b"request"
        | b"request.socket"
        | b"response"
        | b"page"
        | b"message"
        | b"message.queue"
        | b"message.age"
        | b"cloud"
        | b"cloud.origin"
        | b"cloud.origin.account"
        | b"cloud.origin.service" => Enter,
        b"user" => User,
        b"request.url" => Known(EventProperty::RequestUrl, Some(&Enter)),
        b"request.method" => Text("http.request.method"),
        b"request.headers" => {
            Known(EventProperty::Headers, Some(&Shaped(SpecialMapping::Headers, "http.request.headers")))
        }
        b"request.cookies" => Free("http.request.cookies"),
        b"request.env" => Free("http.request.env"),
        b"request.body" => Free("http.request.body.original"),
        b"request.http_version" => Text("http.version"),
        b"request.socket.remote_address" => Known(EventProperty::Remote, None),
        b"request.url.full" => Text("url.full"),
        b"request.url.raw" => Text("url.original"),
        b"request.url.protocol" => Scheme("url.scheme"),
        b"request.url.hostname" => Text("url.domain"),
        b"request.url.port" => Whole("url.port"),
        b"request.url.pathname" => Text("url.path"),
        b"request.url.search" => Text("url.query"),
        b"request.url.hash" => Text("url.fragment"),
        b"response.status_code" => Known(EventProperty::Status, Some(&Whole("http.response.status_code"))),
        b"response.headers" => Shaped(SpecialMapping::Headers, "http.response.headers"),
        b"response.finished" => Truth("http.response.finished"),
        b"response.headers_sent" => Truth("http.response.headers_sent"),
        b"response.transfer_size" => Count("http.response.transfer_size"),
        b"response.encoded_body_size" => Count("http.response.encoded_body_size"),
        b"response.decoded_body_size" => Count("http.response.decoded_body_size"),
        b"page.url" => Known(EventProperty::PageUrl, None),
        b"page.referer" => Text("http.request.referrer"),
        b"cloud.origin.account.id" => Text("cloud.origin.account.id"),
        b"cloud.origin.provider" => Text("cloud.origin.provider"),
        b"cloud.origin.region" => Text("cloud.origin.region"),
        b"cloud.origin.service.name" => Text("cloud.origin.service.name"),
        b"service.name" => Known(EventProperty::ServiceName, Some(&Text("service.name"))),
        b"service.version" => Known(EventProperty::ServiceVersion, Some(&Text("service.version"))),
        b"service.agent.name" => Known(EventProperty::AgentName, Some(&Text("agent.name"))),
        b"service.target.type" => Known(EventProperty::TargetType, None),
        b"service.target.name" => Known(EventProperty::TargetName, None),
        _ => return of_user(path).or_else(|| of_service(path)),
    })
}

fn of_user(path: &[u8]) -> Option<FieldMapping> {
    Some(match path {
        b"user.id" => Text("user.id"),
        b"user.username" => Text("user.name"),
        b"user.email" => Text("user.email"),
        b"user.domain" => Text("user.domain"),
        _ => return None,
    })
}

fn of_service(path: &[u8]) -> Option<FieldMapping> {
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
        b".origin.id" => Text("service.origin.id"),
        b".origin.name" => Text("service.origin.name"),
        b".origin.version" => Text("service.origin.version"),
        _ => return None,
    })
}

fn of_faas(path: &[u8]) -> Option<FieldMapping> {
    let path = path.strip_prefix(b"faas")?;
    Some(match path {
        b"" | b".trigger" => Enter,
        b".id" => Text("faas.id"),
        b".name" => Text("faas.name"),
        b".version" => Text("faas.version"),
        b".coldstart" => Truth("faas.coldstart"),
        b".execution" => Text("faas.execution"),
        b".trigger.type" => Text("faas.trigger.type"),
        b".trigger.request_id" => Text("faas.trigger.request_id"),
        _ => return None,
    })
}
