//! Certificates and credentials of a running gateway: read at the start, and again when their files change.

use crate::Failure;
use std::sync::Arc;
use tidegate_admission::access::{Access, CredentialsError};
use tidegate_arena::{Arena, Share};
use tidegate_config::{ClientAuth, Config};
use tidegate_tls::{Doorway, Files, Identity};

/// What may change on disk while the gateway runs.
#[derive(Clone)]
pub(crate) struct Keys {
    /// What is shown to those who send; none where no address speaks TLS.
    identity: Option<Identity>,
    /// Who may send.
    pub(super) senders: Access,
    /// Who may use the admin address.
    pub(super) admins: Access,
}

impl Keys {
    /// Reads all files that `config` names.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn read(config: &Config) -> Result<Keys, Failure> {
        let tls = &config.listen.tls;
        let identity = match (&tls.cert_file, &tls.key_file) {
            (Some(certificate), Some(key)) if tls.is_any_on() => Some(Identity::new(Files {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: tls.client_ca_file.clone(),
                client_auth: match tls.client_auth {
                    ClientAuth::None => tidegate_tls::ClientAuth::None,
                    ClientAuth::Optional => tidegate_tls::ClientAuth::Optional,
                    ClientAuth::Required => tidegate_tls::ClientAuth::Required,
                },
            })?),
            _ => None,
        };
        let access = &config.access;
        let header = access.header.as_ref().map(|name| name.as_str());
        let of = |file: &Option<std::path::PathBuf>, header| -> Result<Access, CredentialsError> {
            file.as_ref().map_or(Ok(Access::open()), |file| Access::from_file(file, header))
        };
        Ok(Keys {
            identity,
            senders: of(&access.credentials_file, header)?,
            admins: of(&access.admin_credentials_file, None)?,
        })
    }

    /// Where handshakes are done, if any address speaks TLS.
    pub(super) fn doorway(&self, config: &Config, arena: &Arena) -> Option<Arc<Doorway>> {
        let limit = config.limits.header_timeout.get();
        let identity = self.identity.clone()?;
        Some(Arc::new(Doorway::new(identity, arena.clone(), Share::Ingest, limit)))
    }

    /// To be called once a second: takes over what has changed on disk.
    pub(super) fn look(&self) {
        if let Some(identity) = &self.identity {
            told("certificates", identity.look());
        }
        told("credentials", self.senders.look());
        told("admin credentials", self.admins.look());
    }

    /// Reads everything again, changed or not.
    pub(super) fn reload(&self) {
        if let Some(identity) = &self.identity {
            told("certificates", identity.reload().map(|()| true));
        }
        for (what, access) in [("credentials", &self.senders), ("admin credentials", &self.admins)] {
            told(what, access.reload().map(|()| !access.is_open()));
        }
    }
}

fn told<E: std::fmt::Display>(what: &'static str, read: Result<bool, E>) {
    match read {
        Ok(false) => {}
        Ok(true) => tracing::info!(what, "read again"),
        Err(error) => tracing::error!(what, "what was known before is kept: {error}"),
    }
}
