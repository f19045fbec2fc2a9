use super::*;
use crate::exclusion::Exclusion;
use crate::pod::{Container, Owner};
use proptest::prelude::*;
use serde_json::{Value, json};

const LIMIT: usize = 16 << 10;

fn fields() -> Fields {
    Fields { labels: vec!["app".into(), "team/*".into()], ..Fields::default() }
}

/// A pod as the API server writes it, shortened.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "generateName": "web-5d78c9869d-",
            "namespace": "shop",
            "uid": "0b6e1f0c",
            "resourceVersion": "42",
            "creationTimestamp": "2026-01-31T12:34:56Z",
            "labels": {"app": "web", "pod-template-hash": "5d78c9869d", "team/name": "checkout", "other": "x"},
            "annotations": {"fluentbit.io/exclude_stderr-proxy": "true", "big": "x".repeat(100_000)},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d78c9869d", "uid": "77", "controller": true,
            }],
            "managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}}],
        },
        "spec": {
            "nodeName": "node-1",
            "initContainers": [{"name": "init", "image": "busybox"}],
            "containers": [
                {"name": "web", "image": "shop/web:1.2", "env": [{"name": "name", "value": "not this"}]},
                {"image": "envoy@sha256:0a", "name": "proxy"},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{
                "name": "web",
                "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 1, "containerID": "containerd://old"}},
                "ready": true,
                "restartCount": 2,
                "image": "sha256:11",
                "containerID": "containerd://new",
            }],
        },
    })
}

fn container(name: &str, image: &str) -> Container {
    Container { name: name.into(), image: image.into(), ..Container::default() }
}

fn decode(mut decoder: Decoder<'_>, text: &str, chunk: usize) -> (Vec<Event>, Result<(), DecodeError>) {
    let mut events = Vec::new();
    for chunk in text.as_bytes().chunks(chunk.max(1)) {
        if let Err(error) = decoder.feed(chunk, |event| events.push(event)) {
            return (events, Err(error));
        }
    }
    let end = decoder.end();
    (events, end)
}

fn pods_of(events: Vec<Event>) -> Vec<Pod> {
    events
        .into_iter()
        .filter_map(|event| if let Event::Pod(_, pod) = event { Some(*pod) } else { None })
        .collect()
}

fn the_pod(value: &Value) -> Pod {
    let text = json!({"metadata": {"resourceVersion": "7"}, "items": [value]}).to_string();
    let (events, end) = decode(Decoder::list(&fields(), LIMIT), &text, 1000);
    assert_eq!(end, Ok(()));
    pods_of(events).remove(0)
}

#[test]
fn keeps_what_is_needed_of_a_pod() {
    let pod = the_pod(&pod("web-5d78c9869d-x"));
    assert_eq!((&*pod.name, &*pod.namespace, &*pod.uid), ("web-5d78c9869d-x", "shop", "0b6e1f0c"));
    assert_eq!((&*pod.log_uid, &*pod.node), ("0b6e1f0c", "node-1"));
    let labels: Vec<(&str, &str)> = pod.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(labels, [("app", "web"), ("team/name", "checkout")]);
    let owner = Owner {
        kind: "ReplicaSet".into(),
        name: "web-5d78c9869d".into(),
        uid: "77".into(),
        controller: Some("web".into()),
    };
    assert_eq!(pod.owner, Some(owner));
    let web = Container {
        restart_count: 2,
        id: "new".into(),
        previous_id: "old".into(),
        ..container("web", "shop/web:1.2")
    };
    assert_eq!(pod.containers, [web, container("proxy", "envoy@sha256:0a"), container("init", "busybox")]);
    assert_eq!(pod.container("web").unwrap().id_after(1), Some("old"));
    assert_eq!(pod.container("web").unwrap().id_after(0), None);
    assert_eq!(pod.exclusion("proxy"), Exclusion { stdout: false, stderr: true });
    assert_eq!(pod.exclusion("web"), Exclusion::default());
    assert!(!pod.is_cut);
    assert!((200..2000).contains(&pod.bytes()), "{}", pod.bytes());
}

/// The copy of a static pod in the API has another uid than the folder of its logs.
#[test]
fn a_static_pod_is_known_by_the_hash_of_its_configuration() {
    let mut value = pod("etcd-node-1");
    value["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("d41d8cd9");
    let pod = the_pod(&value);
    assert_eq!((&*pod.uid, &*pod.log_uid), ("0b6e1f0c", "d41d8cd9"));
}

#[test]
fn names_tell_deployments_and_cron_jobs() {
    let controller = |kind: &str, name: &str| {
        let mut value = pod("x");
        value["metadata"]["ownerReferences"][0]["kind"] = json!(kind);
        value["metadata"]["ownerReferences"][0]["name"] = json!(name);
        the_pod(&value).owner.unwrap().controller
    };
    assert_eq!(controller("ReplicaSet", "web-5d78c9869d").as_deref(), Some("web"));
    // Made by hand: its name only looks like that of a Deployment's.
    assert_eq!(controller("ReplicaSet", "web-12345"), None);
    // 2026-01-31T12:30:00Z in minutes.
    assert_eq!(controller("Job", "backup-29497710").as_deref(), Some("backup"));
    assert_eq!(controller("Job", "backup-20260131"), None);
    assert_eq!(controller("StatefulSet", "db-5d78c9869d"), None);
    assert_eq!(controller("ReplicaSet", "-5d78c9869d"), None);
}

#[test]
fn an_owner_that_does_not_control_the_pod_is_none() {
    let mut value = pod("x");
    value["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    assert_eq!(the_pod(&value).owner, None);
}

/// Fields that are `null` or of another type are as if they were not there.
#[test]
fn odd_fields_do_no_harm() {
    let mut value = pod("x");
    value["metadata"]["labels"] = json!(null);
    value["metadata"]["annotations"] = json!([1, {"a": "b"}]);
    value["metadata"]["ownerReferences"] = json!("none");
    value["spec"]["containers"] = json!([[], "a", {"name": ["web"]}, {"name": "web"}]);
    value["status"] = json!(7);
    let pod = the_pod(&value);
    assert_eq!((pod.labels.len(), pod.owner), (0, None));
    assert_eq!(pod.containers.iter().map(|found| &*found.name).collect::<Vec<_>>(), ["web", "init"]);
}

#[test]
fn a_large_pod_is_cut() {
    let mut value = pod("x");
    for number in 0..1000 {
        value["metadata"]["labels"][format!("team/{number}")] = json!("y".repeat(60));
    }
    value["metadata"]["annotations"]["vector.dev/exclude-containers"] = json!("a,".repeat(2000));
    let pod = the_pod(&value);
    assert!(pod.is_cut);
    assert!(pod.bytes() <= LIMIT);
    assert!(pod.labels.len() < 200);
}

#[test]
fn a_list_has_pages() {
    let text = json!({
        "kind": "PodList",
        "metadata": {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3},
        "items": [pod("a"), pod("b")],
    });
    let (events, end) = decode(Decoder::list(&fields(), LIMIT), &text.to_string(), 77);
    assert_eq!(end, Ok(()));
    let page = Event::Page { version: "7".into(), next: Some("token".into()) };
    assert_eq!(events.last(), Some(&page));
    assert_eq!(pods_of(events).iter().map(|pod| pod.name.to_string()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_watch_tells_events() {
    let event = |kind: &str, object: Value| json!({"type": kind, "object": object}).to_string() + "\n";
    let status = json!({"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410});
    let bookmark = json!({"kind": "Pod", "metadata": {"resourceVersion": "50", "creationTimestamp": null}});
    let text = [
        event("ADDED", pod("a")),
        event("BOOKMARK", bookmark),
        event("DELETED", pod("a")),
        event("ERROR", status),
        event("LATER", json!({})),
    ];
    let fields = fields();
    let mut decoder = Decoder::watch(&fields, LIMIT);
    let mut found = Vec::new();
    for (text, version) in text.iter().zip(["42", "50", "42", "42", "42"]) {
        let take = |event| {
            found.push(match event {
                Event::Pod(change, pod) => format!("{change:?} {}", pod.name),
                Event::Failed(failure) => format!("{} {}", failure.code, failure.message),
                other => format!("{other:?}"),
            })
        };
        decoder.feed(text.as_bytes(), take).unwrap();
        assert_eq!(decoder.version(), version);
    }
    assert_eq!(found, ["Applied a", "Bookmark", "Deleted a", "410 too old"]);
    assert_eq!(decoder.end(), Ok(()));
}

proptest! {
    /// Chunks make no difference, and neither does the order of the fields.
    #[test]
    fn chunks_make_no_difference(chunk in 1usize..5000, cut in 0usize..3000) {
        let text = json!({"type": "ADDED", "object": pod("a")}).to_string() + "\n";
        let reversed = format!("{{\"object\":{},\"type\":\"ADDED\"}}\n", pod("a"));
        let fields = fields();
        let whole = decode(Decoder::watch(&fields, LIMIT), &text, usize::MAX);
        prop_assert_eq!(&decode(Decoder::watch(&fields, LIMIT), &text, chunk), &whole);
        prop_assert_eq!(&decode(Decoder::watch(&fields, LIMIT), &reversed, chunk), &whole);
        let (events, end) = decode(Decoder::watch(&fields, LIMIT), &text[..text.len() - 2 - cut], chunk);
        prop_assert_eq!((events, end), (vec![], Err(DecodeError::Truncated)));
    }
}

#[test]
fn other_text_is_refused() {
    let fields = fields();
    for text in ["<html>", "upstream connect error", "{\"items\": oops }"] {
        let (_, end) = decode(Decoder::list(&fields, LIMIT), text, 3);
        assert!(end.is_err(), "{text}");
    }
    let long = json!({"metadata": {"continue": "x".repeat(10_000)}}).to_string();
    assert_eq!(decode(Decoder::list(&fields, LIMIT), &long, 999).1, Err(DecodeError::TooLong("continue")));
    assert_eq!(decode(Decoder::list(&fields, LIMIT), "", 1).1, Err(DecodeError::Truncated));
}
