//! Documents, requests and nodes that fail.

use crate::node::{Answer, Node};
use crate::oversize::request;
use crate::rig::{PART, Rig, settings};
use crate::unavailable::meta;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::protobuf::field;
use tidegate_sinks::ElasticsearchSettings;

const CREATE: &str = "{\"create\":{\"_index\":\"logs\"}}";
/// With ids of the client's own.
const OWN: &str = "{\"create\":{\"_index\":\"logs\",\"_id\":\"own-#\"}}";

/// Those that the node has no room for are sent again, alone, until it has; the others are not.
#[tokio::test]
async fn documents_that_are_rejected_for_now_are_sent_again_alone() {
    for gzip in [None, Some(1)] {
        let script = [Answer::Every(2, 429), Answer::Every(3, 503), Answer::Every(1, 429)];
        let (mut rig, node) = (Rig::new(PART), Node::new(script));
        rig.put(Encoding::Identity, CREATE, 60, 100).await;
        rig.drain(ElasticsearchSettings { gzip, ..settings(&node) }).await;
        node.assert_has(0..60);
        let seen = node.seen();
        let counts: Vec<usize> = seen.requests.iter().map(|request| request.0).collect();
        assert_eq!(counts, [60, 30, 10, 10]);
        assert_eq!((seen.repeated, rig.page().delivered), (0, 60));
        assert_eq!(rig.health.activity().resent, 50);
    }
}

/// One that is not wanted is dropped, counted, and kept with the reason; its neighbours are delivered.
#[tokio::test]
async fn a_document_that_is_not_wanted_is_kept_with_the_reason() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::Dislikes(7)));
    rig.put(Encoding::Gzip, CREATE, 20, 10).await;
    rig.drain(settings(&node)).await;
    node.assert_has((0..20).filter(|number| *number != 7));
    assert_eq!((rig.page().delivered, rig.dropped()), (19, vec![(Dropped::Rejected, 1)]));
    let letters = rig.letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].0, "400 document_parsing_exception: no \"such\" field");
    assert!(letters[0].1.starts_with("{\"create\":{\"_id\":\""), "{}", letters[0].1);
    assert!(letters[0].1.ends_with("\n{\"n\":7,\"pad\":\"xxxxxxxxxx\"}\n"), "{}", letters[0].1);
}

/// Where there is no memory for what has to be sent again alone, the whole piece is, and what its first answer said is not
/// counted a second time.
#[tokio::test]
async fn documents_that_are_sent_again_with_their_piece_are_counted_once() {
    let (rig, node) = (Rig::new(PART), Node::new([Answer::DislikesFirst, Answer::DislikesFirst]));
    // Control characters take six times their length in JSON: more than was foreseen, so the copy has no room.
    let text = "\u{1}".repeat(16 << 10);
    let body = request(&[], (0..30).map(|_| field(5, &field(1, text.as_bytes()))));
    rig.append(meta(Signal::Logs, Protocol::Otlp, 30, body.len()), &body).await;
    rig.drain(settings(&node)).await;
    assert!(node.seen().requests.windows(2).any(|pair| pair[0].0 == pair[1].0), "the piece is sent again");
    assert_eq!((rig.page().delivered, rig.dropped()), (30, vec![]));
}

/// A request that is refused as a whole is halved until the document that is at fault is alone.
#[tokio::test]
async fn a_document_that_spoils_the_request_is_found() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::Chokes(13)));
    for _ in 0..4 {
        rig.put(Encoding::Identity, CREATE, 10, 10).await;
    }
    rig.drain(settings(&node)).await;
    node.assert_has((0..40).filter(|number| *number != 13));
    assert_eq!((rig.page().delivered, rig.dropped()), (39, vec![(Dropped::Rejected, 1)]));
    assert_eq!(node.seen().repeated, 0);
    assert_eq!(rig.letters().len(), 1);
}

/// After a node answers that a request is too large, it is split, and later requests are smaller from the start.
#[tokio::test]
async fn a_request_answered_413_is_split() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::AtMost(100 << 10)));
    for _ in 0..8 {
        rig.put(Encoding::Identity, CREATE, 200, 1000).await;
    }
    rig.put(Encoding::Identity, CREATE, 1, 200 << 10).await;
    rig.drain(settings(&node)).await;
    node.assert_has(0..1600);
    assert_eq!(rig.dropped(), [(Dropped::TooLarge, 1)]);
    assert_eq!(rig.letters().len(), 1);
}

/// A document whose answer was lost is there already when it comes again: that is a delivery, whoever made its id.
#[tokio::test]
async fn a_lost_answer_makes_no_duplicates_and_no_losses() {
    for action in [CREATE, OWN] {
        let (mut rig, node) = (Rig::new(PART), Node::new([Answer::Lost, Answer::Lost]));
        rig.put(Encoding::Identity, action, 30, 10).await;
        rig.drain(settings(&node)).await;
        node.assert_has(0..30);
        assert_eq!((rig.page().delivered, rig.dropped()), (30, vec![]));
        assert_eq!(node.seen().repeated, 60);
    }
}

/// A client's own id that somebody else has used is a conflict, and no delivery.
#[tokio::test]
async fn a_conflict_over_a_clients_id_is_counted() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    node.seen().documents.insert("own-3".to_owned(), 1000);
    rig.put(Encoding::Identity, OWN, 5, 10).await;
    rig.drain(settings(&node)).await;
    assert_eq!((rig.page().delivered, rig.dropped()), (4, vec![(Dropped::Rejected, 1)]));
    assert_eq!(rig.letters()[0].0, "409 version_conflict_engine_exception: exists");
}

/// Whoever is not let in waits: a person can help, and the documents are as good as before.
#[tokio::test]
async fn nothing_is_dropped_for_a_wrong_key_or_a_node_in_trouble() {
    let script = [401, 403, 404, 429, 502, 503, 504].map(|status| Answer::Status(status, "no"));
    let (mut rig, node) = (Rig::new(PART), Node::new(script));
    rig.put(Encoding::Identity, CREATE, 5, 10).await;
    rig.drain(settings(&node)).await;
    node.assert_has(0..5);
    assert_eq!((rig.page().delivered, rig.dropped()), (5, vec![]));
    assert_eq!(rig.health.activity().failures, 7);
    assert_eq!(rig.health.trouble().last_error.as_deref(), Some("504 Gateway Timeout: no"));
}

/// With one node gone the others take everything.
#[tokio::test]
async fn an_unreachable_nodes_documents_go_to_the_others() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    for _ in 0..50 {
        rig.put(Encoding::Identity, CREATE, 10, 2000).await;
    }
    let mut settings = ElasticsearchSettings { max_request_bytes: 64 << 10, ..settings(&node) };
    settings.endpoints.insert(0, "http://127.0.0.1:1/es".parse().unwrap());
    rig.drain(settings).await;
    node.assert_has(0..500);
    assert_eq!(rig.page().delivered, 500);
}

/// Under every kind of trouble at once the sink stays within its memory, and everything arrives once.
#[tokio::test]
async fn everything_arrives_through_trouble_within_little_memory() {
    for gzip in [None, Some(1)] {
        let trouble = [
            Answer::Every(3, 429),
            Answer::Lost,
            Answer::Status(503, "busy"),
            Answer::Every(2, 503),
            // No document alone is longer.
            Answer::AtMost(1000),
            Answer::Ok,
        ];
        let script = trouble.iter().cycle().take(60).cloned();
        let (mut rig, node) = (Rig::new(256 << 10), Node::new(script));
        for round in 0..60 {
            let encoding = if round % 2 == 0 { Encoding::Gzip } else { Encoding::Identity };
            rig.put(encoding, CREATE, 20, 10 * round).await;
        }
        rig.drain(ElasticsearchSettings { gzip, ..settings(&node) }).await;
        node.assert_has(0..1200);
        assert_eq!((rig.page().delivered, rig.dropped()), (1200, vec![]));
    }
}

/// A redirection is followed once, on the same host; what is elsewhere is tried again, and `/status` names the place.
#[tokio::test]
async fn redirections_are_followed_on_the_same_host() {
    for status in [307, 308] {
        let (mut rig, node) = (Rig::new(PART), Node::new([]));
        rig.put(Encoding::Identity, r#"{"create":{"_index":"i"}}"#, 7, 50).await;
        let path = "/es/_bulk?timeout=5000ms&moved";
        let elsewhere = format!("http://localhost:{}{path}", node.address.port());
        let script = [path.to_owned(), elsewhere].map(|place| Answer::Redirect(status, place));
        node.answers(script);
        rig.drain(settings(&node)).await;
        node.assert_has(0..7);
        assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 7));
        let requests = node.seen().requests.len();
        assert_eq!(requests, 3);
        let error = rig.health.trouble().last_error.unwrap();
        assert!(error.contains("307") || error.contains("308"), "{error}");
        assert!(error.contains("it is at http://localhost:") && error.contains("`endpoints`"), "{error}");
    }
}
