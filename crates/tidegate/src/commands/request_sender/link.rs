//! The connection to a gateway: as it is, or with TLS.

use crate::Failure;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, WantsVerifier,
};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::{Connection, Duplex, RequestError, Target, connect};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The port of a URL with `https` that names none.
const HTTPS: u16 = 443;

/// Either kind of stream.
trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// A stream to a gateway.
pub(super) struct GatewayStream(Box<dyn Stream>);

impl Duplex for GatewayStream {
    fn halves(&mut self) -> (impl AsyncRead + Unpin, impl AsyncWrite + Unpin) {
        tokio::io::split(&mut self.0)
    }
}

/// How connections are made.
pub(super) struct Link {
    pub(super) target: Target,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Link {
    /// Without TLS.
    pub(super) fn plain(target: Target) -> Link {
        Link { target, tls: None }
    }

    /// To a URL, with TLS where its scheme says so. The certificate has to be for the host, and signed by one in `ca_file`, or by one that
    /// the system trusts.
    pub(super) fn to_url(url: &str, ca_file: Option<&Path>) -> Result<Link, Failure> {
        let Some(rest) = url.strip_prefix("https://") else {
            if ca_file.is_some() {
                return Err(Failure::from("--ca-file is for a --url with `https://`"));
            }
            return Ok(Link::plain(url.parse()?));
        };
        let target = format!("http://{rest}").parse::<Target>()?.with_port(HTTPS);
        let name = server_name(&target)?;
        let config = builder(&provider())?.with_root_certificates(roots(ca_file)?).with_no_client_auth();
        Ok(Link { target, tls: Some((TlsConnector::from(Arc::new(config)), name)) })
    }

    /// To the gateway of a configuration on this machine, that shows the certificate in `cert_file` and nothing else, for whatever name.
    pub(super) fn to_own(target: Target, cert_file: &Path) -> Result<Link, Failure> {
        let provider = provider();
        let first = certificates(cert_file)?.into_iter().next();
        let certificate = first.ok_or_else(|| unusable(cert_file, &"there is none in it"))?;
        let file = cert_file.to_owned();
        let verifier = Arc::new(OwnCertificate { certificate, file, provider: Arc::clone(&provider) });
        let name = server_name(&target)?;
        let config = builder(&provider)?.dangerous().with_custom_certificate_verifier(verifier);
        let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        Ok(Link { tls: Some((connector, name)), target })
    }

    /// Its URL without the query, which may hold a key.
    pub(super) fn shown(&self) -> String {
        let Target { authority, path } = &self.target;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match path.split_once('?') {
            Some((path, _)) => format!("{scheme}://{authority}{path}?***"),
            None => format!("{scheme}://{authority}{path}"),
        }
    }

    /// Connects.
    pub(super) async fn open(&self, patience: Duration) -> Result<Connection<GatewayStream>, RequestError> {
        let stream = connect(&self.target, patience).await?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Connection::over(GatewayStream(Box::new(stream))));
        };
        let shaken = timeout(patience, connector.connect(name.clone(), stream)).await;
        let stream = shaken.map_err(|_| RequestError::Timeout(patience))?.map_err(advised)?;
        Ok(Connection::over(GatewayStream(Box::new(stream))))
    }
}

/// The same error, with what to do about a certificate of an unknown authority.
fn advised(error: io::Error) -> io::Error {
    let known = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    match known {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => io::Error::other(
            "the gateway's certificate is of an authority that is not trusted here: name the file with the authority's certificate in --ca-file",
        ),
        _ => error,
    }
}

/// The name that the certificate has to be for.
fn server_name(target: &Target) -> Result<ServerName<'static>, Failure> {
    let host = target.host();
    ServerName::try_from(host.to_owned())
        .map_err(|_| Failure(format!("the host `{host}` is neither a name nor an address")))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn builder(provider: &Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Failure> {
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions();
    builder.map_err(|error| Failure(format!("setting up TLS: {error}")))
}

/// The authorities in a file, or those that the system trusts.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| unusable(file, &error))?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let _added = roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let errors: String = found.errors.iter().map(|error| format!(" ({error})")).collect();
        return Err(Failure(format!(
            "this system has no certificates that it trusts{errors}: name the file with the gateway's authority in --ca-file"
        )));
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(file, &error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(file, &error))?;
    if found.is_empty() {
        return Err(unusable(file, &"there is none in it"));
    }
    Ok(found)
}

fn unusable(file: &Path, reason: &dyn Display) -> Failure {
    Failure(format!("{} holds no certificates that can be used: {reason}", file.display()))
}

/// Trusts one certificate, which the configuration names, and whoever has its key.
#[derive(Debug)]
struct OwnCertificate {
    certificate: CertificateDer<'static>,
    file: PathBuf,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OwnCertificate {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        let file = self.file.display();
        Err(Error::General(format!(
            "the gateway shows another certificate than that in {file}: has it read the file since?"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_keys() {
        let shown = |url: &str| Link::to_url(url, None).unwrap().shown();
        assert_eq!(shown("http://a/push?key=secret"), "http://a/push?***");
        let refused = Link::to_url("http://a", Some(Path::new("ca.pem"))).err().unwrap();
        assert!(refused.0.contains("https://"), "{}", refused.0);
    }
}
