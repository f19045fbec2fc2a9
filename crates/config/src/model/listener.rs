//! The kinds of listeners that take telemetry.

use std::net::SocketAddr;

use super::access::{ListenTls, ListenerTls};
use super::allowance::DefaultAt;
use super::listen::Listen;
use crate::declare::choices;
use crate::values::TenantName;

choices! {
    /// An address under `listen` that takes telemetry.
    pub enum Listener is "a listener" {
        /// `listen.http`
        Http = "http",
        /// `listen.grpc`
        Grpc = "grpc",
        /// `listen.elasticsearch`
        Elasticsearch = "elasticsearch",
        /// `listen.apm`
        Apm = "apm",
    }
}

/// Where the settings of a listener are.
struct Settings {
    /// In `listen`.
    address: fn(&Listen) -> Option<SocketAddr>,
    /// In `listen.tls`.
    tls: fn(&ListenTls) -> &ListenerTls,
    /// In `tenants.default_at`.
    tenant: fn(&DefaultAt) -> &Option<TenantName>,
}

impl Listener {
    /// A line for each kind: nothing else in this crate tells them apart.
    const fn settings(self) -> Settings {
        macro_rules! at {
            ($name:ident, $address:expr) => {
                Settings { address: $address, tls: |tls| &tls.$name, tenant: |tenants| &tenants.$name }
            };
        }
        match self {
            Listener::Http => at!(http, |listen| Some(listen.http)),
            Listener::Grpc => at!(grpc, |listen| Some(listen.grpc)),
            Listener::Elasticsearch => at!(elasticsearch, |listen| listen.elasticsearch),
            Listener::Apm => at!(apm, |listen| listen.apm),
        }
    }

    /// Its address, if it has one.
    pub fn address(self, listen: &Listen) -> Option<SocketAddr> {
        (self.settings().address)(listen)
    }

    /// Its own certificate.
    pub(super) fn tls(self, tls: &ListenTls) -> &ListenerTls {
        (self.settings().tls)(tls)
    }

    /// The tenant of requests that name none.
    pub(super) fn tenant(self, tenants: &DefaultAt) -> Option<&TenantName> {
        (self.settings().tenant)(tenants).as_ref()
    }
}
