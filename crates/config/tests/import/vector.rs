//! Configurations of Vector.

use super::{matches_golden, read};
use proptest::prelude::*;
use tidegate_config::{Imported, parse, vector};

const FILES: [&str; 7] = [
    "vector-agent.yaml",
    "vector-aggregator.yaml",
    "vector-access-logs.toml",
    "vector-decoding.yaml",
    "vector-failures.yaml",
    "vector-remap.yaml",
    "vector-routes.toml",
];

fn import(name: &str, text: &str) -> Result<Imported, String> {
    vector(&[(name.to_owned(), text.to_owned())]).map_err(|errors| errors.to_string())
}

#[test]
fn configurations_of_vector_are_converted() {
    for file in FILES {
        let imported = import(file, &read(file)).unwrap_or_else(|errors| panic!("{errors}"));
        let name = file.split('.').next().unwrap_or(file);
        matches_golden(name, &imported);
    }
}

/// Several files are one configuration, and notes tell the file.
#[test]
fn several_files_are_one_configuration() {
    let files = [
        ("a.toml", "[sources.app]\ntype = \"file\"\ninclude = [\"/a.log\"]\nhost_key = \"h\"\n"),
        ("b.yaml", "sinks:\n  out: { type: console, inputs: [app] }\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let imported = vector(&files).unwrap_or_else(|errors| panic!("{errors}"));
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.starts_with("a.toml:4: `sources.app.host_key`")), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("b.yaml:2: `sinks.out`")), "{notes:?}");
    let broken = [
        files[0].clone(),
        ("b.yaml".to_owned(), "sinks:\n  out: { type: consle, inputs: [ap] }\n".to_owned()),
    ];
    let errors = vector(&broken).unwrap_err().to_string();
    assert!(errors.contains("b.yaml:2:16") && errors.contains("did you mean `console`"), "{errors}");
    assert!(errors.contains("did you mean `app`"), "{errors}");
}

/// Each mistake has its place and a remedy, all at once.
#[test]
fn mistakes_are_reported_with_their_positions() {
    let text = "\
sources:
  app: { include: [/a.log] }
  web: { type: fiel, include: [/a.log] }
transforms:
  a: { type: remap, inputs: [b], source: '.x = 1' }
  b: { type: filter, inputs: [a], condition: '.x == 1' }
  c: { type: route, route: { x: '.a == 1' } }
sinks:
  out: { type: console, inputs: [a, nothing, c.y] }
  bad: { type: loki, inputs: [web] }
";
    let errors = import("v.yaml", text).unwrap_err();
    for expected in [
        "v.yaml:2:3",
        "`sources.app` has no `type`",
        "v.yaml:3:16",
        "did you mean `file`",
        "lead back to itself",
        "`transforms.c` has no `inputs`",
        "there is no output `nothing`",
        "`sinks.bad` has no `endpoint`",
    ] {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
    for (name, text, expected) in [
        ("v.toml", "[sources.a\ntype = 1", "v.toml:1"),
        ("v.toml", "a = 1\na = 2", "v.toml:2"),
        ("v.yaml", "sources:\n\tapp:", "v.yaml:2"),
        ("v.yaml", "", "there are no `sinks`"),
        ("v.yaml", "- a", "is a group"),
    ] {
        let errors = import(name, text).unwrap_err();
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
}

/// Statements that are not understood are named with their lines, and stay: `check` refuses the result.
#[test]
fn refused_statements_are_named_and_stay() {
    for (statement, transform) in [
        (".a = unnest(.b)", "remap"),
        ("for_each(object!(.)) -> |k, v| { .a = k }", "remap"),
        (".a = (", "remap"),
        ("abort_all!", "remap"),
    ] {
        let text = format!(
            "sources:\n  in: {{ type: stdin }}\ntransforms:\n  t:\n    type: {transform}\n    inputs: [in]\n    source: |\n      .x = 1\n      {statement}\n\
             sinks:\n  out: {{ type: console, inputs: [t] }}\n"
        );
        let imported = import("v.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let named = |note: &tidegate_config::Note| {
            note.setting == "transforms.t.source"
                && note.line == Some(9)
                && note.message.contains("refuses it")
        };
        assert!(imported.notes.iter().any(named), "{:?}", imported.notes);
        assert!(parse("printed", &imported.configuration, &|_| None).is_err(), "{}", imported.configuration);
    }
}

/// Nothing is lost silently: a setting that nobody knows, wherever it stands, is noted or an error.
#[test]
fn an_unknown_setting_anywhere_is_named() {
    for file in FILES.iter().filter(|file| file.ends_with(".yaml")) {
        let text = read(file);
        for (at, _) in text.match_indices("{ ") {
            let (before, after) = text.split_at(at + 2);
            let with = format!("{before}surprise_setting: 1, {after}");
            let Ok(imported) = import(file, &with) else { continue };
            let line = before.matches('\n').count() + 1;
            let is_named = imported.configuration.lines().any(|line| line.contains("surprise_setting"))
                // The group or the component as a whole was noted.
                || imported.notes.iter().any(|note| note.line == Some(line))
                || imported.notes.iter().any(|note| note.line == Some(super::component(before)));
            assert!(is_named, "{file}, byte {at}: {}", &text[at..text.len().min(at + 60)]);
        }
    }
}

/// Without a decoder of ours, transforms would not find the fields that they remove.
#[test]
fn unknown_codecs_are_refused() {
    for codec in ["gelf", "avro", "csv"] {
        let text = format!(
            "sources:\n  in: {{ type: http_server, address: 127.0.0.1:80, decoding: {{ codec: {codec} }} }}\n\
             transforms:\n  t: {{ type: remap, inputs: [in], source: 'del(.password)' }}\n\
             sinks:\n  out: {{ type: console, inputs: [t] }}\n"
        );
        let imported = import("v.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(imported.notes.iter().any(|note| note.message.contains("refuses the result")), "{codec}");
        assert!(parse("printed", &imported.configuration, &|_| None).is_err(), "{}", imported.configuration);
    }
}

/// Values that are brought into our bounds, or read differently, have a note.
#[test]
fn changed_values_are_named() {
    let text = "\
sources:
  a: { type: file, include: [/a], multiline: { mode: halt_with, start_pattern: x, condition_pattern: y } }
  b: { type: file, include: [/b], multiline: { mode: continue_past, start_pattern: x, condition_pattern: y } }
sinks:
  out:
    type: http
    inputs: [a, b]
    uri: http://127.0.0.1:80/in
    encoding: { codec: json, only_fields: [level] }
    request: { concurrency: 1000 }
    batch: { max_bytes: 1 }
";
    let imported = import("v.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let named = |setting: &str| imported.notes.iter().any(|note| note.setting == setting);
    for setting in [
        "sources.a.multiline.start_pattern",
        "sources.b.multiline.mode",
        "sinks.out.request.concurrency",
        "sinks.out.batch.max_bytes",
    ] {
        assert!(named(setting), "{setting}: {:?}", imported.notes);
    }
    assert!(imported.configuration.contains("set(log.body, nil)"), "{}", imported.configuration);
}

/// Branches that join multiply the ways; that does not keep the importer busy.
#[test]
fn many_ways_are_refused() {
    let mut text = String::from("[sources.s]\ntype = \"stdin\"\n");
    let mut before = "s".to_owned();
    for layer in 0..20 {
        for twin in ["a", "b"] {
            text.push_str(&format!(
                "[transforms.{twin}{layer}]\ntype = \"remap\"\ninputs = [{}]\nsource = '.{twin}{layer} = 1'\n",
                before.split(' ').map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
            ));
        }
        before = format!("a{layer} b{layer}");
    }
    text.push_str("[sinks.out]\ntype = \"blackhole\"\ninputs = [\"a19\", \"b19\"]\n");
    let errors = import("v.toml", &text).unwrap_err();
    assert!(errors.contains("more than 3000 ways"), "{errors}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// No file makes the importer panic, and what it prints is always YAML.
    #[test]
    fn damaged_files_are_converted_or_refused(
        which in 0..FILES.len(),
        cuts in proptest::collection::vec((0_usize..4000, 0_usize..40, "[a-z:\\[\\]{}, \n$\"'=.!-]{0,4}"), 1..4),
    ) {
        let mut text: Vec<char> = read(FILES[which]).chars().collect();
        for (at, len, with) in cuts {
            let at = at % text.len().max(1);
            let end = (at + len).min(text.len());
            text.splice(at..end, with.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(imported) = import(FILES[which], &text) {
            let errors = parse("printed", &imported.configuration, &|_| Some("value".to_owned())).err();
            let problems = errors.iter().flat_map(|errors| errors.problems());
            for problem in problems {
                prop_assert!(!problem.message.contains("not valid YAML"), "{}\n{}", problem.message, imported.configuration);
            }
        }
    }
}
