use super::*;

fn built(variables: &[(&str, &str)]) -> Builder {
    Builder::from_variables(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

fn paths(builder: &Builder) -> Vec<String> {
    let mut mistakes = Vec::new();
    let endpoints = builder.endpoints(&mut mistakes);
    assert_eq!(mistakes, Vec::<String>::new());
    endpoints.into_iter().flatten().map(|end| format!("{}{}", end.authority, end.path)).collect()
}

#[test]
fn endpoints_are_as_opentelemetry_says() {
    let general = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:4318/base/")];
    assert_eq!(
        paths(&built(&general)),
        ["host:4318/base/v1/traces", "host:4318/base/v1/logs", "host:4318/base/v1/metrics"]
    );
    let own = [general[0], ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://other/taken/as/it/is")];
    assert_eq!(paths(&built(&own))[1], "other/taken/as/it/is");
    assert_eq!(paths(&built(&[]))[0], "localhost:4318/v1/traces");
}

#[test]
fn an_apm_server_is_spoken_to_in_its_own_protocol_unless_an_otlp_endpoint_is_set() {
    let elastic = [
        ("ELASTIC_APM_SERVER_URL", "http://apm:8200"),
        ("ELASTIC_APM_SECRET_TOKEN", "secret"),
        ("ELASTIC_APM_API_KEY", "key"),
        ("ELASTIC_APM_SERVICE_NAME", "shop"),
        ("ELASTIC_APM_API_REQUEST_TIME", "3s"),
        ("ELASTIC_APM_API_REQUEST_SIZE", "750kb"),
    ];
    let builder = built(&elastic);
    assert_eq!(builder.protocol, Protocol::ElasticApm);
    assert_eq!(paths(&builder)[0], "apm:8200/intake/v2/events");
    assert_eq!(builder.headers, [(None, "Authorization".to_owned(), "ApiKey key".to_owned())]);
    assert_eq!(builder.resource, [("service.name".to_owned(), "shop".to_owned())]);
    assert_eq!((builder.flush_interval, builder.batch_bytes), (Duration::from_secs(3), 750 << 10));

    let both = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otlp"), elastic[0], elastic[1]];
    let builder = built(&both);
    assert_eq!((builder.protocol, &*builder.endpoint), (Protocol::Otlp, "http://otlp"));
    assert!(builder.headers.is_empty(), "one peer's secret does not go to another");
    assert_eq!(built(&[("ELASTIC_APM_SERVER_URLS", "http://a, http://b")]).endpoint, "http://a");
}

#[test]
fn headers_and_attributes_are_decoded() {
    let builder = built(&[
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "only=here"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=from-list,team=%C3%A9"),
        ("OTEL_SERVICE_NAME", "wins"),
    ]);
    let header = |signal, name: &str, value: &str| (signal, name.to_owned(), value.to_owned());
    assert_eq!(
        builder.headers,
        [
            header(None, "api-key", "a b"),
            header(None, "x", "y"),
            header(Some(Signal::Traces), "only", "here")
        ]
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(builder.resource, [pair("team", "é"), pair("service.name", "wins")]);
}

#[test]
fn mistakes_are_named_with_their_variable_and_secrets_are_not_shown() {
    let builder = built(&[
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "  "),
    ]);
    let text = builder.start().unwrap_err().to_string();
    for word in ["OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon", "TIMEOUT", "soon", "HEADERS"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains("secret"));
}

#[test]
fn addresses_are_parsed_and_invalid_ones_reported() {
    let parsed = |url: &str| Endpoint::parse(url, "/v1/logs");
    let ipv6 = parsed("http://[::1]:80").unwrap();
    assert_eq!((ipv6.authority.as_str(), ipv6.is_near()), ("[::1]:80", true));
    assert!(matches!(&ipv6.address, Address::Tcp { host, port: 80 } if host == "::1"));
    assert_eq!(parsed("http://host").unwrap().path, "/v1/logs");
    assert!(!parsed("http://host").unwrap().is_near());
    #[cfg(unix)]
    assert_eq!(parsed("unix:///run/x.sock").unwrap().address, Address::Unix("/run/x.sock".into()));
    for wrong in
        ["host:4318", "http://", "http://host:99999", "http://a b", "http://me@host", "unix:", "grpc://host"]
    {
        assert!(parsed(wrong).unwrap_err().contains(wrong));
    }
}

/// The table in the users' documentation is this one; `UPDATE_DOCS=1` writes it.
#[test]
fn all_variables_are_documented() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sender.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let mut table = "\n| variable | what it does |\n|---|---|\n".to_owned();
    for setting in SETTINGS {
        table.push_str(&format!("| `{}` | {} |\n", setting.name, setting.what));
    }
    let (before, rest) = text.split_once("<!-- settings -->").unwrap();
    let (there, after) = rest.split_once("<!-- /settings -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{before}<!-- settings -->{table}<!-- /settings -->{after}")).unwrap();
    } else {
        assert_eq!(there, table, "run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn a_program_set_up_for_grpc_sends_over_http_and_is_warned() {
    let builder = built(&[
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "logs:4317"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://metrics:4317/own"),
    ]);
    assert_eq!(
        paths(&builder),
        ["collector:4318/v1/traces", "logs:4318/v1/logs", "metrics:4317/own"],
        "and what is said to be HTTP is left as it is"
    );
    let [warning] = builder.warnings() else { panic!("{:?}", builder.warnings()) };
    assert!(warning.contains("OTEL_EXPORTER_OTLP_PROTOCOL: `grpc`"), "{warning}");

    let only_logs = built(&[("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc")]);
    assert_eq!(paths(&only_logs)[1], "localhost:4318/v1/logs");
    assert_eq!(only_logs.warnings().len(), 1);
    let json = built(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
    assert_eq!((json.warnings().len(), json.mistakes.len()), (1, 0));
    assert!(built(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]).warnings().is_empty());
    assert_eq!(built(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier/pigeon")]).mistakes.len(), 1);
}
