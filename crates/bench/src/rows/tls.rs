//! Resident memory of connections with TLS that have nothing to say.

use super::connections::{REQUEST, allow_files, settled};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "tls",
    what: "resident memory per idle connection with TLS 1.3, of 5,000 that have made a request each",
    measure,
};

const CONNECTIONS: usize = 5_000;
/// Opened and closed before anything is measured: what a process keeps that has worked is not the connections' doing.
const BEFORE: usize = 500;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    allow_files(CONNECTIONS as u64 + 256)?;
    let folder = Folder::new(bench)?;
    let (certificate, key) = self_signed(folder.path())?;
    let tls = format!("tls: {{ cert_file: {certificate:?}, key_file: {key:?} }}");
    let settings = format!(
        "memory: 128MiB\nlimits: {{ connections: {} }}\nsinks: {{ out: {{ type: blackhole }} }}",
        CONNECTIONS + 100
    );
    let subject = Subject::start_listening(&folder, &tls, &settings)?;
    let client = Arc::new(client(&certificate)?);
    let open = |count: usize| -> Result<Vec<TcpStream>, Failure> {
        let mut open = Vec::with_capacity(CONNECTIONS);
        for number in 1..=count {
            let stream = used_once(subject.address(), &client);
            let stream =
                stream.map_err(|Failure(error)| format!("opening connection {number} of {count}: {error}"));
            open.push(stream?);
        }
        Ok(open)
    };
    drop(open(BEFORE)?);
    let before = settled(&subject)?;
    let open = open(CONNECTIONS)?;
    let after = settled(&subject)?;
    Ok(vec![Figure {
        name: ROW.name,
        what: "resident memory per idle connection with TLS, KiB".to_owned(),
        bar: Bar::AtMost(10.0),
        measured: (after - before) / open.len() as f64 / 1024.0,
        details: vec![
            ("connections", open.len() as f64),
            ("MiB before", before / f64::from(1 << 20)),
            ("MiB with all", after / f64::from(1 << 20)),
        ],
    }])
}

/// A connection that has made a request. Of the client only the socket is kept: its secrets are not needed any more.
fn used_once(address: SocketAddr, client: &Arc<ClientConfig>) -> Result<TcpStream, Failure> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut connection = ClientConnection::new(Arc::clone(client), name)?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    stream.write_all(REQUEST)?;
    match stream.read(&mut [0; 1024])? {
        0 => Err("the gateway ended it".into()),
        _ => Ok(socket),
    }
}

/// Trusts this certificate, and does a whole handshake each time.
pub(super) fn client(certificate: &Path) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// A certificate and its key, made by `openssl`.
pub(super) fn self_signed(folder: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    const CONFIG: &str = "[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\nCN=bench\n\
                          [ext]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=IP:127.0.0.1\n";
    let (certificate, key, config) = (folder.join("cert.pem"), folder.join("key.pem"), folder.join("req"));
    std::fs::write(&config, CONFIG)?;
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-config"])
        .args([&config, Path::new("-keyout"), &key, Path::new("-out"), &certificate])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("making a certificate with `openssl`: {error}; install it"))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        return Err(Failure(format!("making a certificate with `openssl`: {said}")));
    }
    Ok((certificate, key))
}
