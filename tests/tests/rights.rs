//! The rights of a credential: its tenant, its actions over `_bulk`, and the resending of dead letters.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tidegate_tests::http::{Answer, request};
use tidegate_tests::{Finished, Gateway, SOON, command, finish, free_address, until};

/// Somebody to whom a sink sends: keeps what comes, and answers as it is told.
struct Peer {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

impl Peer {
    fn start() -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (status, seen) = (Arc::new(AtomicU16::new(200)), Arc::default());
        let peer = Peer { address, status: Arc::clone(&status), seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (status, seen) = (Arc::clone(&status), Arc::clone(&seen));
                std::thread::spawn(move || while serve(&stream, &status, &seen).is_some() {});
            }
        });
        peer
    }

    /// Heads and bodies, so far.
    fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, status: &AtomicU16, seen: &Mutex<Vec<(String, String)>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.to_ascii_lowercase().split_once("content-length:")?.1.lines().next()?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let status = status.load(Relaxed);
    if status == 200 {
        seen.lock().unwrap().push((head, String::from_utf8_lossy(&body).into_owned()));
    }
    const SAID: &str = "{\"errors\":false}";
    let mut stream = stream;
    stream
        .write_all(
            format!("HTTP/1.1 {status} As told\r\nContent-Length: {}\r\n\r\n{SAID}", SAID.len()).as_bytes(),
        )
        .ok()
}

/// Makes a secret with `tidegate token`: the secret, and the line about it.
fn token(arguments: &[&str]) -> (String, String) {
    let made = finish(command(&["token"]).args(arguments)).succeeded();
    let (secret, line) = made.trim_end().split_once('\n').unwrap();
    (format!("Authorization: Bearer {secret}"), line.to_owned())
}

fn write(gateway: &Gateway, name: &str, text: &str) -> PathBuf {
    let path = gateway.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const NDJSON: &str = "Content-Type: application/x-ndjson";

fn bulk(address: SocketAddr, path: &str, headers: &[&str], body: &str) -> (Answer, Vec<u64>) {
    let line = format!("POST {path} HTTP/1.1");
    let answer = request(address, &[&[&*line, NDJSON], headers].concat(), body.as_bytes()).unwrap();
    let said = answer.json();
    let items = said["items"].as_array().cloned().unwrap_or_default();
    let statuses =
        items.iter().map(|item| item.as_object().unwrap().values().next().unwrap()["status"].as_u64());
    let statuses = statuses.map(Option::unwrap).collect();
    (answer, statuses)
}

const MIXED: &str = "{\"create\":{\"_index\":\"shop-a\"}}\n{\"n\":1}\n\
                     {\"delete\":{\"_index\":\".security-7\",\"_id\":\"x\"}}\n\
                     {\"update\":{\"_index\":\"lab-a\",\"_id\":\"x\"}}\n{\"script\":{\"source\":\"ctx._source.a=1\"}}\n\
                     {\"index\":{\"_index\":\"lab-a\",\"_id\":\"x\"}}\n{\"n\":2}\n\
                     {\"index\":{\"_index\":\"\\u002esecurity-7\",\"_id\":\"x\"}}\n{\"n\":3}\n";

/// A sender has done with the sink's key what its credential allows, at every address, and the rest is answered item by
/// item and counted.
#[test]
fn bulk_actions_follow_the_rights_of_the_credential() {
    let (peer, alone) = (Peer::start(), free_address());
    let (plain, plain_line) = token(&["plain", "--tenant", "shop"]);
    let (strong, strong_line) = token(&[
        "strong",
        "--bulk",
        "update,delete,script,pipeline",
        "--indices",
        "lab-*,.security-7",
        "--tenant",
        "lab",
    ]);
    let mut gateway = Gateway::new(json!({}));
    let (http, grpc, admin) = (gateway.http(), gateway.grpc(), gateway.admin());
    let settings = |more: Value| {
        let mut settings = json!({
            "listen": { "http": http, "grpc": grpc, "admin": admin, "elasticsearch": alone },
            "memory": "64MiB",
            "sinks": { "out": {
                "type": "elasticsearch", "endpoints": [format!("http://{}", peer.address)], "compression": "none",
                "linger": "0ms", "ids": false,
            } },
        });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        settings
    };
    gateway.configure(settings(json!({ "access": { "credentials_file": "credentials" } })));
    write(&gateway, "credentials", &format!("{plain_line}\n{strong_line}\n"));
    gateway.start();
    for (address, prefix) in [(http, "/elasticsearch"), (alone, "")] {
        let path = format!("{prefix}/_bulk");
        let (answer, statuses) = bulk(address, &path, &[&plain], MIXED);
        assert_eq!((answer.status, statuses), (200, vec![201, 403, 403, 201, 403]), "{}", answer.text());
        let error = &answer.json()["items"][1]["delete"]["error"];
        assert_eq!(error["type"], "security_exception");
        assert!(error["reason"].as_str().unwrap().contains("`bulk=delete`"), "{error}");
        assert_eq!(bulk(address, &format!("{path}?pipeline=p"), &[&plain], MIXED).0.status, 403);
        let (_, statuses) = bulk(address, &format!("{path}?pipeline=p"), &[&strong], MIXED);
        assert_eq!(statuses, [403, 200, 200, 201, 201]);
    }
    gateway.at_rest(SOON);
    let got: String = peer.seen().into_iter().map(|(_, body)| body).collect();
    assert_eq!(got.matches("shop-a").count(), 2, "{got}");
    assert_eq!(got.matches("\"pipeline\":\"p\"").count(), 8, "{got}");
    assert_eq!(got.matches("ctx._source").count(), 2, "{got}");
    let refused = r#"tidegate_items_refused_total{source="elasticsearch",reason="forbidden"}"#;
    assert_eq!(gateway.metrics()[refused], 8.0);
    gateway.books_close();
    // Tenants' index patterns change without a restart.
    gateway.configure(settings(json!({
        "access": { "credentials_file": "credentials" },
        "tenants": { "indices": ["{tenant}-*"] },
    })));
    gateway.hangup();
    until(SOON, "the patterns to count", || {
        bulk(alone, "/_bulk", &[&plain], MIXED).1 == [201, 403, 403, 403, 403]
    });
    gateway.books_close();
    assert_eq!(gateway.term(), 0);

    // Without credentials: no more than that by default.
    gateway.configure(settings(json!({})));
    gateway.start();
    assert_eq!(bulk(alone, "/_bulk", &[], MIXED).1, [201, 403, 403, 201, 403]);
    gateway.configure(settings(json!({ "access": { "bulk": ["update", "script", "delete"] } })));
    gateway.hangup();
    until(SOON, "the actions to be allowed", || {
        bulk(alone, "/_bulk", &[], MIXED).1 == [201, 403, 200, 201, 403]
    });
    assert_eq!(bulk(alone, "/_bulk?pipeline=p", &[], MIXED).0.status, 403);
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

/// A credential speaks for its tenant, or for the default one, whatever a header says, over every protocol; a proxy's
/// for whom the header names.
#[test]
fn a_credential_speaks_for_its_tenant_only() {
    let (shop, shop_line) = token(&["shop", "--tenant", "shop"]);
    let (nobody, nobody_line) = token(&["nobody"]);
    let (proxy, proxy_line) = token(&["proxy", "--tenant", "*"]);
    let mut gateway = Gateway::new(json!({
        "memory": "64MiB",
        "access": { "credentials_file": "credentials" },
        "tenants": { "header": "X-Scope-OrgID", "default": "anybody" },
        "sinks": { "out": { "type": "blackhole" } },
    }));
    write(&gateway, "credentials", &format!("{shop_line}\n{nobody_line}\n{proxy_line}\n"));
    gateway.start();
    let http = gateway.http();
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}"#;
    let intake =
        "{\"metadata\":{\"service\":{\"name\":\"a\",\"agent\":{\"name\":\"java\",\"version\":\"1\"}}}}\n";
    let send = |path: &str, credential: &str, tenant: Option<&str>| {
        let (content_type, body) = match path {
            "/v1/logs" => ("application/json", logs),
            "/api/v1/write" => ("application/x-protobuf\r\nContent-Encoding: snappy", "\0"),
            "/intake/v2/events" => ("application/x-ndjson", intake),
            _ => ("application/x-ndjson", "{\"create\":{\"_index\":\"a\"}}\n{}\n"),
        };
        let tenant = tenant.map(|tenant| format!("X-Scope-OrgID: {tenant}"));
        let (line, content_type) = (format!("POST {path} HTTP/1.1"), format!("Content-Type: {content_type}"));
        let mut head = vec![&*line, &*content_type, credential];
        head.extend(tenant.as_deref());
        request(http, &head, body.as_bytes()).unwrap()
    };
    for path in ["/v1/logs", "/api/v1/write", "/intake/v2/events", "/elasticsearch/_bulk"] {
        for (credential, tenant) in [
            (&shop, None),
            (&shop, Some("shop")),
            (&nobody, None),
            (&nobody, Some("anybody")),
            (&proxy, Some("lab")),
        ] {
            let answer = send(path, credential, tenant);
            assert!((200..300).contains(&answer.status), "{path} {tenant:?}: {}", answer.text());
        }
        for (credential, tenant, words) in
            [(&shop, "lab", "tenant=*"), (&shop, "anybody", "tenant=*"), (&nobody, "lab", "tenant=NAME")]
        {
            let answer = send(path, credential, Some(tenant));
            assert_eq!(answer.status, 403, "{path} {tenant}: {}", answer.text());
            assert!(answer.text().contains(words), "{path}: {}", answer.text());
        }
    }
    let tenants = gateway.at_rest(SOON)["tenants"]["shown"].clone();
    let mut accepted: Vec<(String, u64)> = tenants
        .as_array()
        .unwrap()
        .iter()
        .map(|tenant| (tenant["name"].as_str().unwrap().to_owned(), tenant["accepted"].as_u64().unwrap()))
        .filter(|(_, accepted)| *accepted > 0)
        .collect();
    accepted.sort();
    assert_eq!(accepted, [("anybody".to_owned(), 8), ("lab".to_owned(), 4), ("shop".to_owned(), 8)]);
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

/// A letter goes out again under the tenant that it had, and only who is an admin sends it.
#[test]
fn dead_letters_keep_their_tenant_and_only_an_admin_resends_them() {
    let peer = Peer::start();
    let (shop, shop_line) = token(&["shop", "--tenant", "shop", "--bulk", "delete"]);
    let (proxy, proxy_line) = token(&["proxy", "--tenant", "*", "--bulk", "delete"]);
    let (operator, admin_line) = token(&["admin"]);
    let mut gateway = Gateway::new(json!({}));
    let (http, grpc, admin) = (gateway.http(), gateway.grpc(), gateway.admin());
    let (config, folder) = (gateway.config(), gateway.folder().to_owned());
    let settings = |access: Value| {
        json!({
            "listen": { "http": http, "grpc": grpc, "admin": admin },
            "memory": "64MiB",
            "access": access,
            "sinks": { "out": {
                "type": "elasticsearch", "endpoints": [format!("http://{}", peer.address)], "compression": "none",
                "linger": "0ms", "ids": false, "tenant_header": "X-Scope-OrgID",
            } },
        })
    };
    let both = json!({ "credentials_file": "credentials", "admin_credentials_file": "admins" });
    gateway.configure(settings(both));
    write(&gateway, "credentials", &format!("{shop_line}\n{proxy_line}\n"));
    write(&gateway, "admins", &admin_line);
    let secret = |header: &str| header.rsplit_once(' ').unwrap().1.to_owned();
    write(&gateway, "shop.token", &secret(&shop));
    write(&gateway, "proxy.token", &secret(&proxy));
    write(&gateway, "admin.token", &secret(&operator));
    gateway.start();
    peer.status.store(400, Relaxed);
    let body = "{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}\n{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n";
    let (answer, statuses) = bulk(http, "/elasticsearch/_bulk", &[&shop], body);
    assert_eq!((answer.status, statuses), (200, vec![201, 200]));
    let left = || {
        let mut list = command(&["journal", "dead-letters", "--config", config.to_str().unwrap()]);
        finish(list.current_dir(&folder)).succeeded().lines().count() - 1
    };
    until(SOON, "the letters", || left() == 2);
    peer.status.store(200, Relaxed);
    let resend = |token: Option<&str>| -> Finished {
        let mut command = command(&["journal", "resend", "--config", config.to_str().unwrap()]);
        if let Some(token) = token {
            command.args(["--token-file", token]);
        }
        finish(command.current_dir(&folder).env_remove("TIDEGATE_TOKEN"))
    };
    for token in [None, Some("shop.token"), Some("proxy.token")] {
        let refused = resend(token);
        assert_ne!(refused.code, Some(0), "{token:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("--token-file"), "{}", refused.stderr);
        assert_eq!(left(), 2);
    }
    resend(Some("admin.token")).succeeded();
    let items =
        || peer.seen().iter().map(|(_, body)| body.matches("\"_index\":\"a\"").count()).sum::<usize>();
    until(SOON, "the letters to arrive", || items() == 2);
    for (head, _) in peer.seen() {
        assert!(head.to_ascii_lowercase().contains("\r\nx-scope-orgid: shop\r\n"), "{head}");
    }
    assert_eq!(left(), 0);
    // The header is nothing without an admin's token, and an admin's token sends nothing else.
    let named = "Tidegate-Tenant: lab";
    for (headers, status) in [
        (vec![&*proxy, named], 401),
        (vec![named], 401),
        (vec![&*operator], 401),
        (vec![&*operator, "Tidegate-Tenant: ../up"], 400),
    ] {
        assert_eq!(bulk(http, "/elasticsearch/_bulk", &headers, body).0.status, status, "{headers:?}");
    }
    assert_eq!(gateway.term(), 0);
    // Where there is no admin's file, nobody is one.
    gateway.configure(settings(json!({ "credentials_file": "credentials" })));
    gateway.start();
    for headers in [vec![&*proxy, named], vec![&*operator, named]] {
        let (answer, _) = bulk(http, "/elasticsearch/_bulk", &headers, body);
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.text().contains("admin_credentials_file"), "{}", answer.text());
    }
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}
