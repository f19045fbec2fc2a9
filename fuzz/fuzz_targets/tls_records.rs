//! Any bytes where a handshake is expected come to an end, whether a client certificate is asked for or not, and leave no
//! memory charged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_tls::{CertificateFiles, ClientAuth, ServerIdentity, TlsAcceptor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

struct Server {
    runtime: Runtime,
    listener: TcpListener,
    arena: Arena,
    acceptor: TlsAcceptor,
}

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
}

fn server() -> Server {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listener");
    let arena = Arena::new(8 << 20, Floors::NONE, 1 << 20, 16, 16).expect("an arena");
    let keys = tempfile::tempdir().expect("a folder");
    let path = |name: &str| keys.path().join(name);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(path("cert.pem"), made.cert.pem()).expect("a file");
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).expect("a file");
    let files = CertificateFiles {
        certificate: path("cert.pem"),
        key: path("key.pem"),
        client_ca: Some(path("cert.pem")),
        client_auth: ClientAuth::Optional,
    };
    let identity = ServerIdentity::new(files).expect("the keys are there");
    let acceptor = TlsAcceptor::new(identity, arena.clone(), Share::Ingest, Duration::from_secs(5));
    Server { runtime, listener, arena, acceptor }
}

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the pieces are.
    let Some((size, bytes)) = input.split_first() else { return };
    SERVER.with(|known| {
        let Server { runtime, listener, arena, acceptor } = known.get_or_init(server);
        runtime.block_on(async {
            let address = listener.local_addr().expect("an address");
            let client = async {
                let mut client = TcpStream::connect(address).await.expect("a connection");
                for piece in bytes.chunks(usize::from(*size).max(1) * 8) {
                    if client.write_all(piece).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let _ended = client.shutdown().await;
                let mut answer = [0; 4096];
                while client.read(&mut answer).await.is_ok_and(|read| read > 0) {}
            };
            let server = async {
                let (socket, _) = listener.accept().await.expect("a connection");
                // Without the other side's keys nothing that is made up becomes a connection.
                assert!(acceptor.accept(socket).await.is_err());
            };
            tokio::join!(server, client);
        });
        assert!(arena.usage().shares.iter().all(|share| share.used == 0));
    });
});
