//! What is known about the sending machine.

use thiserror::Error;
use tidegate_config::{HostName, TenantName};

/// What a person says about the sending side. Paths are those on the sending machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// The name or address by which senders reach the gateway, instead of those in the configuration.
    pub host: Option<HostName>,
    /// This machine's host name, for addresses that listen everywhere.
    pub machine: HostName,
    /// The tenant to name in a header.
    pub tenant: Option<TenantName>,
    /// The certificate authority of the gateway's certificate.
    pub(crate) ca_file: String,
    /// The sender's certificate.
    pub(crate) cert_file: String,
    /// Its key.
    pub(crate) key_file: String,
    /// The token, for senders that read it from a file.
    pub(crate) token_file: String,
}

/// A path that cannot stand in every snippet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} cannot stand in a sender's configuration: use a path of letters, digits and `/._-+@~` without blanks"
)]
pub struct InvalidSender(String);

impl Sender {
    /// A sender that finds its files under `/etc/tidegate`.
    pub fn new(machine: HostName) -> Sender {
        let file = |name: &str| format!("/etc/tidegate/{name}");
        Sender {
            host: None,
            machine,
            tenant: None,
            ca_file: file("ca.pem"),
            cert_file: file("client.pem"),
            key_file: file("client.key"),
            token_file: file("token"),
        }
    }

    /// Says where the certificate authority is.
    ///
    /// # Errors
    /// When the path is one that not every kind can quote; likewise below.
    pub fn with_ca_file(self, path: &str) -> Result<Sender, InvalidSender> {
        Ok(Sender { ca_file: plain(path)?, ..self })
    }

    /// Says where the sender's certificate and its key are.
    ///
    /// # Errors
    /// As above.
    pub fn with_certificate(self, cert_file: &str, key_file: &str) -> Result<Sender, InvalidSender> {
        Ok(Sender { cert_file: plain(cert_file)?, key_file: plain(key_file)?, ..self })
    }

    /// Says where the token is.
    ///
    /// # Errors
    /// As above.
    pub fn with_token_file(self, path: &str) -> Result<Sender, InvalidSender> {
        Ok(Sender { token_file: plain(path)?, ..self })
    }

    pub(crate) fn ca_file(&self) -> &str {
        &self.ca_file
    }

    pub(crate) fn cert_file(&self) -> &str {
        &self.cert_file
    }

    pub(crate) fn key_file(&self) -> &str {
        &self.key_file
    }

    pub(crate) fn token_file(&self) -> &str {
        &self.token_file
    }

    /// The tenant in the header, or what stands for it.
    pub(crate) fn tenant(&self) -> &str {
        self.tenant.as_ref().map_or("TENANT", TenantName::as_str)
    }
}

/// Characters that mean nothing in any of the languages.
fn plain(path: &str) -> Result<String, InvalidSender> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@~".contains(&byte);
    if path.is_empty() || !path.bytes().all(allowed) {
        return Err(InvalidSender(path.to_owned()));
    }
    Ok(path.to_owned())
}
