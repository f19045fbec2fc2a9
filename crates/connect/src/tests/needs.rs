//! What kinds need besides the address, and say.

use super::*;

#[test]
fn a_token_speaks_for_its_tenant_at_the_address_of_thanos() {
    let text = "listen: { thanos_receive: { default_tenant: lab } }\naccess: { credentials_file: c }";
    assert!(
        !content("thanos", text).contains("THANOS-TENANT") && !content("thanos", text).contains("TENANT")
    );
    assert!(notes("thanos", text).contains("Without `--tenant NAME`, the data is that of the tenant `lab`."));
}

const FLEET: &str = "fleet: {}, elasticsearch: 0.0.0.0:9200";

#[test]
fn a_policy_has_the_tls_and_the_tenant_of_its_output() {
    let tls = |more: &str| format!("listen: {{ {FLEET}, tls: {{ cert_file: s, key_file: k{more} }} }}");
    let policy = content("elastic-agent", &tls(""));
    assert!(
        policy.contains("    ssl:\n      certificate_authorities: [\"/etc/tidegate/ca.pem\"]\n"),
        "{policy}"
    );
    assert!(!policy.contains("client.pem") && !policy.contains("tenant:"), "{policy}");
    let policy = content("elastic-agent", &tls(", client_ca_file: c, client_auth: required"));
    assert!(policy.contains(
        "      certificate: \"/etc/tidegate/client.pem\"\n      key: \"/etc/tidegate/client.key\"\n"
    ));
    let with = |tenants: &str| format!("listen: {{ {FLEET}, insecure: true }}\ntenants: {{ {tenants} }}");
    assert!(!content("elastic-agent", &with("")).contains("ssl:"));
    assert!(content("elastic-agent", &with("header: x-a")).contains("    tenant: \"TENANT\"\n"));
    assert!(notes("elastic-agent", &with("header: x-a")).contains("Replace TENANT: what these agents send"));
    assert!(content("elastic-agent", &with("default: lab")).contains("    tenant: \"TENANT\"\n"));
    let (config, named) = (config(&with("header: x-a")), Sender { tenant: "shop".parse().ok(), ..sender() });
    let text = found("elastic-agent").instructions(Gateway::new(&config, &named)).unwrap().to_string();
    assert!(text.contains("    tenant: \"shop\"\n") && !text.contains("Replace TENANT"), "{text}");
}

#[test]
fn sources_without_a_tenant_say_which_setting_they_need() {
    let sources = "sources: { fluent_forward: { address: 127.0.0.1:24224 }, syslog: { listeners: { a: { address: 'tcp://127.0.0.1:1' } } } }";
    for (kind, setting) in [
        ("fluentd", "sources.fluent_forward.tenant"),
        ("rsyslog", "sources.syslog.tenant"),
        ("docker", "sources.fluent_forward.tenant"),
    ] {
        let with = |tenants: &str| notes(kind, &format!("{sources}\ntenants: {{ {tenants} }}"));
        let needed = format!("set `{setting}` or `tenants.default`");
        assert!(with("header: x-a").contains(&needed), "{kind}");
        assert!(
            !with("header: x-a, default: lab").contains(&needed) && !with("").contains(&needed),
            "{kind}"
        );
    }
    let own = "sources: { syslog: { tenant: a, listeners: { a: { address: 'tcp://127.0.0.1:1' } } } }\ntenants: { header: x-a }";
    assert!(!notes("rsyslog", own).contains("sources.syslog.tenant"));
}

#[test]
fn a_tenant_in_a_certificate_needs_one_even_where_it_is_optional() {
    let tls = "listen: { tls: { cert_file: s, key_file: k, client_ca_file: c, client_auth: optional } }\n";
    let by_certificate = format!("{tls}tenants: {{ certificate: common_name }}");
    assert!(content("prometheus", &by_certificate).contains("cert_file: \"/etc/tidegate/client.pem\""));
    assert!(!content("prometheus", tls).contains("client.pem"));
    assert!(notes("otel-rust", &by_certificate).contains("has no tenant and is refused"));
}

#[test]
fn what_senders_need_besides_is_said() {
    let tokens = "access: { credentials_file: c }";
    assert!(notes("vector", tokens).contains("`--dangerously-allow-env-var-interpolation`"));
    assert!(!notes("vector", "").contains("--dangerously"));
    let tls = |address: &str| {
        format!(
            "listen: {{ tls: {{ cert_file: s, key_file: k }} }}\nsources: {{ syslog: {{ listeners: {{ a: {{ address: 'tls://{address}' }} }} }} }}"
        )
    };
    assert!(notes("rsyslog", &tls("192.0.2.7:6514")).contains("print this with `--host NAME`"));
    assert!(!notes("rsyslog", &tls("0.0.0.0:6514")).contains("print this with"));
    assert!(content("syslog-ng", &tls("[2001:db8::1]:6514")).contains("ip-protocol(6)"));
    assert!(!content("syslog-ng", &tls("192.0.2.7:6514")).contains("ip-protocol"));
    assert!(content("vmagent", "listen: { http: '[::1]:4318' }").contains(" -enableTCP6 "));
    assert!(!content("vmagent", "").contains("-enableTCP6"));
    for kind in ["otel-rust", "otel-dotnet"] {
        assert!(notes(kind, &tls("0.0.0.0:6514")).contains("SSL_CERT_FILE replaces"), "{kind}");
        assert!(!notes(kind, "").contains("SSL_CERT_FILE"), "{kind}");
    }
    assert!(!notes("otel-python", &tls("0.0.0.0:6514")).contains("SSL_CERT_FILE"));
    let brackets = "sources: { http: { path: '/a[1-2]' } }";
    assert!(content("curl", brackets).contains("-sS --globoff 'http://127.0.0.1:4318/a[1-2]'"));
    assert!(!content("curl", "").contains("--globoff"));
}

#[test]
fn a_framing_that_a_sender_does_not_use_is_said() {
    let listener = |scheme: &str, more: &str| {
        format!(
            "listen: {{ tls: {{ cert_file: s, key_file: k }} }}\nsources: {{ syslog: {{ listeners: {{ a: {{ address: '{scheme}://127.0.0.1:1', {more} }} }} }} }}"
        )
    };
    let note = "set `sources.syslog.listeners.a.framing` to `auto`";
    for (kind, scheme, more, is_said) in [
        ("docker", "tcp", "framing: octet_counting", true),
        ("docker", "tcp", "framing: newline", false),
        ("docker", "tls", "framing: octet_counting", false),
        ("docker", "tls", "framing: newline", true),
        ("docker", "tls", "framing: octet_counting, format: rfc3164", true),
        ("docker", "tls", "framing: auto", false),
        ("docker", "udp", "framing: octet_counting", false),
        ("syslog-ng", "tcp", "framing: octet_counting", false),
        ("syslog-ng", "tcp", "framing: octet_counting, format: rfc3164", true),
        ("syslog-ng", "tcp", "framing: newline", false),
    ] {
        assert_eq!(notes(kind, &listener(scheme, more)).contains(note), is_said, "{kind} {scheme} {more}");
    }
}

#[test]
fn pods_have_the_files_of_the_secret() {
    let config =
        config("listen: { tls: { cert_file: s, key_file: k, client_ca_file: c, client_auth: required } }");
    let text = |sender: &Sender| {
        found("kubernetes").instructions(Gateway::new(&config, sender)).unwrap().to_string()
    };
    let elsewhere =
        sender().with_ca_file("/srv/ca-1.pem").unwrap().with_certificate("/srv/a.pem", "/srv/a.key").unwrap();
    let printed = text(&elsewhere);
    assert!(
        printed.contains("ca_file: \"/etc/tidegate/ca-1.pem\"")
            && printed.contains("key_file: \"/etc/tidegate/a.key\""),
        "{printed}"
    );
    assert!(
        printed.contains(
            "--from-file=ca-1.pem=/srv/ca-1.pem --from-file=a.pem=/srv/a.pem --from-file=a.key=/srv/a.key"
        ),
        "{printed}"
    );
    let same = sender()
        .with_ca_file("/srv/ca/tls.crt")
        .unwrap()
        .with_certificate("/srv/tls.crt", "/srv/token")
        .unwrap();
    assert!(text(&same).contains("--from-file=ca.pem=/srv/ca/tls.crt --from-file=client.pem=/srv/tls.crt --from-file=client.key=/srv/token"));
}

#[test]
fn each_beat_has_its_own_file_and_command() {
    for beat in ["filebeat", "metricbeat", "packetbeat", "heartbeat", "auditbeat", "winlogbeat"] {
        let printed = instructions(found(beat), "").unwrap();
        assert_eq!(printed.snippets[0].file, Some(format!("{beat}.yml").as_str()));
        assert!(printed.to_string().contains(&format!("`{beat} setup`")), "{beat}");
    }
    assert!(!matches!(find("podman"), Lookup::Found(_)));
}

#[test]
fn each_address_of_the_collector_has_its_notes() {
    let text = "listen: { grpc: 0.0.0.0:4317, insecure: true }";
    let printed = instructions(found("collector"), text).unwrap();
    let of = |at: usize| printed.snippets[at].notes.concat();
    assert!(of(0).contains("`listen.http`") && !of(0).contains("`listen.grpc`"));
    assert!(of(1).contains("`listen.grpc`") && !of(1).contains("`listen.http`"));
}
