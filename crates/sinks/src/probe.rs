//! Requests that show whether a peer takes what a sink sends, and that store nothing there.
//!
//! Each kind of sink makes its own: with the URL, the headers, the credentials and the TLS settings of its requests, and no
//! items. Sending it is left to `tidegate-doctor`.

use crate::delivery::EndpointError;
use crate::delivery::client::proxy_of;
use crate::secrets::{Secrets, Shown};
use crate::tls::{Tls, TlsError};
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Request, Uri};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::path::Path;

/// A request to one endpoint of a sink.
#[derive(Clone)]
pub struct Probe {
    /// The request, with the whole URL.
    pub request: Request<Bytes>,
    /// Its description: "an empty export request".
    pub what: &'static str,
    /// How a peer that works may refuse it.
    pub harmless: &'static [HarmlessRefusal],
    /// Whether the sink's requests name a tenant, which this one does not.
    pub lacks_tenant: bool,
    pub(crate) tls: Tls,
    pub(crate) secrets: Secrets,
}

/// A refusal by a peer that would take items: it refuses the request because there are none in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HarmlessRefusal {
    /// The statuses of HTTP.
    pub statuses: &'static [u16],
    /// A text that the response must contain; empty if any will do.
    pub contains: &'static str,
    /// What such a response says, in a sentence without its full stop.
    pub meaning: &'static str,
}

/// The proxy on the way to an endpoint.
#[derive(Clone)]
pub struct ProbeProxy {
    /// The environment variable that names it.
    pub variable: &'static str,
    /// Where it is; `None` if it is no proxy over plain HTTP, and so is not used.
    pub address: Option<(String, u16)>,
    /// The value of `Proxy-Authorization`.
    pub credentials: Option<HeaderValue>,
}

impl Probe {
    pub(crate) fn new(request: Request<Bytes>, what: &'static str, tls: &Tls) -> Probe {
        let secrets = Secrets::of(request.uri(), request.headers());
        Probe { request, what, harmless: &[], lacks_tenant: false, tls: tls.clone(), secrets }
    }

    /// The endpoint, for people: without secrets.
    pub fn target(&self) -> String {
        Shown(self.request.uri()).to_string()
    }

    /// Whether it goes over HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.request.version() == hyper::Version::HTTP_2
    }

    /// The files that [`tls`](Self::tls) reads.
    pub fn tls_files(&self) -> impl Iterator<Item = &Path> {
        let is_secure = self.request.uri().scheme_str() == Some("https");
        self.tls.files().filter(move |_| is_secure)
    }

    /// The settings of TLS, if the endpoint has it.
    ///
    /// # Errors
    /// When the files of the settings cannot be used.
    pub fn tls(&self) -> Result<Option<(ClientConfig, Option<ServerName<'static>>)>, TlsError> {
        if self.request.uri().scheme_str() != Some("https") {
            return Ok(None);
        }
        let mut config = self.tls.config()?;
        config.alpn_protocols = vec![if self.is_http2() { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        Ok(Some((config, self.tls.name()?)))
    }

    /// The proxy that the environment names for the endpoint.
    pub fn proxy(&self) -> Option<ProbeProxy> {
        let (variable, intercept) = proxy_of(self.request.uri())?;
        let Some(intercept) = intercept else {
            return Some(ProbeProxy { variable, address: None, credentials: None });
        };
        let uri = intercept.uri();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Some(ProbeProxy {
            variable,
            address: Some((host, uri.port_u16().unwrap_or(80))),
            credentials: intercept.basic_auth().cloned(),
        })
    }

    /// The text with stars for every secret of the request.
    pub fn mask(&self, text: &str) -> String {
        self.secrets.mask(text.to_owned())
    }
}

/// Without headers, which have secrets.
impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe({} {})", self.request.method(), self.target())
    }
}

/// `uri` with this path and query.
pub(crate) fn with_path(uri: &Uri, path: &str) -> Result<Uri, EndpointError> {
    let address = || EndpointError::Address(uri.clone());
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().map_err(|_| address())?);
    Uri::from_parts(parts).map_err(|_| address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::AUTHORIZATION;

    #[test]
    fn shows_no_secret() {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = "https://peer:9/write?key=hunter2".parse().unwrap();
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer hunter3"));
        let probe = Probe::new(request, "nothing", &Tls::default());
        let shown = format!("{probe:?} {} {}", probe.target(), probe.mask("Bearer hunter3, key=hunter2"));
        assert!(!shown.contains("hunter"), "{shown}");
    }
}
