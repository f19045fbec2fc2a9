use std::path::PathBuf;

use crate::declare::{choices, settings};
use crate::values::HeaderName;

settings! {
    /// Who may send, and who may look. Without `credentials_file` whoever can connect may send.
    pub struct Access {
        /// A file with those who may send: a line for each token, password, API key or client certificate, with a hash of
        /// its secret and the tenant it belongs to. `tidegate token` makes lines. It is read again when it changes.
        credentials_file: Option<PathBuf> = None,
        /// A header that may carry a token in place of `Authorization`, such as `X-Api-Key`.
        header: Option<HeaderName> = None,
        /// The same kind of file, with those who may use the admin address. Without it whoever can connect may.
        admin_credentials_file: Option<PathBuf> = None,
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
        /// Which addresses speak TLS.
        listeners: Vec<Listener> = vec![Listener::Http, Listener::Grpc, Listener::Elasticsearch, Listener::Apm],
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

impl ListenTls {
    /// Whether this address speaks TLS.
    pub fn is_on(&self, listener: Listener) -> bool {
        self.cert_file.is_some() && self.listeners.contains(&listener)
    }

    /// Whether any does.
    pub fn is_any_on(&self) -> bool {
        self.cert_file.is_some() && !self.listeners.is_empty()
    }
}
