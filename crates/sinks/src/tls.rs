//! TLS towards a peer: what is trusted, and what is shown.

use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The most certificates that a file may hold: there are about 150 authorities that everybody trusts.
const MOST: usize = 1024;

/// The TLS settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates of the authorities that are trusted, in PEM; those of the system where there is none.
    pub ca: Option<PathBuf>,
    /// The certificate that is shown, with those that lead to its authority, and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The name that the peer's certificate must be for, where that is not the URL's host.
    pub server_name: Option<String>,
}

/// The identity of the TLS files: it changes when they are written or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<(SystemTime, u64, u64)>>);

/// TLS cannot be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The system's roots.
    #[error("preparing TLS: the system's root certificates cannot be read: {0}")]
    Roots(std::io::Error),
    /// A file.
    #[error("preparing TLS: {} {what}: {reason}; give a file in PEM format", file.display())]
    File {
        /// Which one.
        file: PathBuf,
        /// The expected contents.
        what: &'static str,
        /// The error.
        reason: String,
    },
    /// The server's name.
    #[error("preparing TLS: `{0}` is not the name of a server")]
    Name(String),
    /// Everything else, such as a key that does not belong to its certificate.
    #[error("preparing TLS: {0}")]
    Other(#[from] rustls::Error),
}

impl Tls {
    /// The current identity of its files; `None` if it has none.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let stamp = |file: &Path| {
            let meta = std::fs::metadata(file).ok()?;
            Some((meta.modified().ok()?, meta.len(), meta.ino()))
        };
        let stamps: Vec<_> = self.files().map(stamp).collect();
        (!stamps.is_empty()).then_some(Stamps(stamps))
    }

    /// Its files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let pair = self.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.ca.iter().chain(pair).map(PathBuf::as_path)
    }

    /// The client's side of TLS, without ALPN.
    pub(crate) fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match &self.ca {
            None => builder.with_native_roots().map_err(TlsError::Roots)?,
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| unusable(file, error))?;
                }
                builder.with_root_certificates(roots)
            }
        };
        match &self.certificate {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::File {
                    file: key.clone(),
                    what: "holds no private key that can be used",
                    reason: error.to_string(),
                })?;
                Ok(builder.with_client_auth_cert(certificates(certificate)?, private)?)
            }
        }
    }

    /// The name that the peer's certificate must be for, where it is given.
    pub(crate) fn name(&self) -> Result<Option<ServerName<'static>>, TlsError> {
        let Some(name) = &self.server_name else { return Ok(None) };
        ServerName::try_from(name.clone()).map(Some).map_err(|_| TlsError::Name(name.clone()))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |error: rustls::pki_types::pem::Error| unusable(file, error);
    let found = CertificateDer::pem_file_iter(file).map_err(unusable)?.take(MOST);
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unusable)?;
    if found.is_empty() {
        return Err(self::unusable(file, "there is none in it"));
    }
    Ok(found)
}

fn unusable(file: &Path, reason: impl ToString) -> TlsError {
    let what = "holds no certificates that can be used";
    TlsError::File { file: file.to_owned(), what, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mistake says which file, and what is wrong with it.
    #[test]
    fn unusable_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty.pem");
        std::fs::write(&empty, "nothing").unwrap();
        let missing = dir.path().join("missing.pem");
        for file in [&empty, &missing] {
            let error = Tls { ca: Some(file.clone()), ..Tls::default() }.config().unwrap_err().to_string();
            assert!(error.contains(&file.display().to_string()), "{error}");
        }
        let name = Tls { server_name: Some("not a name".into()), ..Tls::default() }.name();
        assert!(name.unwrap_err().to_string().contains("not a name"));
        assert!(Tls { server_name: Some("a.example".into()), ..Tls::default() }.name().unwrap().is_some());
    }
}
