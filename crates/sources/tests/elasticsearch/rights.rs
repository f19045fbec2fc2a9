//! Promise: a sender may have done with the sink's key what its operator allows it, and nothing else: however it writes
//! it. What is not allowed is answered item by item, and what is goes on.

use crate::accepts::{NDJSON, gzipped};
use crate::client::{Answer, post, raw};
use crate::rig::{Rig, settings};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_admission::access::{Access, Indices, NewSecret, make};
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{BulkDefaults, GateRules};
use tidegate_ledger::Refusal;
use tidegate_limit::{AdmissionTable, LimiterSettings, TenantLimits, Tenants};

/// A gateway where this line's owner may send; its token.
fn rig(option: &str, defaults: BulkDefaults) -> (Rig, String) {
    let NewSecret { secret, kept, .. } = make(None).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(&file, format!("bearer a {kept} {option}\n")).unwrap();
    let rig = Rig::ruled(1 << 30, settings(), |ledger| {
        let tenants = Tenants::new(4, TenantLimits::default(), ledger.clone());
        let source = ledger.source("elasticsearch").unwrap();
        let rules = GateRules {
            access: Access::from_file(&file, None).unwrap(),
            tenancy: Some(Tenancy::default()),
            limits: Some(Arc::new(AdmissionTable::new(
                vec![(source, LimiterSettings::default())],
                Some(tenants),
            ))),
            ..GateRules::default()
        };
        rules.bulk.store(Arc::new(defaults));
        rules
    });
    (rig, format!("Bearer {secret}"))
}

/// The answer to a body, the statuses of its items, and what the journal got of it.
async fn sent(rig: &Rig, token: &str, path: &str, body: &[u8]) -> (Answer, Vec<u64>, String) {
    let mut follower = rig.follow();
    let before = rig.journal.stats().head;
    let mut headers = vec![NDJSON, ("authorization", token)];
    if body.starts_with(&[0x1f, 0x8b]) {
        headers.push(("content-encoding", "gzip"));
    }
    let request = post(path, &headers, body);
    let answer = rig.serve(async |address| raw(address, &request).await).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()));
    let items = said["items"].as_array().into_iter().flatten();
    let statuses =
        items.map(|item| item.as_object().unwrap().values().next().unwrap()["status"].as_u64().unwrap());
    let statuses: Vec<u64> = statuses.collect();
    let kept = match rig.journal.stats().head > before {
        true => String::from_utf8_lossy(&rig.journalled(&mut follower).await.1).into_owned(),
        false => String::new(),
    };
    (answer, statuses, kept)
}

fn index_only(names: &[&str]) -> String {
    names.iter().map(|name| format!("{{\"create\":{{\"_index\":\"{name}\"}}}}\n{{}}\n")).collect()
}

const UPDATE: &str = "{\"update\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"doc\":{}}\n";
const SCRIPT: &str = "{\"update\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"scr\\u0069pt\":{\"source\":\"x\"}}\n";
const DELETE: &str = "{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n";
const PIPELINE: &str = "{\"create\":{\"_index\":\"a\",\"pipeline\":\"p\"}}\n{}\n";
const NO_PIPELINE: &str = "{\"create\":{\"_index\":\"a\",\"pipeline\":null}}\n{}\n";
const INDEX: &str = "{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n";

/// By default documents are added and put in place of others, and nothing else is done; what else is asked for is
/// refused alone, in Elasticsearch's shape, with what to ask for.
#[tokio::test]
async fn an_action_that_is_not_allowed_is_refused_alone() {
    let all = [UPDATE, INDEX, SCRIPT, DELETE, PIPELINE, NO_PIPELINE].concat();
    let path = "/elasticsearch/_bulk";
    let table: [(&str, [u64; 6]); 5] = [
        ("", [403, 201, 403, 403, 403, 201]),
        ("bulk=update", [200, 201, 403, 403, 403, 201]),
        ("bulk=update,script", [200, 201, 200, 403, 403, 201]),
        ("bulk=pipeline,delete", [403, 201, 403, 200, 201, 201]),
        ("bulk=update,delete,script,pipeline", [200, 201, 200, 200, 201, 201]),
    ];
    for (option, wanted) in table {
        for body in [all.clone().into_bytes(), gzipped(all.as_bytes())] {
            let (rig, token) = rig(option, BulkDefaults::default());
            let (answer, statuses, kept) = sent(&rig, &token, path, &body).await;
            assert_eq!((answer.status, statuses), (200, wanted.to_vec()), "{option}");
            let items = [UPDATE, INDEX, SCRIPT, DELETE, PIPELINE, NO_PIPELINE];
            let taken: Vec<&str> = items
                .into_iter()
                .zip(wanted)
                .filter(|(_, status)| *status < 400)
                .map(|(item, _)| item)
                .collect();
            if taken.len() < 6 {
                assert_eq!(kept, taken.concat(), "{option}");
            }
            let denied = 6 - taken.len() as u64;
            let books = rig.books_of("elasticsearch");
            assert_eq!(
                books.items_refused,
                Vec::from_iter((denied > 0).then_some((Refusal::Forbidden, denied)))
            );
        }
    }
    let (rig, token) = rig("", BulkDefaults::default());
    let (answer, ..) = sent(&rig, &token, path, all.as_bytes()).await;
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said["errors"], json!(true));
    let reasons =
        [(0, "update", "`bulk=update`"), (2, "update", "`bulk=update`"), (3, "delete", "`bulk=delete`")];
    for (at, kind, words) in reasons.into_iter().chain([(4, "create", "`bulk=pipeline`")]) {
        let error = &said["items"][at][kind]["error"];
        assert_eq!(error["type"], "security_exception", "{said}");
        assert!(error["reason"].as_str().unwrap().contains(words), "{said}");
    }
}

/// A document that is none and an item that is not allowed count under reasons of their own, and a body of nothing else
/// is answered all the same.
#[tokio::test]
async fn refused_items_are_counted_by_reason() {
    let (rig, token) = rig("", BulkDefaults::default());
    let body = [DELETE, DELETE, "{\"create\":{\"_index\":\"a\"}}\n{\"x\":}\n"].concat();
    let (answer, statuses, kept) = sent(&rig, &token, "/elasticsearch/_bulk", body.as_bytes()).await;
    assert_eq!((answer.status, statuses, kept.as_str()), (200, vec![403, 403, 400], ""));
    let books = rig.books_of("elasticsearch");
    assert_eq!((books.accepted, books.refused), (1, vec![]));
    assert_eq!(books.items_refused, [(Refusal::Malformed, 1), (Refusal::Forbidden, 2)]);
}

/// A pipeline in the address is for all items, so the request is refused.
#[tokio::test]
async fn a_pipeline_in_the_address_needs_the_right() {
    for path in [
        "/elasticsearch/_bulk?pipeline=p",
        "/elasticsearch/a/_bulk?x=y&pipeline=",
        "/elasticsearch/_bulk/?pipeline=_none",
    ] {
        let (rig, token) = self::rig("bulk=update,delete,script", BulkDefaults::default());
        let (answer, _, kept) = sent(&rig, &token, path, NO_PIPELINE.as_bytes()).await;
        assert_eq!((answer.status, kept.as_str()), (403, ""), "{path}");
        assert!(answer.text().contains("security_exception"), "{}", answer.text());
        assert!(answer.text().contains("`bulk=pipeline`"), "{}", answer.text());
        assert_eq!(rig.books_of("elasticsearch").refused, [(Refusal::Forbidden, 1)]);
        let (rig, token) = self::rig("bulk=pipeline", BulkDefaults::default());
        let (answer, statuses, _) = sent(&rig, &token, path, INDEX.as_bytes()).await;
        assert_eq!((answer.status, statuses), (200, vec![201]), "{path}");
    }
}

/// Indices that begin with a dot are the cluster's own, however the dot is written and wherever the name stands.
#[tokio::test]
async fn an_index_that_begins_with_a_dot_has_to_be_named() {
    let names = [
        "a",
        ".security-7",
        "\\u002esecurity-7",
        "\\u002Eds-logs-x-y-2026.11.22-000001",
        "<.x-{now/d}>",
        "<{now/d}>",
        "a,.security-7",
        "*security-7",
        "remote:a",
        "logs-x-y",
    ];
    let allowed =
        |names: &[u64]| names.iter().map(|ok| if *ok == 1 { 201 } else { 403 }).collect::<Vec<u64>>();
    let path = "/elasticsearch/_bulk";
    let table = [
        ("", [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("indices=*", [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ("indices=.security-*", [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
        ("indices=logs-*-*,.ds-logs-*", [0, 0, 0, 1, 0, 0, 0, 0, 0, 1]),
    ];
    for (option, wanted) in table {
        let (rig, token) = rig(option, BulkDefaults::default());
        let (_, statuses, _) = sent(&rig, &token, path, index_only(&names).as_bytes()).await;
        assert_eq!(statuses, allowed(&wanted), "{option}");
        rig.books_of("elasticsearch");
    }
    // In the address, with a type or without, for items that name none.
    let none = b"{\"create\":{}}\n{}\n{\"create\":{\"_index\":\"a\"}}\n{}\n";
    for index in
        [".security-7", "%2esecurity-7", "%2Esecurity-7/_doc", "a%2C.security-7", "%3C.x-%7Bnow%7D%3E"]
    {
        let (rig, token) = rig("", BulkDefaults::default());
        let path = format!("/elasticsearch/{index}/_bulk");
        let (_, statuses, kept) = sent(&rig, &token, &path, none).await;
        assert_eq!(statuses, [403, 201], "{index}");
        assert_eq!(kept, "{\"create\":{\"_index\":\"a\"}}\n{}\n");
    }
    // Said twice, or under a name that is written with an escape, the peer might believe the other one.
    for line in [
        "{\"create\":{\"_index\":\"a\",\"_index\":\".security-7\"}}",
        "{\"create\":{\"_index\":\"a\",\"\\u005findex\":\".security-7\"}}",
        "{\"cr\\u0065ate\":{\"_index\":\"a\"}}",
        "{\"create\":{\"_index\":\"a\",\"pipelin\\u0065\":\"p\"}}",
    ] {
        let (rig, token) = rig("", BulkDefaults::default());
        let (answer, _, kept) = sent(&rig, &token, path, format!("{line}\n{{}}\n").as_bytes()).await;
        assert_eq!((answer.status, kept.as_str()), (400, ""), "{line}: {}", answer.text());
    }
}

/// A credential's patterns take precedence, then its tenant's, then those of all tenants; `{tenant}` expands to the
/// tenant's name.
#[tokio::test]
async fn patterns_are_those_of_the_credential_or_of_its_tenant() {
    let read = |text: &str| Indices::read(text).unwrap();
    let defaults = BulkDefaults {
        indices: Some(read("{tenant}-*")),
        tenants: [("lab".to_owned(), read("lab,all-{tenant}"))].into(),
        ..BulkDefaults::default()
    };
    let names = index_only(&["shop-a", "lab-a", "lab", "all-lab", "logs-a-b"]);
    for (option, wanted) in [
        ("tenant=shop", [201, 403, 403, 403, 403]),
        ("tenant=lab", [403, 403, 201, 201, 403]),
        ("tenant=shop indices=logs-*-*,{tenant}-*", [201, 403, 403, 403, 201]),
        ("", [403; 5]),
    ] {
        let (rig, token) = rig(option, defaults.clone());
        let (_, statuses, _) = sent(&rig, &token, "/elasticsearch/_bulk", names.as_bytes()).await;
        assert_eq!(statuses, wanted, "{option}");
        rig.books_of("elasticsearch");
    }
}

/// Bodies that the pool looks at are held to the same.
#[tokio::test]
async fn large_bodies_are_held_to_the_same() {
    let item = format!("{{\"create\":{{\"_index\":\"a\"}}}}\n{{\"x\":\"{}\"}}\n", "y".repeat(10_000));
    let body = format!("{}{DELETE}{}", item.repeat(100), index_only(&[".security-7"]));
    for body in [body.clone().into_bytes(), gzipped(body.as_bytes())] {
        let (rig, token) = rig("", BulkDefaults::default());
        let (_, statuses, kept) = sent(&rig, &token, "/elasticsearch/_bulk", &body).await;
        assert_eq!(statuses[98..], [201, 201, 403, 403]);
        assert_eq!(kept, item.repeat(100));
    }
}
