//! Whatever is wrong with a configuration, no message repeats a secret in it.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use proptest::prelude::*;
use tidegate_config::{effective, parse};

/// Lines of a sink. `SECRET` stands where a secret does.
const IN_A_SINK: [&str; 44] = [
    "password: SECRET",
    "password: \"SECRET\"",
    "password: 'SECRET'",
    "password: [SECRET]",
    "password: [a, [SECRET], {b: SECRET}]",
    "password: {SECRET: 1}",
    "password: {a: SECRET, a: SECRET}",
    "password: {SECRET: 1, SECRET: 2}",
    "password: *SECRET",
    "password: &SECRET",
    "password: &a SECRET",
    "password: !SECRET x",
    "password: !x SECRET",
    "password: @SECRET",
    "password: %SECRET",
    "password: \"SECRET",
    "password: [SECRET",
    "password: x: SECRET",
    "password: |\n      SECRET",
    "password: >-\n      SECRET\n      SECRET",
    "password: \"${SECRET\"",
    "password: \"${NONE:-SECRET\"",
    "password: \"${VARIABLE}\"",
    "password: [\"${VARIABLE}\"]",
    "password: \"${VARIABLE}\\n\"",
    "password:SECRET",
    "passwrd: SECRET",
    "passwrd: [SECRET, {x: SECRET}]",
    "pass word: SECRET",
    "api_key: SECRET",
    "api_key: [SECRET]",
    "api_key: {id: a, api_key: SECRET}",
    "headers: SECRET",
    "headers: [SECRET]",
    "headers: {authorization: SECRET}",
    "headers: {authorization: [SECRET]}",
    "headers: {Bearer SECRET}",
    "headers: {\"Bearer SECRET\": x}",
    "headers: {authorization: {Bearer: SECRET}}",
    "headers: {host: SECRET}",
    "tls: {key_file: /k, key: SECRET}",
    "timeout: much # SECRET",
    "timeout: much\n    # password: SECRET",
    "<<: SECRET",
];

/// Places for a URL, which holds a secret.
const URLS: [&str; 10] = [
    "http://me:SECRET@host/",
    "http://SECRET@host:1/x",
    "http://me:SE/SECRET@host",
    "http://host/?api_key=SECRET",
    "http://far.example/p?token=SECRET&x=1",
    "http://host:port/?SECRET",
    "http://host/p?key=SECRET#fragment",
    "ftp://me:SECRET@host/",
    "SECRET://host",
    "http://${VARIABLE}@host/?k=${VARIABLE}",
];

/// Lines at the top.
const AT_THE_TOP: [&str; 12] = [
    "api_key: SECRET",
    "secret:\n  deeper: [SECRET, {x: SECRET}]",
    "# SECRET",
    "memory: much # password SECRET",
    "memory: 96MiB # SECRET",
    "journal: SECRET",
    "sinks: SECRET",
    "sources: [SECRET]",
    "access: {token: SECRET, credentials: [SECRET]}",
    "listen: {http: 0.0.0.0:4318, tokn: SECRET}",
    "token:SECRET",
    "? [SECRET]\n: x",
];

fn document(kind: &str, url: &str, lines: &[usize], top: Option<usize>, flow: bool) -> String {
    let lines: Vec<&str> = lines.iter().map(|&line| IN_A_SINK[line % IN_A_SINK.len()]).collect();
    let key = if kind == "prometheus_remote_write" { "url" } else { "endpoints" };
    let top = top.map_or("", |line| AT_THE_TOP[line % AT_THE_TOP.len()]);
    if flow {
        // All on one line, so that every mistake is shown beside all the others.
        let lines = lines.join(", ").replace('\n', " ");
        return format!("sinks: {{ up: {{ type: {kind}, {key}: '{url}', {lines} }} }}\n{top}\n");
    }
    let lines = lines.join("\n    ");
    format!("{top}\nsinks:\n  up:\n    type: {kind}\n    {key}: '{url}'\n    {lines}\n    user: me\n")
}

/// `core` is a part of the secret that has nothing in it by which a parser would split it.
fn holds_nothing_of(core: &str, text: &str) {
    let secret = format!("x{core}-y");
    let environment = |name: &str| (name == "VARIABLE").then(|| secret.clone());
    let text = text.replace("SECRET", &secret);
    let shown = match parse("a.yaml", &text, &environment) {
        Err(errors) => {
            let fields: Vec<_> = errors.problems().iter().map(|problem| format!("{problem:?}")).collect();
            format!("{errors}\n{}\n{}", errors.coloured(), fields.join("\n"))
        }
        Ok(config) => format!("{}\n{config:?}", effective(&config)),
    };
    assert!(!shown.contains(core), "{text}\n---\n{shown}");
}

#[test]
fn each_mistake_alone_shows_no_secret() {
    for kind in ["elasticsearch", "http", "otlp", "prometheus_remote_write", "splunk_hec", "nonsense"] {
        for flow in [false, true] {
            for line in 0..IN_A_SINK.len() {
                holds_nothing_of("Zq7wKp", &document(kind, "http://127.0.0.1:1/w", &[line], None, flow));
            }
            for url in URLS {
                holds_nothing_of("Zq7wKp", &document(kind, url, &[], None, flow));
            }
            for top in 0..AT_THE_TOP.len() {
                holds_nothing_of("Zq7wKp", &document(kind, "http://127.0.0.1:1/w", &[], Some(top), flow));
            }
        }
    }
}

proptest! {
    /// Wherever secrets stand, and whatever is wrong beside them.
    #[test]
    fn no_message_holds_a_secret(
        core in "Zq[A-Za-z0-9]{6,12}",
        kind in prop::sample::select(vec!["elasticsearch", "http", "otlp", "prometheus_remote_write", "splunk_hec", "lake"]),
        url in prop::sample::select(URLS.to_vec()),
        lines in prop::collection::vec(0..IN_A_SINK.len(), 0..5),
        top in prop::option::of(0..AT_THE_TOP.len()),
        flow in any::<bool>(),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut text = document(kind, url, &lines, top, flow);
        if is_cut {
            // In the middle of something, but not of the secret.
            let end = cut.index(text.len());
            let end = text.match_indices("SECRET").find(|(at, _)| (*at..at + 6).contains(&end)).map_or(end, |(at, _)| at);
            text.truncate(end);
        }
        holds_nothing_of(&core, &text);
    }
}
