//! The settings of the reader and of the watch, made from the configuration.

use crate::Failure;
use crate::gateway::sources::checkpoint_keys;
use crate::gateway::sources::file::settings::{long_line, multiline_of, start_at};
use std::time::Duration;
use tidegate_config::{Config, KubernetesLogsSource};
use tidegate_kube_pods::{ApiSettings, ExclusionRules, Fields, Selector, WatcherSettings};
use tidegate_lines::{Format, Settings as LineSettings};
use tidegate_tail::{Glob, Input, Settings};

/// The first byte of the keys of this source's checkpoints.
const KEY: u8 = checkpoint_keys::KUBERNETES_LOGS;
/// How long one watch goes on for.
const WATCH: Duration = Duration::from_mins(5);
/// Variables in which manifests have the name of the node: ours first, then those of others.
const NODE_VARIABLES: [&str; 4] = ["NODE_NAME", "K8S_NODE_NAME", "KUBE_NODE_NAME", "VECTOR_SELF_NODE_NAME"];

/// The name of the node, from the configuration or the environment.
pub(super) fn node(source: &KubernetesLogsSource) -> Option<String> {
    let of_environment = || NODE_VARIABLES.into_iter().find_map(|name| std::env::var(name).ok());
    source.node.clone().or_else(of_environment).filter(|node| !node.is_empty())
}

/// The mistakes in patterns and in the selector.
pub(in crate::gateway::sources) fn check(config: &Config) -> Vec<String> {
    let source = &config.sources.kubernetes_logs;
    if !source.enabled {
        return Vec::new();
    }
    let mistakes = [files(config).err(), selector(source).err()];
    mistakes.into_iter().flatten().map(|Failure(error)| error).collect()
}

/// The settings of the reader.
///
/// # Errors
/// In words: which setting it is, and what is wrong with it.
pub(super) fn files(config: &Config) -> Result<Settings, Failure> {
    let source = &config.sources.kubernetes_logs;
    let glob = |name: &str| {
        let pattern = format!("{}/*/*/{name}", source.path.display());
        Glob::parse(&pattern)
            .map_err(|error| Failure(format!("`sources.kubernetes_logs.path`: {pattern:?}: {error}")))
    };
    let multiline = source.multiline.as_ref();
    let multiline =
        multiline.map(|multiline| multiline_of("sources.kubernetes_logs", multiline)).transpose()?;
    let input = Input {
        name: "pods".into(),
        include: glob("*.log*")?,
        // The kubelet compresses into them, and renames them when they are complete.
        exclude: glob("*.tmp")?,
        start_at: start_at(source.start_at),
        compressed: source.compressed,
        lines: LineSettings {
            // That of the container runtime interface, or Docker's: the first line of each file tells.
            format: Format::Auto,
            longest_line: source.max_line.as_usize(),
            on_long_line: long_line(source.on_long_line),
            multiline,
            ..LineSettings::default()
        },
        attributes: source
            .attributes
            .iter()
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
    };
    let mut settings = Settings::new(KEY, vec![input]);
    settings.max_files = usize::try_from(source.max_files).unwrap_or(usize::MAX);
    settings.rotate_wait = source.rotate_wait.get();
    Ok(settings)
}

/// The settings of the watch.
///
/// # Errors
/// In words, when the node or the API cannot be found, or the selector cannot be read.
pub(super) fn watch(source: &KubernetesLogsSource) -> Result<WatcherSettings, Failure> {
    let failed = |message: String| Failure(format!("starting the source `kubernetes_logs`: {message}"));
    let node = node(source).ok_or_else(|| {
        failed(
            "the name of its node is not known; set the environment variable NODE_NAME from `spec.nodeName` in the \
             pod's manifest (`fieldRef: {fieldPath: spec.nodeName}`), or set `sources.kubernetes_logs.node`"
                .to_owned(),
        )
    })?;
    let rule = |text: &String| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.clone(), None),
    };
    let exclusions = ExclusionRules { more: source.exclude.iter().flatten().map(rule).collect() };
    Ok(WatcherSettings {
        api: api(source).map_err(failed)?,
        node,
        fields: Fields {
            labels: source.labels.clone().unwrap_or_default(),
            exclusions,
            selector: selector(source)?,
        },
        timeout: source.api.timeout.get(),
        watch_timeout: WATCH,
    })
}

fn selector(source: &KubernetesLogsSource) -> Result<Selector, Failure> {
    Selector::parse(source.selector.as_deref().unwrap_or_default())
        .map_err(|error| Failure(format!("`sources.kubernetes_logs.selector`: {error}")))
}

/// Where the API is: as configured, or else that of the cluster.
fn api(source: &KubernetesLogsSource) -> Result<ApiSettings, String> {
    let api = &source.api;
    let found = match &api.url {
        None => tidegate_kube_pods::in_cluster(|name| std::env::var(name).ok())
            .map_err(|error| format!("{error}: `sources.kubernetes_logs.api.url`"))?,
        Some(url) => ApiSettings {
            url: url
                .expose()
                .parse()
                .map_err(|error| format!("`sources.kubernetes_logs.api.url` cannot be used: {error}"))?,
            token: None,
            ca: None,
            certificate: None,
            server_name: None,
        },
    };
    Ok(ApiSettings {
        token: api.token_file.clone().or(found.token),
        ca: api.ca_file.clone().or(found.ca),
        certificate: api.cert_file.clone().zip(api.key_file.clone()),
        server_name: api.server_name.as_ref().map(|name| name.as_str().to_owned()),
        ..found
    })
}
