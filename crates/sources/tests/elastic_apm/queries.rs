//! Agents' queries are answered: server information, and central configuration.

use crate::client::raw;
use crate::rig::Rig;
use serde_json::{Value, json};

async fn get(rig: &Rig, target: &str, headers: &str) -> crate::client::Answer {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    rig.serve(async |address| raw(address, request.as_bytes()).await).await
}

/// Agents learn the version; for others nothing is at the root.
#[tokio::test]
async fn agents_learn_the_servers_version() {
    let rig = Rig::new();
    let answer = get(&rig, "/", "User-Agent: apm-agent-python/6.26.2 (shop)\r\naccept: text/plain\r\n").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&said["version"], &said["publish_ready"]), (&json!("8.19.0"), &json!(true)));
    assert_eq!(get(&rig, "/", "User-Agent: curl/8.0\r\n").await.status, 404);
    assert_eq!(rig.books_of("elastic_apm").accepted, 1);
}

/// A page may read what its agent is told, whatever its origin, and the agent says in the query what it has.
#[tokio::test]
async fn agents_in_browsers_ask_across_origins() {
    let rig = Rig::new();
    let target = "/config/v1/rum/agents?service.name=shop&service.environment=test";
    let origin = "Origin: https://shop.example\r\n";
    let answer = get(&rig, target, origin).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(answer.header("access-control-expose-headers"), Some("Etag"));
    let tag = answer.header("etag").unwrap().trim_matches('"').to_owned();
    for known in [tag.clone(), format!("%22{tag}%22")] {
        let answer = get(&rig, &format!("{target}&ifnonematch={known}"), origin).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (304, Some("*")));
    }
    for (target, status) in
        [("/config/v1/rum/agents?service.name=other", 200), ("/config/v1/rum/agents", 400)]
    {
        let answer = get(&rig, target, origin).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some("*")));
    }
    let asked = "OPTIONS /config/v1/rum/agents HTTP/1.1\r\nHost: a\r\nOrigin: https://shop.example\r\n\
                 Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: if-none-match\r\n\r\n";
    let answer = rig.serve(async |address| raw(address, asked.as_bytes()).await).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("If-None-Match"));
    // Not to be mistaken for what services ask.
    let answer = get(&rig, "/config/v1/agents?service.name=shop", origin).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    let refused = get(&rig, "/intake/v2/rum/events", origin).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (400, Some("*")));
}

/// Settings are told once, in both forms of the question.
#[tokio::test]
async fn agents_get_their_settings_once() {
    let rig = Rig::new();
    let target = "/config/v1/agents?service.name=shop&service.environment=test";
    let slash = target.replace('?', "/?");
    for target in [target, &slash] {
        assert_eq!(get(&rig, target, "").await.status, 200, "{target}");
    }
    let answer = get(&rig, target, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("cache-control"), Some("max-age=30, must-revalidate"));
    assert_eq!(
        serde_json::from_slice::<Value>(&answer.body).unwrap(),
        json!({"transaction_sample_rate": "0.5"})
    );
    let tag = answer.header("etag").unwrap().to_owned();
    let answer = get(&rig, target, &format!("If-None-Match: {tag}\r\n")).await;
    assert_eq!((answer.status, answer.header("etag"), answer.text().as_str()), (304, Some(&*tag), ""));

    let json = ("content-type", "application/json");
    let question = br#"{"service": {"name": "shop", "environment": "test"}}"#;
    let answer = rig.post("/config/v1/agents", &[json], question).await;
    assert_eq!((answer.status, answer.header("etag")), (200, Some(&*tag)));
    let answer = rig.post("/config/v1/agents", &[json, ("if-none-match", &tag)], question).await;
    assert_eq!(answer.status, 304);
    let answer = rig.post("/config/v1/agents", &[json], br#"{"service":{"name":"other"}}"#).await;
    assert_eq!((answer.status, answer.text().as_str(), answer.header("etag")), (200, "{}\n", Some("\"-\"")));
    let answer = rig.post("/config/v1/agents", &[json], b"{}").await;
    assert_eq!((answer.status, answer.header("cache-control")), (400, Some("max-age=300, must-revalidate")));
    assert_eq!(
        serde_json::from_slice::<Value>(&answer.body).unwrap(),
        json!({"error": "service.name is required"})
    );
    assert_eq!(get(&rig, "/config/v1/agents", "").await.status, 400);
    assert_eq!(rig.books_of("elastic_apm").accepted, 9);
}
