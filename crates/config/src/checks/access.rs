//! Addresses, certificates and credentials that do not go together.

use super::{Clash, listeners, path};
use crate::model::{ClientAuth, Config, Listener};

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    certificates(config, clashes);
    for (name, address) in listeners(config) {
        let listener = match name {
            "http" => Listener::Http,
            "grpc" => Listener::Grpc,
            "elasticsearch" => Listener::Elasticsearch,
            "apm" => Listener::Apm,
            _ => {
                admin(config, clashes);
                continue;
            }
        };
        if !address.ip().is_loopback() && !config.listen.tls.is_on(listener) && !config.listen.insecure {
            clashes.push(Clash {
                about: vec![path(["listen", name])],
                message: format!("`listen.{name}` ({address}) can be reached by others, and does not speak TLS"),
                help: format!(
                    "give a certificate in `listen.tls`{}; or, where the network is trusted or a proxy before tidegate \
                     speaks TLS, set `listen.insecure: true`",
                    if config.listen.tls.is_any_on() { " and name it in `listen.tls.listeners`" } else { "" }
                ),
            });
        }
    }
    let tenants = &config.tenants;
    if tenants.credentials && config.access.credentials_file.is_none() {
        clashes.push(Clash {
            about: vec![path(["tenants", "credentials"])],
            message: "`tenants.credentials` is set, and there are no credentials".to_owned(),
            help: "give `access.credentials_file`".to_owned(),
        });
    }
    if tenants.certificate.is_some() && config.listen.tls.client_auth == ClientAuth::None {
        clashes.push(Clash {
            about: vec![path(["tenants", "certificate"])],
            message: "`tenants.certificate` is set, and no client is asked for a certificate".to_owned(),
            help: "set `listen.tls.client_auth` to `required`, or to `optional`".to_owned(),
        });
    }
    if config.access.header.is_some() && config.access.credentials_file.is_none() {
        clashes.push(Clash {
            about: vec![path(["access", "header"])],
            message: "`access.header` may carry a token, and no token is known".to_owned(),
            help: "give `access.credentials_file`".to_owned(),
        });
    }
}

/// The admin address shows what passes, and has no TLS.
fn admin(config: &Config, clashes: &mut Vec<Clash>) {
    let address = config.listen.admin;
    if address.ip().is_loopback() {
        return;
    }
    let missing = match (config.access.admin_credentials_file.is_some(), config.listen.insecure) {
        (true, true) => return,
        (true, false) => "does not speak TLS",
        (false, true) => "asks nobody for credentials",
        (false, false) => "neither speaks TLS nor asks for credentials",
    };
    clashes.push(Clash {
        about: vec![path(["listen", "admin"])],
        message: format!("`listen.admin` ({address}) can be reached by others, and {missing}"),
        help: "leave it on 127.0.0.1 and reach it through a tunnel or a proxy; or give `access.admin_credentials_file` \
               and set `listen.insecure: true`"
            .to_owned(),
    });
}

fn certificates(config: &Config, clashes: &mut Vec<Clash>) {
    let tls = &config.listen.tls;
    let mut clash = |setting: &str, message: &str, help: &str| {
        clashes.push(Clash {
            about: vec![path(["listen", "tls", setting])],
            message: message.to_owned(),
            help: help.to_owned(),
        });
    };
    match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => clash(
            "cert_file",
            "`listen.tls` has a `cert_file` and no `key_file`",
            "a certificate is shown only together with its key: give both",
        ),
        (None, Some(_)) => clash(
            "key_file",
            "`listen.tls` has a `key_file` and no `cert_file`",
            "a certificate is shown only together with its key: give both",
        ),
        _ => {}
    }
    let asks = tls.client_auth != ClientAuth::None;
    if asks && tls.cert_file.is_none() {
        clash(
            "client_auth",
            "`listen.tls.client_auth` asks for certificates on addresses that do not speak TLS",
            "give `cert_file` and `key_file` too",
        );
    }
    if asks && tls.client_ca_file.is_none() {
        clash(
            "client_auth",
            "`listen.tls.client_auth` asks for certificates that nobody could have signed",
            "give `client_ca_file`",
        );
    }
    if !asks && tls.client_ca_file.is_some() {
        clash(
            "client_ca_file",
            "`listen.tls.client_ca_file` is given, and clients are not asked for a certificate",
            "set `client_auth` to `required`, or to `optional`",
        );
    }
    let (http, grpc) = (tls.is_on(Listener::Http), tls.is_on(Listener::Grpc));
    if config.listen.http == config.listen.grpc && http != grpc {
        clash(
            "listeners",
            "`listen.http` and `listen.grpc` are one address, and only one of them is in `listen.tls.listeners`",
            "name both or neither, or give them addresses of their own",
        );
    }
}
