//! The filter `kubernetes`: settings of the source `kubernetes_logs`, which looks up the metadata of pods.

use super::parser::merge_log;
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::FluentBit;
use crate::import::fluent_bit::plugin::{Lacking, Plugin};
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] = &[
    "kube_url",
    "kube_ca_file",
    "kube_token_file",
    "merge_log",
    "merge_log_key",
    "keep_log",
    "k8s-logging.parser",
    "k8s-logging.exclude",
    "labels",
    "annotations",
    "kube_tag_prefix",
    "buffer_size",
];

const KUBELET: &str = "not needed: the metadata come from the API server, which tells of changes";
const LACKING: &Lacking = &[
    ("buffer_size", "not needed: the memory for metadata is planned"),
    ("kube_ca_path", "left out: name one file in `api.ca_file`"),
    ("kube_token_ttl", "not needed: the token is read again when its file changes"),
    ("kube_token_command", "left out: tidegate runs no programs; set `api.token_file`"),
    ("kube_tag_prefix", "not needed: pods are known by the paths of their files"),
    ("kube_meta_preload_cache_dir", "left out: metadata come from the API server"),
    ("kube_meta_cache_ttl", "not needed: the API server tells of changes"),
    ("kube_meta_namespace_cache_ttl", "not needed: labels of namespaces are not looked up"),
    ("regex_parser", "not needed: pods are known by the paths of their files"),
    ("merge_log_trim", "not needed: lines have no line feed at their end"),
    ("merge_parser", "left out: set `parse` of the source"),
    (
        "k8s-logging.parser",
        "left out: annotations that name parsers are not looked at; set `parse` of the source",
    ),
    ("use_journal", "left out: the source reads files"),
    ("use_kubelet", KUBELET),
    ("use_tag_for_meta", KUBELET),
    ("kubelet_host", KUBELET),
    ("kubelet_port", KUBELET),
    ("use_pod_association", KUBELET),
    ("cache_use_docker_id", KUBELET),
    ("dns_retries", "not needed: requests are repeated"),
    ("dns_wait_time", "not needed: requests are repeated"),
    ("dummy_meta", "left out: metadata are those of the pods"),
    ("namespace_labels", "left out: labels of namespaces are not looked up"),
    ("namespace_annotations", "left out: annotations of namespaces are not looked up"),
    ("namespace_metadata_only", "left out: metadata are those of the pods"),
    ("owner_references", "not needed: owners are attributes such as `k8s.deployment.name`"),
    ("tls.debug", "not needed"),
    ("tls.verify", "not needed: certificates are always verified"),
    ("tls.vhost", "left out: set `api.server_name`"),
];

impl FluentBit {
    /// Completes the source. The steps are those for JSON lines.
    pub(super) fn kubernetes_filter(&mut self, plugin: &mut Plugin<'_>) -> Vec<Step> {
        if self.tails.is_empty() {
            let message = "left out: the metadata of pods belong to the source `kubernetes_logs`, and no input `tail` that it matches reads \
                           only files in /var/log/containers";
            plugin.note(message, &mut self.report);
            plugin.take_all();
            return Vec::new();
        }
        let api = self.kubernetes_api(plugin);
        let has_labels = plugin.flag("labels", &mut self.report) != Some(false);
        let has_annotations = plugin.flag("annotations", &mut self.report) != Some(false);
        let merges = plugin.flag("merge_log", &mut self.report) == Some(true);
        let merge_key = plugin.text("merge_log_key", &self.report);
        let keeps = plugin.flag("keep_log", &mut self.report);
        plugin.lacks(LACKING, &mut self.report);
        if plugin.flag("k8s-logging.exclude", &mut self.report) != Some(true) {
            let message = "pods with the annotation `fluentbit.io/exclude: true` are left out here; Fluent Bit reads them without \
                           `K8S-Logging.Exclude On`";
            plugin.note(message, &mut self.report);
        }
        let annotations = if has_annotations { ". Annotations are no attributes" } else { "" };
        let message = format!(
            "the metadata are attributes of the resource such as `k8s.namespace.name`, `k8s.pod.name` and `k8s.pod.label.KEY`, not a member \
             `kubernetes`{annotations}"
        );
        plugin.note(message, &mut self.report);
        if merges && merge_key.is_none() && keeps != Some(false) {
            let message = "the text of a JSON line is not kept beside its members, as with `Keep_Log Off`";
            plugin.note(message, &mut self.report);
        }
        let source = self.out.group("sources").group("kubernetes_logs");
        source.set_group("api", api);
        let others_have = source.get("labels").is_some();
        if has_labels {
            source.set("labels", Yaml::Flow(vec!["*".to_owned()]));
        }
        if others_have && !has_labels {
            let message = "all pods get their labels: another filter wants them, and there is one source";
            plugin.note(message, &mut self.report);
        }
        let under = merge_key.as_ref().map(|key| key.text.as_str());
        let merged = merges.then(|| merge_log(under, keeps != Some(false)));
        merged.flatten().into_iter().collect()
    }

    /// The settings of the API server that are not those of a pod.
    fn kubernetes_api(&mut self, plugin: &mut Plugin<'_>) -> Map {
        let mut api = Map::default();
        let url = plugin.text("kube_url", &self.report).map(|url| url.text.trim_end_matches('/').to_owned());
        // In a pod, this is the address that the environment has.
        let is_default = url.as_deref().is_none_or(|url| {
            let host = url.strip_prefix("https://").unwrap_or(url);
            let host = host.strip_suffix(":443").unwrap_or(host);
            matches!(
                host,
                "kubernetes.default.svc" | "kubernetes.default.svc.cluster.local" | "kubernetes.default"
            )
        });
        let account = "/var/run/secrets/kubernetes.io/serviceaccount/";
        for (theirs, ours) in [("kube_token_file", "token_file"), ("kube_ca_file", "ca_file")] {
            let value = plugin.text(theirs, &self.report).map(|value| value.text);
            let own = value.filter(|value| !is_default || !value.starts_with(account));
            api.set_some(ours, own);
        }
        if let Some(url) = url.filter(|_| !is_default) {
            api.set("url", url);
        }
        api
    }
}
