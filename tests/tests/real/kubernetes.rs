//! The source `kubernetes_logs` with Kubernetes' own API server, with the rights of the manifest in the documentation.

use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tidegate_tests::{Finished, Gateway, Program, SOON, finish, free_address, real_program, until};

/// The token of an administrator.
const ADMIN: &str = "administrator";
/// The page with the manifest.
const PAGE: &str = include_str!("../../../docs/kubernetes-logs.md");
const ACCEPTED: &str = "tidegate_items_accepted_total{source=\"kubernetes_logs\"";

/// An API server and its database. There is no kubelet: the test writes the files.
struct Cluster {
    server: Option<Program>,
    _database: Program,
    binary: PathBuf,
    database: SocketAddr,
    address: SocketAddr,
    folder: TempDir,
}

impl Cluster {
    fn start(server: &Path, etcd: &Path) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let (database, peers) = (free_address(), free_address());
        let mut command = Command::new(etcd);
        command.args([
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls=http://{database}"),
            format!("--advertise-client-urls=http://{database}"),
            format!("--listen-peer-urls=http://{peers}"),
            format!("--initial-advertise-peer-urls=http://{peers}"),
            format!("--initial-cluster=default=http://{peers}"),
        ]);
        let process = Program::start("etcd", command, folder.path());
        fs::write(folder.path().join("tokens.csv"), format!("{ADMIN},admin,1,system:masters\n")).unwrap();
        let key = "genrsa -out account.key 2048";
        finish(Command::new("openssl").args(key.split(' ')).current_dir(folder.path())).succeeded();
        let address = free_address();
        let mut cluster = Cluster {
            server: None,
            _database: process,
            binary: server.to_owned(),
            database,
            address,
            folder,
        };
        cluster.start_server();
        cluster
    }

    fn start_server(&mut self) {
        let mut command = Command::new(&self.binary);
        command.current_dir(self.folder.path()).args([
            format!("--etcd-servers=http://{}", self.database),
            "--cert-dir=keys".to_owned(),
            format!("--secure-port={}", self.address.port()),
            "--bind-address=127.0.0.1".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-key-file=account.key".to_owned(),
            "--service-account-signing-key-file=account.key".to_owned(),
            "--service-account-issuer=https://issuer.example.com".to_owned(),
            "--token-auth-file=tokens.csv".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ]);
        self.server = Some(Program::start("kube-apiserver", command, self.folder.path()));
        until(SOON, "the API server to be ready", || {
            self.call("GET", "/readyz", None).is_ok_and(|body| body == "ok")
        });
    }

    fn kill_server(&mut self) {
        self.server.take().unwrap().kill9();
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("keys/apiserver.crt")
    }

    /// The response's body, or what `curl` says.
    fn call(&self, method: &str, path: &str, body: Option<(&str, &str)>) -> Result<String, String> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "20"]);
        command.arg("--cacert").arg(self.certificate());
        command.arg("--header").arg(format!("Authorization: Bearer {ADMIN}"));
        command.args(["--request", method, &format!("https://{}{path}", self.address)]);
        if let Some((kind, body)) = body {
            command.arg("--header").arg(format!("Content-Type: {kind}")).args(["--data-binary", body]);
        }
        let Finished { code, stdout, stderr } = finish(&mut command);
        if code == Some(0) { Ok(stdout) } else { Err(format!("{method} {path}: {stderr}{stdout}")) }
    }

    fn post(&self, path: &str, object: &Value) -> Value {
        let made = self.call("POST", path, Some(("application/json", &object.to_string()))).unwrap();
        serde_json::from_str(&made).unwrap()
    }

    /// Makes the objects of the documentation's manifest, with fields that the API server does not know refused.
    fn apply_manifest(&self) {
        let manifest = PAGE.split("```yaml\n").find(|part| part.starts_with("apiVersion")).unwrap();
        let manifest = manifest.split("```").next().unwrap();
        for object in manifest.split("---\n") {
            let kind = object.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap();
            let path = match kind {
                "Namespace" => "/api/v1/namespaces",
                "ServiceAccount" => "/api/v1/namespaces/tidegate/serviceaccounts",
                "ConfigMap" => "/api/v1/namespaces/tidegate/configmaps",
                "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                "DaemonSet" => "/apis/apps/v1/namespaces/tidegate/daemonsets",
                other => panic!("where is a {other} made?"),
            };
            let path = format!("{path}?fieldValidation=Strict");
            self.call("POST", &path, Some(("application/yaml", object))).unwrap();
        }
    }

    /// A token of the manifest's service account.
    fn token(&self) -> String {
        let request = json!({"spec": {"expirationSeconds": 3600}});
        let path = "/api/v1/namespaces/tidegate/serviceaccounts/tidegate/token";
        self.post(path, &request)["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Makes a pod on the node, with a container that runs; its uid.
    fn make_pod(&self, name: &str, annotations: &Value) -> String {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations},
            "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "shop/web:1.2"}]},
        });
        let made = self.post("/api/v1/namespaces/shop/pods", &pod);
        let status = json!({"status": {"phase": "Running", "containerStatuses": [{
            "name": "app", "image": "shop/web:1.2", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": format!("containerd://id-{name}"),
        }]}});
        let path = format!("/api/v1/namespaces/shop/pods/{name}/status");
        self.call("PATCH", &path, Some(("application/merge-patch+json", &status.to_string()))).unwrap();
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }
}

/// Appends a line to the log of a pod's container.
fn print(logs: &Path, name: &str, uid: &str, line: &str) {
    let folder = logs.join(format!("shop_{name}_{uid}/app"));
    fs::create_dir_all(&folder).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("0.log")).unwrap();
    writeln!(file, "2026-01-31T12:34:56.123456789Z stdout F {line}").unwrap();
}

/// Pods made and deleted through the API, with an API server that is killed meanwhile: each line has the names of its pod.
#[test]
#[ignore = "`make test-real` runs it"]
fn lines_carry_the_metadata_that_kubernetes_tells() {
    let Some(server) = real_program("kubernetes", "kube-apiserver") else { return };
    let Some(etcd) = real_program("kubernetes", "etcd/usr/bin/etcd") else { return };
    let mut cluster = Cluster::start(&server, &etcd);
    cluster.apply_manifest();
    cluster.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}));
    let token = cluster.folder.path().join("token");
    fs::write(&token, cluster.token()).unwrap();
    let logs = tempfile::tempdir().unwrap();
    let gateway = Gateway::started(json!({
        "memory": "64MiB",
        "sources": {"kubernetes_logs": {
            "enabled": true, "node": "node-1", "path": logs.path(), "labels": ["app"], "metadata_timeout": "1m",
            "api": {"url": format!("https://{}", cluster.address), "token_file": token, "ca_file": cluster.certificate()},
        }},
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }));
    let accepted = || -> usize {
        let metrics = gateway.metrics();
        metrics.iter().filter(|(name, _)| name.starts_with(ACCEPTED)).map(|(_, value)| *value as usize).sum()
    };
    let wait_for = |records: usize| until(SOON, "the lines to be read", || accepted() >= records);
    let web = cluster.make_pod("web", &json!({}));
    let quiet = cluster.make_pod("quiet", &json!({"fluentbit.io/exclude": "true"}));
    print(logs.path(), "web", &web, "1 web");
    print(logs.path(), "quiet", &quiet, "unwanted");
    wait_for(1);
    // Known pods keep their names while the API server is away; new ones get theirs when it is back.
    cluster.kill_server();
    print(logs.path(), "web", &web, "2 web");
    wait_for(2);
    cluster.start_server();
    let api = cluster.make_pod("api", &json!({}));
    print(logs.path(), "api", &api, "3 api");
    wait_for(3);
    cluster.call("DELETE", "/api/v1/namespaces/shop/pods/web?gracePeriodSeconds=0", None).unwrap();
    print(logs.path(), "web", &web, "4 web");
    wait_for(4);
    gateway.at_rest(SOON);
    let rows = gateway.lake_rows_with("logs", &["--columns", "body,resource"]);
    let mut found: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let resource = match &row["resource"] {
                Value::String(text) => serde_json::from_str(text).unwrap(),
                other => other.clone(),
            };
            let of = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
            let keys =
                ["k8s.pod.name", "k8s.pod.uid", "k8s.pod.label.app", "container.image.name", "k8s.node.name"];
            [row["body"].as_str().unwrap().to_owned()].into_iter().chain(keys.map(of)).collect()
        })
        .collect();
    found.sort();
    let expected =
        [("1 web", "web", &web), ("2 web", "web", &web), ("3 api", "api", &api), ("4 web", "web", &web)];
    let expected = expected
        .map(|(body, name, uid)| [body, name, uid, name, "shop/web", "node-1"].map(str::to_owned).to_vec());
    assert_eq!(found, expected, "{}", gateway.log());
    gateway.books_close();
}
