//! Logs of the containers of a Kubernetes node.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::file::{FileMultiline, FileStart, OnLongLine};
use crate::declare::settings;
use crate::values::{Bytes, Duration, HostName, TenantName, Url};

settings! {
    /// Logs of the containers of a Kubernetes node, with the metadata of their pods.
    pub struct KubernetesLogsSource {
        /// Whether container logs are read.
        enabled: bool = false,
        /// The name of the node. Default: the environment variable `NODE_NAME`, `K8S_NODE_NAME`, `KUBE_NODE_NAME` or
        /// `VECTOR_SELF_NODE_NAME`, which the manifest sets from `spec.nodeName`. Without a name the gateway does not start.
        node: Option<String> = None,
        /// The kubelet's folder of logs.
        path: PathBuf = PathBuf::from("/var/log/pods"),
        /// The name of the gateway's own pod, whose logs are not read. Default: the environment variable `POD_NAME`, or else the host
        /// name, which is the pod's name unless the pod uses the node's network.
        own_pod: Option<String> = None,
        /// Namespaces to read. A `*` at the end matches any suffix. Default: all.
        namespaces: Option<Vec<String>> = None,
        /// Namespaces not to read. A `*` at the end matches any suffix. Default: none.
        exclude_namespaces: Option<Vec<String>> = None,
        /// Label selector of the pods to read, in the notation of `kubectl --selector`, such as `app=web,tier in (a, b),!debug`. Files
        /// of a pod that the API has not described yet wait for it. Default: all pods.
        selector: Option<String> = None,
        /// Labels and annotations that exclude a pod, as `KEY` or `KEY=VALUE`, in addition to those of tidegate, Vector and Fluent
        /// Bit. Default: none.
        exclude: Option<Vec<String>> = None,
        /// Labels of pods that become attributes `k8s.pod.label.KEY`. A `*` at the end matches any suffix. Default: none.
        labels: Option<Vec<String>> = None,
        /// The Kubernetes API. Default: that of the cluster in which the gateway is a pod, with its service account.
        api: KubernetesApi = KubernetesApi::default(),
        /// How long a new file waits for the metadata of its pod. After that its records carry what the path says, until the metadata is
        /// there.
        metadata_timeout: Duration [Duration::milliseconds(0)..=Duration::minutes(10)] = Duration::seconds(5),
        /// How long the metadata of a deleted pod is kept. It is kept longer while a file of the pod is open.
        keep_deleted: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(60),
        /// Where reading begins in files that are there at the first start.
        start_at: FileStart = FileStart::Beginning,
        /// Whether to read rotated files that were compressed before they were read.
        compressed: bool = true,
        /// Most files known at a time; memory for them is planned. Others are not read, and counted.
        max_files: u32 [16..=1_000_000] = 2048,
        /// How long a deleted file is held after the last of its bytes was read. What could not be read until then is counted as lost.
        rotate_wait: Duration [Duration::seconds(1)..=Duration::days(7)] = Duration::minutes(5),
        /// Longest line, after the runtime's parts of it are joined.
        max_line: Bytes [Bytes::kib(1)..=Bytes::mib(1)] = Bytes::kib(64),
        /// Treatment of longer lines.
        on_long_line: OnLongLine = OnLongLine::Cut,
        /// Which lines make one record. Default: each line is one.
        multiline: Option<FileMultiline> = None,
        /// Resource attributes of all records.
        attributes: BTreeMap<String, String> = BTreeMap::new(),
        /// The tenant of the records. Default: `tenants.default`.
        tenant: Option<TenantName> = None,
    }
}

settings! {
    /// The Kubernetes API. Its files are read again for each connection, so tokens and certificates may be rotated.
    pub struct KubernetesApi {
        /// URL, with a path where the API is behind one. Default: from the environment of the pod.
        url: Option<Url> = None,
        /// File with the bearer token. Default without `url`: that of the service account.
        token_file: Option<PathBuf> = None,
        /// Certificates of the trusted authorities. Default: without `url` those of the service account, otherwise those of the system.
        ca_file: Option<PathBuf> = None,
        /// Client certificate.
        cert_file: Option<PathBuf> = None,
        /// Key of the client certificate.
        key_file: Option<PathBuf> = None,
        /// Name in the server's certificate, if it is not the URL's host.
        server_name: Option<HostName> = None,
        /// How long the API server may take to begin a response.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(5)] = Duration::seconds(30),
    }
}
