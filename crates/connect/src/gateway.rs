//! A configuration as senders see it.

mod forward;
mod notes;
mod syslog;

pub(crate) use forward::Forward;
pub(crate) use syslog::{SyslogTarget, Transport};

use crate::endpoint::{Endpoint, Tenant, Tls, base};
use crate::sender::Sender;
use std::net::SocketAddr;
use tidegate_config::{CertificateField, Config, Listener, TenantName};

/// The gateway that senders are to send to.
#[derive(Debug, Clone, Copy)]
pub struct Gateway<'a> {
    pub(crate) config: &'a Config,
    pub(crate) sender: &'a Sender,
}

impl<'a> Gateway<'a> {
    /// The gateway with this configuration.
    pub fn new(config: &'a Config, sender: &'a Sender) -> Gateway<'a> {
        Gateway { config, sender }
    }

    /// `listen.http`, which serves all protocols over HTTP.
    pub(crate) fn http(self) -> Endpoint<'a> {
        self.at(Listener::Http, self.config.listen.http)
    }

    /// `listen.grpc`.
    pub(crate) fn grpc(self) -> Endpoint<'a> {
        self.at(Listener::Grpc, self.config.listen.grpc)
    }

    /// The Elasticsearch API: on its own address, or else under its prefix.
    pub(crate) fn elasticsearch(self) -> Endpoint<'a> {
        match self.listener(Listener::Elasticsearch) {
            Some(own) => own,
            None => Endpoint { base: base(&self.config.sources.elasticsearch.prefix), ..self.http() },
        }
    }

    /// The address of Elastic APM agents.
    pub(crate) fn apm(self) -> Endpoint<'a> {
        self.listener(Listener::Apm).unwrap_or_else(|| self.http())
    }

    /// The address of this listener, if it is configured.
    pub(crate) fn listener(self, listener: Listener) -> Option<Endpoint<'a>> {
        listener.address(&self.config.listen).map(|address| self.at(listener, address))
    }

    fn at(self, listener: Listener, address: SocketAddr) -> Endpoint<'a> {
        let (host, reach) = self.reach(address, &format!("listen.{listener}"));
        let tenant = self.tenant(listener);
        let tls = self.config.listen.tls.effective(listener).map(|effective| match tenant {
            Tenant::Certificate { .. } => Tls::with_certificate(effective),
            _ => Tls::new(effective),
        });
        Endpoint {
            sender: self.sender,
            host,
            port: address.port(),
            base: String::new(),
            tls,
            credentials_file: self.config.access.credentials_file.as_deref(),
            tenant,
            reach,
        }
    }

    /// The name that senders use for an address, and what to know about it.
    fn reach(self, address: SocketAddr, setting: &str) -> (String, Vec<String>) {
        let ip = address.ip();
        let host = match &self.sender.host {
            Some(host) => host.as_str().to_owned(),
            None if ip.is_unspecified() => self.sender.machine.as_str().to_owned(),
            None => ip.to_string(),
        };
        let everywhere = SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, address.port()));
        let note = match &self.sender.host {
            None if ip.is_loopback() => Some(format!(
                "`{setting}` is {address}, which only programs on this machine reach. For others, set it to {everywhere} with a \
                 certificate in `listen.tls` (or `listen.insecure: true` where the network is trusted), and restart tidegate."
            )),
            Some(host) if ip.is_loopback() => Some(format!(
                "`{setting}` is {address}, which only programs on this machine reach: `{host}` leads there only through a proxy or a \
                 tunnel. To be reached directly, set it to {everywhere}."
            )),
            None if ip.is_unspecified() => Some(format!(
                "`{setting}` listens on all addresses of this machine, `{host}`. `--host NAME` prints another name."
            )),
            _ => None,
        };
        (host, note.into_iter().collect())
    }

    fn tenant(self, listener: Listener) -> Tenant<'a> {
        let Config { tenants, access, .. } = self.config;
        if let Some(settings) = self.config.listen.thanos_receive.as_ref()
            && listener == Listener::ThanosReceive
        {
            return match settings.tenant_certificate_field {
                Some(field) => certificate(field),
                // A token speaks for its tenant, and the header for no other.
                None if access.credentials_file.is_some() => {
                    Tenant::Credential { default: Some(settings.default_tenant.as_str()) }
                }
                None => Tenant::Header {
                    name: settings.tenant_header.as_str(),
                    default: Some(settings.default_tenant.as_str()),
                },
            };
        }
        let default = tenants.default_at(listener).or(tenants.default.as_ref()).map(TenantName::as_str);
        match (tenants.certificate, &access.credentials_file, &tenants.header) {
            (Some(field), ..) => certificate(field),
            (None, Some(_), _) if tenants.are_on() => Tenant::Credential { default },
            (None, None, Some(name)) => Tenant::Header { name: name.as_str(), default },
            _ => Tenant::None,
        }
    }
}

fn certificate<'a>(field: CertificateField) -> Tenant<'a> {
    Tenant::Certificate { field: field.to_string() }
}
