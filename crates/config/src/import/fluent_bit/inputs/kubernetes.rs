//! Tails of containers' files: the source `kubernetes_logs`, which reads all of a node.

use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::FluentBit;
use crate::import::fluent_bit::containers;
use crate::import::fluent_bit::plugin::{Plugin, Value};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::tags::{Origin, TAG, either};
use crate::import::ottl::literal;

/// The inputs whose files belong to containers.
#[derive(Debug, Default)]
pub(in crate::import::fluent_bit) struct KubernetesTails {
    tails: Vec<KubernetesTail>,
}

#[derive(Debug)]
struct KubernetesTail {
    tag: String,
    /// A condition that holds for the containers of this input; none if it reads all.
    condition: Option<String>,
}

impl FluentBit {
    pub(super) fn kubernetes_tail(
        &mut self,
        plugin: &Plugin<'_>,
        input: Map,
        tag: &str,
        include: &[Value],
        exclude: &[Value],
    ) {
        let message = "the source `kubernetes_logs` reads the containers of the node with the metadata of their pods: set the environment \
                       variable NODE_NAME, let its service account read pods, and mount /var/log/pods";
        plugin.note(message, &mut self.report);
        let is_all = include.iter().any(|path| takes_all(&path.text));
        let mut parts = Vec::new();
        if !is_all {
            let included = one_of(include);
            parts.push(if included.contains(" or ") { format!("({included})") } else { included });
        }
        let mut namespaces = Vec::new();
        let mut others = Vec::new();
        for path in exclude {
            match namespace_of(&path.text) {
                Some(namespace) => namespaces.push(namespace),
                None => others.push(path.clone()),
            }
        }
        let is_first = self.tails.tails.is_empty();
        // Another input may read what this one leaves out.
        if !namespaces.is_empty() && (!is_first || exclude.len() != namespaces.len()) {
            others = exclude.to_vec();
            namespaces.clear();
        }
        if !others.is_empty() {
            parts.push(format!("not ({})", one_of(&others)));
        }
        if parts.iter().any(|part| part.contains("${")) {
            let message = "its path has variables: look at the conditions of the pipeline `containers`";
            plugin.note(message, &mut self.report);
        }
        let condition = (!parts.is_empty()).then(|| parts.join(" and "));
        self.tails.tails.push(KubernetesTail { tag: tag.to_owned(), condition });
        let source = self.out.group("sources").group("kubernetes_logs");
        if !is_first {
            let message = "there is one source `kubernetes_logs`: the settings of the first such input apply, but for paths and tags";
            plugin.note(message, &mut self.report);
            // What the first one does not read, this one may.
            if let Some(Yaml::Flow(excluded)) = source.get("exclude_namespaces").cloned() {
                source.remove("exclude_namespaces");
                let paths: Vec<Value> = excluded
                    .iter()
                    .map(|namespace| Value {
                        key: String::new(),
                        text: format!("/var/log/containers/*_{namespace}_*.log"),
                        at: 0..0,
                    })
                    .collect();
                if let Some(first) = self.tails.tails.first_mut() {
                    let others = format!("not ({})", one_of(&paths));
                    first.condition = Some(match first.condition.take() {
                        Some(own) => format!("{own} and {others}"),
                        None => others,
                    });
                }
            }
            return;
        }
        source.set("enabled", "true");
        source.append(&input);
        source.remove("format");
        if !namespaces.is_empty() {
            source.set("exclude_namespaces", Yaml::Flow(namespaces));
        }
    }
}

impl KubernetesTails {
    /// Whether there is one.
    pub(in crate::import::fluent_bit) fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// Writes which containers are read, and their tags if sinks or steps look at those.
    pub(in crate::import::fluent_bit) fn write(&self, origins: Option<&[Origin]>, out: &mut Map) {
        let needs_tags = origins.is_some();
        if let [KubernetesTail { tag, condition: None }] = self.tails.as_slice() {
            if needs_tags {
                let source = out.group("sources").group("kubernetes_logs");
                source.group("attributes").set(TAG, tag.as_str());
            }
            return;
        }
        if self.tails.is_empty() {
            return;
        }
        let mut steps = Vec::new();
        if self.tails.iter().all(|tail| tail.condition.is_some()) {
            let conditions: Vec<String> = self
                .tails
                .iter()
                .filter_map(|tail| tail.condition.clone())
                .map(|one| format!("({one})"))
                .collect();
            let mut step = Map::default();
            step.set("name", "others");
            step.set("drop", Yaml::List(vec![format!("not ({})", conditions.join(" or ")).into()]));
            steps.push(Yaml::Map(step));
        }
        if needs_tags {
            let statements = self.tails.iter().map(|tail| {
                let set = format!("set(resource.attributes[{}], {})", literal(TAG), literal(&tail.tag));
                match &tail.condition {
                    Some(condition) => format!("{set} where {condition}").into(),
                    None => set.into(),
                }
            });
            let mut step = Map::default();
            step.set("name", "tag");
            step.set("edit", Yaml::List(statements.collect()));
            steps.push(Yaml::Map(step));
        }
        if steps.is_empty() {
            return;
        }
        let mut pipeline = Map::default();
        pipeline.set("steps", Yaml::List(steps));
        out.group("pipelines").set("containers", pipeline);
        out.group("sources").group("kubernetes_logs").set("pipeline", "containers");
    }
}

/// Whether a pattern selects the files of every container.
fn takes_all(path: &str) -> bool {
    const ALL: [&str; 5] = [
        "/var/log/containers/*.log",
        "/var/log/containers/*",
        "/var/log/pods/*/*/*.log",
        "/var/log/pods/**/*.log",
        "/var/log/pods/*/*/*",
    ];
    ALL.contains(&path)
}

/// The namespace that a pattern selects with all its containers: `/var/log/containers/*_kube-system_*.log`.
fn namespace_of(path: &str) -> Option<String> {
    let inner = path.strip_prefix("/var/log/containers/*_")?;
    let namespace = inner.strip_suffix("_*.log").or_else(|| inner.strip_suffix("_*"))?;
    let is_name =
        namespace.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (is_name && !namespace.is_empty()).then(|| namespace.to_owned())
}

/// The condition that a container's file has one of these paths.
fn one_of(paths: &[Value]) -> String {
    let conditions = paths.iter().map(|path| match path.text.strip_prefix(containers::FOLDER) {
        Some(name) => containers::condition(name),
        None => {
            let regex = record::escaped(&path.text).replace("\\*\\*", ".*").replace("\\*", "[^/]*");
            format!("IsMatch(resource.attributes[\"log.file.path\"], {})", literal(&format!("^{regex}$")))
        }
    });
    either(&conditions.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_for_a_whole_namespace_are_known() {
        let of = |path: &str| namespace_of(&format!("/var/log/containers/{path}"));
        assert_eq!(of("*_kube-system_*.log").as_deref(), Some("kube-system"));
        assert_eq!(of("*_kube-system_*").as_deref(), Some("kube-system"));
        assert!(of("fluent-bit*").is_none() && of("*_*_*.log").is_none() && of("*__*.log").is_none());
    }
}
