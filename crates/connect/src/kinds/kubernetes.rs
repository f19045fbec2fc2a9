//! A Kubernetes cluster, by the Collector's Helm chart.

use super::collector::exporter;
use crate::endpoint::Abilities;
use crate::gateway::Gateway;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::sender::Sender;

pub(crate) const KIND: Kind = Kind {
    name: "kubernetes",
    aliases: &["k8s", "helm", "kube"],
    title: "Kubernetes cluster, with the Collector's Helm chart",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let names = file_names(gateway.sender);
        let [ca_file, cert_file, key_file] = names.map(|name| format!("{FOLDER}/{name}"));
        let pod = Sender { ca_file, cert_file, key_file, ..gateway.sender.clone() };
        let inside = Gateway::new(gateway.config, &pod).http();
        let exporter: String =
            exporter(&inside, &inside.url("")).lines().map(|line| format!("  {line}\n")).collect();
        let pipelines: String = ["traces", "metrics", "logs"]
            .iter()
            .map(|signal| format!("      {signal}:\n        exporters: [otlphttp/tidegate]\n"))
            .collect();
        let has_secret = endpoint.asks_for_token();
        let has_files = endpoint.ca_file().is_some();
        let mut yaml = "mode: daemonset\nimage:\n  repository: otel/opentelemetry-collector-k8s\npresets:\n  logsCollection:\n    enabled: true\n  \
                        kubernetesAttributes:\n    enabled: true\n  kubeletMetrics:\n    enabled: true\n"
            .to_owned();
        yaml += &format!("config:\n  exporters:\n    otlphttp/tidegate:\n{exporter}  service:\n    pipelines:\n{pipelines}");
        let mut secret = Vec::new();
        if has_secret {
            yaml += "extraEnvs:\n  - name: TIDEGATE_TOKEN\n    valueFrom:\n      secretKeyRef: { name: tidegate, key: token }\n";
            secret.push("--from-literal=token=\"$TIDEGATE_TOKEN\"".to_owned());
        }
        if has_files {
            yaml += &format!(
                "extraVolumes:\n  - name: tidegate\n    secret: {{ secretName: tidegate }}\nextraVolumeMounts:\n  - name: tidegate\n    \
                 mountPath: {FOLDER}\n    readOnly: true\n"
            );
            let files = endpoint.ca_file().into_iter();
            let files = files.chain(endpoint.client_certificate().into_iter().flat_map(|(cert, key)| [cert, key]));
            secret.extend(names.iter().zip(files).map(|(name, file)| format!("--from-file={name}={file}")));
        }
        let mut commands = String::new();
        if !secret.is_empty() {
            commands += &format!("kubectl create secret generic tidegate {}\n", secret.join(" "));
        }
        commands += "helm repo add open-telemetry https://open-telemetry.github.io/opentelemetry-helm-charts\n\
                     helm install otel-collector open-telemetry/opentelemetry-collector --values values.yaml\n";
        let mut notes = endpoint.notes(Abilities::ALL);
        if has_files {
            notes.push("The secret is made of the files of this machine; the pods have them in /etc/tidegate.".to_owned());
        }
        notes.push("tidegate can also read the containers' logs of its own node: see `sources.kubernetes_logs`.".to_owned());
        Ok(vec![
            Snippet::file("values of the chart", "values.yaml", Language::Yaml, yaml).with(notes),
            Snippet::commands("install it", commands),
        ])
    },
};

/// Where the pods have the files.
const FOLDER: &str = "/etc/tidegate";

/// The names of the authority, the certificate and its key in the secret: their own where they can be keys of one secret.
fn file_names(sender: &Sender) -> [&str; 3] {
    let own = [sender.ca_file(), sender.cert_file(), sender.key_file()]
        .map(|path| path.rsplit_once('/').map_or(path, |(_, name)| name));
    let is_key = |name: &str| {
        // The token has that key.
        !matches!(name, "" | "." | ".." | "token")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let [ca_file, cert_file, key_file] = own;
    let are_distinct = ca_file != cert_file && ca_file != key_file && cert_file != key_file;
    if are_distinct && own.into_iter().all(is_key) { own } else { ["ca.pem", "client.pem", "client.key"] }
}
