//! The listeners for telemetry and for agents.

use std::net::SocketAddr;

use super::access::{ListenTls, ListenerTls};
use super::allowance::DefaultAt;
use super::listen::Listen;
use crate::declare::choices;
use crate::values::TenantName;

choices! {
    /// A listening address for telemetry or for agents.
    pub enum Listener is "a listener" {
        /// `listen.http`
        Http = "http",
        /// `listen.grpc`
        Grpc = "grpc",
        /// `listen.elasticsearch`
        Elasticsearch = "elasticsearch",
        /// `listen.apm`
        Apm = "apm",
        /// `listen.thanos_receive`
        ThanosReceive = "thanos_receive",
        /// `listen.fleet`
        Fleet = "fleet",
        /// `listen.opamp`
        Opamp = "opamp",
    }
}

/// Accessors for the settings of a listener.
struct Settings {
    /// In `listen`.
    address: fn(&Listen) -> Option<SocketAddr>,
    /// In `listen.tls`.
    tls: fn(&ListenTls) -> &ListenerTls,
    /// In `tenants.default_at`, for those that have no tenant rules of their own.
    tenant: fn(&DefaultAt) -> &Option<TenantName>,
}

impl Listener {
    /// The settings of each listener: the only place in this crate that tells listeners apart.
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
            Listener::ThanosReceive => Settings {
                address: |listen| listen.thanos_receive.as_ref().map(|settings| settings.address),
                tls: |tls| &tls.thanos_receive,
                tenant: |_| &None,
            },
            Listener::Fleet => Settings {
                address: |listen| listen.fleet.as_ref().map(|settings| settings.address),
                tls: |tls| &tls.fleet,
                tenant: |_| &None,
            },
            Listener::Opamp => Settings {
                address: |listen| listen.opamp.as_ref().map(|settings| settings.address),
                tls: |tls| &tls.opamp,
                tenant: |_| &None,
            },
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

    /// The default tenant of its requests.
    pub(super) fn tenant(self, tenants: &DefaultAt) -> Option<&TenantName> {
        (self.settings().tenant)(tenants).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Field, Section};

    /// Each listener reads its own settings from all three groups, and no other's.
    #[test]
    fn every_listener_has_settings_of_its_own() {
        let names = |fields: Vec<Field>| fields.iter().map(|field| field.name).collect::<Vec<_>>();
        let all = Listener::ALL.map(|listener| listener.to_string());
        // One has tenant rules of its own, with a default, and what agents say belongs to no tenant.
        let plain: Vec<_> = all
            .iter()
            .filter(|name| !["thanos_receive", "fleet", "opamp"].contains(&name.as_str()))
            .collect();
        assert_eq!(names(DefaultAt::fields()), plain);
        for (at, listener) in Listener::ALL.into_iter().enumerate() {
            assert!(names(Listen::fields()).contains(&&*all[at]), "{listener}");
            assert!(names(ListenTls::fields()).contains(&&*all[at]), "{listener}");
            let is_section = matches!(listener, Listener::ThanosReceive | Listener::Fleet | Listener::Opamp);
            let address = format!("127.0.0.9:{at}9");
            let address = if is_section { format!("{{address: {address}}}") } else { address };
            let tenants = if is_section {
                String::new()
            } else {
                format!("tenants: {{default_at: {{{listener}: its}}}}")
            };
            let text = format!(
                "listen: {{{listener}: {address}, tls: {{{listener}: {{cert_file: {listener}.pem, key_file: k}}}}}}\n\
                 {tenants}\n"
            );
            let config = crate::parse("test", &text, &|_| None).unwrap_or_else(|errors| panic!("{errors}"));
            for other in Listener::ALL {
                let is_own = other == listener;
                let address = other.address(&config.listen).map(|address| address.port());
                assert_eq!(address == Some(at as u16 * 10 + 9), is_own, "{other} for {listener}");
                assert_eq!(
                    config.listen.tls.own(other).cert_file.is_some(),
                    is_own,
                    "{other} for {listener}"
                );
                assert_eq!(
                    config.tenants.default_at(other).is_some(),
                    is_own && !is_section,
                    "{other} for {listener}"
                );
            }
        }
    }
}
