//! The resource attributes of a container, by the semantic conventions of OpenTelemetry for Kubernetes.
//!
//! Reference: <https://opentelemetry.io/docs/specs/semconv/resource/k8s/> and `…/container/`.

use crate::image::Image;
use crate::log_path::LogPath;
use crate::pod::Pod;

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Int(i64),
    /// A list of one text.
    TextList(&'a str),
}

/// Puts the attributes of the container whose log is at `path`: from the path alone where the pod is not known.
///
/// # Errors
/// The first of `put`.
pub fn attributes<E>(
    path: &LogPath<'_>,
    node: &str,
    pod: Option<&Pod>,
    mut put: impl FnMut(&str, Value<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let pod = pod.filter(|pod| pod.has_log(path));
    put("k8s.namespace.name", Value::Text(path.namespace))?;
    put("k8s.pod.name", Value::Text(path.pod))?;
    put("k8s.pod.uid", Value::Text(pod.map_or(path.uid, |pod| &pod.uid)))?;
    put("k8s.container.name", Value::Text(path.container))?;
    put("k8s.container.restart_count", Value::Int(path.restart_count.into()))?;
    let node = pod.map_or(node, |pod| &pod.node);
    if !node.is_empty() {
        put("k8s.node.name", Value::Text(node))?;
    }
    let Some(pod) = pod else { return Ok(()) };
    if let Some(owner) = &pod.owner {
        let keys = match &*owner.kind {
            "ReplicaSet" => Some(("k8s.replicaset.name", "k8s.replicaset.uid", Some("k8s.deployment.name"))),
            "StatefulSet" => Some(("k8s.statefulset.name", "k8s.statefulset.uid", None)),
            "DaemonSet" => Some(("k8s.daemonset.name", "k8s.daemonset.uid", None)),
            "Job" => Some(("k8s.job.name", "k8s.job.uid", Some("k8s.cronjob.name"))),
            "ReplicationController" => {
                Some(("k8s.replicationcontroller.name", "k8s.replicationcontroller.uid", None))
            }
            // A static pod is owned by its node; other controllers have no attributes in the conventions.
            _ => None,
        };
        if let Some((name, uid, controller)) = keys {
            put(name, Value::Text(&owner.name))?;
            put(uid, Value::Text(&owner.uid))?;
            if let (Some(key), Some(name)) = (controller, &owner.controller) {
                put(key, Value::Text(name))?;
            }
        }
    }
    if let Some(container) = pod.container(path.container) {
        if let Some(id) = container.id_after(path.restart_count) {
            put("container.id", Value::Text(id))?;
        }
        if let Some(image) = Image::parse(&container.image) {
            put("container.image.name", Value::Text(image.name))?;
            if let Some(tag) = image.tag {
                put("container.image.tags", Value::TextList(tag))?;
            }
        }
    }
    let mut key = String::new();
    for (label, value) in &pod.labels {
        key.clear();
        key.push_str("k8s.pod.label.");
        key.push_str(label);
        put(&key, Value::Text(value))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
