//! `listen.thanos_receive` among real programs: Prometheus writes to it as it writes to Thanos Receive, its metrics have Thanos'
//! names, and tenants are limited by their head series, which the same Prometheus is asked for.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Command;
use tidegate_tests::{Gateway, Prometheus, SOON, certificates, finish, free_address, http, until};

const METRICS: &str = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":
    [{"asDouble":1.5,"timeUnixNano":"1700000000000000000"}]}}]}]}]}"#;
/// The series of the gateway that Prometheus has, as those of the tenant that it sends for.
const QUERY: &str = r#"label_replace(count({job="gateway"}), "tenant", "team-a", "", "")"#;

struct Rig {
    gateway: Gateway,
    address: SocketAddr,
}

impl Rig {
    /// A gateway with these settings that is not started, and these of the address beside it.
    fn new(settings: Value, listener: &Value, tls: &Value) -> Rig {
        let rig = Rig { gateway: Gateway::new(json!({})), address: free_address() };
        rig.configure(settings, listener, tls);
        rig
    }

    fn configure(&self, mut settings: Value, listener: &Value, tls: &Value) {
        let gateway = &self.gateway;
        let mut own = json!({ "address": self.address, "thanos_metrics": true });
        own.as_object_mut().unwrap().extend(listener.as_object().unwrap().clone());
        settings["listen"] = json!({
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
            "thanos_receive": own, "tls": tls,
        });
        settings["memory"] = json!("64MiB");
        settings["sinks"] = json!({ "out": { "type": "blackhole" } });
        gateway.configure(settings);
    }

    fn metric(&self, series: &str) -> f64 {
        self.gateway.metrics().get(series).copied().unwrap_or(0.0)
    }

    /// The status of an OTLP request with this header.
    fn sent(&self, header: &str) -> u16 {
        let head = ["POST /api/v1/otlp HTTP/1.1", "Content-Type: application/json", header];
        http::request(self.address, &head, METRICS.as_bytes()).unwrap().status
    }
}

/// A Prometheus that scrapes the gateway and writes for the default tenant: Debian's sends no `headers`.
fn prometheus(rig: &Rig) -> Prometheus {
    let config = json!({
        "global": { "scrape_interval": "250ms", "scrape_timeout": "250ms" },
        "scrape_configs": [{ "job_name": "gateway", "static_configs": [{ "targets": [rig.gateway.admin()] }] }],
        "remote_write": [{
            "url": format!("http://{}/api/v1/receive", rig.address),
            "queue_config": { "batch_send_deadline": "100ms", "retry_on_http_429": true },
        }],
    });
    Prometheus::started(&config.to_string())
}

#[test]
fn prometheus_writes_and_is_limited_by_its_head_series() {
    let listener = json!({ "default_tenant": "team-a" });
    let mut rig = Rig::new(json!({}), &listener, &json!({}));
    rig.gateway.start();
    for path in ["/-/healthy", "/-/ready"] {
        let answer = http::get(rig.address, path).unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "OK"), "{path}");
    }
    let prometheus = prometheus(&rig);
    let written = r#"http_requests_total{code="200",handler="receive",method="post",tenant="team-a"}"#;
    until(SOON, "Prometheus to have written", || rig.metric(written) > 2.0);
    assert!(rig.metric(r#"thanos_receive_write_samples_sum{code="200",tenant="team-a"}"#) > 100.0);
    assert!(rig.metric(r#"thanos_receive_write_timeseries_sum{code="200",tenant="team-a"}"#) > 100.0);
    let duration =
        r#"http_request_duration_seconds_bucket{le="9.0",handler="receive",method="post",tenant="team-a"}"#;
    assert!(rig.metric(duration) > 2.0, "{:?}", rig.gateway.page("/metrics").text());

    assert_eq!(rig.sent("THANOS-TENANT: team-b"), 200);
    assert_eq!(rig.sent("X-Other: x"), 200);
    assert_eq!(rig.sent("THANOS-TENANT: a/b"), 400);
    for (code, tenant) in [("200", "team-b"), ("200", "team-a"), ("400", "other")] {
        let series =
            format!(r#"http_requests_total{{code="{code}",handler="otlp",method="post",tenant="{tenant}"}}"#);
        assert_eq!(rig.metric(&series) as u64, 1, "{series}");
    }

    let limited = |limit: u32| {
        let url = format!("http://{}", prometheus.address());
        json!({
            "limits": { "head_series": { "url": url, "query": QUERY, "interval": "1s" } },
            "tenants": { "head_series": 1_000_000, "overrides": { "team-a": { "head_series": limit } } },
        })
    };
    rig.configure(limited(10), &listener, &json!({}));
    rig.gateway.hangup();
    let refused = r#"thanos_receive_head_series_limited_requests_total{tenant="team-a"}"#;
    until(SOON, "Prometheus to be refused", || rig.metric(refused) > 0.0);
    assert_eq!(rig.sent("THANOS-TENANT: team-a"), 429);
    assert_eq!(rig.sent("THANOS-TENANT: team-b"), 200, "its number is not known");
    assert_eq!(rig.metric(r#"thanos_receive_head_series_limit{tenant="team-a"}"#) as u64, 10);
    assert!(rig.metric("tidegate_head_series_unknown_requests_total") > 0.0);
    assert_eq!(rig.metric("thanos_receive_limits_config_reload_total") as u64, 1);

    rig.configure(limited(0), &listener, &json!({}));
    rig.gateway.hangup();
    until(SOON, "the tenant to be let in", || rig.sent("THANOS-TENANT: team-a") == 200);
    let before = rig.metric(written);
    until(SOON, "Prometheus to go on", || rig.metric(written) > before);

    // Without an answer the last numbers hold, and the failures are counted by both names.
    rig.configure(limited(10), &listener, &json!({}));
    rig.gateway.hangup();
    until(SOON, "the tenant to be refused again", || rig.sent("THANOS-TENANT: team-a") == 429);
    drop(prometheus);
    until(SOON, "a query to fail", || rig.metric("thanos_receive_metamonitoring_failed_queries_total") > 0.0);
    assert!(rig.metric("tidegate_head_series_failed_queries_total") > 0.0);
    rig.gateway.books_close();
}

/// The tenant is that of the client's certificate, whatever a header says; a certificate without the field is 400.
#[test]
fn a_certificate_names_the_tenant() {
    let tls = json!({ "thanos_receive": {
        "cert_file": "server.pem", "key_file": "server.key", "client_ca_file": "ca.pem", "client_auth": "required",
    }});
    let mut rig = Rig::new(json!({}), &json!({ "tenant_certificate_field": "organization" }), &tls);
    let folder = rig.gateway.folder();
    certificates::authority(folder, "ca");
    certificates::sign(folder, "ca", "server", "/CN=localhost");
    certificates::sign(folder, "ca", "acme", "/O=acme/CN=client");
    certificates::sign(folder, "ca", "nobody", "/CN=client");
    rig.gateway.start();
    let sent = |client: &str| {
        let url = format!("https://{}/api/v1/otlp", rig.address);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", "-d", METRICS])
            .args(["-H", "Content-Type: application/json", "-H", "THANOS-TENANT: intruder"])
            .args([
                "--cacert",
                "ca.pem",
                "--cert",
                &format!("{client}.pem"),
                "--key",
                &format!("{client}.key"),
            ])
            .arg(url)
            .current_dir(rig.gateway.folder());
        finish(&mut curl).succeeded().trim().to_owned()
    };
    assert_eq!(sent("acme"), "200");
    assert_eq!(sent("nobody"), "400");
    let of = |tenant: &str, code: &str| {
        rig.metric(&format!(
            r#"http_requests_total{{code="{code}",handler="otlp",method="post",tenant="{tenant}"}}"#
        ))
    };
    assert_eq!(of("acme", "200") as u64, 1);
    assert_eq!(of("intruder", "200") as u64, 0);
}
