use std::path::{Path, PathBuf};

use super::listener::Listener;
use crate::declare::{choices, settings};
use crate::values::HeaderName;

settings! {
    /// Authentication of clients and admins. Without `credentials_file`, every client that can connect may send.
    pub struct Access {
        /// File with client credentials: one line per token, password, API key or client certificate, with the hash
        /// of its secret, its tenant (`tenant=NAME`; default: the default tenant; `tenant=*` for a proxy), and its
        /// rights over `_bulk` (`bulk=…`, `indices=…`). `tidegate token` generates lines. tidegate reloads the file
        /// when it changes.
        credentials_file: Option<PathBuf> = None,
        /// Name of a header that may carry a token instead of `Authorization`, such as `X-Api-Key`.
        header: Option<HeaderName> = None,
        /// Actions allowed to every client over Elasticsearch's `_bulk`, in addition to `create` and `index`, if no
        /// `credentials_file` is set. With one, each line grants its own: `bulk=update,delete`.
        bulk: Option<Vec<BulkAction>> = None,
        /// File with admin credentials, in the format of `credentials_file`. Admins may use the admin address and
        /// resend dead letters (`tidegate journal resend`). Without it, every client that can connect may use the
        /// admin address, and no client may resend dead letters if credentials or tenants are configured.
        admin_credentials_file: Option<PathBuf> = None,
    }
}

choices! {
    /// Actions over `_bulk` that require an explicit grant.
    pub enum BulkAction is "an action" {
        /// Update documents.
        Update = "update",
        /// Delete documents.
        Delete = "delete",
        /// Run scripts in updates.
        Script = "script",
        /// Choose the ingest pipeline.
        Pipeline = "pipeline",
    }
}

settings! {
    /// The server certificate. All files are PEM; tidegate reloads them when they change.
    pub struct ListenTls {
        /// Server certificate chain. With it, the addresses in `listeners` accept only TLS.
        cert_file: Option<PathBuf> = None,
        /// Private key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// Certificate authorities that sign client certificates.
        client_ca_file: Option<PathBuf> = None,
        /// Whether clients must present a certificate.
        client_auth: ClientAuth = ClientAuth::None,
        /// The addresses that use TLS with this certificate. An address with its own certificate, below, uses TLS in
        /// any case.
        listeners: Vec<Listener> = Listener::ALL.to_vec(),
        /// Settings for `listen.http` only.
        http: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.grpc` only.
        grpc: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.elasticsearch` only.
        elasticsearch: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.apm` only.
        apm: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.thanos_receive` only.
        thanos_receive: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.fleet` only.
        fleet: ListenerTls = ListenerTls::default(),
        /// Settings for `listen.opamp` only.
        opamp: ListenerTls = ListenerTls::default(),
    }
}

settings! {
    /// TLS settings of one address. Settings left out are those of `listen.tls`.
    pub struct ListenerTls {
        /// Server certificate chain.
        cert_file: Option<PathBuf> = None,
        /// Private key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// Certificate authorities that sign client certificates.
        client_ca_file: Option<PathBuf> = None,
        /// Whether clients must present a certificate.
        client_auth: Option<ClientAuth> = None,
    }
}

choices! {
    /// Whether clients must present a certificate.
    pub enum ClientAuth is "one of these" {
        /// Not requested.
        None = "none",
        /// Requested, but may be absent.
        Optional = "optional",
        /// Required.
        Required = "required",
    }
}

/// The effective TLS settings of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveTls<'a> {
    /// The certificate.
    pub cert_file: &'a Path,
    /// Its key.
    pub key_file: &'a Path,
    /// Certificate authorities that sign client certificates, if clients are asked for one.
    pub client_ca_file: Option<&'a Path>,
    /// Whether clients must present a certificate.
    pub client_auth: ClientAuth,
}

impl ListenTls {
    /// The settings specific to an address.
    pub fn own(&self, listener: Listener) -> &ListenerTls {
        listener.tls(self)
    }

    /// The effective settings of this address, if it uses TLS.
    pub fn effective(&self, listener: Listener) -> Option<EffectiveTls<'_>> {
        let own = self.own(listener);
        let common = || (&self.cert_file, &self.key_file);
        let files = match (&own.cert_file, &own.key_file) {
            (None, None) => self.listeners.contains(&listener).then(common)?,
            files => files,
        };
        self.shown(own, files)
    }

    /// The effective settings of a source's own address that uses TLS: settings left out are these. `None` when there is
    /// no certificate.
    pub fn effective_of<'a>(&'a self, own: &'a ListenerTls) -> Option<EffectiveTls<'a>> {
        let files = match (&own.cert_file, &own.key_file) {
            (None, None) => (&self.cert_file, &self.key_file),
            files => files,
        };
        self.shown(own, files)
    }

    /// The settings that show these files.
    fn shown<'a>(
        &'a self,
        own: &'a ListenerTls,
        files: (&'a Option<PathBuf>, &'a Option<PathBuf>),
    ) -> Option<EffectiveTls<'a>> {
        let (Some(cert_file), Some(key_file)) = files else { return None };
        let client_auth = own.client_auth.unwrap_or(self.client_auth);
        let client_ca_file = own.client_ca_file.as_ref().or(self.client_ca_file.as_ref());
        let client_ca_file = client_ca_file.filter(|_| client_auth != ClientAuth::None);
        Some(EffectiveTls {
            cert_file,
            key_file,
            client_ca_file: client_ca_file.map(PathBuf::as_path),
            client_auth,
        })
    }

    /// Whether this address uses TLS.
    pub fn is_on(&self, listener: Listener) -> bool {
        self.effective(listener).is_some()
    }

    /// Whether any address uses TLS.
    pub fn is_any_on(&self) -> bool {
        Listener::ALL.into_iter().any(|listener| self.is_on(listener))
    }

    /// The distinct TLS settings of all addresses.
    pub fn all_effective(&self) -> Vec<EffectiveTls<'_>> {
        let mut all = Vec::new();
        for shown in Listener::ALL.into_iter().filter_map(|listener| self.effective(listener)) {
            if !all.contains(&shown) {
                all.push(shown);
            }
        }
        all
    }
}
