//! Settings of container logs that contradict each other.

use super::super::Clash;
use crate::model::{Config, KubernetesLogsSource};

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    let source: &KubernetesLogsSource = &config.sources.kubernetes_logs;
    let mut clash = |settings: &[&str], message: String, help: &str| {
        let own = ["sources", "kubernetes_logs"].into_iter().chain(settings.iter().copied());
        let about = vec![own.map(str::to_owned).collect()];
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    if !source.enabled && *source != KubernetesLogsSource::default() {
        let message = "`sources.kubernetes_logs` has settings, but container logs are not read".to_owned();
        clash(&[], message, "set `enabled: true` there");
    }
    if !source.path.is_absolute() {
        let message = format!("`sources.kubernetes_logs.path` ({}) is not absolute", source.path.display());
        clash(&["path"], message, "write the whole path, such as `/var/log/pods`");
    }
    let api = &source.api;
    if api.cert_file.is_some() != api.key_file.is_some() {
        let message = "`sources.kubernetes_logs.api` has only one of `cert_file` and `key_file`".to_owned();
        clash(&["api"], message, "set both, or neither");
    }
    let Some(url) = &api.url else { return };
    if api.token_file.is_some() && !url.is_https() && !url.is_loopback() {
        let message = "`sources.kubernetes_logs.api.token_file` would be sent to another machine without TLS"
            .to_owned();
        clash(&["api", "url"], message, "use `https://`");
    }
}
