//! Promise: every refusal is an answer that says why, and is entered in the books of the source.

use crate::accepts::{NDJSON, PATH};
use crate::body::gzip;
use crate::client::JSON;
use crate::rig::{MAX_BODY, Rig, settings};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{Caller, GateRules, Headers, Permit};
use tidegate_arena::Share;
use tidegate_http1::DuplicateHeader;
use tidegate_ledger::Refusal;
use tidegate_limit::{AdmissionTable, LimiterSettings, Moment, PerSecond, TenantLimits, Tenants};

/// The query, the headers and the body; the status, the reason, and words of the answer.
type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a [u8], u16, Refusal, &'a str);

#[tokio::test]
async fn unreadable_bodies_are_refused() {
    let many: String = (0..65).map(|number| format!("a{number}=b,")).collect();
    let long = format!("a={}", "b".repeat(4 << 10));
    let large = vec![b'x'; MAX_BODY + 1];
    let bomb = gzip(&large);
    let plain = ("content-type", "text/plain");
    let cases: Vec<Case<'_>> = vec![
        ("", vec![("content-type", "image/png")], b"x", 415, Refusal::Unsupported, "Content-Type"),
        (
            "",
            vec![plain, ("content-encoding", "br")],
            b"x",
            415,
            Refusal::Unsupported,
            "gzip, zstd or deflate",
        ),
        ("", vec![plain, plain], b"x", 400, Refusal::Headers, "once"),
        ("", vec![("x-tidegate-labels", "a")], b"x", 400, Refusal::Headers, "NAME=VALUE"),
        ("?label.=b", vec![], b"x", 400, Refusal::Headers, "NAME=VALUE"),
        ("?label.a=%ff", vec![], b"x", 400, Refusal::Headers, "UTF-8"),
        ("", vec![("x-tidegate-labels", &many)], b"x", 400, Refusal::Headers, "64 labels"),
        ("", vec![("x-tidegate-labels", &long)], b"x", 400, Refusal::Headers, "4 KiB"),
        (
            "",
            vec![NDJSON],
            b"x\ny\n",
            400,
            Refusal::Malformed,
            "{\"accepted\":0,\"refused\":2,\"errors\":[\"line 1",
        ),
        ("", vec![JSON], b"[{}", 400, Refusal::Malformed, "the end of the body"),
        ("", vec![plain, ("content-encoding", "gzip")], b"x", 400, Refusal::Malformed, ""),
        ("", vec![plain], &large, 413, Refusal::TooLarge, ""),
        ("", vec![plain, ("content-encoding", "gzip")], &bomb, 413, Refusal::TooLarge, "too large"),
    ];
    for (query, headers, body, status, reason, words) in cases {
        let path = format!("{PATH}{query}");
        for version in [1, 2] {
            let rig = Rig::new();
            let answer = match version {
                1 => rig.post(&path, &headers, body).await,
                _ => rig.post2(&path, &headers, body).await,
            };
            let text = answer.text();
            assert_eq!(answer.status, status, "{headers:?} {text}");
            assert!(text.contains(words), "{text}");
            let books = rig.books_of("http");
            assert_eq!((books.accepted, books.refused), (0, vec![(reason, 1)]), "{headers:?}");
            assert_eq!(rig.journal.stats().head, 0);
        }
    }
}

#[tokio::test]
async fn a_wrong_method_is_answered_with_the_right_one() {
    let rig = Rig::new();
    let answer = rig.request2("GET", PATH, &[], b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(rig.books_of("http").refused, vec![(Refusal::Method, 1)]);
}

/// Access, tenants and limits are those of the other sources.
#[tokio::test]
async fn tenants_and_limits_hold() {
    let rig = limited(LimiterSettings {
        requests: Some(PerSecond { rate: 1, burst: 1 }),
        ..LimiterSettings::default()
    });
    let mut follower = rig.follow();
    assert_eq!(rig.post(PATH, &[], b"x").await.status, 400);
    let tenant = ("x-scope-orgid", "quiet");
    assert_eq!(rig.post(PATH, &[tenant], b"x").await.status, 200);
    let (meta, _) = rig.journalled(&mut follower).await;
    assert_eq!(meta.tenant.as_str(), "quiet");
    let answer = rig.post2(PATH, &[tenant], b"x").await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    let refused = rig.books_of("http").refused;
    assert!(
        refused.contains(&(Refusal::Tenant, 1)) && refused.contains(&(Refusal::RateLimited, 1)),
        "{refused:?}"
    );
}

/// A rig with these limits of the source, and tenants that `X-Scope-OrgID` names.
fn limited(limits: LimiterSettings) -> Rig {
    Rig::ruled(1 << 30, settings(), |ledger| {
        let tenants = Tenants::new(4, TenantLimits::default(), ledger.clone());
        let tenancy = Tenancy { header: Some("X-Scope-OrgID".into()), required: true, ..Tenancy::default() };
        let table = AdmissionTable::new(vec![(ledger.source("http").unwrap(), limits)], Some(tenants));
        GateRules { tenancy: Some(tenancy), limits: Some(Arc::new(table)), ..GateRules::default() }
    })
}

const LOUD: (&str, &str) = ("x-scope-orgid", "loud");
const QUIET: (&str, &str) = ("x-scope-orgid", "quiet");
/// The free memory besides a request and its result: a tenant may hold four times as much.
const SPARE: u64 = 160 << 10;

struct Said((&'static str, &'static str));

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        Ok(Some(self.0.1.as_bytes()).filter(|_| name.eq_ignore_ascii_case(self.0.0)))
    }
}

/// A request of this tenant that was let in with so many bytes.
fn entered(rig: &Rig, tenant: (&'static str, &'static str), bytes: u64) -> Permit {
    let (peer, headers, now) = (IpAddr::V4(Ipv4Addr::LOCALHOST), Said(tenant), Moment::now());
    let caller = Caller {
        peer,
        certificate: None,
        headers: &headers,
        bytes: Some(bytes),
        now,
        guarded: true,
        journalled: true,
    };
    let mut open = rig.source("http").open();
    let passage = rig.gate.admit(&caller, &mut open).unwrap();
    open.accept_empty(tidegate_ledger::Signal::Logs);
    passage
}

/// Short lines become several times as long, and a tenant that has its part of the memory is refused that, compressed or
/// not, here or in the pool; another tenant is not.
#[tokio::test]
async fn translated_lines_beyond_the_fair_share_are_refused_retryably() {
    let small = b"a\n".repeat(8 << 10);
    let large = b"abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghij\n".repeat(12 << 10);
    for (lines, encoding, is_large) in [
        (&small, "identity", false),
        (&small, "gzip", false),
        (&large, "identity", true),
        (&large, "gzip", true),
    ] {
        let rig = limited(LimiterSettings::default());
        let mut follower = rig.follow();
        let body = if encoding == "gzip" { gzip(lines) } else { lines.clone() };
        let of = |tenant| [tenant, ("content-encoding", encoding)];
        assert_eq!(rig.post(PATH, &of(QUIET), &body).await.status, 200);
        let (meta, _) = rig.journalled(&mut follower).await;
        assert!(is_large || meta.raw_len as usize > 8 * lines.len(), "{}", meta.raw_len);
        let became = u64::from(meta.raw_len);
        let passage = entered(&rig, LOUD, 4 * SPARE + became);
        let wanted = became + body.len() as u64 + SPARE;
        let taken = rig.arena.try_charge(Share::Ingest, rig.arena.free(Share::Ingest) - wanted).unwrap();
        for version in [1, 2] {
            let answer = match version {
                1 => rig.post(PATH, &of(LOUD), &body).await,
                _ => rig.post2(PATH, &of(LOUD), &body).await,
            };
            assert_eq!(answer.status, 503, "{encoding} {} {}", body.len(), answer.text());
            assert!(answer.text().contains("its part of it"), "{}", answer.text());
            assert!(answer.header("retry-after").is_some());
        }
        assert_eq!(rig.post(PATH, &of(QUIET), &body).await.status, 200, "another passes");
        drop((taken, passage));
        assert_eq!(rig.post(PATH, &of(LOUD), &body).await.status, 200);
        let table = rig.gate.rules().limits.clone().unwrap();
        assert!(table.tenants().unwrap().accounts().all(|account| account.held() == 0));
        let books = rig.books_of("http");
        assert_eq!(books.refused, vec![(Refusal::Share, 2)]);
    }
}

/// Bodies that take long to translate do not hold up the other connections of their worker: the pool has them.
#[tokio::test]
async fn large_bodies_are_translated_by_the_pool() {
    let rig = Rig::new();
    rig.stop_pool();
    let line = b"{\"message\":\"one of many\",\"level\":\"info\"}\n";
    for (bytes, status) in [(400 << 10, 200), (600 << 10, 503)] {
        let lines = line.repeat(bytes / line.len());
        for (encoding, body) in [("identity", lines.clone()), ("gzip", gzip(&lines))] {
            let answer = rig.post(PATH, &[NDJSON, ("content-encoding", encoding)], &body).await;
            assert_eq!(answer.status, status, "{encoding} {bytes} {}", answer.text());
        }
    }
    assert_eq!(rig.books_of("http").refused, vec![(Refusal::Shutdown, 2)]);
}
