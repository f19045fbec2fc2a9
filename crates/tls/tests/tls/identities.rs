//! Promises: a new certificate is shown without a restart; one that cannot be used changes nothing; mistakes are
//! told with the file.

use crate::rig::{Rig, files, rig, write};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::sync::Arc;
use tidegate_tls::{ClientAuth, ServerIdentity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The certificate presented to a new client.
async fn shown(rig: &Rig) -> CertificateDer<'static> {
    let config = Arc::new(rig.client(None));
    let (server, client) = tokio::join!(rig.enter(), rig.connect(&config));
    let (_server, client) = (server.unwrap(), client.unwrap());
    client.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test]
async fn new_files_are_shown_and_open_connections_stay() {
    let rig = rig(ClientAuth::None).await;
    let files = files(&rig.dir, ClientAuth::None);
    let first = shown(&rig).await;
    let config = Arc::new(rig.client(None));
    let (old_server, old_client) = tokio::join!(rig.enter(), rig.connect(&config));
    let (mut old_server, mut old_client) = (old_server.unwrap(), old_client.unwrap());

    let signed = rig.authority.sign("server", "us");
    write(&files, &signed);
    let identity = rig.acceptor.identity();
    assert!(!identity.reload_if_changed().unwrap(), "they may still be being written");
    assert_eq!(shown(&rig).await, first);
    assert!(identity.reload_if_changed().unwrap());
    let second = shown(&rig).await;
    assert_ne!(second, first);
    assert_eq!(second, CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap());
    assert!(!identity.reload_if_changed().unwrap());

    old_client.write_all(b"still here").await.unwrap();
    let mut heard = [0; 10];
    AsyncReadExt::read_exact(&mut old_server, &mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");

    // The key of another certificate.
    std::fs::write(&files.key, rig.authority.sign("other", "us").key).unwrap();
    assert!(!identity.reload_if_changed().unwrap());
    assert!(identity.reload_if_changed().is_err());
    assert!(!identity.reload_if_changed().unwrap(), "it is told once");
    assert_eq!(shown(&rig).await, second);
    std::fs::write(&files.key, &signed.key).unwrap();
    identity.reload().unwrap();
    assert_eq!(shown(&rig).await, second);
}

#[test]
fn mistakes_name_their_file() {
    let dir = tempfile::tempdir().unwrap();
    let all = files(&dir, ClientAuth::Required);
    let told = || ServerIdentity::new(all.clone()).err().unwrap().to_string();
    assert!(told().contains("ca.pem"), "{}", told());
    let authority = crate::rig::Authority::new();
    std::fs::write(all.client_ca.as_ref().unwrap(), authority.pem()).unwrap();
    assert!(told().contains("cert.pem"), "{}", told());
    let (signed, other) = (authority.sign("a", "b"), authority.sign("a", "b"));
    write(&all, &signed);
    assert!(ServerIdentity::new(all.clone()).is_ok());
    std::fs::write(&all.key, "nothing").unwrap();
    assert!(told().contains("key.pem"), "{}", told());
    std::fs::write(&all.key, other.key).unwrap();
    assert!(told().contains("cert.pem"), "{}", told());
    std::fs::write(&all.key, &signed.key).unwrap();
    std::fs::write(&all.certificate, "-".repeat((1 << 20) + 1)).unwrap();
    assert!(told().contains("longer"), "{}", told());
    let none = tidegate_tls::CertificateFiles { client_ca: None, ..all };
    assert!(ServerIdentity::new(none).err().unwrap().to_string().contains("authority"));
}
