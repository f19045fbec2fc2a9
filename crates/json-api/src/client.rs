//! GET requests, and the streams of their responses.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Uri};
use hyper_rustls::{ConfigBuilderExt, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tower_service::Service;

/// The longest token. One of a service account has about 1 KiB.
const LONGEST_TOKEN: u64 = 64 << 10;
/// The most certificates in a file of authorities.
const MOST_CERTIFICATES: usize = 1024;
/// The most that a connection buffers in each direction.
const BUFFER: usize = 16 << 10;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long an idle connection is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Where the server is, and how it is spoken to. The files are read again for each connection, since tokens and
/// certificates are exchanged while the gateway runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiSettings {
    /// Such as `https://10.0.0.1:443`; a path comes before those of requests, as gateways to clusters want it.
    pub url: Uri,
    /// The file with the token that is shown.
    pub token: Option<PathBuf>,
    /// The certificates of the authorities that are trusted, in PEM; those of the system where there are none.
    pub ca: Option<PathBuf>,
    /// The certificate that is shown, and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate is for, if that is not the URL's host.
    pub server_name: Option<String>,
}

/// The server cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The address.
    #[error("`{0}` is not the URL of a server")]
    Url(String),
    /// A file cannot be used.
    #[error("{} cannot be used: {reason}", file.display())]
    File {
        /// Which one.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// TLS cannot be used as configured.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// There is no connection.
    #[error("connecting: {0}")]
    Connect(String),
    /// The connection has ended.
    #[error("reading: {0}")]
    Http(#[from] hyper::Error),
}

/// A client. There is one connection at a time, and it ends with its response.
pub struct Api {
    settings: ApiSettings,
}

/// A response whose head has come.
pub struct Response {
    /// The status.
    pub status: u16,
    /// How long the server asks to wait, where it does.
    pub retry_after: Option<Duration>,
    body: Incoming,
    connection: Connection,
}

/// The future that moves the bytes of a connection; `None` when it has ended.
struct Connection(Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>);

impl Api {
    /// The memory of a connection with its TLS session, and of the trusted authorities.
    pub const BYTES: usize = 2 * BUFFER + (64 << 10) + (2 << 20);

    /// A client of this server. Nothing is connected yet.
    #[must_use]
    pub fn new(settings: ApiSettings) -> Api {
        Api { settings }
    }

    /// Sends a GET for `target`, a path with its query; the response comes with its head.
    ///
    /// # Errors
    /// When there is no connection, or no response on it.
    pub async fn get(&self, target: &str) -> Result<Response, ApiError> {
        let request = self.request(target)?;
        let mut connector = self.connector()?;
        let connect = |error: Box<dyn Error + Send + Sync>| ApiError::Connect(chain(&*error));
        poll_fn(|context| connector.poll_ready(context)).await.map_err(connect)?;
        let stream = connector.call(self.settings.url.clone()).await.map_err(connect)?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(BUFFER);
        let (mut sender, connection) = builder.handshake(stream).await?;
        let mut connection = Connection(Some(Box::pin(connection)));
        let response = connection.drive(sender.send_request(request)).await?;
        let (head, body) = response.into_parts();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = seconds.map(Duration::from_secs);
        Ok(Response { status: head.status.as_u16(), retry_after, body, connection })
    }

    fn request(&self, target: &str) -> Result<Request<Empty<Bytes>>, ApiError> {
        let url = || ApiError::Url(format!("{}{target}", self.settings.url));
        let mut request = Request::new(Empty::new());
        let prefix = self.settings.url.path().trim_end_matches('/');
        *request.uri_mut() = format!("{prefix}{target}").parse().map_err(|_| url())?;
        let authority = self.settings.url.authority().ok_or_else(url)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| url())?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
        if let Some(file) = &self.settings.token {
            let token = token(file)?;
            headers.insert(AUTHORIZATION, token);
        }
        Ok(request)
    }

    fn connector(&self) -> Result<HttpsConnector<HttpConnector>, ApiError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        let is_plain = self.settings.url.scheme_str() == Some("http");
        let config = self.settings.tls(is_plain)?;
        let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        let builder = match &self.settings.server_name {
            None => builder,
            Some(name) => {
                let name = ServerName::try_from(name.clone()).map_err(|_| ApiError::Url(name.clone()))?;
                builder.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
        };
        Ok(builder.enable_http1().wrap_connector(tcp))
    }
}

impl ApiSettings {
    fn tls(&self, is_unused: bool) -> Result<ClientConfig, ApiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match &self.ca {
            _ if is_unused => builder.with_root_certificates(RootCertStore::empty()),
            None => builder.with_native_roots().map_err(|error| ApiError::Connect(error.to_string()))?,
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate)?;
                }
                builder.with_root_certificates(roots)
            }
        };
        match &self.certificate {
            Some((certificate, key)) if !is_unused => {
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error))?;
                Ok(builder.with_client_auth_cert(certificates(certificate)?, private)?)
            }
            _ => Ok(builder.with_no_client_auth()),
        }
    }
}

impl Response {
    /// The next bytes of the body; `None` at its end. An error ends the body.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, ApiError>> {
        loop {
            let frame = self.connection.drive(self.body.frame()).await?;
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers say nothing here.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

impl Connection {
    /// Waits for `work`, and moves the connection's bytes meanwhile.
    async fn drive<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Some(connection) = &mut self.0
                && connection.as_mut().poll(context).is_ready()
            {
                // Its error comes through the request or the body.
                self.0 = None;
            }
            match work.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(output),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// The token in a file, as a header's value that is not shown.
fn token(file: &Path) -> Result<HeaderValue, ApiError> {
    let metadata = std::fs::metadata(file).map_err(|error| unusable(file, error))?;
    if metadata.len() > LONGEST_TOKEN {
        return Err(unusable(file, "it is too long for a token"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unusable(file, error))?;
    let token = format!("Bearer {}", text.trim());
    let mut value = HeaderValue::from_str(&token).map_err(|_| unusable(file, "it holds no token"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ApiError> {
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(file, error))?;
    let found: Vec<_> =
        found.take(MOST_CERTIFICATES).collect::<Result<_, _>>().map_err(|error| unusable(file, error))?;
    if found.is_empty() { Err(unusable(file, "there is no certificate in it")) } else { Ok(found) }
}

fn unusable(file: &Path, reason: impl ToString) -> ApiError {
    ApiError::File { file: file.to_owned(), reason: reason.to_string() }
}

/// An error with its causes: the last one usually says what is wrong.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token that cannot be read says where it should be, and is never shown.
    #[test]
    fn tokens_are_read_from_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert!(token(&file).unwrap_err().to_string().contains("token"));
        std::fs::write(&file, "hunter2\n").unwrap();
        let value = token(&file).unwrap();
        assert_eq!(value, "Bearer hunter2");
        assert!(!format!("{value:?}").contains("hunter2"));
        std::fs::write(&file, "a\nb").unwrap();
        assert!(token(&file).is_err());
    }
}
