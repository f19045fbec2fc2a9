//! Authorities, certificates, a server that echoes, and clients.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_http1::{
    Admitted, Body, ConnectionEnd, Head, Refusal, RefusalContext, Reply, Server, Service, Settings, Shutdown,
};
use tidegate_tls::{AcceptError, CertificateFiles, ClientAuth, ServerIdentity, TlsAcceptor, TlsStream};
use tokio::net::{TcpListener, TcpStream};

/// The certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn sign(&self, common: &str, organization: &str) -> Signed {
        self.sign_with(common, organization, |_| ())
    }

    /// One that is valid until the first second of this day.
    pub(crate) fn sign_until(&self, common: &str, (year, month, day): (i32, u8, u8)) -> Signed {
        self.sign_with(common, "us", |params| params.not_after = rcgen::date_time_ymd(year, month, day))
    }

    fn sign_with(
        &self,
        common: &str,
        organization: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Signed {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signed { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// The client's certificate, until it is replaced.
#[derive(Debug)]
pub(crate) struct Shows(Mutex<Arc<CertifiedKey>>);

impl Shows {
    pub(crate) fn new(signed: &Signed) -> Shows {
        Shows(Mutex::new(Shows::read(signed)))
    }

    pub(crate) fn change(&self, signed: &Signed) {
        *self.0.lock().unwrap() = Shows::read(signed);
    }

    fn read(signed: &Signed) -> Arc<CertifiedKey> {
        let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        Arc::new(CertifiedKey::new(vec![certificate], key))
    }
}

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().unwrap()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Says what came, and from whom.
pub(crate) struct Echo;

impl Service for Echo {
    type RequestState = String;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<String>, Reply> {
        let who = head.certificate().and_then(|names| names.common_name.as_deref());
        Ok(Admitted { max_body: 8 << 20, ticket: who.unwrap_or("nobody").to_owned() })
    }

    async fn answer(&self, who: String, body: Body) -> Reply {
        let sum = body.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        Reply::new(200).content(format!("{who} {} {sum}", body.len()))
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, String>) -> Reply {
        refusal.reply()
    }
}

/// The output of [`Echo`].
pub(crate) fn echo(who: &str, body: &[u8]) -> String {
    let sum = body.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    format!("{who} {} {sum}", body.len())
}

pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) authority: Authority,
    pub(crate) arena: Arena,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) server: Arc<Server<Echo>>,
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// The current time, where clients' certificates are checked.
#[derive(Debug, Clone)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn at(second: u64) -> Clock {
        Clock(Arc::new(AtomicU64::new(second)))
    }

    pub(crate) fn set(&self, second: u64) {
        self.0.store(second, Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Relaxed))))
    }
}

pub(crate) async fn rig(client_auth: ClientAuth) -> Rig {
    rig_of(client_auth, Arc::new(DefaultTimeProvider)).await
}

/// The same, by this clock.
pub(crate) async fn rig_at(client_auth: ClientAuth, clock: Clock) -> Rig {
    rig_of(client_auth, Arc::new(clock)).await
}

async fn rig_of(client_auth: ClientAuth, clock: Arc<dyn TimeProvider>) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let files = files(&dir, client_auth);
    write(&files, &authority.sign("server", "us"));
    std::fs::write(files.client_ca.as_ref().unwrap(), authority.pem()).unwrap();
    let arena = Arena::new(64 << 20, Floors::NONE, 16 << 20, 64, 64).unwrap();
    let identity = ServerIdentity::with_clock(files, clock).unwrap();
    let acceptor = TlsAcceptor::new(identity, arena.clone(), Share::Ingest, LIMIT);
    let server = Server::new(Echo, Settings::default(), arena.clone(), Shutdown::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    Rig { dir, authority, arena, acceptor, server, listener, address }
}

pub(crate) fn files(dir: &tempfile::TempDir, client_auth: ClientAuth) -> CertificateFiles {
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    CertificateFiles {
        certificate: path("cert.pem"),
        key: path("key.pem"),
        client_ca: Some(path("ca.pem")),
        client_auth,
    }
}

pub(crate) fn write(files: &CertificateFiles, signed: &Signed) {
    std::fs::write(&files.certificate, &signed.certificate).unwrap();
    std::fs::write(&files.key, &signed.key).unwrap();
}

impl Rig {
    /// The next connection's socket.
    pub(crate) async fn socket(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    pub(crate) async fn enter(&self) -> Result<TlsStream, AcceptError> {
        self.acceptor.accept(self.socket().await).await
    }

    /// Serves the next connection to its end.
    pub(crate) async fn serve(&self) -> ConnectionEnd {
        let stream = self.enter().await.unwrap();
        let peer = stream.peer_addr().unwrap();
        self.server.serve(stream, peer).await
    }

    pub(crate) fn client(&self, shows: Option<&Signed>) -> ClientConfig {
        self.client_of(rustls::ALL_VERSIONS, shows)
    }

    /// A client that speaks these versions.
    pub(crate) fn client_of(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        shows: Option<&Signed>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        match shows {
            None => builder.with_no_client_auth(),
            Some(signed) => builder.with_client_cert_resolver(Arc::new(Shows::new(signed))),
        }
    }

    pub(crate) async fn connect(
        &self,
        config: &Arc<ClientConfig>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(Arc::clone(config)).connect(name, socket).await
    }
}
