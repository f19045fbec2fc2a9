//! One address of the gateway, as a sender has to know it.

use crate::quote;
use crate::sender::Sender;
use std::path::Path;
use tidegate_config::{ClientAuth, EffectiveTls};

/// An address, and what it asks of senders.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint<'a> {
    pub(crate) sender: &'a Sender,
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Before the path of a protocol; begins with a slash unless it is empty.
    pub(crate) base: String,
    pub(crate) tls: Option<Tls<'a>>,
    /// The file with credentials, where a sender must have one of them.
    pub(crate) credentials_file: Option<&'a Path>,
    pub(crate) tenant: Tenant<'a>,
    /// How the address is reached.
    pub(crate) reach: Vec<String>,
}

/// TLS at an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tls<'a> {
    pub(crate) cert_file: &'a Path,
    /// The authority of client certificates, where a sender must have one.
    pub(crate) clients: Option<Option<&'a Path>>,
}

/// How the tenant of a request is known.
#[derive(Debug, Clone)]
pub(crate) enum Tenant<'a> {
    /// There are no tenants, or the sender has no say.
    None,
    /// A header names it; without it, this one is meant, or nothing is accepted.
    Header { name: &'a str, default: Option<&'a str> },
    /// The credential names it. Without one in its line it is this one, or nothing is accepted.
    Credential { default: Option<&'a str> },
    /// A field of the certificate names it.
    Certificate { field: String },
}

/// What a kind of sender can do, and its snippet does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) credential: Credential,
    /// Whether it can send a header with the tenant.
    pub(crate) tenant_header: bool,
    /// Whether a certificate authority of its own can be set.
    pub(crate) ca_file: bool,
    /// Whether it can show a certificate.
    pub(crate) client_certificate: bool,
}

/// Where a sender has its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A token in the environment variable `TIDEGATE_TOKEN`.
    Variable,
    /// A token in a file.
    File,
    /// An API key, with its name, in the environment variable `TIDEGATE_API_KEY`.
    ApiKey,
    /// A password in the environment variable `TIDEGATE_PASSWORD`, with the user `sender`.
    Password,
}

impl Abilities {
    /// Everything, with a token in the environment.
    pub(crate) const ALL: Abilities = Abilities {
        credential: Credential::Variable,
        tenant_header: true,
        ca_file: true,
        client_certificate: true,
    };
    /// Everything, with a token in a file.
    pub(crate) const TOKEN_FILE: Abilities = Abilities { credential: Credential::File, ..Abilities::ALL };
    /// Everything, with an API key.
    pub(crate) const API_KEY: Abilities = Abilities { credential: Credential::ApiKey, ..Abilities::ALL };
}

impl<'a> Tls<'a> {
    pub(crate) fn new(effective: EffectiveTls<'a>) -> Tls<'a> {
        let is_required = effective.client_auth == ClientAuth::Required;
        Tls { cert_file: effective.cert_file, clients: is_required.then_some(effective.client_ca_file) }
    }

    /// Where the tenant is in the sender's certificate: it must have one even if the handshake does not need it.
    pub(crate) fn with_certificate(effective: EffectiveTls<'a>) -> Tls<'a> {
        let is_asked = effective.client_auth != ClientAuth::None;
        Tls { cert_file: effective.cert_file, clients: is_asked.then_some(effective.client_ca_file) }
    }
}

impl<'a> Endpoint<'a> {
    /// `HOST:PORT`, with brackets around an IPv6 address.
    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    /// The URL of this path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{}{path}", self.scheme(), self.authority(), self.base)
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The certificate authority, where there is TLS.
    pub(crate) fn ca_file(&self) -> Option<&'a str> {
        self.tls.map(|_| self.sender.ca_file())
    }

    /// Certificate and key of the sender, where it must have one.
    pub(crate) fn client_certificate(&self) -> Option<(&'a str, &'a str)> {
        self.tls?.clients.map(|_| (self.sender.cert_file(), self.sender.key_file()))
    }

    /// Whether a sender must have a credential.
    pub(crate) fn asks_for_token(&self) -> bool {
        self.credentials_file.is_some()
    }

    /// The header with the tenant: its name and value.
    pub(crate) fn tenant_header(&self) -> Option<(&'a str, &'a str)> {
        match self.tenant {
            Tenant::Header { name, .. } => Some((name, self.sender.tenant())),
            _ => None,
        }
    }

    /// What to know about the address, for a sender that can do this.
    pub(crate) fn notes(&self, abilities: Abilities) -> Vec<String> {
        let mut notes = self.reach.clone();
        notes.extend(self.tls_notes(abilities));
        notes.extend(self.credential_note(abilities.credential));
        notes.extend(self.tenant_note(abilities));
        notes
    }

    /// What to know about TLS, or its lack.
    pub(crate) fn tls_notes(&self, abilities: Abilities) -> Vec<String> {
        let Some(tls) = self.tls else {
            let is_local = self.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
            let note = "This address has no TLS: all that is sent, credentials included, can be read on the network.";
            return if is_local { vec![] } else { vec![note.to_owned()] };
        };
        let signed = format!("the certificate authority that signed {}", tls.cert_file.display());
        let trust = if abilities.ca_file {
            format!(
                "{} is {signed}, copied to the sending machine; where the system trusts it anyway, leave that line out.",
                self.sender.ca_file()
            )
        } else {
            format!("This sender trusts what its system trusts: {signed} has to be among that.")
        };
        let mut notes = vec![format!("{trust} The certificate has to be valid for `{}`.", self.host)];
        if let Some(authority) = tls.clients {
            let by = authority
                .map_or_else(String::new, |file| format!(", signed by the authority in {}", file.display()));
            notes.push(if abilities.client_certificate {
                format!(
                    "The gateway asks senders for a certificate{by}: {} and its key {}.",
                    self.sender.cert_file(),
                    self.sender.key_file()
                )
            } else {
                let without = match self.tenant {
                    Tenant::Certificate { .. } => {
                        "Without that, what it sends has no tenant and is refused: put an OpenTelemetry Collector in between, see \
                         `tidegate connect collector`."
                    }
                    _ => "Without that, set `client_auth: optional` for this address.",
                };
                format!(
                    "The gateway asks senders for a certificate{by}, which this one shows only if its program gives it one. {without}"
                )
            });
        }
        notes
    }

    fn credential_note(&self, credential: Credential) -> Option<String> {
        let file = self.credentials_file?.display();
        let tenant = match &self.tenant {
            Tenant::Credential { default: None } => {
                " `--tenant NAME` is needed, because there is no default tenant.".to_owned()
            }
            Tenant::Credential { default: Some(default) } => {
                format!(" Without `--tenant NAME`, the data is that of the tenant `{default}`.")
            }
            _ => String::new(),
        };
        Some(match credential {
            Credential::Variable => format!(
                "Senders need a credential: `tidegate token NAME` makes a token, and its line for {file}.{tenant} Give the token to the sender \
                 as the environment variable TIDEGATE_TOKEN."
            ),
            Credential::File => format!(
                "Senders need a credential: `tidegate token NAME` makes a token, and its line for {file}.{tenant} Write the token into {}, \
                 which only the sender should be able to read.",
                self.sender.token_file()
            ),
            Credential::ApiKey => format!(
                "Senders need a credential: `tidegate token NAME --kind api-key` makes a key, and its line for {file}.{tenant} Give it to the \
                 sender as the environment variable TIDEGATE_API_KEY, with its name before it: `NAME:KEY`."
            ),
            Credential::Password => format!(
                "Senders need a credential: `tidegate token sender --kind basic` reads a password, and prints its line for {file}.{tenant} Give \
                 the password to the sender as the environment variable TIDEGATE_PASSWORD."
            ),
        })
    }

    fn tenant_note(&self, abilities: Abilities) -> Option<String> {
        match &self.tenant {
            Tenant::None | Tenant::Credential { .. } => None,
            Tenant::Header { name, default } => {
                let default = default.map_or_else(
                    || " Requests without it are refused.".to_owned(),
                    |default| format!(" Without it, the data is that of `{default}`."),
                );
                let header = match (abilities.tenant_header, &self.sender.tenant) {
                    (false, _) => {
                        " This sender cannot set it: give its address a tenant with `tenants.default_at`, or give it a credential."
                    }
                    (true, None) => " Replace TENANT.",
                    (true, Some(_)) => "",
                };
                Some(format!("The header `{name}` names the tenant.{header}{default}"))
            }
            Tenant::Certificate { field } => Some(format!(
                "The tenant is the `{field}` of the sender's certificate; headers do not count."
            )),
        }
    }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The path of a prefix in the configuration.
pub(crate) fn base(prefix: &str) -> String {
    quote::path(prefix)
}
