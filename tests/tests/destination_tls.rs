//! `acknowledge: destination` over TLS on both sides, with authorities of the test's own: clients to the gateway, and the gateway
//! to a cluster that asks for its certificate.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tidegate_tests::{Gateway, OpenSearch, Program, SOON, certificates, free_address, skip, until};

/// A gateway before a cluster whose TLS ends in a process of its own.
struct Rig {
    gateway: Gateway,
    /// Where it is Elasticsearch, over TLS.
    address: SocketAddr,
    _front: Program,
}

impl Rig {
    /// The gateway trusts the authority `trusted` on its way to the cluster; `ours` has signed the cluster's certificate.
    fn start(node: &OpenSearch, trusted: &str) -> Rig {
        let mut gateway = Gateway::new(json!({}));
        let folder = gateway.folder().to_owned();
        for authority in ["ours", "theirs"] {
            certificates::authority(&folder, authority);
        }
        for name in ["server", "cluster", "gateway"] {
            certificates::sign(&folder, "ours", name, &format!("/CN={name}"));
        }
        std::fs::copy(folder.join(format!("{trusted}.pem")), folder.join("trusted.pem")).unwrap();
        let (address, cluster) = (free_address(), free_address());
        let mut command = Command::new("python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("elastic/tls_front.py")).current_dir(&folder);
        command.arg(cluster.port().to_string()).args(["cluster.pem", "cluster.key", "ours.pem"]);
        command.arg(node.address().to_string());
        let front = Program::start("tls-front", command, &folder);
        until(SOON, "the cluster to listen", || TcpStream::connect(cluster).is_ok());
        gateway.configure(json!({
            "listen": {
                "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "elasticsearch": address,
                "tls": {"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")},
            },
            "sources": {"elasticsearch": {"acknowledge": "destination"}},
            "sinks": {"out": {
                "type": "elasticsearch", "product": "opensearch", "endpoints": [format!("https://{cluster}")],
                "backoff": {"min": "20ms", "max": "500ms"}, "linger": "20ms",
                "tls": {
                    "ca_file": folder.join("trusted.pem"),
                    "cert_file": folder.join("gateway.pem"), "key_file": folder.join("gateway.key"),
                },
            }},
        }));
        gateway.start();
        Rig { gateway, address, _front: front }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.gateway.folder().join(name)
    }

    /// curl, posting two documents of its own.
    fn curl(&self, number: usize) -> Child {
        let body = format!(
            "{{\"create\":{{\"_id\":\"{number}a\"}}}}\n{{\"n\":1}}\n{{\"create\":{{\"_id\":\"{number}b\"}}}}\n{{\"n\":2}}\n"
        );
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "60", "-H", "Content-Type: application/x-ndjson"]);
        curl.args(["-w", "\n%{http_code}", "--data-binary", &body, "--cacert"]).arg(self.path("ours.pem"));
        let base = match number % 2 {
            0 => self.address.to_string(),
            _ => format!("{}/elasticsearch", self.gateway.http()),
        };
        curl.arg(format!("https://{base}/curl/_bulk?timeout=5s"));
        curl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
    }
}

/// The answer to a curl, and its status.
fn answer(curl: Child) -> (Value, String) {
    let output = curl.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (serde_json::from_str(body).unwrap(), status.to_owned())
}

/// curl at both addresses, and the bulk helpers of the clients for Node.js and Go: each document is there, once.
#[test]
fn each_document_arrives_over_tls_on_both_sides() {
    const EACH: usize = 300;
    let Some(node) = OpenSearch::started(&[]) else { return };
    let rig = Rig::start(&node, "ours");
    let url = format!("https://{}", rig.address);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut clients = Vec::new();
    for (variable, name) in [("TIDEGATE_TEST_NODE_MODULES", "node"), ("TIDEGATE_TEST_SHIPPERS", "go")] {
        let Some(tool) = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
        else {
            skip(variable, &format!("{variable} is not set; `make test` sets it"));
            continue;
        };
        let mut command = match name {
            "node" => {
                let mut node = Command::new("node");
                node.arg(root.join("shippers/bulk.cjs")).arg("@opensearch-project/opensearch");
                node.env("NODE_MODULES", tool).env("NODE_EXTRA_CA_CERTS", rig.path("ours.pem"));
                node
            }
            _ => {
                let mut go = Command::new(tool.join("bin/go"));
                go.env("SSL_CERT_FILE", rig.path("ours.pem"));
                go
            }
        };
        command.args([&url, name, &EACH.to_string(), "own"]);
        clients.push((name, Program::start(name, command, rig.gateway.folder())));
    }
    let posts: Vec<_> = (0..20).map(|number| (number, rig.curl(number))).collect();
    for (number, post) in posts {
        let (answer, status) = answer(post);
        assert_eq!(status, "200", "{number}: {answer}");
        let results = answer["items"].as_array().unwrap().iter().map(|item| &item["create"]["result"]);
        assert!(results.eq(["created", "created"].map(Value::from).iter()), "{answer}");
    }
    assert_eq!(node.documents("curl").len(), 40);
    for (name, mut client) in clients {
        let code = client.wait(SOON * 2).code();
        assert_eq!(code, Some(0), "{name}: {}{}", client.stdout(), client.stderr());
        assert_eq!(node.documents(name).len(), EACH, "{name}");
    }
    assert_eq!(rig.gateway.status()["books"]["journal"]["appended"], 0);
    rig.gateway.books_close();
}

/// A cluster with a certificate of another authority gets nothing: clients get 503. Once the file with the authority names the
/// right one, the next requests go through, without a restart.
#[test]
fn an_untrusted_cluster_gets_nothing_until_its_authority_is_trusted() {
    let Some(node) = OpenSearch::started(&[]) else { return };
    let rig = Rig::start(&node, "theirs");
    let (refusal, status) = answer(rig.curl(0));
    assert_eq!((status.as_str(), &refusal["status"]), ("503", &json!(503)), "{refusal}");
    let error = rig.gateway.status()["destination"]["last_error"]["message"].to_string();
    assert!(error.contains("the cluster cannot be reached") && error.contains("certificate"), "{error}");

    let draft = rig.path("draft.pem");
    std::fs::copy(rig.path("ours.pem"), &draft).unwrap();
    std::fs::rename(draft, rig.path("trusted.pem")).unwrap();
    until(SOON, "the cluster to be trusted", || answer(rig.curl(1)).1 == "200");
    rig.gateway.books_close();
}
