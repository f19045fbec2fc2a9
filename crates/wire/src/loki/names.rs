//! Label names and the resource attributes that they stand for.

/// The resource attributes that Loki's own OTLP endpoint makes labels of, unless it is told otherwise
/// (`default_resource_attributes_as_index_labels`), each with its label.
pub(super) const LABELS: [(&str, &str); 18] = [
    ("service.name", "service_name"),
    ("service.namespace", "service_namespace"),
    ("service.instance.id", "service_instance_id"),
    ("deployment.environment", "deployment_environment"),
    ("deployment.environment.name", "deployment_environment_name"),
    ("cloud.region", "cloud_region"),
    ("cloud.availability_zone", "cloud_availability_zone"),
    ("k8s.cluster.name", "k8s_cluster_name"),
    ("k8s.namespace.name", "k8s_namespace_name"),
    ("k8s.pod.name", "k8s_pod_name"),
    ("k8s.container.name", "k8s_container_name"),
    ("container.name", "container_name"),
    ("k8s.replicaset.name", "k8s_replicaset_name"),
    ("k8s.deployment.name", "k8s_deployment_name"),
    ("k8s.statefulset.name", "k8s_statefulset_name"),
    ("k8s.daemonset.name", "k8s_daemonset_name"),
    ("k8s.cronjob.name", "k8s_cronjob_name"),
    ("k8s.job.name", "k8s_job_name"),
];

/// The resource attribute that a label stands for: another name for those of [`LABELS`], the same for all others.
pub(super) fn attribute_of(label: &[u8]) -> &[u8] {
    let known = LABELS.iter().find(|(_, name)| name.as_bytes() == label);
    known.map_or(label, |(attribute, _)| attribute.as_bytes())
}

/// Whether this is a label name: `[a-zA-Z_][a-zA-Z0-9_]*`.
pub(super) fn is_label(name: &[u8]) -> bool {
    name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(|byte| is_of_label(*byte))
}

/// Whether a label name may have this byte, if not as its first.
pub(super) fn is_of_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
