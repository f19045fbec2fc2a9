use super::flags::{FLAGS, Values};
use super::*;
use crate::load::parse;
use crate::model::{Config, Sink};
use proptest::prelude::*;

const RINGS: &str = r#"--receive.hashrings=[{"endpoints":["in-0:10901","in-1:10901","in-2:10901"]}]"#;

/// The files that the command lines name.
fn files(path: &str) -> Result<String, String> {
    Ok(match path {
        "/etc/thanos/limits.yaml" => {
            "write:\n  global: { max_concurrency: 30, meta_monitoring_url: 'http://meta:9090' }\n  default:\n    head_series_limit: \
             1000\n    request: { size_bytes_limit: 1024, samples_limit: 10 }\n  tenants:\n    '123': { head_series_limit: 7 }\n"
        }
        "/etc/thanos/relabel.yaml" => "- action: labeldrop\n  regex: tmp_.*\n- target_label: zone\n  replacement: $(ZONE)\n",
        "arguments.txt" => "# of the router\n--receive.replication-factor=3\n\n--receive.hashrings-file\n/etc/thanos/rings.json\n",
        "loop.txt" => "@loop.txt\n",
        _ => return Err("there is none".to_owned()),
    }
    .to_owned())
}

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn imported(arguments: &[String]) -> (Config, Imported) {
    let imported =
        thanos_receive(arguments, &files).unwrap_or_else(|errors| panic!("{arguments:?}\n{errors}"));
    let environment = |_: &str| Some("3".to_owned());
    let config = parse("printed", &imported.configuration, &environment);
    let config = config.unwrap_or_else(|errors| panic!("{}\n{errors}", imported.configuration));
    (config, imported)
}

fn error(line: &str) -> String {
    thanos_receive(&arguments(line), &files).unwrap_err().to_string()
}

/// Command lines as operators, charts and libraries of manifests write them.
const MANIFESTS: [&str; 7] = [
    "receive --log.level=info --log.format=logfmt --grpc-address=0.0.0.0:10901 --http-address=0.0.0.0:10902 \
     --remote-write.address=0.0.0.0:19291 --receive.replication-factor=3 --receive.hashrings-algorithm=ketama \
     --receive.hashrings-file=/var/lib/thanos-receive/hashrings.json --label=receive=\"true\" --label=replica=\"$(NAME)\"",
    "/bin/thanos receive --tsdb.path=/var/thanos/receive --tsdb.retention=4d --objstore.config=$(OBJSTORE_CONFIG) \
     --label=replica=\"$(NAME)\" --receive.local-endpoint=$(NAME).thanos-receive.$(NAMESPACE).svc.cluster.local:10901 \
     --receive.hashrings-file=/etc/thanos/hashrings.json --receive.replication-factor=2 --tsdb.wal-compression --no-tsdb.no-lockfile",
    "thanos --log.level debug receive --receive.hashrings-file /rings.json --remote-write.address :19291 --receive.grpc-compression=none",
    "receive --receive.hashrings-file=/r.json --remote-write.server-tls-cert=/tls/tls.crt --remote-write.server-tls-key=/tls/tls.key \
     --remote-write.server-tls-client-ca=/tls/ca.crt --remote-write.client-tls-secure --remote-write.client-tls-ca=/tls/ca.crt \
     --remote-write.client-tls-cert=/tls/tls.crt --remote-write.client-tls-key=/tls/tls.key --remote-write.client-server-name=receive \
     --receive.tenant-certificate-field=organizationalUnit --receive-forward-timeout=30s --receive-forward-max-backoff=1m30s",
    "@arguments.txt --receive.limits-config-file=/etc/thanos/limits.yaml --receive.relabel-config-file=/etc/thanos/relabel.yaml \
     --receive.split-tenant-label-name=team --receive.tenant-header=X-Scope-OrgID --receive.default-tenant-id=nobody",
    "receive --receive.hashrings-file=/r.json --http-address=127.0.0.1:10902 --remote-write.address=$(POD_IP):19291 \
     --receive.replication-factor=$(REPLICAS) --receive.replication-protocol=capnproto --enable-feature=metric-names-filter",
    "receive --receive.hashrings-file=/r.json --no-receive.otlp-enable-target-info \
     --receive.otlp-promote-resource-attributes=service.name --receive.otlp-promote-resource-attributes=k8s.pod.name \
     --receive.grpc-service-config={} --receive.forward.async-workers=20 --tracing.config-file=/t.yaml --receive.hashrings=[]",
];

#[test]
fn command_lines_of_manifests_become_valid_configurations() {
    for line in MANIFESTS {
        let arguments = arguments(line).into_iter().map(|argument| match argument.as_str() {
            // An address must be one to be read.
            "--remote-write.address=$(POD_IP):19291" => {
                "--remote-write.address=127.0.0.$(POD_IP):19291".to_owned()
            }
            _ => argument,
        });
        imported(&arguments.collect::<Vec<_>>());
    }
}

#[test]
fn every_setting_of_a_router_has_its_value() {
    let (config, printed) = imported(&arguments(MANIFESTS[4]));
    let listener = config.listen.thanos_receive.as_ref().unwrap();
    assert_eq!(listener.address.to_string(), "0.0.0.0:19291");
    assert_eq!(listener.tenant_header.as_str(), "x-scope-orgid");
    assert_eq!(listener.default_tenant.as_str(), "nobody");
    assert!(config.listen.insecure && listener.thanos_metrics);
    let Some(Sink::ThanosReceive(sink)) = config.sinks.get(&SINK.parse().unwrap()) else {
        panic!("{printed:?}")
    };
    assert_eq!(sink.replication_factor, 3);
    assert_eq!(sink.hashrings_file.as_deref(), Some(std::path::Path::new("/etc/thanos/rings.json")));
    assert_eq!(sink.split_tenant_label.as_deref(), Some("team"));
    assert_eq!(sink.default_tenant.as_ref().map(TenantName::as_str), Some("nobody"));
    assert_eq!(config.tenants.head_series, 1000);
    assert!(!config.tenants.are_on(), "other addresses need no tenant");
    assert!(printed.configuration.contains("replacement: ${ZONE}"), "{}", printed.configuration);
    let (config, printed) = imported(&arguments(MANIFESTS[3]));
    let tls = config.listen.tls.own(crate::model::Listener::ThanosReceive);
    assert!(tls.client_ca_file.is_some() && !config.listen.insecure);
    let Some(Sink::ThanosReceive(sink)) = config.sinks.get(&SINK.parse().unwrap()) else {
        panic!("{printed:?}")
    };
    assert_eq!((sink.timeout, sink.delivery.backoff.max), (Duration::seconds(30), Duration::seconds(90)));
    assert!(sink.secure && sink.delivery.tls.server_name.as_deref() == Some("receive"));
}

/// Also names that look like numbers stay texts.
#[test]
fn inline_hashrings_are_those_of_thanos() {
    let rings = r#"[
        {"hashring": "1", "tenants": ["123", "true", "team-*"], "tenant_matcher_type": "glob", "algorithm": "ketama",
         "endpoints": [{"address": "a:10901", "az": "1"}, {"address": "b:10901", "az": "2"}, "c:10901"],
         "shuffle_sharding_config": {"shard_size": 2, "overrides": [{"shard_size": 3, "tenants": ["null"]}]}},
        {"endpoints": ["$(MEMBER):10901"], "external_labels": {"a": "$5"}}
    ]"#;
    let (config, _) = imported(&[format!("--receive.hashrings={rings}")]);
    let Some(Sink::ThanosReceive(sink)) = config.sinks.get(&SINK.parse().unwrap()) else { panic!("no sink") };
    let read: Vec<_> = sink.hashrings.as_deref().unwrap().iter().map(|ring| ring.ring().clone()).collect();
    assert_eq!(read, tidegate_ring::parse_hashrings(rings.replace("$(MEMBER)", "3").as_bytes()).unwrap());
}

#[test]
fn a_receiver_that_routes_nothing_is_refused() {
    assert!(error("receive --tsdb.path=/data").contains("routes none"));
    let (_, printed) = imported(&arguments(MANIFESTS[1]));
    let note = printed.notes.iter().find(|note| note.setting == "--receive.local-endpoint").unwrap();
    assert!(note.message.contains("only routes") && !note.is_needless(), "{note}");
}

#[test]
fn mistakes_of_a_command_line_are_errors() {
    for (line, words) in [
        ("--receive.hashring-file=/r.json", "did you mean `--receive.hashrings-file`"),
        ("--receive.replication-facter=3", "did you mean `--receive.replication-factor`"),
        ("--no-such-thing", "there is no flag"),
        ("--no-receive.hashrings-file=/r.json", "there is no flag"),
        ("--tsdb.wal-compression=true", "takes no value"),
        ("--receive.hashrings-file --tsdb.wal-compression", "has no value"),
        ("--receive.hashrings-file=/r --receive.hashrings-file=/r", "cannot be repeated"),
        ("query --endpoint=a:1", "`thanos query`"),
        ("receive more", "is not a flag"),
        ("@loop.txt", "name each other"),
        ("@none.txt", "cannot read the arguments in none.txt"),
        ("--receive.hashrings=[{]", "cannot be read"),
        ("--receive.hashrings=$(RINGS)", "is the variable $(RINGS)"),
        ("--receive.hashrings-file=/r --receive.hashrings-algorithm=ring", "write one of hashmod, ketama"),
        ("--receive.hashrings-file=/r --receive.replication-factor=9", "1 to 7"),
        ("--receive.hashrings-file=/r --receive.default-tenant-id=a/b", "cannot be a tenant's name"),
        ("--receive.hashrings-file=/r --remote-write.server-tls-cert=/c", "give both"),
        (
            "--receive.hashrings-file=/r --remote-write.client-tls-secure --remote-write.client-tls-key=/c",
            "give both",
        ),
        (
            "--receive.hashrings-file=/r --receive.tenant-certificate-field=commonName",
            "asked for a certificate",
        ),
        ("--receive.hashrings-file=/r --remote-write.address=host:1", "is not an address"),
        ("--receive.hashrings-file=/r --receive.limits-config-file=/none", "cannot read /none"),
        (
            "--receive.hashrings-file=/r --receive.limits-config=a --receive.limits-config-file=/none",
            "exclude",
        ),
        ("--receive.hashrings-file=/r --receive.relabel-config=$(RULES)", "is the variable $(RULES)"),
    ] {
        assert!(error(line).contains(words), "{line}: {}", error(line));
    }
}

#[test]
fn all_mistakes_come_at_once() {
    let words = error("--receive.hashring-file /r.json --foo=1 --tsdb.wal-compression=true surplus");
    for mistake in ["--receive.hashrings-file`?", "`--foo`", "takes no value", "`surplus` is not a flag"] {
        assert!(words.contains(mistake), "{mistake}: {words}");
    }
    assert!(!words.contains("r.json"), "the value of an unknown flag is no mistake of its own: {words}");
}

/// The lines of a manifest or of a shell, as they are pasted.
#[test]
fn arguments_may_stand_as_in_a_manifest() {
    let arguments = [
        "args:",
        "- receive",
        "  - --receive.replication-factor=3",
        "- \"--label=replica=\\\"$(NAME)\\\"\",",
        "'--remote-write.address=127.0.0.1:19291',",
        "--receive.hashrings-file=/rings.json \\",
    ];
    let (_, pasted) = imported(&arguments.map(str::to_owned));
    let (_, plain) = imported(&self::arguments(
        "receive --receive.replication-factor=3 --label=replica=\\\"$(NAME)\\\" --remote-write.address=127.0.0.1:19291 \
         --receive.hashrings-file=/rings.json",
    ));
    assert_eq!(pasted.configuration, plain.configuration);
}

/// Each flag of Thanos without a counterpart is named, with the reason.
#[test]
fn no_flag_is_left_out_silently() {
    for flag in FLAGS.iter().filter(|flag| !flag.reason.is_empty()) {
        let argument = match flag.values {
            Values::Switch => format!("--{}", flag.name),
            _ => format!("--{}=1", flag.name),
        };
        let (_, printed) = imported(&[RINGS.to_owned(), argument]);
        let name = format!("--{}", flag.name);
        assert!(printed.notes.iter().any(|note| note.setting == name), "{name}");
        assert!(flag.reason.starts_with("left out: ") || flag.reason.starts_with("not needed: "), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    /// Any arguments either are an error, or become a configuration that can be read.
    #[test]
    fn the_result_can_always_be_read(
        flags in proptest::collection::vec((0..FLAGS.len(), "[a-z0-9:$(){}./ '\"#-]{0,12}|[0-9]|127\\.0\\.0\\.1:[1-9]|:[1-9]|1[smh]"), 0..6),
    ) {
        let mut arguments = vec![RINGS.to_owned()];
        for (index, value) in flags {
            let flag = &FLAGS[index];
            arguments.push(match flag.values {
                Values::Switch => format!("--{}", flag.name),
                _ => format!("--{}={value}", flag.name),
            });
        }
        // A variable may have any value, also one that is refused.
        prop_assume!(!arguments.iter().any(|argument| argument.contains("$(")));
        if thanos_receive(&arguments, &files).is_ok() {
            imported(&arguments);
        }
    }
}
