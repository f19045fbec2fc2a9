//! Promise: at the address of Thanos Receive, a sender gets the answers that it gets from Thanos, and its tenant by Thanos' rules.
//!
//! The expected values are those of `pkg/receive/handler.go` and `pkg/tenancy/tenancy.go` of Thanos 0.42.

use crate::rig::{MAX_BODY, Rig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_admission::GateRules;
use tidegate_admission::tenancy::Tenancy;
use tidegate_ledger::Refusal;
use tidegate_limit::{AdmissionTable, TenantLimits, Tenants};
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};
use tidegate_sources::{Readiness, ThanosReceive};

fn rig(tenant_header: &str) -> Rig {
    rig_with(tenant_header, Readiness::default())
}

fn rig_with(tenant_header: &str, readiness: Readiness) -> Rig {
    let rig = Rig::with_rules(1 << 30, |ledger| {
        let tenants = Tenants::new(8, TenantLimits::default(), ledger.clone());
        let limits = Arc::new(AdmissionTable::new(Vec::new(), Some(tenants)));
        GateRules { tenancy: Some(Tenancy::default()), limits: Some(limits), ..GateRules::default() }
    });
    let tenancy = Tenancy {
        header: Some(tenant_header.into()),
        second_header: Some("thanos-tenant".into()),
        default: Some("default-tenant".into()),
        required: true,
        ..Tenancy::default()
    };
    let settings = ThanosReceive { replica_header: "thanos-replica".into(), meters: None, readiness };
    rig.with_thanos_receive(&settings, tenancy)
}

fn body(version: Version, series: usize) -> Vec<u8> {
    let model = SeriesModel::new(1, series, Timeline { base_ms: 1, interval_ms: 1 });
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.series(), 0, 1).encode(version, &mut raw);
    compress(&raw, &mut body);
    body
}

fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    compress(raw, &mut body);
    body
}

const POST: &str = "POST /api/v1/receive HTTP/1.1\r\n";
const V1: &str = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                  X-Prometheus-Remote-Write-Version: 0.1.0\r\n";
const V2: &str = "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n\
                  Content-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 2.0.0\r\n";

/// Headers, the tenant of the record, or 400.
#[tokio::test]
async fn tenants_are_found_as_thanos_finds_them() {
    let table: [(&str, Option<&str>); 11] = [
        ("", Some("default-tenant")),
        ("X-Tenant: a\r\n", Some("a")),
        ("x-tenant: a\r\nTHANOS-TENANT: b\r\n", Some("a")),
        ("THANOS-TENANT: b\r\n", Some("b")),
        ("X-Tenant: \r\nTHANOS-TENANT: b\r\n", Some("b")),
        ("X-Tenant: \r\n", Some("default-tenant")),
        ("X-Tenant: a\r\nTHANOS-TENANT: \r\n", Some("a")),
        ("X-Tenant: a/b\r\n", None),
        ("X-Tenant: /\r\n", None),
        ("THANOS-TENANT: ../../etc\r\n", None),
        ("X-Tenant: a\r\nX-Tenant: b\r\n", None),
    ];
    for (headers, expected) in table {
        let rig = rig("x-tenant");
        let mut follower = rig.follow();
        let answer = rig.send(&format!("{POST}{V1}{headers}"), &body(Version::V1, 3)).await;
        match expected {
            Some(tenant) => {
                assert_eq!((answer.status, answer.body()), (200, ""), "{headers}: {}", answer.text);
                assert_eq!(rig.journaled(&mut follower).await.0.tenant.as_str(), tenant, "{headers}");
            }
            None => {
                assert_eq!(answer.status, 400, "{headers}: {}", answer.text);
                rig.assert_refused(Refusal::Tenant, headers);
            }
        }
    }
}

/// Name, head and body of a request; the status of its answer, and the samples that are written by it.
type Row = (&'static str, String, Vec<u8>, u16, Option<&'static str>);

#[tokio::test]
async fn answers_are_those_of_thanos() {
    let (v1, v2) = (body(Version::V1, 3), body(Version::V2, 3));
    let too_large = compressed(&vec![0; MAX_BODY + 1]);
    let head = |method: &str, headers: &str| format!("{method} /api/v1/receive HTTP/1.1\r\n{headers}");
    let table: Vec<Row> = vec![
        ("1.0", head("POST", V1), v1.clone(), 200, Some("3")),
        ("1.0 without headers", head("POST", ""), v1.clone(), 200, Some("3")),
        ("2.0", head("POST", V2), v2.clone(), 200, Some("3")),
        ("no series", head("POST", V1), compressed(b""), 200, Some("0")),
        ("replica 1", head("POST", &format!("{V1}THANOS-REPLICA: 1\r\n")), v1.clone(), 200, Some("3")),
        ("replica 99", head("POST", &format!("{V1}THANOS-REPLICA: 99\r\n")), v1.clone(), 200, Some("3")),
        ("replica empty", head("POST", &format!("{V1}THANOS-REPLICA: \r\n")), v1.clone(), 200, Some("3")),
        ("replica x", head("POST", &format!("{V1}THANOS-REPLICA: x\r\n")), v1.clone(), 400, Some("0")),
        ("replica -1", head("POST", &format!("{V1}THANOS-REPLICA: -1\r\n")), v1.clone(), 400, Some("0")),
        ("replica +1", head("POST", &format!("{V1}THANOS-REPLICA: +1\r\n")), v1.clone(), 400, Some("0")),
        ("not Snappy", head("POST", V1), b"\xff\xff\xff\xff\xff\xff".to_vec(), 400, Some("0")),
        ("not protobuf", head("POST", V1), compressed(b"\x0a\xff"), 400, Some("0")),
        ("too large", head("POST", V1), too_large, 413, Some("0")),
        // Thanos has no answer of its own for these.
        ("gzip", head("POST", "Content-Encoding: gzip\r\n"), v1.clone(), 415, Some("0")),
        ("JSON", head("POST", "Content-Type: application/json\r\n"), v1.clone(), 415, Some("0")),
        ("GET", head("GET", ""), Vec::new(), 405, Some("0")),
        ("other path", "POST /api/v1/write HTTP/1.1\r\n".to_owned(), v1, 404, None),
        ("TSDB", "GET /api/v1/status/tsdb HTTP/1.1\r\n".to_owned(), Vec::new(), 404, None),
    ];
    for (case, head, body, status, written) in table {
        let rig = rig("thanos-tenant");
        let answer = rig.send(&head, &body).await;
        assert_eq!(answer.status, status, "{case}: {}", answer.text);
        assert_eq!(answer.header("X-Prometheus-Remote-Write-Samples-Written"), written, "{case}");
        assert_eq!(answer.body().is_empty(), status == 200, "{case}: {}", answer.text);
        let books = rig.books();
        assert_eq!(books.accepted, u64::from(status == 200), "{case}");
    }
}

/// OTLP metrics come in at both paths, with their tenant; other signals have no path here.
#[tokio::test]
async fn otlp_has_the_path_of_thanos() {
    let metrics = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":
        [{"asDouble":1.5,"timeUnixNano":"1700000000000000000"}]}}]}]}]}"#;
    let rig = rig("thanos-tenant");
    let mut follower = rig.follow();
    for path in ["/api/v1/otlp", "/api/v1/otlp/v1/metrics"] {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nTHANOS-TENANT: a\r\n");
        let answer = rig.send(&head, metrics.as_bytes()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let (meta, _) = rig.journaled(&mut follower).await;
        assert_eq!((meta.tenant.as_str(), meta.items), ("a", 1));
    }
    let broken = rig.send("POST /api/v1/otlp HTTP/1.1\r\nContent-Type: application/json\r\n", b"{").await;
    assert_eq!(broken.status, 400, "{}", broken.text);
    for path in ["/v1/metrics", "/v1/logs", "/api/v1/otlp/v1/logs"] {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n");
        assert_eq!(rig.send(&head, b"{}").await.status, 404, "{path}");
    }
}

/// Without hashrings a router of Thanos is not ready, and its senders get 503, which they retry.
#[tokio::test]
async fn without_hashrings_nothing_is_accepted() {
    let has_hashrings = Arc::new(AtomicBool::new(false));
    let readiness = Arc::clone(&has_hashrings);
    let rig = rig_with("thanos-tenant", Readiness::new(move || readiness.load(Relaxed)));
    let ready = async || rig.send("GET /-/ready HTTP/1.1\r\n", b"").await.status;
    assert_eq!(ready().await, 503);
    assert_eq!(rig.send("GET /-/healthy HTTP/1.1\r\n", b"").await.status, 200);
    let refused = rig.send(&format!("{POST}{V1}"), &body(Version::V1, 3)).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(
        refused.header("retry-after").is_some() && refused.body().contains("hashrings"),
        "{}",
        refused.text
    );
    has_hashrings.store(true, Relaxed);
    assert_eq!(ready().await, 200);
    assert_eq!(rig.send(&format!("{POST}{V1}"), &body(Version::V1, 3)).await.status, 200);
}

/// Probes need neither tenant nor credentials, and readiness ends with the gate.
#[tokio::test]
async fn probes_are_answered() {
    let rig = rig("thanos-tenant");
    let get = async |path: &str| {
        let answer = rig.send(&format!("GET {path} HTTP/1.1\r\nTHANOS-TENANT: a/b\r\n"), b"").await;
        (answer.status, answer.body().to_owned())
    };
    assert_eq!(get("/-/healthy").await, (200, "OK".to_owned()));
    assert_eq!(get("/-/ready").await, (200, "OK".to_owned()));
    rig.gate.stop();
    assert_eq!(get("/-/healthy").await, (200, "OK".to_owned()));
    assert_eq!(get("/-/ready").await, (503, "NOT OK\n".to_owned()));
    let answer = rig.send(&format!("{POST}{V1}"), &body(Version::V1, 3)).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(rig.books_of("http").received, 0, "probes carry nothing for the books");
}
