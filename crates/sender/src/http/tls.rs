//! TLS by rustls, with the system's roots or the ones given.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where certificates come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    /// The certificate authorities to trust, instead of the system's.
    pub(crate) authorities: Option<PathBuf>,
    /// The client's certificate and key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// Trust anybody.
    pub(crate) unverified: bool,
}

/// The configuration shared by all connections. It holds no sessions: their cache has a lock, which a forked child
/// must not share with its parent.
pub(crate) struct Tls(ClientConfig);

/// The sending thread's own: the same, with the sessions that it may take up again.
pub(crate) struct TlsClient(Arc<ClientConfig>);

/// A sentence: what was read, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Tls {
    pub(crate) fn new(files: &TlsFiles) -> Result<Tls, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(format!("setting up TLS: {error}")))?;
        let builder = if files.unverified {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
        } else {
            builder.with_root_certificates(roots(files.authorities.as_deref())?)
        };
        let mut config = match &files.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let wrong = |path: &Path| {
                    let path = path.display().to_string();
                    move |error| TlsError(format!("reading {path}: {error}; give a file in PEM format"))
                };
                let key = PrivateKeyDer::from_pem_file(key).map_err(wrong(key))?;
                let chain = certificates(chain)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    TlsError(format!("the client certificate and its key do not fit: {error}"))
                })?
            }
        };
        config.resumption = rustls::client::Resumption::disabled();
        config.max_fragment_size = Some(super::request::CHUNK);
        Ok(Tls(config))
    }

    /// For a thread that begins.
    pub(crate) fn client(&self) -> TlsClient {
        let mut config = self.0.clone();
        // One peer, one session to take up again.
        config.resumption = rustls::client::Resumption::in_memory_sessions(4);
        TlsClient(Arc::new(config))
    }
}

impl TlsClient {
    pub(super) fn session(&self, host: &str) -> Option<ClientConnection> {
        let name = ServerName::try_from(host.to_owned()).ok()?;
        let mut session = ClientConnection::new(Arc::clone(&self.0), name).ok()?;
        // Plaintext that waits for the socket: one chunk, and no more.
        session.set_buffer_limit(Some(2 * super::request::CHUNK));
        Some(session)
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let certificates = match file {
        Some(file) => certificates(file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(TlsError(
            "no certificate authority was found on this system; name a file with yours".to_owned(),
        ));
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |error| {
        TlsError(format!(
            "reading the certificates in {}: {error}; give a file in PEM format",
            file.display()
        ))
    };
    CertificateDer::pem_file_iter(file).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

/// Believes any certificate, for `ELASTIC_APM_VERIFY_SERVER_CERT=false`.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
