//! The address of Fluentd's forward protocol.

use super::Gateway;
use crate::endpoint::{Abilities, Endpoint, Tenant, Tls};
use crate::missing::Missing;

/// Fluentd's forward protocol at this gateway.
#[derive(Debug, Clone)]
pub(crate) struct Forward<'a> {
    pub(crate) endpoint: Endpoint<'a>,
    /// Whether senders must have the shared key.
    pub(crate) asks_for_key: bool,
    /// Whether they must have a user's name and password besides.
    pub(crate) asks_for_user: bool,
    /// What to know about its tenant.
    tenant_note: Option<String>,
}

impl<'a> Gateway<'a> {
    /// Where it is received over the network.
    pub(crate) fn forward(self) -> Result<Forward<'a>, Missing> {
        let source = &self.config.sources.fluent_forward;
        let Some(address) = source.address else {
            return Err(Missing {
                protocol: "Fluentd's forward protocol",
                setting: "sources.fluent_forward.address",
                lines: "sources:\n  fluent_forward:\n    address: 127.0.0.1:24224\n".to_owned(),
                note: "For senders on other machines, set `address: 0.0.0.0:24224`, `tls: {}` with a certificate in `listen.tls`, and a \
                       `shared_key`."
                    .to_owned(),
            });
        };
        let (host, reach) = self.reach(address, "sources.fluent_forward.address");
        let tls = source.tls.as_ref().and_then(|own| self.config.listen.tls.effective_of(own)).map(Tls::new);
        let endpoint = Endpoint {
            sender: self.sender,
            host,
            port: address.port(),
            base: String::new(),
            tls,
            credentials_file: None,
            tenant: Tenant::None,
            reach,
        };
        Ok(Forward {
            endpoint,
            asks_for_key: source.shared_key.is_some(),
            asks_for_user: !source.users.is_empty(),
            tenant_note: self.source_tenant_note(source.tenant.as_ref(), "sources.fluent_forward.tenant"),
        })
    }
}

impl Forward<'_> {
    /// What to know about it.
    pub(crate) fn notes(&self, abilities: Abilities) -> Vec<String> {
        let mut notes = self.endpoint.reach.clone();
        notes.extend(self.endpoint.tls_notes(abilities));
        notes.extend(self.tenant_note.clone());
        if self.asks_for_key {
            notes.push(
                "Give the sender TIDEGATE_SHARED_KEY in its environment: the value of `sources.fluent_forward.shared_key`."
                    .to_owned(),
            );
        }
        if self.asks_for_user {
            notes.push(
                "Likewise TIDEGATE_USER and TIDEGATE_PASSWORD: one of `sources.fluent_forward.users`."
                    .to_owned(),
            );
        }
        notes
    }
}
