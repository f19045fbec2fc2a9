//! The resource of a container's log: what its path says, and its pod.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;
use tidegate_config::KubernetesLogsSource;
use tidegate_kube_pods::{Exclusion, LogFile, LogPath, PodPin, PodTable, Value, attributes, matches_name};
use tidegate_lines::Stream;
use tidegate_tail::{FileInfo, FileResource, Input, ResourceState, path_attributes};
use tidegate_wire::otlp::logs::{Attributes, Value as Encoded};
use tidegate_wire::output::Full;

/// The namespace of a pod, as the kubelet tells its containers.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Gives each file the resource of its container, and excludes files that nobody wants.
pub(super) struct PodResource {
    pods: PodTable,
    node: String,
    own: OwnPod,
    namespaces: Vec<String>,
    exclude_namespaces: Vec<String>,
    /// Only pods that are known to match a selector are read.
    is_selective: bool,
    timeout: Duration,
    further: Vec<(Box<str>, Box<str>)>,
    /// Keeps the pods of open files in the table, by the number of the file.
    pins: HashMap<u32, PodPin>,
}

/// The gateway's own pod. Its log would grow with each line read from it.
struct OwnPod {
    name: String,
    /// Empty where the gateway is in no pod.
    namespace: String,
}

impl PodResource {
    /// The most memory for one open file, in bytes: its pin, in a table that doubles.
    pub(super) const BYTES_PER_FILE: usize = 2 * size_of::<(u32, PodPin)>() + 64;

    pub(super) fn new(source: &KubernetesLogsSource, node: &str, pods: PodTable) -> PodResource {
        PodResource {
            pods,
            node: node.to_owned(),
            own: OwnPod::of(source),
            namespaces: source.namespaces.clone().unwrap_or_default(),
            exclude_namespaces: source.exclude_namespaces.clone().unwrap_or_default(),
            is_selective: source.selector.is_some(),
            timeout: source.metadata_timeout.get(),
            further: Vec::new(),
            pins: HashMap::new(),
        }
    }

    fn is_wanted(&self, path: &LogPath<'_>) -> bool {
        let is_listed = |list: &[String]| list.iter().any(|wanted| matches_name(wanted, path.namespace));
        path.file != LogFile::Temporary
            && !self.own.is_at(path)
            && (self.namespaces.is_empty() || is_listed(&self.namespaces))
            && !is_listed(&self.exclude_namespaces)
    }
}

impl FileResource for PodResource {
    fn resource(
        &mut self,
        file: &FileInfo<'_>,
        known_for: Duration,
        out: &mut Attributes<'_>,
    ) -> ResourceState {
        let path = file.path.to_str().and_then(LogPath::parse);
        let Some(path) = path.filter(|path| self.is_wanted(path)) else { return ResourceState::Exclude };
        let pod = self.pods.pod_of(&path);
        match &pod {
            Some(pod) if pod.exclusion(path.container).is_all() => return ResourceState::Exclude,
            None if self.is_selective || known_for < self.timeout => return ResourceState::Wait,
            _ => {}
        }
        if pod.is_some() && !self.pins.contains_key(&file.number) {
            self.pins.extend(self.pods.pin(&path).map(|pin| (file.number, pin)));
        }
        let written = attributes(&path, &self.node, pod.as_deref(), |key, value| match value {
            Value::Text(text) => out.text(key, text),
            Value::Int(number) => out.int(key, number),
            Value::TextList(text) => {
                let list = out.open_list(key)?;
                let pushed = out.push(Encoded::Text(text));
                out.close(list);
                pushed
            }
        });
        let written = written
            .and_then(|()| path_attributes(file, out))
            .and_then(|()| self.further.iter().try_for_each(|(key, value)| out.text(key, value)));
        // Attributes that do not fit are left out: a pod has its own limit.
        let _: Result<(), Full> = written;
        let excluded = pod.map(|pod| pod.exclusion(path.container)).unwrap_or_default();
        match excluded {
            Exclusion { stdout: true, .. } => ResourceState::ReadyWithout(Stream::Stdout),
            Exclusion { stderr: true, .. } => ResourceState::ReadyWithout(Stream::Stderr),
            Exclusion { stdout: false, stderr: false } => ResourceState::Ready,
        }
    }

    fn set_inputs(&mut self, inputs: &[Input]) {
        self.further = inputs.iter().flat_map(|input| input.attributes.clone()).collect();
    }

    fn forget(&mut self, file: &FileInfo<'_>) {
        self.pins.remove(&file.number);
    }
}

impl OwnPod {
    fn of(source: &KubernetesLogsSource) -> OwnPod {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let of_environment = || std::env::var("POD_NAME").ok();
        let name = source.own_pod.clone().or_else(of_environment);
        OwnPod {
            name: name.unwrap_or_else(|| text("/proc/sys/kernel/hostname")),
            namespace: text(OWN_NAMESPACE),
        }
    }

    fn is_at(&self, path: &LogPath<'_>) -> bool {
        self.name == path.pod && (self.namespace.is_empty() || self.namespace == path.namespace)
    }
}
