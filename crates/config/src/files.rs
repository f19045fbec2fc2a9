//! Checks that the files that a configuration names can be read.

use std::fs::File;
use std::path::Path;

use crate::checks::Clash;
use crate::model::{Config, Listener, Sink, Tls};

/// Every file that cannot be read, with the setting that names it.
pub(crate) fn check(config: &Config) -> Vec<Clash> {
    let mut missing = Vec::new();
    let mut look = |setting: &[&str], file: Option<&Path>| {
        let Some(file) = file else { return };
        let Some(reason) = unusable(file) else { return };
        missing.push(Clash {
            about: vec![setting.iter().map(|step| (*step).to_owned()).collect()],
            message: format!("`{}`: the file {} cannot be read: {reason}", setting.join("."), file.display()),
            help: "check the path, which is relative to where tidegate is started, and the permissions"
                .to_owned(),
        });
    };
    let access = &config.access;
    look(&["access", "credentials_file"], access.credentials_file.as_deref());
    look(&["access", "admin_credentials_file"], access.admin_credentials_file.as_deref());
    let tls = &config.listen.tls;
    look(&["listen", "tls", "cert_file"], tls.cert_file.as_deref());
    look(&["listen", "tls", "key_file"], tls.key_file.as_deref());
    look(&["listen", "tls", "client_ca_file"], tls.client_ca_file.as_deref());
    let names = ["http", "grpc", "elasticsearch", "apm"];
    for (listener, name) in Listener::ALL.into_iter().zip(names) {
        let own = tls.own(listener);
        look(&["listen", "tls", name, "cert_file"], own.cert_file.as_deref());
        look(&["listen", "tls", name, "key_file"], own.key_file.as_deref());
        look(&["listen", "tls", name, "client_ca_file"], own.client_ca_file.as_deref());
    }
    for (name, sink) in &config.sinks {
        let Some(Tls { ca_file, cert_file, key_file, .. }) = tls_of(sink) else { continue };
        for (setting, file) in [("ca_file", ca_file), ("cert_file", cert_file), ("key_file", key_file)] {
            look(&["sinks", name.as_str(), "tls", setting], file.as_deref());
        }
    }
    missing
}

fn tls_of(sink: &Sink) -> Option<&Tls> {
    match sink {
        Sink::Otlp(sink) => Some(&sink.tls),
        Sink::Elasticsearch(sink) => Some(&sink.tls),
        Sink::PrometheusRemoteWrite(_) | Sink::Lake(_) | Sink::Blackhole(_) => None,
    }
}

/// Why a file cannot be used, if it cannot. Its content is checked where it is used.
fn unusable(file: &Path) -> Option<String> {
    match std::fs::metadata(file) {
        Err(error) => Some(error.to_string()),
        Ok(metadata) if !metadata.is_file() => Some("it is not a file".to_owned()),
        Ok(metadata) if metadata.len() == 0 => Some("it is empty".to_owned()),
        Ok(_) => File::open(file).err().map(|error| error.to_string()),
    }
}
