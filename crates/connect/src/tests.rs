//! Each kind with each configuration.

mod configurations;
mod needs;
mod snippets;

use super::*;
use configurations::{CONFIGURATIONS, config, sender};

/// A kind's instructions for a configuration, where it is received.
fn instructions(kind: &Kind, text: &str) -> Option<Instructions> {
    let (config, sender) = (config(text), sender());
    kind.instructions(Gateway::new(&config, &sender)).ok()
}

fn found(name: &str) -> &'static Kind {
    match find(name) {
        Lookup::Found(kind) => kind,
        other => panic!("{name}: {other:?}"),
    }
}

/// The snippets of a kind for a configuration, as one text, without the notes.
fn content(name: &str, text: &str) -> String {
    let instructions = instructions(found(name), text).unwrap_or_else(|| panic!("{name} is not received"));
    instructions.snippets.iter().map(|snippet| snippet.content.as_str()).collect()
}

fn notes(name: &str, text: &str) -> String {
    let instructions = instructions(found(name), text).unwrap_or_else(|| panic!("{name} is not received"));
    instructions.snippets.iter().flat_map(|snippet| &snippet.notes).map(|note| format!("{note}\n")).collect()
}

#[test]
fn names_and_aliases_are_unique_and_found() {
    let mut seen = std::collections::BTreeSet::new();
    for kind in KINDS {
        for name in std::iter::once(&kind.name).chain(kind.aliases) {
            // As it is looked up.
            let name = name.replace('_', "-");
            assert!(seen.insert(name.clone()), "{name} is there twice");
            assert_eq!(found(&name.to_uppercase().replace('-', "_")).name, kind.name);
        }
    }
}

#[test]
fn a_mistyped_name_gets_a_suggestion() {
    for (typed, meant) in [
        ("promethus", Some("prometheus")),
        ("filebaet", Some("filebeat")),
        ("otel-pyhton", Some("otel-python")),
        ("syslogng-", Some("syslog-ng")),
        ("collecter", Some("collector")),
        ("carrier pigeon", None),
    ] {
        match find(typed) {
            Lookup::Unknown(nearest) => assert_eq!(nearest, meant, "{typed}"),
            other => panic!("{typed}: {other:?}"),
        }
    }
    assert!(matches!(find("splunk-hec"), Lookup::NotReceived(_)));
}

/// No secret of a configuration is printed, be it in a snippet, a note or an error.
#[test]
fn no_secret_is_printed() {
    for text in CONFIGURATIONS {
        let (config, sender) = (config(text), sender());
        let gateway = Gateway::new(&config, &sender);
        let listed = list(gateway);
        let mut printed = format!("{listed}{}", listed.json());
        for kind in KINDS {
            match kind.instructions(gateway) {
                Ok(instructions) => printed += &format!("{instructions}{}", instructions.json()),
                Err(missing) => printed += &format!("{missing}{missing:?}"),
            }
        }
        assert!(!printed.contains("hunter2"), "{text}");
    }
}

/// The lines that an error asks for make the configuration one that receives the kind.
#[test]
fn missing_lines_are_enough() {
    let mut tried = 0;
    for kind in KINDS {
        let (plain, sender) = (config(""), sender());
        let Err(missing) = kind.instructions(Gateway::new(&plain, &sender)) else { continue };
        tried += 1;
        assert!(missing.lines.ends_with('\n'), "{}", kind.name);
        assert!(
            missing.to_string().contains(&missing.lines) && missing.to_string().contains(missing.setting)
        );
        assert!(instructions(kind, &missing.lines).is_some(), "{}: {}", kind.name, missing.lines);
    }
    assert!(tried >= 7, "{tried}");
    // The message for a forward source that Docker cannot use names another way, which is enough as well.
    let keyed = "sources: { fluent_forward: { address: 127.0.0.1:24224, shared_key: hunter2 } }";
    let (config, sender) = (config(keyed), sender());
    let missing = found("docker").instructions(Gateway::new(&config, &sender)).unwrap_err();
    assert!(instructions(found("docker"), &missing.lines).is_some());
}

#[test]
fn the_list_says_what_is_not_received() {
    let (config, sender) = (config(""), sender());
    let list = list(Gateway::new(&config, &sender));
    let text = list.to_string();
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap().to_owned();
    assert!(line("rsyslog").contains("set `sources.syslog.listeners`"), "{text}");
    assert!(line("fluentd").contains("set `sources.fluent_forward.address`"), "{text}");
    assert!(!line("prometheus").contains("not received"), "{text}");
    assert_eq!(list.json().as_array().unwrap().len(), KINDS.len());
}

#[test]
fn json_has_the_promised_members() {
    let instructions = instructions(found("collector"), "").unwrap();
    for snippet in instructions.json().as_array().unwrap() {
        let names: Vec<_> = snippet.as_object().unwrap().keys().map(String::as_str).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["content", "file", "language", "notes", "title"]);
    }
}

#[test]
fn addresses_are_those_that_senders_reach() {
    let url = |text: &str| {
        content("prometheus", text)
            .lines()
            .find_map(|line| Some(line.split_once("url: ")?.1.to_owned()))
            .unwrap()
    };
    assert_eq!(url(""), r#""http://127.0.0.1:4318/api/v1/write""#);
    assert_eq!(url("listen: { http: '[::1]:99' }"), r#""http://[::1]:99/api/v1/write""#);
    let everywhere = "listen: { http: 0.0.0.0:80, insecure: true }";
    assert_eq!(url(everywhere), r#""http://this-machine:80/api/v1/write""#);
    assert_eq!(url("listen: { http: '[::]:80', insecure: true }"), url(everywhere));
    assert_eq!(
        url("listen: { http: 192.0.2.7:80, insecure: true }"),
        r#""http://192.0.2.7:80/api/v1/write""#
    );
    assert!(notes("prometheus", "").contains("only programs on this machine"));
    assert!(notes("prometheus", everywhere).contains("`--host NAME`"));
    assert!(notes("prometheus", everywhere).contains("can be read on the network"));
    let (config, named) = (config(everywhere), Sender { host: "GW.example".parse().ok(), ..sender() });
    let text = found("prometheus").instructions(Gateway::new(&config, &named)).unwrap().to_string();
    assert!(text.contains("http://gw.example:80/"), "{text}");
    let six = Sender { host: "2001:db8::1".parse().ok(), ..sender() };
    let text = found("collector").instructions(Gateway::new(&config, &six)).unwrap().to_string();
    assert!(text.contains("http://[2001:db8::1]:80"), "{text}");
}

/// Where a kind goes when its protocol has an address of its own.
#[test]
fn own_listeners_take_precedence() {
    let own = "listen: { elasticsearch: 127.0.0.1:9200, apm: 127.0.0.1:8200 }";
    assert!(content("filebeat", "").contains("127.0.0.1:4318/elasticsearch\""));
    assert!(content("filebeat", own).contains("\"http://127.0.0.1:9200\""));
    assert!(content("elastic-apm-python", "").contains("=http://127.0.0.1:4318\n"));
    assert!(content("elastic-apm-python", own).contains("=http://127.0.0.1:8200\n"));
    let syslog = "sources: { syslog: { listeners: { a: { address: 'udp://127.0.0.1:1' }, b: { address: 'tcp://127.0.0.1:2' } } } }";
    assert!(content("rsyslog", syslog).contains("port=\"2\" protocol=\"tcp\""));
    assert!(content("curl", "sources: { http: { path: '/a%20b/$x' } }").contains("4318/a%20b/$x'"));
}

/// TLS, certificates, tokens and tenants, wherever a kind can have them.
#[test]
fn what_the_configuration_asks_for_is_there() {
    let tls = "listen: { http: 0.0.0.0:4318, grpc: 0.0.0.0:4317, elasticsearch: 0.0.0.0:9200, thanos_receive: { address: 0.0.0.0:19291 }, \
               tls: { cert_file: s.pem, key_file: s.key, client_ca_file: c.pem, client_auth: required } }\n\
               access: { credentials_file: c }\n";
    let without = [
        "elastic-apm-python",
        "elastic-apm-node",
        "elastic-apm-java",
        "elastic-apm-go",
        "otel-rust",
        "otel-dotnet",
    ];
    let of_fleet = ["elastic-agent", "opamp-supervisor"];
    for kind in KINDS {
        let Some(instructions) = instructions(kind, tls) else { continue };
        if of_fleet.contains(&kind.name) {
            continue;
        }
        let text: String = instructions.snippets.iter().map(|snippet| snippet.content.as_str()).collect();
        let secure = text.contains("https://") || text.contains("tls") || text.contains("tls_ca");
        assert!(secure && !text.contains("http://this-machine"), "{}: {text}", kind.name);
        assert!(text.contains("TIDEGATE_") || text.contains("/etc/tidegate/token"), "{}: {text}", kind.name);
        assert!(
            text.contains("/etc/tidegate/ca.pem") || kind.name == "elastic-apm-java",
            "{}: {text}",
            kind.name
        );
        let has_certificate = text.contains("client.pem") && text.contains("client.key");
        assert_eq!(has_certificate, !without.contains(&kind.name), "{}: {text}", kind.name);
        let notes = instructions.to_string();
        assert!(notes.contains("tidegate token"), "{}: {notes}", kind.name);
        assert!(
            notes.contains("asks senders for a certificate, signed by the authority in c.pem"),
            "{}",
            kind.name
        );
    }
}

#[test]
fn tenants_are_named_as_the_configuration_wants_them() {
    let by_header = "tenants: { header: X-Scope-OrgID }";
    for kind in [
        "otel-python",
        "collector",
        "prometheus",
        "vmagent",
        "grafana-alloy",
        "telegraf",
        "filebeat",
        "logstash",
        "vector",
        "promtail",
        "curl",
    ] {
        assert!(content(kind, by_header).contains("TENANT"), "{kind}");
        assert!(
            notes(kind, by_header).contains("Replace TENANT. Requests without it are refused."),
            "{kind}"
        );
    }
    assert!(notes("elastic-apm-go", by_header).contains("cannot set it"));
    assert!(
        notes("curl", "tenants: { header: x-a, default: lab }")
            .contains("Without it, the data is that of `lab`")
    );
    let by_credential = "tenants: { header: x-a }\naccess: { credentials_file: c }";
    assert!(!content("prometheus", by_credential).contains("TENANT"));
    assert!(notes("prometheus", by_credential).contains("`--tenant NAME` is needed"));
    let thanos = "listen: { thanos_receive: { tenant_header: x-team } }";
    assert!(content("thanos", thanos).contains("\"x-team\": \"TENANT\""));
    let (config, named) = (config(by_header), Sender { tenant: "it's a".parse().ok(), ..sender() });
    let text = found("curl").instructions(Gateway::new(&config, &named)).unwrap().to_string();
    assert!(text.contains(r"'x-scope-orgid: it'\''s a'"), "{text}");
    let text = found("otel-go").instructions(Gateway::new(&config, &named)).unwrap().to_string();
    assert!(text.contains("x-scope-orgid=it%27s%20a"), "{text}");
}

#[test]
fn paths_that_no_language_could_misread_are_the_only_ones() {
    for wrong in ["", "a b", "/x'y", "/$HOME", "/a\nb", "\"", "/é"] {
        assert!(sender().with_ca_file(wrong).is_err(), "{wrong:?}");
        assert!(sender().with_token_file(wrong).is_err(), "{wrong:?}");
        assert!(sender().with_certificate("/a", wrong).is_err(), "{wrong:?}");
    }
    let sender = sender().with_ca_file("/srv/ca-1.pem").unwrap();
    let config = config("listen: { tls: { cert_file: a, key_file: b } }");
    let text = found("curl").instructions(Gateway::new(&config, &sender)).unwrap().to_string();
    assert!(text.contains("--cacert /srv/ca-1.pem"), "{text}");
}
