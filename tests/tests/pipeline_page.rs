//! The page `/pipelines` of a whole gateway: steps are tried on what was pasted and on what arrives, and the gateway does not notice.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_tests::http::Answer;
use tidegate_tests::{Gateway, SOON, http, until};

const MIB: u64 = 1 << 20;
const JSON: &str = "Content-Type: application/json";
const FORM: &str = "Content-Type: multipart/form-data; boundary=x";

fn gateway() -> Gateway {
    let mut gateway = Gateway::new(json!({
        "memory": "96MiB",
        "pipelines": {
            "clean": {"steps": [
                {"name": "quiet", "drop": "log.severity_number < SEVERITY_NUMBER_WARN"},
                {"edit": "set(log.attributes[\"salt\"], \"${SALT}\")"},
            ]},
            "names": {"steps": [{"relabel": [{"regex": "replica", "action": "labeldrop"}]}]},
        },
        "sinks": {
            "a": {"type": "blackhole", "pipeline": "clean"},
            "b": {"type": "blackhole", "pipeline": "names"},
        },
    }));
    gateway.set_variable("SALT", "s3cret-salt");
    gateway.start();
    gateway
}

/// The report of a trial.
fn tried(gateway: &Gateway, steps: &str, items: &str) -> Value {
    let answer = send(gateway, "", JSON, json!({"steps": steps, "items": items}).to_string().as_bytes(), &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn send(gateway: &Gateway, query: &str, content_type: &str, body: &[u8], more: &[&str]) -> Answer {
    let line = format!("POST /pipelines{query} HTTP/1.1");
    let head = [&[&*line, "Connection: close", content_type], more].concat();
    http::request(gateway.admin(), &head, body).unwrap()
}

fn form(steps: &str, items: &str) -> Vec<u8> {
    let part = |name: &str, text: &str| {
        format!(
            "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{}\r\n",
            text.replace('\n', "\r\n")
        )
    };
    format!("{}{}--x--\r\n", part("steps", steps), part("items", items)).into_bytes()
}

fn logs(body: &str) -> String {
    let record = json!({"severityNumber": 17, "body": {"stringValue": body}});
    json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string()
}

fn post_logs(gateway: &Gateway, body: &str) {
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, logs(body).as_bytes()).unwrap().status, 200);
}

/// Both languages, with what each statement did; and the gateway's counts, log and configuration do not know of it.
#[test]
fn a_relabel_and_an_edit_are_tried_and_leave_no_trace() {
    let gateway = gateway();
    let steps =
        "- edit:\n    - set(log.attributes[\"env\"], \"prod\")\n- drop: log.body == \"unwanted-text\"";
    let report = tried(
        &gateway,
        steps,
        "{\"body\": \"a\", \"attributes\": {\"n\": 1}}\n{\"body\": \"unwanted-text\"}\n{\"bdy\": 1}",
    );
    assert_eq!(report["items"][0]["changes"][0]["path"], "attributes.env", "{report}");
    assert_eq!(report["items"][1]["dropped_by"], 1);
    assert_eq!(report["items_problems"][0]["line"], 3);

    let rules = "- { regex: replica, action: labeldrop }\n- { source_labels: [job], regex: b, action: drop }";
    let body = form(rules, "up{job=\"a\",replica=\"0\"} 1\nup{job=\"b\",replica=\"1\"} 1");
    let page = send(&gateway, "", FORM, &body, &[]);
    assert_eq!(page.status, 200);
    let text = page.text();
    for shown in [
        "2 items: 1 changed, 1 dropped, 0 unchanged",
        "Dropped by step 1: relabel rule 2: drop",
        "<del>replica=\"0\"</del>",
        "up{job=\"a\",replica=\"0\"} 1\nup{job=\"b\"",
        "</html>",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let problem = send(&gateway, "", FORM, &form("- edit:\n    - sett(log.body, 1)", "up"), &[]).text();
    assert!(
        problem.contains("Steps, line 2")
            && problem.contains("^^^^")
            && problem.contains("did you mean `set`?"),
        "{problem}"
    );

    assert!(!gateway.log().contains("unwanted-text"), "{}", gateway.log());
    assert_eq!(gateway.status()["books"]["journal"]["accepted"], 0);
    post_logs(&gateway, "x");
    gateway.at_rest(SOON);
    gateway.books_close();
}

/// The configured pipelines are shown with their counts, as they are written; a form begins with their steps.
#[test]
fn the_configured_pipelines_are_shown_without_secrets() {
    let gateway = gateway();
    post_logs(&gateway, "x");
    gateway.at_rest(SOON);
    let page = gateway.page("/pipelines?load=clean").text();
    for shown in [
        "<b>clean</b>, before the sink a",
        "<td class=\"left\">quiet</td>",
        "<td class=\"right\">1</td>",
        "${SALT}",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(gateway.page("/status?format=html").text().contains("href=\"/pipelines\""));
    // A trial has neither the gateway's environment nor its files.
    let loaded = send(
        &gateway,
        "?load=clean",
        FORM,
        &form("", &json!({"body": "x", "severity_number": 17}).to_string()),
        &[],
    );
    let text = loaded.text();
    assert!(
        text.contains("1 item: 1 changed") && text.contains("the environment is not read here"),
        "{text}"
    );
    assert!(!format!("{page}{text}").contains("s3cret"), "{text}");
    let file = format!("- edit: set(log.body, \"${{file:{}}}\")", gateway.config().display());
    let report = tried(&gateway, &file, "{\"body\": 1}");
    assert!(
        report["items"].as_array().unwrap().is_empty()
            && !report["steps_problems"].as_array().unwrap().is_empty(),
        "{report}"
    );
}

/// Items that arrive while somebody waits for them become the items of the form.
#[test]
fn items_are_taken_from_what_arrives() {
    let gateway = gateway();
    let is_over = AtomicBool::new(false);
    let page = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                post_logs(&gateway, "just now");
            }
        });
        let page = send(&gateway, "?take=logs", FORM, &form("- edit: set(log.body, \"seen\")", "stale"), &[]);
        is_over.store(true, Relaxed);
        page
    });
    let text = page.text();
    assert!(text.contains("Took ") && text.contains("\"body\":\"just now\""), "{text}");
    assert!(text.contains("<ins>&quot;seen&quot;</ins>") && !text.contains("stale"), "{text}");
    let none = send(&gateway, "?take=traces", FORM, &form("", "kept"), &[]).text();
    assert!(
        none.contains("No traces were received within 3 seconds") && none.contains("kept</textarea>"),
        "{none}"
    );
    gateway.at_rest(SOON);
    gateway.books_close();
}

#[test]
fn other_sites_and_strangers_are_refused() {
    let gateway = gateway();
    let body = form("", "");
    for foreign in [
        &["Origin: https://evil.example"][..],
        &["Origin: null"],
        &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    ] {
        assert_eq!(send(&gateway, "?take=logs", FORM, &body, foreign).status, 403, "{foreign:?}");
    }
    let own = format!("Origin: http://{}", gateway.admin());
    assert_eq!(send(&gateway, "", FORM, &body, &[&own, "Sec-Fetch-Site: same-origin"]).status, 200);
}

/// Whatever is tried, the gateway stays within its memory, gives back what the trial had, and answers others meanwhile.
#[test]
fn hostile_trials_are_ended_and_leave_nothing_behind() {
    let mut gateway = gateway();
    let maps = format!("{{\"body\": [{}]}}", vec!["{\"\":0}"; 15_000].join(","));
    let names: String =
        (0..700).map(|n| format!("    - set(log.attributes[\"k{n}\"], log.body)\n")).collect();
    let patterns: String = (0..200)
        .map(|n| format!("    - replace_pattern(log.body, \"(?i)\\\\pL{{40}}x{n}\", \"y\")\n"))
        .collect();
    let double = "- edit: set(log.body, Concat([log.body, log.body], \"\"))\n- edit: set(resource.attributes[\"a\"], \"x\")\n".repeat(30);
    let item = "{\"body\": \"some text that is not long\"}\n";
    for (what, steps, items) in [
        ("maps", "- edit: set(log.body, 1)".to_owned(), maps),
        ("statements", format!("- edit:\n{names}"), item.repeat(300)),
        ("patterns", format!("- edit:\n{patterns}"), item.repeat(10)),
        ("lengths", double, item.repeat(100)),
    ] {
        let body = json!({"steps": steps, "items": items}).to_string();
        let answer = send(&gateway, "", JSON, body.as_bytes(), &[]);
        println!("{what}: {} {:.150}", answer.status, answer.text());
        assert!([200, 422].contains(&answer.status), "{what}: {}", answer.text());
        assert_eq!(gateway.page("/health").status, 200);
    }
    // A client that leaves takes its trial along: the next one has its turn soon.
    let steps = json!({"steps": format!("- edit:\n{patterns}"), "items": item.repeat(50)}).to_string();
    let head = format!(
        "POST /pipelines HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: {}\r\n\r\n{steps}",
        steps.len()
    );
    let mut client = http::Client::connect(gateway.admin()).unwrap();
    client.send(head.as_bytes()).unwrap();
    drop(client);
    let small = json!({"steps": "- drop: log.body == \"a\"", "items": item}).to_string();
    until(SOON + Duration::from_secs(10), "the next trial", || {
        send(&gateway, "", JSON, small.as_bytes(), &[]).status == 200
    });
    let status = gateway.status();
    let shares = status["memory"]["payload"]["shares"].as_array().unwrap();
    let ingest = shares.iter().find(|share| share["name"] == "ingest").unwrap();
    assert_eq!(ingest["used"], 0, "{ingest}");
    assert!(ingest["peak"].as_u64().unwrap() >= 12 * MIB, "the trials were charged: {ingest}");
    assert!(gateway.hwm() <= 96 * MIB, "{}", gateway.hwm());
    let tasks = std::fs::read_dir(format!("/proc/{}/task", gateway.process().pid())).unwrap();
    for task in tasks {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        assert_eq!(children.trim(), "", "no process is left");
    }
    gateway.books_close();
}
