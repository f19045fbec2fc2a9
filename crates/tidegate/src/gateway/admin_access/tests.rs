//! Promises: no page of another site is answered, by whatever name it comes and whatever it makes a browser send; who
//! types the address, follows a link, or is no browser, is.

#![allow(clippy::large_futures, reason = "tests")]

use super::*;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{Admitted, Body, Refusal, RefusalContext, Server, Service, Settings, Shutdown};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers what [`AdminAccess`] say.
struct Asked(Mutex<AdminAccess>);

impl Service for Asked {
    type RequestState = ();

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<()>, Reply> {
        self.0.lock().unwrap().check(head)?;
        Ok(Admitted { max_body: 0, ticket: () })
    }

    async fn answer(&self, (): (), _: Body) -> Reply {
        Reply::new(200)
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, ()>) -> Reply {
        refusal.reply()
    }
}

struct Rig {
    server: Arc<Server<Asked>>,
    listener: TcpListener,
}

async fn rig(admin: &str, hosts: &[&str]) -> Rig {
    let listen = Listen {
        admin: admin.parse().unwrap(),
        admin_hosts: Some(hosts.iter().map(|host| host.parse().ok().unwrap()).collect()),
        ..Listen::default()
    };
    let arena = Arena::new(1 << 20, Floors::NONE, 1 << 16, 8, 8).unwrap();
    let asked = Asked(Mutex::new(AdminAccess::of(&listen)));
    let server = Server::new(asked, Settings::default(), arena, Shutdown::new());
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    Rig { server, listener }
}

impl Rig {
    /// The status of the answer to a request that consists of these lines.
    async fn ask(&self, lines: &[&str]) -> u16 {
        let address = self.listener.local_addr().unwrap();
        let client = async {
            let mut client = TcpStream::connect(address).await.unwrap();
            let request = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>() + "\r\n";
            client.write_all(request.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            while client.read_buf(&mut answer).await.unwrap() > 0 {}
            let answer = String::from_utf8(answer).unwrap();
            answer.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap()
        };
        let server = async {
            let (stream, peer) = self.listener.accept().await.unwrap();
            self.server.serve(stream, peer).await
        };
        let both = async { tokio::join!(server, client).1 };
        tokio::time::timeout(Duration::from_secs(60), both).await.unwrap()
    }

    /// That of one for `/status` by this name.
    async fn ask_as(&self, host: &str) -> u16 {
        self.ask(&["GET /status HTTP/1.1", &format!("Host: {host}")]).await
    }
}

#[tokio::test]
async fn names_that_are_not_the_gateways_are_not_answered() {
    let rig = rig("127.0.0.1:4319", &["Tidegate.internal", "10.1.2.3"]).await;
    let ours = [
        "localhost",
        "localhost:4319",
        "LocalHost:80",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:4319",
        "127.9.9.9:1",
        "[::1]",
        "[::1]:4319",
        "[::ffff:127.0.0.1]:4319",
        "tidegate.INTERNAL:9",
        "tidegate.internal.",
        "10.1.2.3:4319",
    ];
    for host in ours {
        assert_eq!(rig.ask_as(host).await, 200, "{host}");
    }
    let others = [
        "evil.example",
        "evil.example:4319",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "notlocalhost",
        "192.0.2.1",
        "0.0.0.0",
        "[2001:db8::1]:4319",
        "127.1",
        "2130706433",
        "tidegate",
        "x.tidegate.internal",
    ];
    for host in others {
        assert_eq!(rig.ask_as(host).await, 421, "{host}");
    }
    assert_eq!(rig.ask(&["GET http://evil.example/status HTTP/1.1", "Host: localhost"]).await, 421);
    assert_eq!(rig.ask(&["GET /health HTTP/1.1", "Host: evil.example"]).await, 421);
    assert_eq!(rig.ask(&["GET /status HTTP/1.1"]).await, 400, "a name has to be said");
    assert_eq!(rig.ask_as("").await, 400);
    assert_eq!(rig.ask(&["GET /health HTTP/1.0"]).await, 200, "a probe of a load balancer, and no browser");
    assert_eq!(rig.ask(&["GET /health HTTP/1.0", "Host: evil.example"]).await, 421);
}

#[tokio::test]
async fn a_wildcard_listener_answers_any_address_and_no_foreign_name() {
    let one = rig("192.0.2.7:4319", &[]).await;
    assert_eq!((one.ask_as("192.0.2.7:4319").await, one.ask_as("192.0.2.8:4319").await), (200, 421));
    for everywhere in ["0.0.0.0:4319", "[::]:4319"] {
        let rig = rig(everywhere, &[]).await;
        for host in ["192.0.2.1:4319", "[2001:db8::1]", "localhost"] {
            assert_eq!(rig.ask_as(host).await, 200, "{host}");
        }
        assert_eq!(rig.ask_as("evil.example").await, 421);
    }
}

#[tokio::test]
async fn pages_of_other_sites_are_not_answered() {
    let rig = rig("127.0.0.1:4319", &[]).await;
    let foreign = [
        &["Sec-Fetch-Site: cross-site"][..],
        &["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
        &["Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: "],
        &["Origin: https://evil.example"],
        &["Origin: null"],
        &["Origin: http://localhost:4320"],
        &["Origin: http://localhost:4319", "Origin: https://evil.example"],
        &["Origin: https://evil.example", "Sec-Fetch-Site: none"],
    ];
    for headers in foreign {
        let request = [&["GET /status HTTP/1.1", "Host: localhost:4319"], headers].concat();
        assert_eq!(rig.ask(&request).await, 403, "{headers:?}");
    }
    let near = [
        &[][..],
        &["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
        &["Sec-Fetch-Site: same-origin"],
        &["Origin: http://localhost:4319"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    ];
    for headers in near {
        let request = [&["GET /status HTTP/1.1", "Host: localhost:4319"], headers].concat();
        assert_eq!(rig.ask(&request).await, 200, "{headers:?}");
    }
    // A form, as pages of other sites can send it.
    let form = [
        "POST /pipelines?take=logs HTTP/1.1",
        "Host: localhost:4319",
        "Content-Type: multipart/form-data; boundary=x",
    ];
    for headers in [
        &["Origin: https://evil.example"][..],
        &["Origin: null"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
        &[
            "Origin: http://localhost:4320",
            "Sec-Fetch-Site: same-site",
            "Sec-Fetch-Mode: navigate",
            "Sec-Fetch-Dest: document",
        ],
    ] {
        assert_eq!(rig.ask(&[&form, headers].concat()).await, 403, "{headers:?}");
    }
    let own = [
        "Origin: http://localhost:4319",
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Dest: document",
    ];
    assert_eq!(rig.ask(&[&form[..], &own].concat()).await, 200);
    let link = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    for request in
        ["GET /tap?wait=60s HTTP/1.1", "DELETE /tap?id=x HTTP/1.1", "DELETE /journal/cursors/a HTTP/1.1"]
    {
        let request = [&[request, "Host: localhost:4319"], &link[..]].concat();
        assert_eq!(rig.ask(&request).await, 403, "a link begins and ends nothing: {request:?}");
    }
}
