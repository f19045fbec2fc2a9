//! Per-address settings: certificate, default tenant, connection limit per peer; failed handshakes; tenant headers of
//! sinks; and browser agents, which have no secret.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};
use tidegate_tests::{Gateway, Recorder, SOON, command, finish, free_address, http, until};

const LOGS: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}"#;
const JSON: &str = "Content-Type: application/json";

/// A gateway that is not started, in whose folder `openssl` makes certificates.
struct Rig {
    gateway: Gateway,
}

impl Rig {
    /// With these settings, and these in `listen` beside the addresses.
    fn new(settings: Value, listen: Value) -> Rig {
        let gateway = Gateway::new(json!({}));
        let mut settings = settings;
        settings["listen"] =
            json!({ "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin() });
        for (key, value) in listen.as_object().unwrap() {
            settings["listen"][key] = value.clone();
        }
        settings["memory"] = json!("64MiB");
        if settings["sinks"].is_null() {
            settings["sinks"] = json!({ "out": { "type": "blackhole" } });
        }
        gateway.configure(settings);
        Rig { gateway }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.gateway.folder().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut openssl = Command::new("openssl");
        finish(openssl.args(arguments.split(' ')).current_dir(self.gateway.folder())).succeeded();
    }

    /// An authority of this name: `NAME.pem`, and its key.
    fn authority(&self, name: &str) {
        self.openssl(&format!("ecparam -genkey -name prime256v1 -noout -out {name}.key"));
        self.openssl(&format!("req -x509 -new -key {name}.key -subj /CN={name} -days 2 -out {name}.pem"));
    }

    /// A certificate that `authority` signs, for who is called `common` by all who look.
    fn sign(&self, authority: &str, name: &str, common: &str) {
        std::fs::write(self.path("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
        self.openssl(&format!("ecparam -genkey -name prime256v1 -noout -out {name}.key"));
        self.openssl(&format!("req -new -key {name}.key -subj /CN={common} -out {name}.csr"));
        let by = format!("-CA {authority}.pem -CAkey {authority}.key -CAcreateserial");
        self.openssl(&format!("x509 -req -in {name}.csr {by} -days 2 -extfile san -out {name}.new"));
        std::fs::rename(self.path(&format!("{name}.new")), self.path(&format!("{name}.pem"))).unwrap();
    }

    /// The status of a log record that is sent to `address` with these arguments of `curl`; nothing when there is none.
    fn sent(&self, address: SocketAddr, arguments: &[&str]) -> Option<u16> {
        let url = format!("https://{address}/v1/logs");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "-H", JSON, "-d", LOGS]);
        let said = finish(curl.args(arguments).arg(url).current_dir(self.gateway.folder()));
        said.stdout.trim().parse().ok().filter(|status| *status != 0)
    }

    /// The subject of the certificate presented at `address`.
    fn shown(&self, address: SocketAddr) -> String {
        let script =
            format!("echo | openssl s_client -connect {address} 2>/dev/null | openssl x509 -noout -subject");
        finish(Command::new("sh").args(["-c", &script])).stdout.trim().replace(' ', "")
    }

    fn failed(&self, reason: &str) -> f64 {
        let name = format!("tidegate_tls_handshakes_failed_total{{reason=\"{reason}\"}}");
        self.gateway.metrics().get(&name).copied().unwrap_or(f64::NAN)
    }
}

#[test]
fn each_address_shows_its_own_certificate_and_trusts_its_own_authority() {
    let apm = free_address();
    let tls = json!({
        "cert_file": "common.pem",
        "key_file": "common.key",
        "grpc": { "cert_file": "grpc.pem", "key_file": "grpc.key", "client_ca_file": "theirs.pem",
                  "client_auth": "required" },
    });
    let mut rig = Rig::new(json!({}), json!({ "apm": apm, "tls": tls }));
    rig.authority("ours");
    rig.authority("theirs");
    rig.sign("ours", "common", "common");
    rig.sign("ours", "grpc", "second");
    rig.sign("theirs", "agent", "agent");
    rig.sign("ours", "stranger", "stranger");
    rig.gateway.start();
    let (http, grpc) = (rig.gateway.http(), rig.gateway.grpc());
    assert_eq!(rig.shown(http), "subject=CN=common");
    assert_eq!(rig.shown(apm), "subject=CN=common");
    assert_eq!(rig.shown(grpc), "subject=CN=second");
    let trusting = ["--cacert", "ours.pem"];
    let showing = |name: &'static str| {
        let files = [format!("{name}.pem"), format!("{name}.key")];
        let [certificate, key] = files;
        [
            "--cacert".to_owned(),
            "ours.pem".to_owned(),
            "--cert".to_owned(),
            certificate,
            "--key".to_owned(),
            key,
        ]
    };
    let with = |address, name| {
        let arguments = showing(name);
        rig.sent(address, &arguments.each_ref().map(String::as_str))
    };
    assert_eq!(rig.sent(http, &trusting), Some(200));
    assert_eq!(rig.sent(apm, &trusting), Some(200));
    assert_eq!(rig.sent(grpc, &trusting), None, "a certificate is required here");
    assert_eq!(with(grpc, "agent"), Some(200));
    assert_eq!(with(grpc, "stranger"), None);
    // One is replaced without a restart, and the other stays.
    rig.sign("ours", "grpc", "third");
    until(SOON, "the new certificate to be shown", || rig.shown(grpc) == "subject=CN=third");
    assert_eq!(rig.shown(http), "subject=CN=common");
    assert_eq!(with(grpc, "agent"), Some(200));
    rig.gateway.books_close();
    assert_eq!(rig.gateway.term(), 0);
}

#[test]
fn failed_handshakes_are_counted_by_reason_and_logged_with_advice() {
    let tls = json!({ "cert_file": "common.pem", "key_file": "common.key", "client_ca_file": "ours.pem",
                      "client_auth": "required" });
    let mut rig = Rig::new(json!({}), json!({ "tls": tls }));
    rig.authority("ours");
    rig.authority("theirs");
    rig.sign("ours", "common", "common");
    rig.sign("theirs", "stranger", "stranger");
    rig.gateway.start();
    let http = rig.gateway.http();
    for _ in 0..3 {
        assert_eq!(rig.sent(http, &["--cacert", "ours.pem"]), None);
    }
    let stranger = ["--cacert", "ours.pem", "--cert", "stranger.pem", "--key", "stranger.key"];
    assert_eq!(rig.sent(http, &stranger), None);
    assert_eq!(rig.sent(http, &["--cacert", "theirs.pem"]), None, "the client does not trust the gateway");
    assert_eq!(http::get(http, "/").unwrap().status, 400);
    drop(TcpStream::connect(http).unwrap());
    let expected = [
        ("no_certificate", 3.0),
        ("unknown_authority", 1.0),
        ("alert", 1.0),
        ("not_tls", 1.0),
        ("closed", 1.0),
    ];
    for (reason, count) in expected {
        until(SOON, reason, || rig.failed(reason) == count);
    }
    for reason in ["bad_certificate", "incompatible", "protocol", "timeout", "no_room"] {
        assert_eq!(rig.failed(reason), 0.0, "{reason}: all are there from the start");
    }
    let failed = rig.gateway.status()["handshakes"]["failed"].clone();
    assert_eq!(failed[0]["reason"], "no_certificate");
    assert_eq!(failed[0]["count"], 3);
    let log = rig.gateway.log();
    assert!(log.contains("the client shows no certificate: give it one"), "{log}");
    assert!(log.contains("an authority that `client_ca_file` does not have"), "{log}");
    assert_eq!(rig.gateway.term(), 0);
}

/// A request of remote write with `series` of its own, for this tenant, if any.
fn written(address: SocketAddr, series: usize, tenant: Option<&str>) -> u16 {
    const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };
    let model = SeriesModel::new(7, 100, TIMELINE);
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.range(series..series + 1), 0, 5).encode(Version::V1, &mut raw);
    compress(&raw, &mut body);
    let tenant = tenant.map(|tenant| format!("X-Scope-OrgID: {tenant}"));
    let mut head = vec![
        "POST /api/v1/write HTTP/1.1",
        "Content-Type: application/x-protobuf",
        "Content-Encoding: snappy",
        "X-Prometheus-Remote-Write-Version: 0.1.0",
    ];
    head.extend(tenant.as_deref());
    http::request(address, &head, &body).unwrap().status
}

/// Data without a tenant belongs to its address's default tenant, and is forwarded under that name, never in one
/// request with another's.
#[test]
fn the_tenant_of_an_address_goes_on_with_its_data_to_the_receiver() {
    let (recorder, apm) = (Recorder::start(), free_address());
    let sink = json!({
        "type": "prometheus_remote_write", "url": recorder.url(), "tenant_header": "X-Scope-OrgID",
        "linger": "200ms",
    });
    let tenants = json!({ "header": "X-Scope-OrgID", "default": "anybody", "default_at": { "grpc": "shop", "apm": "lab" } });
    let mut rig = Rig::new(json!({ "tenants": tenants, "sinks": { "up": sink } }), json!({ "apm": apm }));
    rig.gateway.start();
    let (http, grpc) = (rig.gateway.http(), rig.gateway.grpc());
    let mut sent = BTreeMap::new();
    for round in 0..25 {
        let all =
            [(http, None, "anybody"), (grpc, None, "shop"), (apm, None, "lab"), (grpc, Some("own"), "own")];
        for (at, (address, said, tenant)) in all.into_iter().enumerate() {
            assert_eq!(written(address, 4 * (round % 5) + at, said), 204);
            *sent.entry(tenant.to_owned()).or_insert(0_u64) += 5;
        }
    }
    assert_eq!(written(http, 0, Some("../up")), 400);
    rig.gateway.at_rest(SOON);
    let mut came: BTreeMap<String, u64> = BTreeMap::new();
    for request in recorder.seen() {
        let tenant = request.header("x-scope-orgid").unwrap().to_owned();
        let mut samples = 0;
        let totals =
            tidegate_load::remote_write::decode(Version::V1, &request.body, 1 << 20, &mut |_| samples += 1);
        totals.unwrap();
        *came.entry(tenant).or_default() += samples;
    }
    assert_eq!(came, sent);
    rig.gateway.books_close();
    assert_eq!(rig.gateway.term(), 0);
}

const PAGE: &str = r#"{"metadata":{"service":{"name":"page","agent":{"name":"AGENT","version":"5.0"}}}}
{"transaction":{"id":"0123456789abcdef","trace_id":"0123456789abcdef0123456789abcdef","type":"page-load","duration":1,"span_count":{"started":0}}}
"#;

/// Where others need credentials, pages in browsers do not; but only those, within their limits, and for the default
/// tenant.
#[test]
fn only_browsers_are_accepted_without_credentials() {
    let made = finish(command(&["token"]).args(["agents", "--tenant", "*"])).succeeded();
    let (secret, line) = made.trim_end().split_once('\n').unwrap();
    let rum = json!({ "enabled": true, "events_per_second": 20 });
    let settings = json!({
        "access": { "credentials_file": "credentials" },
        "sources": { "elastic_apm": { "rum": rum } },
        "tenants": { "header": "X-Scope-OrgID", "default_at": { "http": "pages" } },
    });
    let mut rig = Rig::new(settings, json!({}));
    std::fs::write(rig.path("credentials"), line).unwrap();
    rig.gateway.start();
    let http = rig.gateway.http();
    let send = |address, path: &str, agent: &str, more: &[&str]| {
        let line = format!("POST {path} HTTP/1.1");
        let head = [&[&*line, "Content-Type: application/x-ndjson"], more].concat();
        http::request(address, &head, PAGE.replace("AGENT", agent).as_bytes()).unwrap().status
    };
    const RUM: &str = "/intake/v2/rum/events";
    let preflight = ["OPTIONS /intake/v2/rum/events HTTP/1.1", "Origin: https://shop.example"];
    assert_eq!(http::request(http, &preflight, b"").unwrap().status, 200);
    assert_eq!(send(http, RUM, "rum-js", &[]), 202);
    assert_eq!(send(http, RUM, "rum-js", &["X-Scope-OrgID: shop"]), 202, "what it says does not count");
    assert_eq!(send(http, RUM, "java", &[]), 403);
    assert_eq!(send(http, RUM, "rum-js", &["Authorization: Bearer guessed"]), 401);
    assert_eq!(send(http, "/intake/v2/events", "rum-js", &[]), 401);
    let bearer = format!("Authorization: Bearer {secret}");
    assert_eq!(send(http, RUM, "java", &[&bearer, "X-Scope-OrgID: shop"]), 202);
    assert_eq!(send(rig.gateway.grpc(), RUM, "rum-js", &[]), 400, "there is no default tenant here");
    // A limit that takes a minute to recover; and a fast client is not treated as a password guesser.
    let (metadata, event) = PAGE.trim_end().split_once('\n').unwrap();
    let many = format!("{metadata}\n{}", format!("{event}\n").repeat(1200)).replace("AGENT", "rum-js");
    let head = [&*format!("POST {RUM} HTTP/1.1"), "Content-Type: application/x-ndjson"];
    assert_eq!(http::request(http, &head, many.as_bytes()).unwrap().status, 202);
    let answers = [(); 20].map(|()| send(http, RUM, "rum-js", &[]));
    assert_eq!(answers, [429; 20]);
    let tenants = rig.gateway.status()["tenants"]["shown"].clone();
    let accepted = |name: &str| {
        let tenant = tenants.as_array().unwrap().iter().find(|tenant| tenant["name"] == name);
        tenant.unwrap()["accepted"].as_u64().unwrap()
    };
    // The question what may be sent, two events alone, and many.
    assert_eq!((accepted("pages"), accepted("shop")), (4, 1));
    rig.gateway.books_close();
    assert_eq!(rig.gateway.term(), 0);
}

/// A connection from 127.0.0.`host`.
fn connect(from: u8, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).unwrap();
    connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// A limit per address does not affect other addresses; and a refused client gets an answer in its protocol.
#[test]
fn connections_beyond_the_limit_of_an_address_are_answered() {
    let mut rig = Rig::new(json!({ "limits": { "connections_per_peer": 2 } }), json!({}));
    rig.gateway.start();
    let http = rig.gateway.http();
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut said = [0; 4096];
        let read = stream.read(&mut said).unwrap();
        String::from_utf8_lossy(&said[..read]).into_owned()
    };
    let mut open = [connect(2, http), connect(2, http)];
    for stream in &mut open {
        assert!(ask(stream).starts_with("HTTP/1.1 404 "));
    }
    for _ in 0..5 {
        let told = ask(&mut connect(2, http)).to_ascii_lowercase();
        assert!(told.starts_with("http/1.1 503 "), "{told}");
        assert!(told.contains("retry-after: ") && told.contains("connection: close"), "{told}");
    }
    assert!(ask(&mut connect(3, http)).starts_with("HTTP/1.1 404 "));
    drop(open);
    until(SOON, "room for the address again", || {
        let mut two = [connect(2, http), connect(2, http)];
        two.each_mut().map(ask).iter().all(|said| said.starts_with("HTTP/1.1 404 "))
    });
    rig.gateway.books_close();
    assert_eq!(rig.gateway.term(), 0);
}
