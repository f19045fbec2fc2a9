//! Which field of the Elastic Common Schema an attribute is.

use super::super::fields::FieldValue;
use tidegate_wire::otlp::AnyValue;

/// A field, and what it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EcsField {
    /// Texts; other values become one.
    Text(&'static str),
    /// Integers alone; what else it has is no such field.
    Number(&'static str),
    /// It is said elsewhere in the document.
    Elsewhere,
}

use EcsField::{Elsewhere, Number, Text};

/// The field of an attribute of a resource.
pub(super) fn of_resource(key: &[u8]) -> Option<EcsField> {
    Some(match key {
        b"service.name" => Text("service.name"),
        b"service.version" => Text("service.version"),
        b"service.instance.id" => Text("service.node.name"),
        b"deployment.environment" | b"deployment.environment.name" => Text("service.environment"),
        b"telemetry.sdk.language" => Text("service.language.name"),
        b"telemetry.sdk.name"
        | b"telemetry.sdk.version"
        | b"telemetry.distro.name"
        | b"telemetry.distro.version" => Elsewhere,
        b"cloud.provider" => Text("cloud.provider"),
        b"cloud.account.id" => Text("cloud.account.id"),
        b"cloud.region" => Text("cloud.region"),
        b"cloud.availability_zone" => Text("cloud.availability_zone"),
        b"cloud.platform" => Text("cloud.service.name"),
        b"container.id" => Text("container.id"),
        b"container.name" => Text("container.name"),
        b"container.image.name" => Text("container.image.name"),
        b"container.image.tag" | b"container.image.tags" => Text("container.image.tag"),
        b"container.runtime" => Text("container.runtime"),
        b"host.name" => Text("host.hostname"),
        b"host.id" => Text("host.id"),
        b"host.type" => Text("host.type"),
        b"host.arch" => Text("host.architecture"),
        b"os.type" => Text("host.os.platform"),
        b"os.name" => Text("host.os.name"),
        b"os.description" => Text("host.os.full"),
        b"os.version" => Text("host.os.version"),
        b"process.pid" => Number("process.pid"),
        b"process.parent_pid" => Number("process.parent.pid"),
        b"process.command_line" => Text("process.command_line"),
        b"process.executable.path" => Text("process.executable"),
        b"process.executable.name" => Text("process.title"),
        b"process.runtime.name" => Text("service.runtime.name"),
        b"process.runtime.version" => Text("service.runtime.version"),
        b"k8s.namespace.name" => Text("kubernetes.namespace"),
        b"k8s.node.name" => Text("kubernetes.node.name"),
        b"k8s.pod.name" => Text("kubernetes.pod.name"),
        b"k8s.pod.uid" => Text("kubernetes.pod.uid"),
        b"k8s.container.name" => Text("kubernetes.container.name"),
        b"k8s.deployment.name" => Text("kubernetes.deployment.name"),
        b"k8s.replicaset.name" => Text("kubernetes.replicaset.name"),
        b"k8s.statefulset.name" => Text("kubernetes.statefulset.name"),
        b"k8s.daemonset.name" => Text("kubernetes.daemonset.name"),
        b"k8s.job.name" => Text("kubernetes.job.name"),
        b"k8s.cronjob.name" => Text("kubernetes.cronjob.name"),
        b"k8s.cluster.name" => Text("orchestrator.cluster.name"),
        b"device.id" => Text("device.id"),
        b"device.manufacturer" => Text("device.manufacturer"),
        b"device.model.identifier" => Text("device.model.identifier"),
        b"device.model.name" => Text("device.model.name"),
        b"faas.name" => Text("faas.name"),
        b"faas.version" => Text("faas.version"),
        b"faas.id" | b"cloud.resource_id" => Text("faas.id"),
        _ => return None,
    })
}

/// The field of an attribute of a span, an event or a log record.
pub(super) fn of_item(key: &[u8]) -> Option<EcsField> {
    Some(match key {
        b"http.request.method" | b"http.method" => Text("http.request.method"),
        b"http.response.status_code" | b"http.status_code" => Number("http.response.status_code"),
        b"http.request.body.size" | b"http.request_content_length" => Number("http.request.body.bytes"),
        b"http.response.body.size" | b"http.response_content_length" => Number("http.response.body.bytes"),
        b"http.flavor" => Text("http.version"),
        b"url.full" | b"http.url" => Text("url.full"),
        b"url.path" => Text("url.path"),
        b"url.query" => Text("url.query"),
        b"url.fragment" => Text("url.fragment"),
        b"url.scheme" | b"http.scheme" => Text("url.scheme"),
        b"url.domain" => Text("url.domain"),
        b"http.target" => Text("url.original"),
        b"user_agent.original" | b"http.user_agent" => Text("user_agent.original"),
        b"client.address" | b"http.client_ip" => Text("client.address"),
        b"client.port" => Number("client.port"),
        b"server.address" | b"net.peer.name" => Text("server.address"),
        b"server.port" | b"net.peer.port" => Number("server.port"),
        b"network.protocol.name" => Text("network.protocol"),
        b"network.transport" => Text("network.transport"),
        b"network.type" => Text("network.type"),
        b"exception.type" | b"error.type" => Text("error.type"),
        b"exception.message" | b"error.message" => Text("error.message"),
        b"exception.stacktrace" => Text("error.stack_trace"),
        b"event.name" => Text("event.action"),
        b"log.file.name" => Text("log.file.name"),
        b"log.file.path" => Text("log.file.path"),
        b"thread.name" => Text("process.thread.name"),
        b"thread.id" => Number("process.thread.id"),
        b"code.function" | b"code.function.name" => Text("log.origin.function"),
        b"code.filepath" | b"code.file.path" => Text("log.origin.file.name"),
        b"code.lineno" | b"code.line.number" => Number("log.origin.file.line"),
        b"user.id" | b"enduser.id" => Text("user.id"),
        b"user.name" => Text("user.name"),
        b"user.email" => Text("user.email"),
        b"session.id" => Text("session.id"),
        b"transaction.id" => Text("transaction.id"),
        _ => return None,
    })
}

/// The field of an attribute that only spans have fields for.
pub(super) fn of_span(key: &[u8]) -> Option<EcsField> {
    Some(match key {
        b"db.system" | b"db.system.name" => Text("span.db.type"),
        b"db.query.text" | b"db.statement" => Text("span.db.statement"),
        b"db.namespace" | b"db.name" => Text("span.db.instance"),
        b"db.user" => Text("span.db.user.name"),
        b"messaging.destination.name" | b"messaging.destination" => Text("span.message.queue.name"),
        _ => return None,
    })
}

/// The field and what it says, if the value is of its type.
pub(super) fn said<'a>(name: EcsField, value: AnyValue<'a>) -> Option<(&'static str, FieldValue<'a>)> {
    match (name, value) {
        (Text(path), AnyValue::Text(text)) => Some((path, FieldValue::Text(text))),
        (Text(_), AnyValue::Empty | AnyValue::Map(_)) => None,
        (Text(path), AnyValue::Array(array)) => {
            let texts = array.values().all(|value| matches!(value, AnyValue::Text(_)));
            texts.then_some((path, FieldValue::Value(value)))
        }
        (Text(path), value) => Some((path, FieldValue::Quoted(value))),
        (Number(path), AnyValue::Int(number)) => Some((path, FieldValue::Int(number))),
        (Number(_) | Elsewhere, _) => None,
    }
}
