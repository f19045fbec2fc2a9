//! Certificates and credentials of a running gateway: read at the start, and again when their files change.

use crate::Failure;
use std::sync::Arc;
use tidegate_admission::access::{Access, CredentialsError};
use tidegate_arena::{Arena, Share};
use tidegate_config::{ClientAuth, Config, EffectiveTls, Listener};
use tidegate_tls::{CertificateFiles, ServerIdentity, TlsAcceptor};

/// Files that may change while the gateway runs.
#[derive(Clone)]
pub(crate) struct ReloadedFiles {
    /// Server certificates, in the order of `Config::server_certificates`.
    identities: Vec<ServerIdentity>,
    /// Client credentials.
    pub(super) senders: Access,
    /// Admin credentials.
    pub(super) admins: Access,
}

/// Where handshakes are done, for each certificate, in the order of `Config::server_certificates`.
#[derive(Default)]
pub(super) struct TlsAcceptors(Vec<Arc<TlsAcceptor>>);

impl TlsAcceptors {
    /// That of this address, if it speaks TLS.
    pub(super) fn at(&self, config: &Config, listener: Listener) -> Option<&Arc<TlsAcceptor>> {
        self.of(config, config.listen.tls.effective(listener)?)
    }

    /// That which shows this certificate.
    pub(super) fn of(&self, config: &Config, shown: EffectiveTls<'_>) -> Option<&Arc<TlsAcceptor>> {
        let number = config.server_certificates().iter().position(|other| *other == shown)?;
        self.0.get(number)
    }

    /// Any of them: they count together.
    pub(super) fn any(&self) -> Option<&Arc<TlsAcceptor>> {
        self.0.first()
    }
}

impl ReloadedFiles {
    /// Reads all files that `config` names.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn read(config: &Config) -> Result<ReloadedFiles, Failure> {
        let shown = config.server_certificates();
        let identities = shown.into_iter().map(|shown| Ok(ServerIdentity::new(files(shown))?));
        let identities = identities.collect::<Result<_, Failure>>()?;
        let access = &config.access;
        let header = access.header.as_ref().map(|name| name.as_str());
        let of = |file: &Option<std::path::PathBuf>, header| -> Result<Access, CredentialsError> {
            file.as_ref().map_or(Ok(Access::open()), |file| Access::from_file(file, header))
        };
        Ok(ReloadedFiles {
            identities,
            senders: of(&access.credentials_file, header)?,
            admins: of(&access.admin_credentials_file, None)?,
        })
    }

    /// Where handshakes are done: all within the same bounds, whatever they are shown.
    pub(super) fn acceptors(&self, config: &Config, arena: &Arena) -> TlsAcceptors {
        let limit = config.limits.header_timeout.get();
        let mut acceptors: Vec<Arc<TlsAcceptor>> = Vec::new();
        for identity in &self.identities {
            let acceptor = match acceptors.first() {
                Some(first) => first.beside(identity.clone()),
                None => TlsAcceptor::new(identity.clone(), arena.clone(), Share::Ingest, limit),
            };
            acceptors.push(Arc::new(acceptor));
        }
        TlsAcceptors(acceptors)
    }

    /// To be called once a second: takes over what has changed on disk.
    pub(super) fn look(&self) {
        for identity in &self.identities {
            told("certificates", identity.reload_if_changed());
        }
        told("credentials", self.senders.reload_if_changed());
        told("admin credentials", self.admins.reload_if_changed());
    }

    /// Reads everything again, changed or not.
    pub(super) fn reload(&self) {
        for identity in &self.identities {
            told("certificates", identity.reload().map(|()| true));
        }
        for (what, access) in [("credentials", &self.senders), ("admin credentials", &self.admins)] {
            told(what, access.reload().map(|()| !access.is_open()));
        }
    }
}

fn files(shown: EffectiveTls<'_>) -> CertificateFiles {
    CertificateFiles {
        certificate: shown.cert_file.to_owned(),
        key: shown.key_file.to_owned(),
        client_ca: shown.client_ca_file.map(ToOwned::to_owned),
        client_auth: match shown.client_auth {
            ClientAuth::None => tidegate_tls::ClientAuth::None,
            ClientAuth::Optional => tidegate_tls::ClientAuth::Optional,
            ClientAuth::Required => tidegate_tls::ClientAuth::Required,
        },
    }
}

fn told<E: std::fmt::Display>(what: &'static str, read: Result<bool, E>) {
    match read {
        Ok(false) => {}
        Ok(true) => tracing::info!(what, "read again"),
        Err(error) => tracing::error!(what, "the previous version stays in use: {error}"),
    }
}
