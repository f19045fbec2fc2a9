//! Addresses, certificates and credentials that do not go together.

use super::{Clash, path};
use crate::model::{BulkAction, ClientAuth, Config, EffectiveTls, Listener, ListenerTls};

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    certificates(config, clashes);
    own(config, clashes);
    default_tenants(config, clashes);
    for listener in Listener::ALL {
        let Some(address) = listener.address(&config.listen) else { continue };
        if !address.ip().is_loopback() && !config.listen.tls.is_on(listener) && !config.listen.insecure {
            clashes.push(Clash {
                about: vec![vec!["listen".to_owned(), listener.to_string()]],
                message: format!("`listen.{listener}` ({address}) is reachable from other machines and does not use TLS"),
                help: format!(
                    "configure a certificate in `listen.tls`{}; or, on a trusted network or behind a proxy that terminates TLS, \
                     set `listen.insecure: true`",
                    if config.listen.tls.is_any_on() { " and name it in `listen.tls.listeners`" } else { "" }
                ),
            });
        }
    }
    admin(config, clashes);
    let tenants = &config.tenants;
    if tenants.credentials && config.access.credentials_file.is_none() {
        clashes.push(Clash {
            about: vec![path(["tenants", "credentials"])],
            message: "`tenants.credentials` is set, but no credentials are configured".to_owned(),
            help: "set `access.credentials_file`".to_owned(),
        });
    }
    let asks = |shown: &EffectiveTls<'_>| shown.client_auth != ClientAuth::None;
    let tls = &config.listen.tls;
    if tenants.certificate.is_some()
        && tls.client_auth == ClientAuth::None
        && !tls.all_effective().iter().any(asks)
    {
        clashes.push(Clash {
            about: vec![path(["tenants", "certificate"])],
            message: "`tenants.certificate` is set, but no listener asks clients for a certificate"
                .to_owned(),
            help: "set `listen.tls.client_auth` to `required`, or to `optional`".to_owned(),
        });
    }
    thanos_receive(config, clashes);
    head_series(config, clashes);
    bulk(config, clashes);
    if config.access.header.is_some() && config.access.credentials_file.is_none() {
        clashes.push(Clash {
            about: vec![path(["access", "header"])],
            message: "`access.header` is set, but no tokens are configured".to_owned(),
            help: "set `access.credentials_file`".to_owned(),
        });
    }
}

/// A limit of series needs a query for them.
fn head_series(config: &Config, clashes: &mut Vec<Clash>) {
    let tenants = &config.tenants;
    let own = tenants.overrides.iter().find(|(_, tenant)| tenant.head_series.is_some_and(|limit| limit > 0));
    let about = match own {
        _ if config.limits.head_series.is_some() => return,
        _ if tenants.head_series > 0 => path(["tenants", "head_series"]),
        Some((name, _)) => path(["tenants", "overrides", name.as_str(), "head_series"]),
        None => return,
    };
    clashes.push(Clash {
        message: format!("`{}` is set, but the number of series is not asked for anywhere", about.join(".")),
        about: vec![about],
        help: "set `limits.head_series: {url: …}` to the Prometheus that watches the store".to_owned(),
    });
}

/// A tenant from a certificate needs an address that asks for one.
fn thanos_receive(config: &Config, clashes: &mut Vec<Clash>) {
    let Some(settings) = &config.listen.thanos_receive else { return };
    let shown = config.listen.tls.effective(Listener::ThanosReceive);
    let asks = shown.is_some_and(|shown| shown.client_auth != ClientAuth::None);
    if settings.tenant_certificate_field.is_some() && !asks {
        clashes.push(Clash {
            about: vec![path(["listen", "thanos_receive", "tenant_certificate_field"])],
            message: "`listen.thanos_receive.tenant_certificate_field` is set, but this address does not ask clients for a \
                      certificate"
                .to_owned(),
            help: "set `client_auth: required` and `client_ca_file` in `listen.tls.thanos_receive` or in `listen.tls`"
                .to_owned(),
        });
    }
}

/// Checks the rights over `_bulk`.
fn bulk(config: &Config, clashes: &mut Vec<Clash>) {
    let Some(bulk) = &config.access.bulk else { return };
    let mut clash = |message: &str, help: &str| {
        clashes.push(Clash {
            about: vec![path(["access", "bulk"])],
            message: message.to_owned(),
            help: help.to_owned(),
        });
    };
    if config.access.credentials_file.is_some() {
        clash(
            "`access.bulk` and `access.credentials_file` exclude each other",
            "remove `access.bulk`, and write `bulk=…` on the lines of the credentials file instead",
        );
    }
    if bulk.contains(&BulkAction::Script) && !bulk.contains(&BulkAction::Update) {
        clash("`access.bulk` has `script` without `update`", "only updates have scripts: add `update`");
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
        (true, false) => "does not use TLS",
        (false, true) => "requires no credentials",
        (false, false) => "has neither TLS nor credentials",
    };
    clashes.push(Clash {
        about: vec![path(["listen", "admin"])],
        message: format!("`listen.admin` ({address}) is reachable from other machines, and {missing}"),
        help: "keep it on 127.0.0.1 and reach it through a tunnel or a proxy; or set `access.admin_credentials_file` and `listen.insecure: true`"
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
            "a certificate requires its key: set both",
        ),
        (None, Some(_)) => clash(
            "key_file",
            "`listen.tls` has a `key_file` and no `cert_file`",
            "a certificate requires its key: set both",
        ),
        _ => {}
    }
    let asks = tls.client_auth != ClientAuth::None;
    if asks && !tls.is_any_on() {
        clash(
            "client_auth",
            "`listen.tls.client_auth` asks for certificates on addresses that do not speak TLS",
            "give `cert_file` and `key_file` too",
        );
    }
    let inherits = |listener: Listener| {
        let own = tls.own(listener);
        own.client_auth.is_none() && own.client_ca_file.is_none() && tls.is_on(listener)
    };
    if asks && tls.client_ca_file.is_none() && (!tls.is_any_on() || Listener::ALL.into_iter().any(inherits)) {
        clash(
            "client_auth",
            "`listen.tls.client_auth` asks for client certificates, but no authority is configured",
            "give `client_ca_file`",
        );
    }
    let is_used = |listener: Listener| {
        tls.own(listener).client_auth.is_some_and(|own| own != ClientAuth::None) && tls.is_on(listener)
    };
    if !asks && tls.client_ca_file.is_some() && !Listener::ALL.into_iter().any(is_used) {
        clash(
            "client_ca_file",
            "`listen.tls.client_ca_file` is set, but clients are not asked for a certificate",
            "set `client_auth` to `required`, or to `optional`",
        );
    }
    let (http, grpc) = (tls.is_on(Listener::Http), tls.is_on(Listener::Grpc));
    if config.listen.http == config.listen.grpc && http != grpc {
        clash(
            "listeners",
            "`listen.http` and `listen.grpc` are the same address, but only one of them is in `listen.tls.listeners`",
            "list both or neither, or give them different addresses",
        );
    }
}

/// Checks the settings that an address has of its own.
fn own(config: &Config, clashes: &mut Vec<Clash>) {
    let tls = &config.listen.tls;
    for listener in Listener::ALL {
        let ListenerTls { cert_file, key_file, client_ca_file, client_auth } = tls.own(listener);
        let mut clash = |setting: &str, message: String, help: &str| {
            let about = vec!["listen".into(), "tls".into(), listener.to_string(), setting.into()];
            clashes.push(Clash { about: vec![about], message, help: help.to_owned() });
        };
        if let (Some(_), None, there, missing) | (None, Some(_), missing, there) =
            (cert_file, key_file, "cert_file", "key_file")
        {
            clash(
                there,
                format!("`listen.tls.{listener}` has a `{there}` and no `{missing}`"),
                "a certificate requires its key: set both",
            );
            continue;
        }
        let settings = [
            ("cert_file", cert_file.is_some()),
            ("client_ca_file", client_ca_file.is_some()),
            ("client_auth", client_auth.is_some()),
        ];
        let Some((first, _)) = settings.into_iter().find(|(_, is_given)| *is_given) else { continue };
        if listener.address(&config.listen).is_none() {
            clash(
                first,
                format!("`listen.tls.{listener}` configures an address that does not exist"),
                "set the address in `listen`, or remove this",
            );
            continue;
        }
        let Some(shown) = tls.effective(listener) else {
            clash(
                first,
                format!(
                    "`listen.tls.{listener}` asks for certificates on an address that does not speak TLS"
                ),
                "give `cert_file` and `key_file` too, here or in `listen.tls`",
            );
            continue;
        };
        let asks = shown.client_auth != ClientAuth::None;
        if asks && shown.client_ca_file.is_none() && client_auth.is_some() {
            clash(
                "client_auth",
                format!(
                    "`listen.tls.{listener}.client_auth` asks for client certificates, but no authority is configured"
                ),
                "set `client_ca_file`, here or in `listen.tls`",
            );
        }
        if !asks && client_ca_file.is_some() {
            clash(
                "client_ca_file",
                format!(
                    "`listen.tls.{listener}.client_ca_file` is set, but clients are not asked for a certificate"
                ),
                "set `client_auth` to `required`, or to `optional`",
            );
        }
    }
    if config.listen.http == config.listen.grpc && tls.http != tls.grpc {
        clashes.push(Clash {
            about: vec![path(["listen", "tls", "grpc"]), path(["listen", "tls", "http"])],
            message: "`listen.http` and `listen.grpc` are one address, and `listen.tls` has different things for them"
                .to_owned(),
            help: "say the same of both, or give them addresses of their own".to_owned(),
        });
    }
}

fn default_tenants(config: &Config, clashes: &mut Vec<Clash>) {
    let tenants = &config.tenants;
    let mut clash = |listener: Listener, message: String, help: &str| {
        let about = |listener: Listener| vec!["tenants".into(), "default_at".into(), listener.to_string()];
        let about = vec![about(listener), about(Listener::Http)];
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    for listener in Listener::ALL {
        if tenants.default_at(listener).is_some() && listener.address(&config.listen).is_none() {
            clash(
                listener,
                format!("`tenants.default_at.{listener}` configures an address that does not exist"),
                "set the address in `listen`, or remove this",
            );
        }
    }
    let of = |listener| tenants.default_at(listener);
    if config.listen.http == config.listen.grpc && of(Listener::Http) != of(Listener::Grpc) {
        clash(
            Listener::Grpc,
            "`listen.http` and `listen.grpc` are the same address, but `tenants.default_at` names different tenants for them"
                .to_owned(),
            "name the same tenant for both, or give them different addresses",
        );
    }
}
