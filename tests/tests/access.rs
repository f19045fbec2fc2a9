//! Authentication: TLS, certificates and tokens, with curl, Python and gRPC as their users run them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tidegate_tests::{Finished, Gateway, SOON, certificates, command, finish, skip, until};

const LOGS: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}"#;
/// Parked connections, and the most that each may keep resident, in bytes.
const PARKED: usize = 2000;
const PER_CONNECTION: u64 = 10 << 10;

/// A gateway, and certificates that `openssl` made.
struct Rig {
    gateway: Gateway,
}

impl Rig {
    /// Not started: `settings` beside the addresses, whose TLS is `tls`.
    fn new(mut settings: Value, tls: Option<Value>) -> Rig {
        let rig = Rig { gateway: Gateway::new(json!({})) };
        let listen = &mut settings["listen"];
        if listen.is_null() {
            *listen = json!({});
        }
        for (name, address) in
            [("http", rig.gateway.http()), ("grpc", rig.gateway.grpc()), ("admin", rig.gateway.admin())]
        {
            if listen[name].is_null() {
                listen[name] = json!(address);
            }
        }
        if let Some(tls) = tls {
            rig.authority();
            rig.sign("server", "/CN=server");
            listen["tls"] =
                json!({ "cert_file": rig.path("server.pem"), "key_file": rig.path("server.key") });
            for (key, value) in tls.as_object().unwrap() {
                listen["tls"][key] = value.clone();
            }
        }
        settings["memory"] = json!("64MiB");
        settings["sinks"] = json!({ "out": { "type": "blackhole" } });
        rig.gateway.configure(settings);
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.gateway.folder().join(name)
    }

    fn authority(&self) {
        certificates::authority(self.gateway.folder(), "ca");
    }

    fn sign(&self, name: &str, subject: &str) {
        certificates::sign(self.gateway.folder(), "ca", name, subject);
    }

    /// `curl`, which says the status last.
    fn curl(&self, arguments: &[&str]) -> Finished {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-m", "30", "-w", "\n%{http_version} %{http_code}"]).args(arguments);
        finish(curl.current_dir(self.gateway.folder()))
    }

    /// Sends a log record with these arguments; its status.
    fn status(&self, arguments: &[&str]) -> String {
        let send = ["-H", "Content-Type: application/json", "-d", LOGS];
        let said = self.curl(&[&send[..], arguments].concat()).succeeded();
        said.rsplit('\n').next().unwrap().to_owned()
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/v1/logs", self.gateway.http())
    }

    fn credentials(&self, lines: &str) {
        std::fs::write(self.path("credentials.new"), lines).unwrap();
        std::fs::rename(self.path("credentials.new"), self.path("credentials")).unwrap();
    }

    fn balanced(&self) {
        until(SOON, "the books to close", || {
            let status = self.admin(&[]);
            status.contains("\"difference\":0") || status.contains("\"difference\": 0")
        });
    }

    fn admin(&self, arguments: &[&str]) -> String {
        let url = format!("http://{}/status.json", self.gateway.admin());
        self.curl(&[arguments, &[url.as_str()]].concat()).succeeded()
    }
}

/// Makes a secret with `tidegate token`: the secret, and the line about it.
fn token(arguments: &[&str]) -> (String, String) {
    let made = finish(command(&["token"]).args(arguments)).succeeded();
    let (secret, line) = made.trim_end().split_once('\n').unwrap();
    (secret.to_owned(), line.to_owned())
}

fn python() -> Option<PathBuf> {
    let python =
        std::env::var_os("TIDEGATE_TEST_PYTHON").filter(|python| !python.is_empty()).map(PathBuf::from);
    if python.is_none() {
        skip("TIDEGATE_TEST_PYTHON", "TIDEGATE_TEST_PYTHON must name a Python that has the `grpcio` package");
    }
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("access").join(name)
}

#[test]
fn a_public_listener_needs_tls_or_an_explicit_setting() {
    let mut rig = Rig::new(json!({ "listen": { "http": "0.0.0.0:0" } }), None);
    let refused = rig.gateway.refuses_to_start();
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("is reachable from other machines"), "{}", refused.stderr);
    assert!(refused.stderr.contains("listen.tls") && refused.stderr.contains("listen.insecure: true"));
    let mut rig = Rig::new(json!({ "listen": { "http": "0.0.0.0:0", "insecure": true } }), None);
    rig.gateway.start();
    assert_eq!(rig.gateway.term(), 0);
}

#[test]
fn only_known_clients_may_send_and_the_file_is_reloaded() {
    let (first, first_line) = token(&["agents", "--tenant", "shop"]);
    let (second, second_line) = token(&["others"]);
    let (key, key_line) = token(&["beats-1", "--kind", "api-key"]);
    let mut rig =
        Rig::new(json!({ "access": { "credentials_file": "credentials", "header": "X-Api-Key" } }), None);
    rig.credentials(&format!("{first_line}\n{key_line}\n"));
    rig.gateway.start();
    let url = rig.url("http");
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    assert_eq!(rig.status(&["-H", &bearer(&first), &url]), "1.1 200");
    assert_eq!(rig.status(&["-H", &format!("X-Api-Key: {first}"), &url]), "1.1 200");
    assert_eq!(rig.status(&["--http2-prior-knowledge", "-H", &bearer(&first), &url]), "2 200");
    let encoded = finish(Command::new("sh").args(["-c", &format!("printf 'beats-1:{key}' | base64 -w0")]));
    assert_eq!(
        rig.status(&["-H", &format!("Authorization: ApiKey {}", encoded.succeeded()), &url]),
        "1.1 200"
    );
    // In the protocol's shape, and with a hint.
    let refused = rig.curl(&["-i", "-H", "Content-Type: application/json", "-d", LOGS, &url]).succeeded();
    assert!(refused.contains("HTTP/1.1 401") && refused.contains("WWW-Authenticate: Bearer"), "{refused}");
    assert!(refused.contains("\"message\""), "{refused}");
    for wrong in [second.as_str(), "", "x y", "sha256:00"] {
        assert_eq!(rig.status(&["-H", &bearer(wrong), &url]), "1.1 401", "{wrong:?}");
    }
    assert_eq!(rig.status(&["--http2-prior-knowledge", "-H", &bearer(&second), &url]), "2 401");
    // Withdrawn and replaced while it runs, without being told.
    rig.credentials(&format!("{second_line}\n"));
    until(SOON, "the new file to be taken over", || rig.status(&["-H", &bearer(&second), &url]) == "1.1 200");
    assert_ne!(rig.status(&["-H", &bearer(&first), &url]), "1.1 200");
    // A mistake changes nothing, and is told.
    rig.credentials("bearer others nonsense\n");
    rig.gateway.hangup();
    until(SOON, "the mistake to be told", || rig.gateway.log().contains("line 1"));
    assert_eq!(rig.status(&["-H", &bearer(&second), &url]), "1.1 200");
    rig.balanced();
    let log = rig.gateway.log();
    assert!(log.contains("without valid credentials"), "{log}");
    assert!(!log.contains(&first) && !log.contains(&second) && !log.contains(&key));
    assert_eq!(rig.gateway.term(), 0);
}

#[test]
fn admin_requests_need_a_token_if_configured() {
    let (secret, line) = token(&["operator"]);
    let mut rig = Rig::new(json!({ "access": { "admin_credentials_file": "credentials" } }), None);
    rig.credentials(&line);
    rig.gateway.start();
    let bearer = format!("Authorization: Bearer {secret}");
    assert!(rig.admin(&[]).ends_with("401"));
    assert!(rig.admin(&["-H", &bearer]).ends_with("200"));
    std::fs::write(rig.path("token"), format!("{secret}\n")).unwrap();
    let admin = rig.gateway.admin().to_string();
    let tap = |more: &[&str]| {
        finish(
            command(&["tap", "--for", "1s", "--admin", &admin]).args(more).current_dir(rig.gateway.folder()),
        )
    };
    tap(&["--admin-token-file", "token"]).succeeded();
    let refused = tap(&[]);
    assert!(refused.code != Some(0) && refused.stderr.contains("--admin-token-file"), "{}", refused.stderr);
}

#[test]
fn certificates_identify_the_sender() {
    let Some(python) = python() else { return };
    let tls = json!({ "client_ca_file": "ca.pem", "client_auth": "optional" });
    let mut rig = Rig::new(json!({ "access": { "credentials_file": "credentials" } }), Some(tls));
    rig.sign("agent", "/O=Acme/CN=agent-7");
    rig.sign("other", "/O=Other/CN=agent-8");
    let (secret, line) = token(&["agents"]);
    rig.credentials(&format!("certificate CN=agent-7 tenant=acme\n{line}\n"));
    rig.gateway.start();
    let url = rig.url("https");
    let with = |name: &str, more: &[&str]| {
        let (pem, key) = (format!("{name}.pem"), format!("{name}.key"));
        let shows = ["--cacert", "ca.pem", "--cert", &pem, "--key", &key, &url];
        rig.status(&[more, &shows].concat())
    };
    assert_eq!(with("agent", &["--http1.1"]), "1.1 200");
    assert_eq!(with("agent", &["--http2"]), "1.1 200", "who has both is served more over HTTP/1.1");
    assert_eq!(with("other", &["--http1.1"]), "1.1 403");
    let token = format!("Authorization: Bearer {secret}");
    for (version, status) in [("--tlsv1.2", "200"), ("--tlsv1.3", "200")] {
        assert!(rig.status(&[version, "--cacert", "ca.pem", "-H", &token, &url]).ends_with(status));
    }
    assert!(rig.status(&["--cacert", "ca.pem", &url]).ends_with("401"));
    let call = |more: &[&str]| {
        let mut call = Command::new(&python);
        call.arg(script("grpc_call.py")).arg(rig.gateway.grpc().to_string()).arg("ca.pem").args(more);
        finish(call.current_dir(rig.gateway.folder())).succeeded()
    };
    assert_eq!(call(&["agent.pem", "agent.key"]).trim(), "OK");
    assert_eq!(call(&[&secret]).trim(), "OK");
    assert!(call(&["other.pem", "other.key"]).starts_with("PERMISSION_DENIED"));
    assert!(call(&[]).starts_with("UNAUTHENTICATED"));
    // A client that speaks plain HTTP is told to use TLS.
    let plain = rig.curl(&[&rig.url("http")]).succeeded();
    assert!(plain.contains("HTTPS") && plain.ends_with("400"), "{plain}");
    rig.balanced();
    assert_eq!(rig.gateway.term(), 0);
}

#[test]
fn certificates_and_tokens_change_under_traffic_without_a_request_lost() {
    let Some(python) = python() else { return };
    let mut rig = Rig::new(json!({ "access": { "credentials_file": "credentials" } }), Some(json!({})));
    let (secret, line) = token(&["agents"]);
    rig.credentials(&line);
    rig.gateway.start();
    let mut stream = Command::new(python);
    stream
        .arg(script("stream.py"))
        .arg(rig.gateway.http().to_string())
        .arg("ca.pem")
        .arg(&secret)
        .arg("stop");
    let mut stream = stream.current_dir(rig.gateway.folder()).stdout(Stdio::piped()).spawn().unwrap();
    let serial = || {
        let shown = format!(
            "echo | openssl s_client -connect {} 2>/dev/null | openssl x509 -noout -serial",
            rig.gateway.http()
        );
        finish(Command::new("sh").args(["-c", &shown])).succeeded()
    };
    for round in 0..3 {
        let before = serial();
        rig.sign("server", "/CN=server");
        let (_, other) = token(&["others"]);
        rig.credentials(&format!("{line}\n{other}\n"));
        until(SOON, "the new certificate to be shown", || serial() != before);
        println!("round {round}: {} became {}", before.trim(), serial().trim());
    }
    std::fs::write(rig.path("stop"), "").unwrap();
    let mut said = String::new();
    BufReader::new(stream.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(stream.wait().unwrap().success());
    let (taken, refused) = said.trim().split_once(' ').unwrap();
    println!("{taken} requests were taken meanwhile");
    assert!(taken.parse::<u64>().unwrap() > 10);
    assert_eq!(refused, "0");
    rig.balanced();
    assert_eq!(rig.gateway.term(), 0);
}

/// The figure that the plan declares for a parked connection holds, and the bound on memory with it.
#[test]
fn parked_connections_with_tls_cost_little() {
    let Some(python) = python() else { return };
    let mut rig = Rig::new(json!({ "limits": { "connections": PARKED + 100 } }), Some(json!({})));
    rig.gateway.start();
    let (http, folder) = (rig.gateway.http(), rig.gateway.folder().to_owned());
    let park = |count: usize| {
        let mut park = Command::new(&python);
        park.arg(script("park.py")).args([http.ip().to_string(), http.port().to_string()]).arg("ca.pem");
        let park = park.arg(count.to_string()).current_dir(&folder);
        let mut park = park.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(park.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said.trim(), "open");
        park
    };
    // Whatever is made once is made before.
    let mut first = park(50);
    drop(first.stdin.take());
    first.wait().unwrap();
    let before = rig.gateway.process().private();
    let mut parked = park(PARKED);
    let each = rig.gateway.process().private().saturating_sub(before) / PARKED as u64;
    println!("a parked connection with TLS keeps {each} bytes resident");
    assert!(each <= PER_CONNECTION, "{each}");
    drop(parked.stdin.take());
    parked.wait().unwrap();
    assert!(rig.gateway.hwm() <= 64 << 20);
}
