//! Settings read as written, and no text causes a panic.

use std::path::PathBuf;

use proptest::prelude::*;
use tidegate_config::{Bytes, Config, Duration, Protocol, Signal, Sink, WhenFull, effective, example, parse};

fn read(text: &str) -> Config {
    parse("test.yaml", text, &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn nothing_written_is_the_default() {
    for text in [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "{}",
        "null",
        "\u{feff}",
        "memory:\njournal:\nsinks:\nsources: {}\n",
    ] {
        assert_eq!(read(text), Config::default(), "{text:?}");
    }
}

#[test]
fn the_default_listens_on_loopback_and_keeps_a_lake() {
    let config = Config::default();
    assert!(config.listen.http.ip().is_loopback() && config.listen.admin.ip().is_loopback());
    assert_eq!(config.sinks.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["lake"]);
    assert_eq!(config.memory, None);
}

#[test]
fn every_setting_of_the_documented_shape_is_read() {
    let config = read(
        "
        memory: 64MiB
        data: ./elsewhere
        listen: { http: 127.0.0.1:4318, admin: 127.0.0.1:4319 }
        journal: { durability: fsync, quota: 20GiB, when_full: drop_oldest }
        sources:
          prometheus_remote_write: { max_body: 16MiB }
        limits: { connections: 7 }
        sinks:
          lake: { type: lake, retention: { age: 1d } }
          upstream:
            type: prometheus_remote_write
            url: http://127.0.0.1:9090/api/v1/write
            protocol: 2.0
            lanes: '4'
            headers: { X-Scope-OrgID: 42 }
            when_full: block
          other: { type: prometheus_remote_write, url: 'https://host/w', linger: 0s }
        ",
    );
    assert_eq!(config.memory, Some(Bytes::mib(64)));
    assert_eq!(config.data, PathBuf::from("./elsewhere"));
    assert_eq!(config.sources.prometheus_remote_write.max_body, Bytes::mib(16));
    assert_eq!(config.limits.connections(Bytes::mib(64), false), 7);
    let sink = |name: &str| config.sinks.get(&name.parse().unwrap()).unwrap();
    let Sink::Lake(lake) = sink("lake") else { panic!("not a lake") };
    assert_eq!(lake.retention.age, Duration::days(1));
    assert_eq!(lake.folder(&config.data), PathBuf::from("./elsewhere/lake"));
    let Sink::PrometheusRemoteWrite(upstream) = sink("upstream") else { panic!("not remote write") };
    assert_eq!((upstream.protocol, upstream.lanes), (Protocol::V2, 4));
    assert_eq!(sink("upstream").when_full(&config.journal), WhenFull::Block);
    let headers: Vec<_> =
        upstream.delivery.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("x-scope-orgid", "42")]);
    let Sink::PrometheusRemoteWrite(other) = sink("other") else { panic!("not remote write") };
    assert_eq!((other.linger, other.protocol), (Duration::seconds(0), Protocol::Auto));
    assert_eq!(sink("other").when_full(&config.journal), WhenFull::DropOldest);
}

#[test]
fn variables_are_values_and_never_yaml() {
    let environment = |name: &str| match name {
        "MEM" => Some("32MiB".to_owned()),
        "DIR" => Some("x: {y: 1}\n# no comment".to_owned()),
        "NOTHING" => Some(String::new()),
        _ => None,
    };
    let text =
        "memory: ${MEM}\ndata: ${DIR}\nlisten: { http: \"127.0.0.1:${PORT:-9000}\" }\nlimits: ${NOTHING}\n";
    let config = parse("test.yaml", text, &environment).unwrap();
    assert_eq!(config.memory, Some(Bytes::mib(32)));
    assert_eq!(config.data, PathBuf::from("x: {y: 1}\n# no comment"));
    assert_eq!(config.listen.http.port(), 9000);
    assert_eq!(config.limits, Config::default().limits);
}

#[test]
fn anchors_and_merges_share_settings() {
    let config = read(
        "
        sinks:
          a: &remote { type: prometheus_remote_write, url: 'http://a/w', lanes: 3, timeout: 9s }
          b: { <<: *remote, url: 'http://b/w', lanes: 5 }
          c: *remote
        ",
    );
    let sinks: Vec<_> = config.sinks.values().collect();
    let [Sink::PrometheusRemoteWrite(a), Sink::PrometheusRemoteWrite(b), c] = sinks.as_slice() else {
        panic!()
    };
    assert_eq!((b.endpoints()[0].host(), b.lanes, b.timeout), ("b", 5, Duration::seconds(9)));
    assert_eq!((a.endpoints()[0].host(), a.lanes), ("a", 3));
    assert_eq!(sinks[0], *c);
}

#[test]
fn connections_follow_memory_unless_set() {
    let limits = Config::default().limits;
    assert_eq!(limits.connections(Bytes::gib(1), false), 12_000);
    assert_eq!(limits.connections(Bytes::mib(64), false), 4_544);
    assert_eq!(limits.connections(Bytes::mib(32), false), 768);
    assert_eq!(limits.connections(Bytes::new(1), false), 768);
}

#[test]
fn an_expanding_document_stays_small() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert!(parse("bomb.yaml", &text, &|_| None).is_err());

    let keys: String = (0..5000).map(|n| format!("k{n}: 1, ")).collect();
    let merges = "*a, ".repeat(5000);
    let text = format!("x: &a {{ {keys} }}\ny: {{ <<: [{merges}] }}\n");
    let errors = parse("bomb.yaml", &text, &|_| None).unwrap_err();
    assert!(errors.to_string().contains("more than 20000 values"), "{errors}");

    // Levels that only aliases add: freeing them must not exhaust the stack either.
    let chain: String = (1..5000).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)).collect();
    let errors = parse("deep.yaml", &format!("a0: &a0 x\n{chain}"), &|_| None).unwrap_err();
    assert!(errors.to_string().contains("too deep"), "{errors}");

    let deep = "[".repeat(10_000);
    assert!(parse("deep.yaml", &deep, &|_| None).is_err());
    let deep: String = (0..1000).map(|level| format!("{:level$}a:\n", "")).collect();
    assert!(parse("deep.yaml", &deep, &|_| None).is_err());
}

#[test]
fn the_effective_configuration_reads_back_with_secrets_masked() {
    let config = read(
        "
        memory: 1.5GiB
        data: 'odd: path $$x # \"é\" \\'
        sinks:
          '0': { type: blackhole }
          'null': { type: lake, path: 'null' }
          up: { type: prometheus_remote_write, url: 'http://[::1]:1/w?a=$$b&c', headers: { a: hunter2 } }
        ",
    );
    let text = effective(&config);
    assert!(text.contains("a: \"********\"") && !text.contains("hunter2"), "{text}");
    assert_eq!(effective(&read(&text)), text);
    let mut again = read(&text);
    let up = "up".parse().unwrap();
    again.sinks.insert(up, config.sinks[&"up".parse().unwrap()].clone());
    assert_eq!(again, config);
}

#[test]
fn the_example_is_the_default_and_its_commented_settings_are_valid() {
    let example = example();
    assert_eq!(read(&example), Config::default());

    let environment = |_: &str| Some("x".to_owned());
    let uncommented: String = example.lines().map(uncomment).collect::<Vec<_>>().join("\n");
    // Omitting one setting may require another: its own address, or another word elsewhere.
    let uncommented = uncommented
        .replace("elasticsearch: 127.0.0.1:4318", "elasticsearch: 127.0.0.1:9200")
        .replace("apm: 127.0.0.1:4318", "apm: 127.0.0.1:8200")
        .replace("client_auth: none", "client_auth: required")
        .replace("\n    enabled: false", "\n    enabled: true")
        .replace(" secure: false", " secure: true")
        .replace("http://", "https://")
        .replace("pipelines: {}", "pipelines: { upstream: { steps: [] } }");
    // Of those that exclude each other one is enough.
    let without = |setting: &str| {
        let setting = setting.trim_start();
        ![
            "api_key:",
            "bulk:",
            "parse:",
            "hashrings_file:",
            "tenant_header: x-",
            "max_in_flight:",
            "exponential:",
            "max_size:",
        ]
        .iter()
        .any(|name| setting.starts_with(name))
    };
    let uncommented: String = uncommented.lines().filter(|line| without(line)).collect::<Vec<_>>().join("\n");
    let config =
        parse("example.yaml", &uncommented, &environment).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.sinks.len(), 10);
    assert_eq!(config.memory, Some(Bytes::mib(64)));
}

/// Counts outlive an upgrade only if this stays the same. If it has to change, cumulative counts begin anew, and the changelog says so.
#[test]
fn the_fingerprint_of_derived_metrics_is_stable() {
    const SINK: &str = "sinks: { red: { type: derive, span_metrics: { dimensions: [{ name: a, default: b }] }, service_graph: {}, count: { logs: { n: \
        { conditions: ['body != nil'] } } }, signal_to_metrics: { spans: [{ name: m, sum: { value: '1' } }] } } }";
    let config = parse("test.yaml", SINK, &|_| None).unwrap();
    let derivation = config.sinks.values().find_map(|sink| sink.derive()?.derivation()).unwrap();
    assert_eq!(derivation.table.fingerprint(), 3_370_962_096_399_093_669);
}

fn uncomment(line: &str) -> String {
    let text = line.trim_start();
    match text.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => line.replacen('#', "", 1),
        _ => line.to_owned(),
    }
}

/// Lines as a configuration has them, put together at random.
fn yamlish() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "memory",
        "data",
        "listen",
        "http",
        "admin",
        "journal",
        "quota",
        "segment",
        "sinks",
        "lake",
        "type",
        "url",
        "headers",
        "backoff",
        "<<",
        "a",
        "retention",
        "lanes",
    ]);
    let value = prop::sample::select(vec![
        "",
        "64MiB",
        "0",
        "1",
        "lake",
        "prometheus_remote_write",
        "http://localhost:4318/w",
        "127.0.0.1:4318",
        "*a",
        "&a",
        "&a {",
        "[",
        "]",
        "}",
        "{a: 1",
        "'",
        "\"",
        "|",
        ">",
        "${A}",
        "${",
        "~",
        "!t",
        "- x",
        "? y",
        "é\u{2028}",
        "\t",
        "---",
        "%YAML",
        "blackhole",
    ]);
    let line = (0_usize..4, key, value)
        .prop_map(|(indent, key, value)| format!("{:1$}{key}: {value}\n", "", indent * 2));
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.concat())
}

proptest! {
    /// No text makes the reader panic; what it accepts is complete and reads back; what it refuses, it
    /// refuses with a place inside the text.
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![yamlish(), "\\PC{0,200}", "[a-z:{}\\[\\]&*!|>'\"%@`\n\t #-]{0,100}"]) {
        match parse("test.yaml", &text, &|_| Some("v".to_owned())) {
            Ok(config) => {
                prop_assert!(!config.sinks.is_empty());
                prop_assert_eq!(effective(&read(&effective(&config))), effective(&config));
            }
            Err(errors) => {
                prop_assert!(!errors.problems().is_empty());
                let lines = text.matches('\n').count() + 1;
                for problem in errors.problems() {
                    let place = problem.place.as_ref().unwrap();
                    prop_assert!((1..=lines).contains(&place.line), "{}", errors);
                }
            }
        }
    }
}

/// A list may be one word, every entry is read on its own, and what is there twice is a mistake.
#[test]
fn lists_are_read_and_written() {
    let text = "sinks:\n  up: { type: otlp, endpoints: http://a:4317, signals: [logs, traces] }\n";
    let config = read(text);
    let Some(Sink::Otlp(up)) = config.sinks.values().next() else { panic!("{config:?}") };
    assert_eq!(
        (up.endpoints.as_ref().map_or(0, Vec::len), up.signals.as_slice()),
        (1, &[Signal::Logs, Signal::Traces][..])
    );
    assert_eq!(read(&effective(&config)), config);
    for (list, what) in [("[logs, logs]", "there twice"), ("[]", "0 entries"), ("[log]", "did you mean")] {
        let text = text.replace("[logs, traces]", list);
        let errors = parse("f.yaml", &text, &|_| None).unwrap_err().to_string();
        assert!(errors.contains(what), "{errors}");
    }
}

/// Pipelines are read with everything pasted from other tools, and their effective form reads back.
#[test]
fn pipelines_read_back_as_written() {
    let text = r#"
        pipelines:
          clean:
            steps:
              - drop: log.severity_number < SEVERITY_NUMBER_WARN
                name: quiet
              - edit:
                  - set(log.attributes["env"], "prod") where log.attributes["env"] == nil
                  - replace_pattern(log.body, "password=(\\w+)", "password=$$1")
                on_error: drop
              - sample: { ratio: 10%, by: user.id, mode: equalizing }
          prom:
            steps:
              - write_relabel_configs:
                  - source_labels: [__name__, job]
                    separator: ""
                    regex: (go|up);(.*)
                    action: replace
                    replacement: ${1}-$2
                    target_label: family
                    modulus: 8
                  - { if: '{a="b"}', regex: [a, b], action: drop }
        sinks:
          up: { type: otlp, endpoints: http://127.0.0.1:4, pipeline: clean, when: 'log.severity_number > 9' }
          rest: { type: blackhole, otherwise: true }
          prom: { type: prometheus_remote_write, url: http://127.0.0.1:5/w, pipeline: prom,
                  write_relabel_configs: [{ regex: tmp_.*, action: labeldrop }] }
        "#;
    let config = read(text);
    let name = |name: &str| name.parse().unwrap();
    let up = config.pipeline_of(&name("up")).unwrap();
    assert_eq!((up.routing, up.definition.steps.len()), (1, 4));
    let labels: Vec<_> = up.labels.iter().map(|label| (&*label.pipeline, &*label.step)).collect();
    assert_eq!(labels, [("", "when"), ("clean", "quiet"), ("clean", "2"), ("clean", "3")]);
    let rest = config.pipeline_of(&name("rest")).unwrap();
    assert_eq!((rest.routing, &*rest.labels[0].step), (1, "otherwise"));
    let prom = config.pipeline_of(&name("prom")).unwrap();
    let [first, second] = prom.definition.steps.as_slice() else { panic!() };
    let tidegate_pipeline::StepKind::Relabel(rules) = &first.kind else { panic!() };
    assert_eq!(rules[0].separator.as_deref(), Some(""));
    assert_eq!((rules[0].replacement.as_deref(), rules[0].modulus), (Some("${1}-$2"), Some(8)));
    assert_eq!(rules[1].condition, [r#"{a="b"}"#]);
    assert!(matches!(&second.kind, tidegate_pipeline::StepKind::Relabel(rules) if rules.len() == 1));
    assert!(config.pipeline_of(&name("none")).is_none());
    assert_eq!(read(&effective(&config)), config, "{}", effective(&config));
}

/// A label that `relabel` fails to remove before the journal is not written, unless the step says so; in a sink it stays.
#[test]
fn relabel_drops_what_it_fails_on_before_the_journal() {
    use tidegate_pipeline::ErrorMode::{Drop, Ignore, Silent};
    let config = read(
        r#"
        pipelines:
          labels:
            steps:
              - edit: set(log.body, "x")
              - relabel: { regex: api_key, action: labeldrop }
              - relabel: { regex: token, action: labeldrop }
                on_error: silent
        sources: { prometheus_remote_write: { pipeline: labels } }
        sinks: { prom: { type: prometheus_remote_write, url: http://127.0.0.1:5/w, pipeline: labels } }
        "#,
    );
    let modes = |pipeline: Option<tidegate_config::ConfiguredPipeline>| {
        pipeline.unwrap().definition.steps.iter().map(|step| step.on_error).collect::<Vec<_>>()
    };
    assert_eq!(modes(config.pipeline_of_source("prometheus_remote_write")), [Ignore, Drop, Silent]);
    assert_eq!(modes(config.pipeline_of(&"prom".parse().unwrap())), [Ignore, Ignore, Silent]);
}
