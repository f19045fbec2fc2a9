//! Promises: a tenant's name comes in with its data and goes on with it; what is beyond a limit is answered with the time
//! to return, whatever way its length came; and nothing of a limit is held when nobody is there any more.

use crate::rig::{Answer, Rig};
use std::sync::Arc;
use tidegate_admission::GateRules;
use tidegate_admission::tenancy::Tenancy;
use tidegate_ledger::Refusal;
use tidegate_limit::{AdmissionTable, LimiterSettings, Moment, PerSecond, TenantLimits, Tenants};
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};

/// A rig with these limits of remote write, and tenants that `X-Scope-OrgID` names.
fn limited(limits: LimiterSettings) -> Rig {
    Rig::with_rules(1 << 30, |ledger| {
        let books = ledger.source("prometheus_remote_write").unwrap();
        let tenants = Tenants::new(2, TenantLimits::default(), ledger.clone());
        let tenancy = Tenancy { header: Some("X-Scope-OrgID".into()), required: true, ..Tenancy::default() };
        let limits = Arc::new(AdmissionTable::new(vec![(books, limits)], Some(tenants)));
        GateRules { tenancy: Some(tenancy), limits: Some(limits), ..GateRules::default() }
    })
}

fn body(series: usize) -> Vec<u8> {
    let model = SeriesModel::new(1, series, Timeline { base_ms: 1, interval_ms: 1 });
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
    compress(&raw, &mut body);
    body
}

const HEAD: &str =
    "POST /api/v1/write HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n";

async fn send(rig: &Rig, tenant: &str, body: &[u8]) -> Answer {
    rig.send(&format!("{HEAD}{tenant}"), body).await
}

fn nothing_is_held(rig: &Rig) {
    let table = rig.gate.rules().limits.clone().unwrap();
    for account in table.tenants().unwrap().accounts() {
        let limiter = account.limiter();
        let used = (account.held(), limiter.concurrency(), limiter.in_flight());
        assert_eq!((used, account.page().book().difference()), ((0, 0, 0), 0), "{:?}", account.page());
    }
}

#[tokio::test]
async fn the_tenant_is_in_the_journal() {
    let rig = limited(LimiterSettings::default());
    let mut follower = rig.follow();
    let body = body(10);
    for tenant in ["team-1", "team-2", "team-3"] {
        let answer = send(&rig, &format!("x-scope-orgid: {tenant}\r\n"), &body).await;
        assert_eq!(answer.status, 204, "{}", answer.text);
        let (meta, written) = rig.journaled(&mut follower).await;
        assert_eq!((meta.tenant.as_str(), written.as_slice()), (tenant, body.as_slice()));
    }
    for wrong in ["", "X-Scope-OrgID: ..\r\n", "X-Scope-OrgID: a\r\nX-Scope-OrgID: b\r\n"] {
        let answer = send(&rig, wrong, &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.header("retry-after").is_none(), "no time mends that");
    }
    nothing_is_held(&rig);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (3, vec![(Refusal::Tenant, 3)]));
}

#[tokio::test]
async fn a_request_beyond_the_rate_gets_a_retry_delay() {
    let requests = Some(PerSecond { rate: 1, burst: 2 });
    let rig = limited(LimiterSettings { requests, ..LimiterSettings::default() });
    let body = body(10);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let answer = send(&rig, "X-Scope-OrgID: a\r\n", &body).await;
        if answer.status == 429 {
            let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=2).contains(&seconds), "{seconds}");
            assert_eq!(answer.header("x-prometheus-remote-write-samples-written"), Some("0"));
            assert!(answer.body().contains("requests a second"), "{}", answer.text);
        }
        statuses.push(answer.status);
    }
    // A second may pass meanwhile, on a busy machine.
    assert_eq!(statuses[..2], [204, 204]);
    assert!(statuses[2..].contains(&429), "{statuses:?}");
    nothing_is_held(&rig);
}

/// Items without an announcement are booked as they arrive, and refused with their own reason.
#[tokio::test]
async fn a_body_without_a_length_is_held_to_the_same_limits() {
    let rig = limited(LimiterSettings { in_flight: Some(40 << 10), ..LimiterSettings::default() });
    let chunked = |body: &[u8]| {
        let head = format!("{HEAD}X-Scope-OrgID: a\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut bytes = head.into_bytes();
        for piece in body.chunks(10 << 10) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    };
    let answer = rig.send_raw([chunked(&body(10)), b"".to_vec()].concat()).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    let table = rig.gate.rules().limits.clone().unwrap();
    let route = table.route(&rig.source("prometheus_remote_write")).unwrap();
    let other = table.admit(Moment::now(), route, None, 30 << 10, u64::MAX).unwrap();
    let answer = rig.send_raw(chunked(&vec![1; 200 << 10])).await;
    drop(other);
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert!(answer.header("retry-after").is_some());
    assert!(answer.body().contains("as many bytes as are allowed"), "{}", answer.text);
    nothing_is_held(&rig);
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Concurrency, 1)]));
}
