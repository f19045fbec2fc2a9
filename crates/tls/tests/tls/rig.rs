//! Authorities, certificates, a server that echoes, and clients.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_http1::{
    Admitted, Body, Context, Ended, Head, Refusal, Reply, Server, Service, Settings, Shutdown,
};
use tidegate_tls::{ClientAuth, Doorway, Failure, Files, Identity, TlsStream};
use tokio::net::{TcpListener, TcpStream};

/// Who signs.
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
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signed { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// Says what came, and from whom.
pub(crate) struct Echo;

impl Service for Echo {
    type Ticket = String;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<String>, Reply> {
        let who = head.certificate().and_then(|names| names.common_name.as_deref());
        Ok(Admitted { max_body: 8 << 20, ticket: who.unwrap_or("nobody").to_owned() })
    }

    async fn answer(&self, who: String, body: Body) -> Reply {
        let sum = body.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        Reply::new(200).content(format!("{who} {} {sum}", body.len()))
    }

    fn refuse(&self, refusal: Refusal, _: Context<'_, String>) -> Reply {
        refusal.reply()
    }
}

/// What [`Echo`] says.
pub(crate) fn echo(who: &str, body: &[u8]) -> String {
    let sum = body.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    format!("{who} {} {sum}", body.len())
}

pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) authority: Authority,
    pub(crate) arena: Arena,
    pub(crate) doorway: Doorway,
    pub(crate) server: Arc<Server<Echo>>,
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

pub(crate) const LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn rig(client_auth: ClientAuth) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let files = files(&dir, client_auth);
    write(&files, &authority.sign("server", "us"));
    std::fs::write(files.client_ca.as_ref().unwrap(), authority.pem()).unwrap();
    let arena = Arena::new(64 << 20, Floors::NONE, 16 << 20, 64, 64).unwrap();
    let identity = Identity::new(files).unwrap();
    let doorway = Doorway::new(identity, arena.clone(), Share::Ingest, LIMIT);
    let server = Server::new(Echo, Settings::default(), arena.clone(), Shutdown::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    Rig { dir, authority, arena, doorway, server, listener, address }
}

pub(crate) fn files(dir: &tempfile::TempDir, client_auth: ClientAuth) -> Files {
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    Files {
        certificate: path("cert.pem"),
        key: path("key.pem"),
        client_ca: Some(path("ca.pem")),
        client_auth,
    }
}

pub(crate) fn write(files: &Files, signed: &Signed) {
    std::fs::write(&files.certificate, &signed.certificate).unwrap();
    std::fs::write(&files.key, &signed.key).unwrap();
}

impl Rig {
    /// The next connection's socket.
    pub(crate) async fn socket(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    pub(crate) async fn enter(&self) -> Result<TlsStream, Failure> {
        self.doorway.enter(self.socket().await).await
    }

    /// Serves the next connection to its end.
    pub(crate) async fn serve(&self) -> Ended {
        let stream = self.enter().await.unwrap();
        let peer = stream.peer_addr().unwrap();
        self.server.serve(stream, peer).await
    }

    pub(crate) fn client(&self, shows: Option<&Signed>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        match shows {
            None => builder.with_no_client_auth(),
            Some(signed) => {
                let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
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
