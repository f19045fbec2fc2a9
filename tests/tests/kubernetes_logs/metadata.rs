//! Each line carries the metadata of its pod, whatever the API server does.

use crate::node::{NODE, Node, merge, pod, print};
use serde_json::{Value, json};
use tidegate_tests::{Gateway, KubernetesApi, SOON, certificates, until};

/// A pod with an owner.
fn owned(name: &str, kind: &str, owner: &str, labels: &Value) -> Value {
    let mut pod = pod(name);
    let reference =
        json!({"kind": kind, "name": owner, "uid": format!("uid-of-{owner}"), "controller": true});
    merge(&mut pod, &json!({"metadata": {"ownerReferences": [reference], "labels": labels}}));
    pod
}

/// Pods of every kind of workload, over TLS with a token that is rotated, through kill -9: once each, with all names.
#[test]
fn lines_carry_the_names_of_pod_and_workload() {
    let keys = tempfile::tempdir().unwrap();
    certificates::authority(keys.path(), "ca");
    certificates::sign(keys.path(), "ca", "server", "/CN=localhost");
    let file = |name: &str| keys.path().join(name);
    let api = KubernetesApi::with_tls(&file("server.pem"), &file("server.key"));
    std::fs::write(file("token"), "first\n").unwrap();
    api.require_token(Some("first"));
    let mut node =
        Node::with(api, "64MiB", &json!({"api": {"token_file": file("token"), "ca_file": file("ca.pem")}}));
    let web = owned("web-5d-a", "ReplicaSet", "web-5d", &json!({"pod-template-hash": "5d"}));
    let created = json!({"metadata": {"creationTimestamp": "2026-01-31T00:00:01Z"}});
    let mut report = owned("report-1", "Job", "report-29497680", &json!({}));
    merge(&mut report, &created);
    let pods = [
        web,
        owned("db-0", "StatefulSet", "db", &json!({})),
        owned("agent-x", "DaemonSet", "agent", &json!({})),
        report,
        // A static pod: the uid in the path is the hash of its manifest.
        {
            let mut pod = owned("etcd-node-1", "Node", NODE, &json!({}));
            merge(&mut pod, &json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "f00d"}}}));
            pod
        },
    ];
    node.api.start();
    for pod in &pods {
        node.api.put(pod.clone());
        node.print(pod, "app", &[&format!("{} one", pod["metadata"]["name"].as_str().unwrap())]);
    }
    node.gateway.start();
    node.wait_for(pods.len());
    // The token is read for each connection.
    node.api.require_token(Some("second"));
    std::fs::write(file("token"), "second").unwrap();
    node.gateway.kill9();
    for pod in &pods {
        node.print(pod, "app", &[&format!("{} two", pod["metadata"]["name"].as_str().unwrap())]);
    }
    node.gateway.start();
    node.wait_for(pods.len());
    let names = ["agent-x", "db-0", "etcd-node-1", "report-1", "web-5d-a"];
    let expected: Vec<String> =
        names.iter().flat_map(|name| [format!("{name} one"), format!("{name} two")]).collect();
    let lines = node.expect(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    for line in &lines {
        let name = line.body.split(' ').next().unwrap();
        for (key, value) in [
            ("k8s.namespace.name", "shop"),
            ("k8s.pod.name", name),
            ("k8s.pod.uid", &format!("uid-{name}")),
            ("k8s.container.name", "app"),
            ("k8s.container.restart_count", "0"),
            ("k8s.node.name", NODE),
            ("container.id", &format!("id-{name}")),
            ("container.image.name", "registry.example.com/shop/web"),
            ("container.image.tags", "[\"1.2\"]"),
            ("k8s.pod.label.app", name),
            ("log.file.name", "0.log"),
        ] {
            assert_eq!(line.of(key), value, "{key} of {line:?}");
        }
        assert_eq!(line.attributes["log.iostream"], "stdout");
        let workload = match name {
            "web-5d-a" => [("k8s.replicaset.name", "web-5d"), ("k8s.deployment.name", "web")],
            "db-0" => [("k8s.statefulset.name", "db"), ("k8s.statefulset.uid", "uid-of-db")],
            "agent-x" => [("k8s.daemonset.name", "agent"), ("k8s.daemonset.uid", "uid-of-agent")],
            "report-1" => [("k8s.job.name", "report-29497680"), ("k8s.cronjob.name", "report")],
            _ => [("k8s.replicaset.name", ""), ("k8s.pod.label.pod-template-hash", "")],
        };
        for (key, value) in workload {
            assert_eq!(line.of(key), value, "{key} of {line:?}");
        }
    }
    assert!(node.api.requests().iter().all(|target| target.contains("fieldSelector=spec.nodeName%3Dnode-1")));
    node.gateway.books_close();
}

/// Without an API server the path tells names; with it lines of the same file carry everything; what is known stays while it is
/// away again, and a version that it forgot leads to a new list.
#[test]
fn reading_goes_on_without_the_api_and_metadata_comes_with_it() {
    let mut node = Node::new(&json!({"metadata_timeout": "200ms"}));
    let (web, api) = (pod("web"), pod("api"));
    node.api.put(web.clone());
    node.print(&web, "app", &["1 without"]);
    node.gateway.start();
    node.wait_for(1);
    node.api.start();
    node.wait_for_pods(1);
    node.print(&web, "app", &["2 with"]);
    node.wait_for(2);
    node.api.forget_events();
    node.api.put(api.clone());
    node.wait_for_pods(2);
    assert!(node.metric("kubernetes_api_expired_total") >= 1.0);
    let told = |node: &Node| node.gateway.log().matches("the Kubernetes API cannot be read").count();
    let before = told(&node);
    node.api.stop();
    node.print(&web, "app", &["3 with"]);
    node.print(&api, "app", &["4 with"]);
    node.wait_for(4);
    let lines = node.expect(&["1 without", "2 with", "3 with", "4 with"]);
    for line in lines {
        let name = if line.body.starts_with('4') { "api" } else { "web" };
        assert_eq!((line.of("k8s.pod.name"), line.of("k8s.node.name")), (name.into(), NODE.into()));
        let id = if line.body.ends_with("without") { String::new() } else { format!("id-{name}") };
        assert_eq!(line.of("container.id"), id, "{line:?}");
    }
    until(SOON, "the second loss of the API to be told", || told(&node) > before);
}

/// A new file waits for its pod: its first line carries the metadata that comes a little later.
#[test]
fn the_first_line_waits_for_its_pod() {
    let mut node = Node::new(&json!({"metadata_timeout": "1m"}));
    node.api.start();
    node.gateway.start();
    let web = pod("web");
    node.print(&web, "app", &["first"]);
    until(SOON, "the file to be found", || node.metric("kubernetes_logs_open_files") >= 1.0);
    assert_eq!(node.accepted(), 0);
    node.api.put(web);
    node.wait_for(1);
    assert_eq!(node.expect(&["first"])[0].of("container.id"), "id-web");
}

/// The last lines of a pod carry its metadata, even if they are read long after its deletion.
#[test]
fn lines_after_the_end_of_a_pod_carry_its_names() {
    let mut node = Node::new(&json!({"keep_deleted": "1s"}));
    let (web, api) = (pod("web"), pod("api"));
    node.api.start();
    node.api.put(web.clone());
    node.api.put(api.clone());
    node.gateway.start();
    node.wait_for_pods(2);
    node.print(&web, "app", &["first"]);
    node.wait_for(1);
    node.api.delete("uid-web");
    node.api.delete("uid-api");
    // The pod without an open file is forgotten, the other is not.
    until(SOON, "the other pod to be forgotten", || node.metric("kubernetes_pods") < 2.0);
    node.print(&web, "app", &["last"]);
    node.wait_for(2);
    node.delete_files(&web);
    for line in node.expect(&["first", "last"]) {
        assert_eq!(line.of("container.id"), "id-web", "{line:?}");
    }
}

/// Labels and annotations of three programs and the configured ones keep logs from being read, as do namespaces, a selector and the
/// gateway's own name.
#[test]
fn excluded_pods_are_not_read() {
    let mut node = Node::new(&json!({
        "exclude": ["example.com/logs=off"], "exclude_namespaces": ["kube-*"], "selector": "app,tier notin (debug)",
    }));
    let with = |name: &str, more: &Value| {
        let mut pod = pod(name);
        merge(&mut pod, more);
        node.print(&pod, "app", &[name]);
        pod
    };
    let pods = [
        with("a-read", &json!({})),
        with("b-fluent-bit", &json!({"metadata": {"annotations": {"fluentbit.io/exclude": "true"}}})),
        with("c-vector", &json!({"metadata": {"labels": {"vector.dev/exclude": "true"}}})),
        with("d-container", &json!({"metadata": {"annotations": {"vector.dev/exclude-containers": "app"}}})),
        with("e-own-key", &json!({"metadata": {"labels": {"example.com/logs": "off"}}})),
        with("f-tidegate", &json!({"metadata": {"annotations": {"tidegate.dev/exclude": "true"}}})),
        with("g-namespace", &json!({"metadata": {"namespace": "kube-system"}})),
        with("h-selector", &json!({"metadata": {"labels": {"tier": "debug"}}})),
        with("tidegate-x", &json!({})),
        with("z-read", &json!({"metadata": {"labels": {"example.com/logs": "on", "tier": "web"}}})),
    ];
    let unknown = pod("unknown");
    node.print(&unknown, "app", &["unknown"]);
    node.api.start();
    for pod in &pods {
        node.api.put(pod.clone());
    }
    node.gateway.start();
    node.wait_for(2);
    // With a selector, a pod that the API has not described waits.
    node.api.put(unknown);
    node.wait_for(3);
    node.expect(&["a-read", "unknown", "z-read"]);
}

/// A refusal is told once, with what to do; logs go on.
#[test]
fn a_refusal_of_the_api_is_told_once() {
    let mut node = Node::new(&json!({"metadata_timeout": "100ms"}));
    node.api.start();
    node.api.refuse(Some(403));
    let web = pod("web");
    node.print(&web, "app", &["one"]);
    node.gateway.start();
    node.wait_for(1);
    until(SOON, "several refusals", || node.metric("kubernetes_api_failures_total") >= 3.0);
    let log = node.gateway.log();
    assert_eq!(log.matches("let the service account get, list and watch pods").count(), 1, "{log}");
    node.api.put(web.clone());
    node.api.refuse(None);
    node.wait_for_pods(1);
    print(&node.folder(&web, "app").join("0.log"), &["two"]);
    node.wait_for(2);
    let lines = node.expect(&["one", "two"]);
    assert_eq!((lines[0].of("container.id"), lines[1].of("container.id")), (String::new(), "id-web".into()));
}

/// Without the node's name, or an API, the gateway says what is missing and what to set.
#[test]
fn says_which_setting_is_missing() {
    let settings = |source: Value| json!({"sources": {"kubernetes_logs": source}, "sinks": {"a": {"type": "blackhole"}}});
    let mut gateway = Gateway::new(settings(json!({"enabled": true})));
    let refused = gateway.refuses_to_start();
    assert!(
        refused.stderr.contains("NODE_NAME") && refused.stderr.contains("spec.nodeName"),
        "{}",
        refused.stderr
    );
    gateway.configure(settings(json!({"enabled": true, "node": NODE})));
    let refused = gateway.refuses_to_start();
    assert!(refused.stderr.contains("KUBERNETES_SERVICE_HOST"), "{}", refused.stderr);
    assert!(refused.stderr.contains("sources.kubernetes_logs.api.url"), "{}", refused.stderr);
    gateway.configure(settings(json!({"node": NODE})));
    let refused = gateway.refuses_to_start();
    assert!(refused.stderr.contains("set `enabled: true`"), "{}", refused.stderr);
}
