//! TLS to the database: the server proves its name, always.

use super::StoreError;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

/// The TLS configuration of connections; `None` for plain ones.
#[derive(Clone)]
pub(super) struct Tls(Option<TlsConnector>);

/// A handshake to come.
pub(super) struct Handshake {
    connector: Option<TlsConnector>,
    server: ServerName<'static>,
}

/// An encrypted connection.
pub(super) struct TlsStream(tokio_rustls::client::TlsStream<Socket>);

impl Tls {
    /// With these authorities, or else those of the system.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn new(is_on: bool, ca_file: Option<&Path>) -> Result<Tls, StoreError> {
        if !is_on {
            return Ok(Tls(None));
        }
        let unusable = |what: String| StoreError::Unusable(format!("TLS to the database: {what}"));
        let mut roots = RootCertStore::empty();
        match ca_file {
            Some(path) => {
                let failed = |error: &dyn std::fmt::Display| {
                    unusable(format!("the authorities in {}: {error}", path.display()))
                };
                let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|error| failed(&error))?;
                    roots.add(certificate).map_err(|error| failed(&error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(unusable("there are no authorities; give `ca_file`".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| unusable(error.to_string()))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Tls(Some(TlsConnector::from(Arc::new(config)))))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let server = match &self.0 {
            Some(_) => ServerName::try_from(host.to_owned()),
            // A socket in the file system has no name, and no handshake.
            None => ServerName::try_from("localhost"),
        };
        let server = server.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Handshake { connector: self.0.clone(), server })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let Some(connector) = self.connector else {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS is off"));
            };
            connector.connect(self.server, stream).await.map(TlsStream)
        })
    }
}

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate is verified, which is what it would add to passwords.
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
