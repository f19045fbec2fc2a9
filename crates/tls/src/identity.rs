//! The certificate that a listener shows and whom it trusts: read from files, and again when they change.

use crate::expiry::{ExpiringTickets, ExpiryRecordingVerifier};
use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{RootCertStore, ServerConfig};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The most certificates that a file may hold.
const MAX_CERTIFICATES: usize = 256;
/// The longest file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where the certificates are, all of them in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate that is shown, with those that lead to its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities that sign for clients.
    pub client_ca: Option<PathBuf>,
    /// Whether clients have to show a certificate.
    pub client_auth: ClientAuth,
}

/// Whether clients have to show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// They may.
    Optional,
    /// They must.
    Required,
}

/// TLS cannot be offered as configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
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
    /// Clients shall show certificates that nobody could have signed.
    #[error("preparing TLS: clients shall show a certificate, and no authority is given that signs for them")]
    NoAuthority,
    /// Everything else, such as a key that does not belong to its certificate.
    #[error("preparing TLS with {}: {reason}", file.display())]
    Unusable {
        /// The certificate's file.
        file: PathBuf,
        /// The error.
        reason: String,
    },
}

/// A listener's certificate. Clones share it.
#[derive(Clone)]
pub struct ServerIdentity(Arc<IdentityState>);

struct IdentityState {
    files: CertificateFiles,
    clock: Arc<dyn TimeProvider>,
    config: ArcSwap<ServerConfig>,
    /// The files as they were read last, and as they were seen last.
    seen: Mutex<(FileStamps, FileStamps)>,
}

type FileStamps = [Option<(u64, u64, Option<SystemTime>)>; 3];

impl ServerIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be used; the words say which, and why.
    pub fn new(files: CertificateFiles) -> Result<ServerIdentity, TlsError> {
        ServerIdentity::with_clock(files, Arc::new(DefaultTimeProvider))
    }

    /// The same, by a clock of its own: whether the certificates of clients are valid is decided by that.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(
        files: CertificateFiles,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<ServerIdentity, TlsError> {
        let stamps = files.stamps();
        let config = ArcSwap::from_pointee(files.config(&clock)?);
        Ok(ServerIdentity(Arc::new(IdentityState {
            files,
            clock,
            config,
            seen: Mutex::new((stamps, stamps)),
        })))
    }

    /// Reads the files again. Connections that are open stay as they are; tickets of old ones are not taken any
    /// more, so that who is not trusted any longer has to show so.
    ///
    /// # Errors
    /// When one of them cannot be used; what was read before is kept.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.read(self.0.files.stamps())
    }

    /// To be called once a second: reads the files again once one of them has changed and all of them have then
    /// stayed as they are for a call. Says whether that was done.
    ///
    /// # Errors
    /// As those of [`reload`](Self::reload), once for each change.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let now = self.0.files.stamps();
        let settled = {
            let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let settled = seen.1 == now;
            seen.1 = now;
            settled && seen.0 != now
        };
        if settled { self.read(now).map(|()| true) } else { Ok(false) }
    }

    fn read(&self, stamps: FileStamps) -> Result<(), TlsError> {
        // Even when they cannot be used: they are not read again before they change.
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).0 = stamps;
        self.0.config.store(Arc::new(self.0.files.config(&self.0.clock)?));
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }
}

impl CertificateFiles {
    fn stamps(&self) -> FileStamps {
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()].map(|file| {
            let known = std::fs::metadata(file?).ok()?;
            Some((known.ino(), known.len(), known.modified().ok()))
        })
    }

    fn config(&self, clock: &Arc<dyn TimeProvider>) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let unusable = |reason: rustls::Error| TlsError::Unusable {
            file: self.certificate.clone(),
            reason: reason.to_string(),
        };
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::clone(clock));
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
        let builder = match self.client_auth {
            ClientAuth::None => builder.with_no_client_auth(),
            ClientAuth::Optional | ClientAuth::Required => {
                let file = self.client_ca.as_ref().ok_or(TlsError::NoAuthority)?;
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| no_certificates(file, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if self.client_auth == ClientAuth::Optional {
                    verifier.allow_unauthenticated()
                } else {
                    verifier
                };
                let verifier = verifier.build().map_err(|error| no_certificates(file, error))?;
                builder.with_client_cert_verifier(Arc::new(ExpiryRecordingVerifier(verifier)))
            }
        };
        let mut config =
            builder.with_single_cert(certificates(&self.certificate)?, key(&self.key)?).map_err(unusable)?;
        // The first of these that the client has too. Who needs HTTP/2 has nothing else, as gRPC; who has both is served
        // more of what there is over HTTP/1.1, at a tenth of the memory.
        config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        // Clients store their own session state for resumption: nothing here grows with them.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let sealed = ring::Ticketer::new().map_err(unusable)?;
        config.ticketer = Arc::new(ExpiringTickets { sealed, clock: Arc::clone(&config.time_provider) });
        config.send_tls13_tickets = 1;
        Ok(config)
    }
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let refused = |reason: String| TlsError::File {
        file: file.to_owned(),
        what: "holds no private key that can be used",
        reason,
    };
    is_short(file).map_err(refused)?;
    PrivateKeyDer::from_pem_file(file).map_err(|error| refused(error.to_string()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    is_short(file).map_err(|reason| no_certificates(file, reason))?;
    let failed = |error: rustls::pki_types::pem::Error| no_certificates(file, error);
    let found = CertificateDer::pem_file_iter(file).map_err(failed)?.take(MAX_CERTIFICATES);
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() { Err(no_certificates(file, "there is none in it")) } else { Ok(found) }
}

fn no_certificates(file: &Path, reason: impl ToString) -> TlsError {
    let what = "holds no certificates that can be used";
    TlsError::File { file: file.to_owned(), what, reason: reason.to_string() }
}

fn is_short(file: &Path) -> Result<(), String> {
    let known = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if known.len() > MAX_FILE_BYTES {
        Err(format!("it is longer than {MAX_FILE_BYTES} bytes"))
    } else {
        Ok(())
    }
}
