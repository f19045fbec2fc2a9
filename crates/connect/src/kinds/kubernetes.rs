//! A Kubernetes cluster, by the Collector's Helm chart.

use super::collector::exporter;
use crate::endpoint::Abilities;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "kubernetes",
    aliases: &["k8s", "helm", "kube"],
    title: "Kubernetes cluster, with the Collector's Helm chart",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let exporter: String =
            exporter(&endpoint, &endpoint.url("")).lines().map(|line| format!("  {line}\n")).collect();
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
            let folder = "/etc/tidegate";
            yaml += &format!(
                "extraVolumes:\n  - name: tidegate\n    secret: {{ secretName: tidegate }}\nextraVolumeMounts:\n  - name: tidegate\n    \
                 mountPath: {folder}\n    readOnly: true\n"
            );
            let files = endpoint.ca_file().into_iter();
            let files = files.chain(endpoint.client_certificate().into_iter().flat_map(|(cert, key)| [cert, key]));
            secret.extend(files.map(|file| format!("--from-file={file}")));
        }
        let mut commands = String::new();
        if !secret.is_empty() {
            commands += &format!("kubectl create secret generic tidegate {}\n", secret.join(" "));
        }
        commands += "helm repo add open-telemetry https://open-telemetry.github.io/opentelemetry-helm-charts\n\
                     helm install otel-collector open-telemetry/opentelemetry-collector --values values.yaml\n";
        let mut notes = endpoint.notes(Abilities::ALL);
        if has_files {
            notes.push("The files have to be in /etc/tidegate, where the pods have them; the secret is made of those of this machine.".to_owned());
        }
        notes.push("tidegate can also read the containers' logs of its own node: see `sources.kubernetes_logs`.".to_owned());
        Ok(vec![
            Snippet::file("values of the chart", "values.yaml", Language::Yaml, yaml).with(notes),
            Snippet::commands("install it", commands),
        ])
    },
};
