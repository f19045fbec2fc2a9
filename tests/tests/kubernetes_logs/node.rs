//! A node: a tree like `/var/log/pods`, an API server, and a gateway that reads both.

use serde_json::{Map, Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tidegate_tests::{Gateway, KubernetesApi, SOON, until};

/// The name of the node.
pub(crate) const NODE: &str = "node-1";
/// The counter of the records of the source.
const ACCEPTED: &str = "tidegate_items_accepted_total{source=\"kubernetes_logs\"";

pub(crate) struct Node {
    pub(crate) api: KubernetesApi,
    pub(crate) gateway: Gateway,
    logs: TempDir,
}

/// A row of the lake.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) body: String,
    pub(crate) resource: Map<String, Value>,
    pub(crate) attributes: Map<String, Value>,
}

impl Node {
    /// A node whose API server is not started yet, and a gateway with more settings of the source.
    pub(crate) fn new(more: &Value) -> Node {
        Node::with(KubernetesApi::new(), "64MiB", more)
    }

    pub(crate) fn with(api: KubernetesApi, memory: &str, more: &Value) -> Node {
        let logs = tempfile::tempdir().unwrap();
        let mut source = json!({
            "enabled": true, "node": NODE, "path": logs.path(), "labels": ["app"], "own_pod": "tidegate-x",
            "metadata_timeout": "1m",
            "api": {"url": api.url(), "timeout": "2s"},
        });
        merge(&mut source, more);
        let gateway = Gateway::new(json!({
            "memory": memory,
            "sources": {"kubernetes_logs": source},
            "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
        }));
        Node { api, gateway, logs }
    }

    /// The folder of a pod's container.
    pub(crate) fn folder(&self, pod: &Value, container: &str) -> PathBuf {
        let of = |key: &str| pod["metadata"][key].as_str().unwrap();
        let mirror = &pod["metadata"]["annotations"]["kubernetes.io/config.mirror"];
        let uid = mirror.as_str().unwrap_or(of("uid"));
        self.logs.path().join(format!("{}_{}_{uid}", of("namespace"), of("name"))).join(container)
    }

    /// Appends lines to a container's log, in the format of the container runtime interface.
    pub(crate) fn print(&self, pod: &Value, container: &str, lines: &[&str]) {
        print(&self.folder(pod, container).join("0.log"), lines);
    }

    /// Deletes the files of a pod, as the kubelet does after its end.
    pub(crate) fn delete_files(&self, pod: &Value) {
        fs::remove_dir_all(self.folder(pod, "x").parent().unwrap()).unwrap();
    }

    /// The records that the gateway has given to its journal since its start.
    pub(crate) fn accepted(&self) -> usize {
        let metrics = self.gateway.metrics();
        let accepted = metrics.iter().filter(|(name, _)| name.starts_with(ACCEPTED));
        accepted.map(|(_, value)| *value as usize).sum()
    }

    pub(crate) fn metric(&self, name: &str) -> f64 {
        self.gateway
            .metrics()
            .get(&format!("tidegate_{name}"))
            .copied()
            .unwrap_or_else(|| panic!("no {name}"))
    }

    /// Waits until the gateway has so many records since its start.
    #[track_caller]
    pub(crate) fn wait_for(&self, records: usize) {
        until(SOON, &format!("{records} records, of which there are some"), || self.accepted() >= records);
    }

    /// Waits until the gateway knows so many pods.
    #[track_caller]
    pub(crate) fn wait_for_pods(&self, pods: usize) {
        until(SOON, "the pods to be known", || self.metric("kubernetes_pods") >= pods as f64);
    }

    /// The rows of the lake, sorted by their text.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.gateway.at_rest(SOON);
        let rows = self.gateway.lake_rows_with("logs", &["--columns", "body,resource,attributes"]);
        let mut lines: Vec<Line> = rows
            .iter()
            .map(|row| Line {
                body: row["body"].as_str().unwrap().to_owned(),
                resource: object(&row["resource"]),
                attributes: object(&row["attributes"]),
            })
            .collect();
        lines.sort_by(|one, other| one.body.cmp(&other.body));
        lines
    }

    /// Checks that the lake has exactly these lines, once each.
    #[track_caller]
    pub(crate) fn expect(&self, expected: &[&str]) -> Vec<Line> {
        let lines = self.lines();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        let found: Vec<&str> = lines.iter().map(|line| line.body.as_str()).collect();
        assert_eq!(found, expected, "{}", self.gateway.log());
        lines
    }
}

impl Line {
    /// An attribute of the resource as text; empty where there is none.
    pub(crate) fn of(&self, key: &str) -> String {
        match self.resource.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// A pod of the namespace `shop` with a container `app`, whose uid is `uid-NAME`.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "annotations": {}, "labels": {"app": name},
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "registry.example.com/shop/web:1.2"}]},
        "status": {"containerStatuses": [
            {"name": "app", "restartCount": 0, "containerID": format!("containerd://id-{name}")},
        ]},
    })
}

/// `base` with the settings of `more`, groups merged.
pub(crate) fn merge(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more.clone(),
    }
}

/// Appends lines to a file, in the format of the container runtime interface.
pub(crate) fn print(path: &Path, lines: &[&str]) {
    let text: String =
        lines.iter().map(|line| format!("2026-01-31T12:34:56.123456789Z stdout F {line}\n")).collect();
    append(path, &text);
}

/// Appends to a file, which is made with its folder.
pub(crate) fn append(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn object(value: &Value) -> Map<String, Value> {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        Value::Object(map) => map.clone(),
        other => panic!("{other} is no object"),
    }
}
