//! Bodies that are taken: what the journal gets, and what the client hears.

use crate::client::{Answer, post, raw};
use crate::rig::{Rig, settings};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_admission::access::BulkActions;
use tidegate_admission::{BulkDefaults, GateRules};
use tidegate_journal::{Encoding, Meta, Protocol, Signal};

const BODY: &[u8] = b"{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"x\":1}\n{\"create\":{\"_index\":\"logs-\\u0061\"}}\n{\"x\":[1,2]}\n\
                      {\"update\":{\"_index\":\"a\",\"_id\":7}}\n{\"doc\":{}}\n{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n";
pub(crate) const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// A gateway where everybody may do everything.
fn unrestricted() -> Rig {
    Rig::ruled(1 << 30, settings(), |_| {
        let rules = GateRules::default();
        rules.bulk.store(Arc::new(BulkDefaults { open: BulkActions::ALL, ..BulkDefaults::default() }));
        rules
    })
}

/// Sends a body and gives the answer, and what the journal got.
async fn sent(rig: &Rig, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (Answer, Meta, Vec<u8>) {
    let mut follower = rig.follow();
    let request = post(path, headers, body);
    let answer = rig.serve(async |address| raw(address, &request).await).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-elastic-product"), Some("Elasticsearch"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let (meta, kept) = rig.journalled(&mut follower).await;
    rig.books_of("elasticsearch");
    (answer, meta, kept)
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

/// The journal gets the bytes as they came, and each item an entry of its own, in the shape that clients expect.
#[tokio::test]
async fn a_body_is_kept_as_it_came_and_answered_item_by_item() {
    let rig = unrestricted();
    let (answer, meta, kept) = sent(&rig, "/elasticsearch/_bulk", &[NDJSON], BODY).await;
    assert_eq!(kept, BODY);
    assert_eq!(
        (meta.protocol, meta.signal, meta.encoding),
        (Protocol::Bulk, Signal::Logs, Encoding::Identity)
    );
    assert_eq!((meta.items, meta.raw_len as usize), (4, BODY.len()));
    let shards = json!({"total": 1, "successful": 1, "failed": 0});
    let entry = |index: &str, id: Value, result: &str, status: u16| {
        json!({"_index": index, "_id": id, "_version": 1, "result": result, "_shards": shards,
               "_seq_no": 0, "_primary_term": 1, "status": status})
    };
    let wanted = json!({"errors": false, "took": 0, "items": [
        {"index": entry("a", json!("1"), "created", 201)},
        {"create": entry("logs-a", Value::Null, "created", 201)},
        {"update": entry("a", json!("7"), "updated", 200)},
        {"delete": entry("a", json!("1"), "deleted", 200)},
    ]});
    assert_eq!(json_of(&answer), wanted);
    let books = rig.books_of("elasticsearch");
    assert_eq!((books.accepted, books.received), (1, 1));
}

/// URL parameters are written into the actions that lack them.
#[tokio::test]
async fn url_parameters_are_stored_in_the_actions() {
    let rig = unrestricted();
    let body = b"{\"create\":{}}\n{}\n{\"index\":{\"_index\":\"b\",\"pipeline\":\"q\"}}\n{}\n";
    let path = "/elasticsearch/%3Clogs-%7Bnow%7D%3E/_bulk/?pipeline=p%20%22&require_alias";
    let (answer, meta, kept) = sent(&rig, path, &[NDJSON], body).await;
    let wanted = "{\"create\":{\"_index\":\"<logs-{now}>\",\"pipeline\":\"p \\\"\",\"require_alias\":true}}\n{}\n\
                  {\"index\":{\"require_alias\":true,\"_index\":\"b\",\"pipeline\":\"q\"}}\n{}\n";
    assert_eq!(String::from_utf8(kept).unwrap(), wanted);
    assert_eq!((meta.items, meta.raw_len as usize), (2, wanted.len()));
    assert_eq!(json_of(&answer)["items"][0]["create"]["_index"], "<logs-{now}>");
}

/// Types, which senders that were made for Elasticsearch 7 still name, are left out: its successors refuse a request
/// that has one, and by then the document was taken here.
#[tokio::test]
async fn types_are_left_out() {
    let body =
        b"{\"index\":{\"_index\":\"a\",\"_type\":\"_doc\"}}\n{}\n{\"index\":{\"_type\":\"events\"}}\n{}\n\
                 {\"create\":{\"_type\": null , \"_id\":\"1\"}}\n{}\n{\"create\":{\"_id\":\"2\"}}\n{}\n";
    let rig = unrestricted();
    let (answer, meta, kept) = sent(&rig, "/elasticsearch/b/events/_bulk", &[NDJSON], body).await;
    let wanted = "{\"index\":{\"_index\":\"a\"}}\n{}\n{\"index\":{\"_index\":\"b\"}}\n{}\n\
                  {\"create\":{\"_index\":\"b\", \"_id\":\"1\"}}\n{}\n{\"create\":{\"_index\":\"b\",\"_id\":\"2\"}}\n{}\n";
    assert_eq!(String::from_utf8(kept).unwrap(), wanted);
    assert_eq!((meta.items, &json_of(&answer)["errors"]), (4, &Value::Bool(false)));
}

/// A document that is no JSON is answered as Elasticsearch would, and its neighbours are kept.
#[tokio::test]
async fn a_document_that_is_none_spoils_only_itself() {
    let rig = unrestricted();
    let body = b"{\"create\":{\"_index\":\"a\"}}\n{\"x\":1}\n{\"create\":{\"_index\":\"a\"}}\n{\"x\":}\n\
                 {\"create\":{\"_index\":\"a\"}}\n[]\n{\"create\":{\"_index\":\"a\"}}\n{\"x\":2}\n";
    let (answer, meta, kept) = sent(&rig, "/elasticsearch/_bulk", &[NDJSON], body).await;
    let good = "{\"create\":{\"_index\":\"a\"}}\n{\"x\":1}\n{\"create\":{\"_index\":\"a\"}}\n{\"x\":2}\n";
    assert_eq!(String::from_utf8(kept).unwrap(), good);
    assert_eq!(meta.items, 2);
    let answer = json_of(&answer);
    assert_eq!(answer["errors"], true);
    let statuses: Vec<_> = (0..4).map(|at| answer["items"][at]["create"]["status"].clone()).collect();
    assert_eq!(statuses, [201, 400, 400, 201]);
    let error = &answer["items"][1]["create"]["error"];
    assert_eq!(error["type"], "document_parsing_exception");
    assert_eq!(error["reason"], "[line 4] failed to parse: no value where one must be at byte 5");
}

/// Compressed bodies stay compressed, unless they have to be written anew.
#[tokio::test]
async fn compressed_bodies_stay_so() {
    let rig = unrestricted();
    let body = gzipped(BODY);
    let headers = [NDJSON, ("content-encoding", "gzip")];
    let (_, meta, kept) = sent(&rig, "/elasticsearch/_bulk", &headers, &body).await;
    assert_eq!(kept, body);
    assert_eq!((meta.encoding, meta.raw_len as usize), (Encoding::Gzip, BODY.len()));
    let rig = unrestricted();
    let (_, meta, kept) = sent(&rig, "/elasticsearch/_bulk?pipeline=p", &headers, &body).await;
    assert_eq!((meta.encoding, meta.items), (Encoding::Identity, 4));
    assert!(kept.starts_with(b"{\"index\":{\"pipeline\":\"p\",\"_index\""));
}

/// Bodies that are too long for a worker are looked at by the pool, to the same end.
#[tokio::test]
async fn large_bodies_are_answered_as_small_ones_are() {
    let item = format!("{{\"create\":{{\"_index\":\"a\"}}}}\n{{\"x\":\"{}\"}}\n", "y".repeat(10_000));
    let body = item.repeat(500);
    let rig = unrestricted();
    let (answer, meta, kept) = sent(&rig, "/elasticsearch/_bulk", &[NDJSON], body.as_bytes()).await;
    assert_eq!((kept.len(), meta.items), (body.len(), 500));
    assert_eq!(json_of(&answer)["items"].as_array().unwrap().len(), 500);
}

/// An answer has what a client asks for, and not more.
#[tokio::test]
async fn answers_are_filtered() {
    let rig = unrestricted();
    let filter = "/elasticsearch/_bulk?filter_path=errors,items.*.error,items.*.status";
    let (answer, ..) = sent(&rig, filter, &[NDJSON], BODY).await;
    let statuses = json!([{"index": {"status": 201}}, {"create": {"status": 201}}, {"update": {"status": 200}},
                          {"delete": {"status": 200}}]);
    assert_eq!(json_of(&answer), json!({"errors": false, "items": statuses}));
    let rig = unrestricted();
    let (answer, ..) = sent(&rig, "/elasticsearch/_bulk?filter_path=took", &[NDJSON], BODY).await;
    assert_eq!(json_of(&answer), json!({"took": 0}));
}

pub(crate) fn gzipped(raw: &[u8]) -> Vec<u8> {
    let mut encoder = tidegate_wire::gzip::Encoder::new(1).unwrap();
    encoder.reset();
    let mut out = vec![0; raw.len() + 1024];
    let (_, mut len) = encoder.step(raw, &mut out);
    loop {
        let (written, ended) = encoder.finish(&mut out[len..]);
        len += written;
        if ended {
            out.truncate(len);
            return out;
        }
    }
}
