//! Promise: every refusal is an answer that says why, and is entered in the books of the source.

use crate::accepts::{NDJSON, PATH};
use crate::body::gzip;
use crate::client::JSON;
use crate::rig::{MAX_BODY, Rig, settings};
use std::sync::Arc;
use tidegate_admission::Rules;
use tidegate_admission::tenancy::Tenancy;
use tidegate_ledger::Refusal;
use tidegate_limit::{Limits, PerSecond, Table, TenantLimits, Tenants};

/// The query, the headers and the body; the status, the reason, and words of the answer.
type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a [u8], u16, Refusal, &'a str);

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
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
async fn another_method_is_told_which_one_is_right() {
    let rig = Rig::new();
    let answer = rig.request2("GET", PATH, &[], b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(rig.books_of("http").refused, vec![(Refusal::Method, 1)]);
}

/// Access, tenants and limits are those of the other sources.
#[tokio::test]
async fn tenants_and_limits_hold() {
    let rig = Rig::ruled(1 << 30, settings(), |ledger| {
        let tenants = Tenants::new(4, TenantLimits::default(), ledger.clone());
        let tenancy = Tenancy { header: Some("X-Scope-OrgID".into()), required: true, ..Tenancy::default() };
        let limits = Limits { requests: Some(PerSecond { rate: 1, burst: 1 }), ..Limits::default() };
        let table = Table::new(vec![(ledger.source("http").unwrap(), limits)], Some(tenants));
        Rules { tenancy: Some(tenancy), limits: Some(Arc::new(table)), ..Rules::default() }
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
