use std::path::{Path, PathBuf};

use super::listener::Listener;
use crate::declare::{choices, settings};
use crate::values::HeaderName;

settings! {
    /// Who may send, and who may look. Without `credentials_file` whoever can connect may send.
    pub struct Access {
        /// A file with those who may send: a line for each token, password, API key or client certificate, with a hash of
        /// its secret, the tenant that it speaks for (`tenant=NAME`; the default one where it names none; `tenant=*` for a
        /// proxy), and what it may do over `_bulk` (`bulk=…`, `indices=…`). `tidegate token` makes lines. It is read again
        /// when it changes.
        credentials_file: Option<PathBuf> = None,
        /// A header that may carry a token in place of `Authorization`, such as `X-Api-Key`.
        header: Option<HeaderName> = None,
        /// What everybody may do over Elasticsearch's `_bulk` beside `create` and `index`, where there is no
        /// `credentials_file`. Where there is one, each of its lines says so: `bulk=update,delete`.
        bulk: Option<Vec<BulkAction>> = None,
        /// The same kind of file as `credentials_file`, with admins: those who may use the admin address, and send dead
        /// letters again (`tidegate journal resend`). Without it whoever can connect may use that address, and nobody may
        /// send again where there are credentials or tenants.
        admin_credentials_file: Option<PathBuf> = None,
    }
}

choices! {
    /// What senders may do over `_bulk` only where that is said.
    pub enum BulkAction is "an action" {
        /// Change documents.
        Update = "update",
        /// Delete documents.
        Delete = "delete",
        /// Have scripts run, in updates.
        Script = "script",
        /// Choose the ingest pipeline.
        Pipeline = "pipeline",
    }
}

settings! {
    /// The certificate that is shown to those who connect. All files are in PEM, and are read again when they change.
    pub struct ListenTls {
        /// The certificate, with those that lead to its authority. With this, `listeners` speak TLS and nothing else.
        cert_file: Option<PathBuf> = None,
        /// The key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// The authorities that sign for clients.
        client_ca_file: Option<PathBuf> = None,
        /// Whether clients show a certificate.
        client_auth: ClientAuth = ClientAuth::None,
        /// Which addresses speak TLS with this certificate. One that has a certificate of its own, below, speaks TLS
        /// anyway.
        listeners: Vec<Listener> = Listener::ALL.to_vec(),
        /// What `listen.http` has of its own.
        http: ListenerTls = ListenerTls::default(),
        /// What `listen.grpc` has of its own.
        grpc: ListenerTls = ListenerTls::default(),
        /// What `listen.elasticsearch` has of its own.
        elasticsearch: ListenerTls = ListenerTls::default(),
        /// What `listen.apm` has of its own.
        apm: ListenerTls = ListenerTls::default(),
    }
}

settings! {
    /// What one address shows and asks for in the place of what the others do. What is not set is as in `listen.tls`.
    pub struct ListenerTls {
        /// The certificate, with those that lead to its authority.
        cert_file: Option<PathBuf> = None,
        /// The key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// The authorities that sign for clients.
        client_ca_file: Option<PathBuf> = None,
        /// Whether clients show a certificate.
        client_auth: Option<ClientAuth> = None,
    }
}

choices! {
    /// Whether clients show a certificate.
    pub enum ClientAuth is "one of these" {
        /// They are not asked.
        None = "none",
        /// They may.
        Optional = "optional",
        /// They must.
        Required = "required",
    }
}

/// What an address that speaks TLS shows, and whom it asks for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The certificate.
    pub cert_file: &'a Path,
    /// Its key.
    pub key_file: &'a Path,
    /// The authorities that sign for clients, where those are asked.
    pub client_ca_file: Option<&'a Path>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
}

impl ListenTls {
    /// What an address has of its own.
    pub fn own(&self, listener: Listener) -> &ListenerTls {
        listener.tls(self)
    }

    /// What this address shows, if it speaks TLS.
    pub fn shown(&self, listener: Listener) -> Option<Shown<'_>> {
        let own = self.own(listener);
        let common = || (&self.cert_file, &self.key_file);
        let files = match (&own.cert_file, &own.key_file) {
            (None, None) => self.listeners.contains(&listener).then(common)?,
            files => files,
        };
        let (Some(cert_file), Some(key_file)) = files else { return None };
        let client_auth = own.client_auth.unwrap_or(self.client_auth);
        let client_ca_file = own.client_ca_file.as_ref().or(self.client_ca_file.as_ref());
        let client_ca_file = client_ca_file.filter(|_| client_auth != ClientAuth::None);
        Some(Shown { cert_file, key_file, client_ca_file: client_ca_file.map(PathBuf::as_path), client_auth })
    }

    /// Whether this address speaks TLS.
    pub fn is_on(&self, listener: Listener) -> bool {
        self.shown(listener).is_some()
    }

    /// Whether any does.
    pub fn is_any_on(&self) -> bool {
        Listener::ALL.into_iter().any(|listener| self.is_on(listener))
    }

    /// The different things that addresses show: those that are alike are there once.
    pub fn all_shown(&self) -> Vec<Shown<'_>> {
        let mut all = Vec::new();
        for shown in Listener::ALL.into_iter().filter_map(|listener| self.shown(listener)) {
            if !all.contains(&shown) {
                all.push(shown);
            }
        }
        all
    }
}
