//! Configurations of other programs become configurations of ours.
//!
//! Each file in `tests/import` has its conversion beside it: `UPDATE_GOLDEN=1` writes them anew.

use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_config::{
    CollectorVersion, Imported, fluent_bit, otelcol, parse, prometheus, thanos_receive, vmagent,
};

#[path = "import/fluent_bit.rs"]
mod fluent_bit_cases;
#[path = "import/vector.rs"]
mod vector;

const COLLECTORS: [&str; 15] = [
    "agent-to-backend",
    "attributes",
    "elasticsearch",
    "fan-out",
    "health-checks",
    "legacy-filter",
    "load-balancing",
    "log-files",
    "node-logs",
    "remote-write",
    "routing",
    "routing-behind-steps",
    "sampling",
    "tenants",
    "transform",
];

const FLUENT_BITS: [&str; 5] = [
    "fluent-bit-containers.conf",
    "fluent-bit-gateway.yaml",
    "fluent-bit-kubernetes.conf",
    "fluent-bit-rules.conf",
    "fluent-bit-steps.conf",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compares a conversion with the one that is stored, and has our own reader look at it.
fn matches_golden(name: &str, imported: &Imported) {
    let file = folder().join(format!("{name}.tidegate"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &imported.configuration).expect("a folder that can be written");
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        golden == imported.configuration,
        "{name}: UPDATE_GOLDEN=1 writes it anew\n{}",
        imported.configuration
    );
    let environment = |name: &str| Some(if name == "MY_POD_IP" { "10.0.0.1" } else { "value" }.to_owned());
    // Files of secrets are not read by `parse`.
    let text = imported.configuration.replace("${file:", "file:");
    if let Err(errors) = parse(name, &text, &environment) {
        panic!("{errors}\n{}", imported.configuration);
    }
}

/// Receivers and exporters of logs become sources and sinks of the same names.
#[test]
fn logs_are_received_and_sent_as_before() {
    let environment = |_: &str| Some("value".to_owned());
    let expected: [(&str, &[&str]); 3] = [
        ("loki", &["http: 0.0.0.0:3500", "type: loki", "http://loki:3100"]),
        (
            "splunk",
            &[
                "type: splunk_hec",
                "https://splunk:8088",
                "host_attribute: k8s.node.name",
                "compression: none",
            ],
        ),
        (
            "syslog",
            &["tls://0.0.0.0:54526", "udp://0.0.0.0:54527", "format: rfc5424", "framing: octet_counting"],
        ),
    ];
    for (name, texts) in expected {
        let source = format!("{name}.yaml");
        let imported = otelcol(&source, &read(&source), None).unwrap_or_else(|errors| panic!("{errors}"));
        let configuration = &imported.configuration;
        let settings: Vec<&str> = configuration.lines().filter(|line| !line.starts_with('#')).collect();
        for text in texts {
            assert!(settings.iter().any(|line| line.contains(text)), "{text} in\n{configuration}");
        }
        assert!(!settings.iter().any(|line| line.contains("services/collector") || line.contains("/push")));
        if let Err(errors) = parse(name, configuration, &environment) {
            panic!("{errors}\n{configuration}");
        }
    }
}

#[test]
fn configurations_of_collectors_are_converted() {
    for name in COLLECTORS {
        let source = format!("{name}.yaml");
        let imported = otelcol(&source, &read(&source), None).unwrap_or_else(|errors| panic!("{errors}"));
        matches_golden(name, &imported);
    }
}

/// Receivers whose names become the same stay apart.
#[test]
fn no_input_of_log_files_replaces_another() {
    let receivers: String = ["app", "App", "APP", "aPP"]
        .iter()
        .map(|name| format!("  filelog/{name}: {{ include: [/srv/{name}.log] }}\n"))
        .collect();
    let text = with_receivers(&receivers, "filelog/app, filelog/App, filelog/APP, filelog/aPP");
    let configuration = otelcol("app.yaml", &text, None).unwrap().configuration;
    for path in ["/srv/app.log", "/srv/App.log", "/srv/APP.log", "/srv/aPP.log"] {
        assert!(configuration.contains(path), "{path} in\n{configuration}");
    }
}

/// The source of pods reads all of them: a choice by paths is named.
#[test]
fn a_choice_of_pods_by_their_paths_is_noted() {
    let note = |include: &str| {
        let receiver = format!("  filelog: {{ include: [{include}], operators: [{{ type: container }}] }}\n");
        let imported = otelcol("pods.yaml", &with_receivers(&receiver, "filelog"), None).unwrap();
        imported.configuration.contains("`receivers.filelog.include`")
    };
    assert!(note("/var/log/pods/shop_*/*/*.log"));
    assert!(!note("/var/log/pods/*/*/*.log") && !note("'/var/log/pods/**/*.log'"));
}

/// A Collector with these receivers of logs.
fn with_receivers(receivers: &str, names: &str) -> String {
    format!(
        "receivers:\n{receivers}exporters:\n  otlp: {{ endpoint: 'backend:4317', tls: {{ insecure: true }} }}\n\
         service:\n  pipelines:\n    logs: {{ receivers: [{names}], exporters: [otlp] }}\n"
    )
}

#[test]
fn the_configuration_of_a_prometheus_is_converted() {
    let imported =
        prometheus("prometheus.yml", &read("prometheus.yml")).unwrap_or_else(|errors| panic!("{errors}"));
    matches_golden("prometheus", &imported);
}

#[test]
fn the_command_line_of_a_vmagent_is_converted() {
    let arguments: Vec<String> = read("vmagent.args").lines().map(str::to_owned).collect();
    let read = |path: &str| Ok(read(path));
    let imported = vmagent(&arguments, &read).unwrap_or_else(|errors| panic!("{errors}"));
    matches_golden("vmagent", &imported);
}

#[test]
fn the_command_line_of_a_thanos_router_is_converted() {
    let arguments: Vec<String> = read("thanos-receive.args").lines().map(str::to_owned).collect();
    let read = |path: &str| Ok(read(path));
    let imported = thanos_receive(&arguments, &read).unwrap_or_else(|errors| panic!("{errors}"));
    matches_golden("thanos-receive", &imported);
}

/// Reads a file beside the others, as far as it is there.
fn beside(path: &str) -> Result<String, String> {
    fs::read_to_string(folder().join(path)).map_err(|error| error.to_string())
}

#[test]
fn configurations_of_fluent_bit_are_converted() {
    for source in FLUENT_BITS {
        let imported = fluent_bit(source, &read(source), &beside).unwrap_or_else(|errors| panic!("{errors}"));
        let name = source.split_once('.').map_or(source, |(name, _)| name);
        matches_golden(name, &imported);
    }
}

/// Nothing is lost silently: a property that nobody knows is noted or an error, in every section.
#[test]
fn an_unknown_property_of_fluent_bit_is_named() {
    let cases = [
        ("fluent-bit-containers.conf", "]\n", "    Surprise_Setting 1\n"),
        ("fluent-bit-steps.conf", "]\n", "    Surprise_Setting 1\n"),
        ("fluent-bit-parsers-file.conf", "]\n", "    Surprise_Setting 1\n"),
        ("fluent-bit-gateway.yaml", "    - ", "surprise_setting: 1\n      "),
    ];
    for (source, behind, with) in cases {
        let text = read(source);
        for (at, found) in text.match_indices(behind).filter(|(at, _)| !text[..*at].ends_with(' ')) {
            let (before, after) = text.split_at(at + found.len());
            // Parsers alone are no configuration.
            let inputs =
                if source.contains("parsers") { read("fluent-bit-kubernetes.conf") } else { String::new() };
            let changed = format!("{before}{with}{after}{inputs}");
            let line = before.matches('\n').count() + 1;
            let named = match fluent_bit(source, &changed, &beside) {
                Ok(imported) => imported.notes.iter().any(|note| {
                    note.setting.contains("surprise_setting")
                        // The plugin as a whole was left out.
                        || (["left out", "a sink that discards"].iter().any(|start| note.message.starts_with(start))
                            && note.line.is_some_and(|of| of.abs_diff(line) <= 2))
                }),
                Err(_) => true,
            };
            assert!(named, "{source}, line {line}");
        }
    }
}

/// Settings that mean something else here are noted: expressions that are refused, patterns with variables, labels of two filters.
#[test]
fn what_differs_from_fluent_bit_is_noted() {
    let text = "\
[PARSER]
    Name behind
    Format regex
    Regex (?<level>a)(?=b)
[INPUT]
    Name tail
    Path /a.log
    Parser behind
[INPUT]
    Name tail
    Path /var/log/containers/*.log
    Tag kube.*
[FILTER]
    Name kubernetes
    Match kube.*
[FILTER]
    Name kubernetes
    Match kube.*
    Labels Off
[OUTPUT]
    Name loki
    Match ${TAGS}
[OUTPUT]
    Name loki
    Match *
";
    let imported = fluent_bit("f.conf", text, &beside).unwrap_or_else(|errors| panic!("{errors}"));
    let noted = |line: usize, part: &str| {
        imported.notes.iter().any(|note| note.line == Some(line) && note.message.contains(part))
    };
    let notes: Vec<String> = imported.notes.iter().map(ToString::to_string).collect();
    assert!(noted(6, "to be corrected"), "{notes:#?}");
    assert!(noted(17, "all pods get their labels"), "{notes:#?}");
    assert!(noted(22, "a pattern with a variable"), "{notes:#?}");
}

/// Each mistake has its place and a remedy, all at once; those of other files, too.
#[test]
fn mistakes_of_fluent_bit_are_reported_with_their_positions() {
    let text = "\
[SERVICE]
    Parsers_File parsers.conf
    Parsers_File own.conf
[INPUT]
    Name tial
[INPUT]
    Name tail
[INPUT]
    Name tail
    Path /a.log
    Parser ngnix
    Skip_Long_Lines perhaps
[FILTER]
    Name modify
    Match *
    Condition Key_exsts a
    Ad a b
[FILTER]
    Name grep
    Match *
    Regex log
[FILTER]
    Name grep
[OUTPUT]
    Name splunk
    Match *
[OUTPTU]
    Name es
@INCLUDE gone.conf
";
    let read = |path: &str| match path {
        "etc/parsers.conf" => Ok("[PARSER]\n    Name a\n    Format regexp\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let errors = fluent_bit("etc/f.conf", text, &read).unwrap_err().to_string();
    for expected in [
        "cannot read `etc/own.conf`: no such file",
        "f.conf:5:10",
        "did you mean `tail`",
        "an input `tail` has no `path`",
        "f.conf:11:12",
        "did you mean `nginx`",
        "is `on` or `off`",
        "did you mean `key_exists`",
        "did you mean `add`",
        "a rule `regex` has a key and a pattern",
        "a filter `grep` has no `match`",
        "has no `splunk_token`",
        "did you mean `[OUTPUT]`",
        "cannot read `etc/gone.conf`: no such file",
        "etc/parsers.conf:3:12: there is no format `regexp`",
    ] {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
    for other in ["", "a: b", "- a", "[SERVICE]\n  Flush 1\n", "pipeline:\n\tinputs:"] {
        assert!(fluent_bit("f.conf", other, &|_| Err(String::new())).is_err(), "{other}");
    }
}

/// A sink gets no records of inputs whose tags the output did not match.
#[test]
fn tags_of_fluent_bit_choose_sinks() {
    let text = "\
[INPUT]
    Name tail
    Path /a.log
    Tag a.*
[INPUT]
    Name tail
    Path /b.log
    Tag b
[OUTPUT]
    Name loki
    Alias one
    Match a.*
[OUTPUT]
    Name loki
    Alias both
    Match *
[OUTPUT]
    Name loki
    Alias part
    Match a.var.log.x*
[OUTPUT]
    Name loki
    Alias none
    Match c
";
    let imported = fluent_bit("f.conf", text, &beside).unwrap_or_else(|errors| panic!("{errors}"));
    let sinks = imported.configuration.split("\nsinks:").nth(1).unwrap_or_default().to_owned();
    let sink =
        |name: &str| sinks.split(&format!("\n  {name}:\n")).nth(1).map(|rest| rest.split("\n  ").count());
    assert!(sink("none").is_none() && sink("both").is_some(), "{sinks}");
    assert_eq!(sinks.matches("when:").count(), 2, "{sinks}");
    assert!(sinks.contains(r#"- resource.attributes["fluent.tag"] == "a.*""#), "{sinks}");
    assert!(
        sinks.contains(r#"IsMatch(resource.attributes["log.file.path"], "^/?var[./]log[./]x.*$")"#),
        "{sinks}"
    );
    assert!(imported.notes.iter().any(|note| note.message.contains("no input's records reach it")));
}

/// The line of the component that a text ends in: the last one that is indented by two.
fn component(text: &str) -> usize {
    let lines =
        text.lines().enumerate().filter(|(_, line)| line.starts_with("  ") && !line.starts_with("   "));
    lines.last().map_or(0, |(index, _)| index + 1)
}

/// The end of the path of the group that begins behind a text: `.tls`.
fn group(text: &str) -> String {
    let key = text.trim_end_matches([' ', ':', '{']).rsplit([' ', '{', '\n', '[']).next();
    format!(".{}", key.unwrap_or_default())
}

/// Nothing is lost silently: a setting that nobody knows, wherever it stands, is noted or an error.
#[test]
fn an_unknown_setting_anywhere_is_named() {
    for name in COLLECTORS {
        let source = format!("{name}.yaml");
        let text = read(&source);
        for (at, _) in text.match_indices("{ ") {
            let (before, after) = text.split_at(at + 2);
            // A name beside a name, not a value of free names such as headers.
            let with = format!("{before}surprise_setting: 1, {after}");
            let named = match otelcol(&source, &with, None) {
                Ok(imported) => {
                    let setting = |text: &str| text.contains("surprise_setting");
                    imported.notes.iter().any(|note| setting(&note.setting))
                        || imported.configuration.lines().any(setting)
                        // The component or the group as a whole was noted.
                        || imported.notes.iter().any(|note| note.line == Some(component(before)))
                        || imported.notes.iter().any(|note| note.setting.ends_with(&group(before)))
                }
                Err(_) => true,
            };
            assert!(named, "{name}, byte {at}: {}", &text[at..text.len().min(at + 60)]);
        }
    }
}

const MINIMAL: &str = "\
receivers: { otlp: { protocols: { grpc: {} } } }
exporters: { nop: {} }
processors:
  transform:
    log_statements:
      - set(log.attributes[\"a\"], log.attributes[\"b\"])
service: { pipelines: { logs: { receivers: [otlp], processors: [transform], exporters: [nop] } } }
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// No file makes the importer of Fluent Bit panic, and what it prints is always YAML.
    #[test]
    fn damaged_files_of_fluent_bit_are_converted_or_refused(
        which in 0..FLUENT_BITS.len(),
        cuts in proptest::collection::vec((0_usize..4000, 0_usize..40, "[a-zA-Z:\\[\\]{}, \n$\"'*@-]{0,4}"), 0..4),
    ) {
        let mut text: Vec<char> = read(FLUENT_BITS[which]).chars().collect();
        for (at, len, with) in cuts {
            let at = at % text.len().max(1);
            let end = (at + len).min(text.len());
            text.splice(at..end, with.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(imported) = fluent_bit(FLUENT_BITS[which], &text, &beside) {
            let errors = parse("printed", &imported.configuration, &|_| Some("value".to_owned())).err();
            let problems = errors.iter().flat_map(|errors| errors.problems());
            for problem in problems {
                prop_assert!(!problem.message.contains("not valid YAML"), "{}\n{}", problem.message, imported.configuration);
            }
        }
    }

    /// No file makes the importer panic, and what it prints is always YAML.
    #[test]
    fn damaged_files_are_converted_or_refused(
        which in 0..COLLECTORS.len(),
        cuts in proptest::collection::vec((0_usize..4000, 0_usize..40, "[a-z:\\[\\]{}, \n$\"'-]{0,4}"), 1..4),
    ) {
        let mut text: Vec<char> = read(&format!("{}.yaml", COLLECTORS[which])).chars().collect();
        for (at, len, with) in cuts {
            let at = at % text.len().max(1);
            let end = (at + len).min(text.len());
            text.splice(at..end, with.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(imported) = otelcol("c.yaml", &text, None) {
            let errors = parse("printed", &imported.configuration, &|_| Some("value".to_owned())).err();
            let problems = errors.iter().flat_map(|errors| errors.problems());
            for problem in problems {
                prop_assert!(!problem.message.contains("not valid YAML"), "{}\n{}", problem.message, imported.configuration);
            }
        }
        let _ = prometheus("p.yml", &text);
    }
}

/// Connectors that multiply the ways do not keep the importer busy.
#[test]
fn many_ways_are_refused() {
    let mut connectors = String::new();
    let mut pipelines = String::from("    traces/0: { receivers: [otlp], exporters: [c0] }\n");
    for layer in 0..20 {
        connectors.push_str(&format!("  forward/c{layer}: {{}}\n"));
        for twin in 0..2 {
            let next = if layer == 19 { "nop".to_owned() } else { format!("forward/c{}", layer + 1) };
            pipelines.push_str(&format!(
                "    traces/{layer}-{twin}: {{ receivers: [forward/c{layer}], exporters: [{next}] }}\n"
            ));
        }
    }
    let pipelines = pipelines.replace("exporters: [c0]", "exporters: [forward/c0]");
    let text = format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{}} }} }} }}\nexporters: {{ nop: {{}} }}\nconnectors:\n{connectors}service:\n  pipelines:\n{pipelines}"
    );
    let errors = otelcol("c.yaml", &text, None).unwrap_err().to_string();
    assert!(errors.contains("more than 10000 ways"), "{errors}");
}

/// A statement that tidegate does not know is named, and stays: `check` refuses the configuration until it is corrected.
#[test]
fn refused_statements_are_named_and_stay() {
    let text = MINIMAL.replace("log.attributes[\"b\"])", "ParseXML(log.body))");
    let imported = otelcol("c.yaml", &text, None).unwrap();
    let named = |note: &tidegate_config::Note| {
        note.setting == "processors.transform" && note.message.contains("ParseXML") && note.line == Some(4)
    };
    assert!(imported.notes.iter().any(named), "{:?}", imported.notes);
    assert!(imported.configuration.contains("ParseXML(log.body)"), "{}", imported.configuration);
    assert!(parse("printed", &imported.configuration, &|_| None).is_err());
}

/// Before 0.163 `set` with an absent value did nothing.
#[test]
fn statements_of_older_collectors_get_guards() {
    let with = |version: Option<&str>| {
        let version = version.map(|version| version.parse::<CollectorVersion>().unwrap());
        otelcol("c.yaml", MINIMAL, version).unwrap()
    };
    for older in ["0.150", "v0.162.1"] {
        let imported = with(Some(older));
        assert!(imported.configuration.contains("where log.attributes[\"b\"] != nil"), "{imported:?}");
        assert!(!imported.notes.iter().any(|note| note.message.contains("empty value")), "{imported:?}");
    }
    for newer in [None, Some("0.163.0")] {
        let imported = with(newer);
        assert!(imported.notes.iter().any(|note| note.message.contains("empty value")), "{imported:?}");
        assert!(imported.notes.iter().any(|note| note.line == Some(6)), "{imported:?}");
    }
    assert!("1.0".parse::<CollectorVersion>().is_err() && "0.x".parse::<CollectorVersion>().is_err());
}

/// Each mistake has its place and a remedy, all at once.
#[test]
fn mistakes_are_reported_with_their_positions() {
    let text = "\
receivers: { otpl: { protocols: { grpc: {} } } }
processors:
  atributes: { actions: [] }
  attributes/x: { actions: [{ key: a, action: upset }, { action: delete, key: [] }] }
exporters: { nop: {}, otlp: {} }
service:
  pipelines:
    traces: { receivers: [otpl], processors: [atributes, attributes/x, filter], exporters: [nop, otlp, nopp] }
    metricses: {}
";
    let errors = otelcol("c.yaml", text, None).unwrap_err().to_string();
    for expected in [
        "c.yaml:1:14",
        "did you mean `otlp`",
        "c.yaml:3:3",
        "did you mean `attributes`",
        "c.yaml:4:47",
        "did you mean `upsert`",
        "did you mean `nop`",
        "there is no processor `filter`",
        "`exporters.otlp` has no `endpoint`",
        "there is no pipeline for `metricses`",
    ] {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
    let broken = otelcol("c.yaml", "receivers:\n\totlp:", None).unwrap_err().to_string();
    assert!(broken.contains("c.yaml:2") && broken.contains("tabs"), "{broken}");
    for other in ["", "a: b", "- a"] {
        assert!(otelcol("c.yaml", other, None).is_err(), "{other}");
        assert!(prometheus("p.yml", other).is_err(), "{other}");
    }
}
