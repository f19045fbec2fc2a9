//! A gateway, what `tidegate connect` prints for it, and what it has received.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_tests::{Gateway, SOON, certificates, command, finish, tidegate, until};

/// Who may send, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody on this machine.
    Open,
    /// TLS, with a token or an API key.
    Secured,
    /// TLS, with a certificate of the sender.
    ClientCertificates,
    /// Everybody, for the tenant in a header.
    TenantHeader,
}

/// A running gateway.
pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    access: Access,
    token: String,
    api_key: String,
}

/// One of the printed snippets.
pub(crate) struct Snippet {
    pub(crate) file: Option<String>,
    pub(crate) content: String,
}

impl Rig {
    /// One with these settings besides: of `listen`, and of `sources`.
    pub(crate) fn started(access: Access, listen: Value, sources: Value) -> Rig {
        let gateway = Gateway::new(json!({}));
        let mut all = json!({"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin()});
        all.as_object_mut().unwrap().extend(listen.as_object().unwrap().clone());
        let mut rig = Rig { gateway, access, token: String::new(), api_key: String::new() };
        let mut settings = json!({
            "memory": "128MiB", "sources": sources, "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
        });
        if matches!(access, Access::Secured | Access::ClientCertificates) {
            certificates::authority(rig.folder(), "ca");
            certificates::sign(rig.folder(), "ca", "server", "/CN=server");
            certificates::sign(rig.folder(), "ca", "client", "/CN=client");
            all["tls"] = json!({"cert_file": rig.path("server.pem"), "key_file": rig.path("server.key")});
        }
        match access {
            Access::Open => {}
            Access::Secured => {
                let (token, line) = made(&["sender"]);
                let (key, key_line) = made(&["beats", "--kind", "api-key"]);
                rig.file("credentials", &format!("{line}{key_line}"));
                rig.file("token", &token);
                rig.token = token;
                rig.api_key = format!("beats:{key}");
                settings["access"] = json!({"credentials_file": rig.path("credentials")});
            }
            Access::ClientCertificates => {
                all["tls"]["client_ca_file"] = json!(rig.path("ca.pem"));
                all["tls"]["client_auth"] = json!("required");
            }
            Access::TenantHeader => settings["tenants"] = json!({"header": "X-Scope-OrgID"}),
        }
        settings["listen"] = all;
        rig.gateway.configure(with_data(settings, &rig.gateway.data()));
        rig.gateway.start();
        rig
    }

    pub(crate) fn folder(&self) -> &Path {
        self.gateway.folder()
    }

    fn path(&self, name: &str) -> String {
        self.folder().join(name).display().to_string()
    }

    /// Writes a file of the test's.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// What is printed for this gateway, whose senders have their files in its folder.
    pub(crate) fn connect(&self, kind: &str, more: &[&str]) -> Vec<Snippet> {
        let (config, ca, cert, key, token) = (
            self.gateway.config(),
            self.path("ca.pem"),
            self.path("client.pem"),
            self.path("client.key"),
            self.path("token"),
        );
        let arguments = [
            "connect",
            kind,
            "--config",
            config.to_str().unwrap(),
            "--format",
            "json",
            "--ca-file",
            &ca,
            "--cert-file",
            &cert,
            "--key-file",
            &key,
            "--token-file",
            &token,
        ];
        let printed = tidegate(&[&arguments[..], more].concat()).succeeded();
        for secret in [&self.token, &self.api_key] {
            assert!(secret.is_empty() || !printed.contains(secret.as_str()), "{printed}");
        }
        let list: Vec<Value> = serde_json::from_str(&printed).unwrap();
        let snippet = |value: Value| Snippet {
            file: value["file"].as_str().map(str::to_owned),
            content: value["content"].as_str().unwrap().to_owned(),
        };
        list.into_iter().map(snippet).collect()
    }

    /// The variables that the notes tell a person to set.
    pub(crate) fn variables(&self) -> BTreeMap<&'static str, &str> {
        match self.access {
            Access::Secured => {
                [("TIDEGATE_TOKEN", &*self.token), ("TIDEGATE_API_KEY", &*self.api_key)].into_iter().collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Runs commands as they are printed; their output.
    pub(crate) fn shell(&self, commands: &str) -> String {
        let mut shell = Command::new("sh");
        // Python's exporter would trust those instead.
        shell.env_remove("REQUESTS_CA_BUNDLE").env_remove("CURL_CA_BUNDLE");
        shell.arg("-c").arg(commands).current_dir(self.folder()).envs(self.variables());
        finish(&mut shell).succeeded()
    }

    /// How many items of this signal a source has accepted.
    pub(crate) fn received(&self, source: &str, signal: &str) -> u64 {
        let status = self.gateway.status();
        let mut sources = status["books"]["sources"].as_array().into_iter().flatten();
        let found =
            sources.find(|found| found["name"] == source).unwrap_or_else(|| panic!("{source}: {status}"));
        found["items"][signal].as_u64().unwrap_or(0)
    }

    /// Waits until it has accepted some.
    pub(crate) fn receives(&self, source: &str, signal: &str) {
        until(SOON, &format!("{signal} of {source}"), || self.received(source, signal) > 0);
    }

    /// The tenants that have sent something.
    pub(crate) fn tenants(&self) -> Vec<String> {
        let status = self.gateway.status();
        let shown = status["tenants"]["shown"].as_array().into_iter().flatten();
        let sent = shown.filter(|tenant| tenant["accepted"].as_u64() != Some(0) && tenant["name"] != "other");
        sent.filter_map(|tenant| tenant["name"].as_str().map(str::to_owned)).collect()
    }

    /// The rows of a table, as soon as there are any.
    pub(crate) fn rows(&self, table: &str, columns: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        until(SOON, "rows", || {
            rows = self.gateway.lake_rows_with(table, &["--columns", columns]);
            !rows.is_empty()
        });
        rows
    }
}

impl Snippet {
    /// Writes it under its own name in `folder`.
    pub(crate) fn written(&self, folder: &Path) -> PathBuf {
        let name = Path::new(self.file.as_deref().expect("a file")).file_name().unwrap();
        let path = folder.join(name);
        std::fs::write(&path, &self.content).unwrap();
        path
    }
}

fn with_data(mut settings: Value, data: &Path) -> Value {
    settings["data"] = json!(data);
    settings
}

/// A secret of `tidegate token`, and the line for the credentials file.
fn made(arguments: &[&str]) -> (String, String) {
    let printed = finish(command(&["token"]).args(arguments)).succeeded();
    let (secret, line) = printed.split_once('\n').unwrap();
    (secret.to_owned(), line.to_owned())
}

/// A program of the tests.
pub(crate) fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name).display().to_string()
}
