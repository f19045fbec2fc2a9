//! Whether the files that a configuration names are there, and whether others can read those with secrets.

use std::fs::File;
use std::path::Path;

use crate::checks::Clash;
use crate::model::{Config, Listener, Tls};

/// Every file that cannot be read, with the setting that names it.
pub(crate) fn check(config: &Config) -> Vec<Clash> {
    let mut missing = Vec::new();
    each(config, &mut |setting, file, _| {
        let Some(reason) = unusable(file) else { return };
        missing.push(Clash {
            about: vec![setting.iter().map(|step| (*step).to_owned()).collect()],
            message: format!("`{}`: the file {} cannot be read: {reason}", setting.join("."), file.display()),
            help: "check the path, which is relative to where tidegate is started, and the permissions"
                .to_owned(),
        });
    });
    missing
}

/// A line for each file with keys, credentials or secrets that others than its owner can read. `secrets` are the paths
/// in `${file:PATH}`.
pub(crate) fn warnings(config: &Config, secrets: &[String]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |setting: &str, file: &Path| {
        if let Some(who) = tidegate_files::loose(file) {
            warnings.push(format!("`{setting}`: {} holds secrets, and {who}", file.display()));
        }
    };
    each(config, &mut |setting, file, content| {
        if content == Content::Secret {
            warn(&setting.join("."), file);
        }
    });
    for file in secrets {
        warn(&format!("${{file:{file}}}"), Path::new(file));
    }
    warnings
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Public,
    Secret,
}

/// Every file that is named, with the setting that names it and whether it is anybody's to read.
fn each(config: &Config, look: &mut dyn FnMut(&[&str], &Path, Content)) {
    use Content::{Public, Secret};
    let mut look = |setting: &[&str], file: Option<&Path>, content| {
        if let Some(file) = file {
            look(setting, file, content);
        }
    };
    let access = &config.access;
    look(&["access", "credentials_file"], access.credentials_file.as_deref(), Secret);
    look(&["access", "admin_credentials_file"], access.admin_credentials_file.as_deref(), Secret);
    let tls = &config.listen.tls;
    look(&["listen", "tls", "cert_file"], tls.cert_file.as_deref(), Public);
    look(&["listen", "tls", "key_file"], tls.key_file.as_deref(), Secret);
    look(&["listen", "tls", "client_ca_file"], tls.client_ca_file.as_deref(), Public);
    let fleet = config.listen.fleet.as_ref();
    let pgp_key = fleet.and_then(|fleet| fleet.pgp_key_file.as_deref());
    look(&["listen", "fleet", "pgp_key_file"], pgp_key, Public);
    for listener in Listener::ALL {
        let (name, own) = (&*listener.to_string(), tls.own(listener));
        look(&["listen", "tls", name, "cert_file"], own.cert_file.as_deref(), Public);
        look(&["listen", "tls", name, "key_file"], own.key_file.as_deref(), Secret);
        look(&["listen", "tls", name, "client_ca_file"], own.client_ca_file.as_deref(), Public);
    }
    for (name, sink) in &config.sinks {
        let tls = sink.settings().outbound().map(|outbound| &outbound.delivery.tls);
        let Some(Tls { ca_file, cert_file, key_file, .. }) = tls else { continue };
        for (setting, file, content) in
            [("ca_file", ca_file, Public), ("cert_file", cert_file, Public), ("key_file", key_file, Secret)]
        {
            look(&["sinks", name.as_str(), "tls", setting], file.as_deref(), content);
        }
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
