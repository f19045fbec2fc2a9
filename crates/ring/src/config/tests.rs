//! Files of hashrings are read as Thanos reads them, and errors name the place.

use super::*;

fn error(text: &str) -> String {
    parse_hashrings(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn all_keys_are_read() {
    let text = r#"[{
        "hashring": "eu", "tenants": ["a*"], "tenant_matcher_type": "glob", "algorithm": "ketama",
        "external_labels": {"region": "eu"},
        "endpoints": ["n1:10901", {"address": "n2:10901", "capnproto_address": "c2:1", "az": "b"}, {"address": "[::1]:10901"}],
        "shuffle_sharding_config": {
            "shard_size": 2, "cache_size": 5, "zone_awareness_disabled": true,
            "overrides": [{"shard_size": 1, "tenants": ["x"], "tenant_matcher_type": "exact"}]
        }
    }, {"endpoints": []}]"#;
    let rings = parse_hashrings(text.as_bytes()).unwrap();
    let n2 = Endpoint { address: "n2:10901".into(), capnproto_address: "c2:1".into(), zone: "b".into() };
    let one =
        ShardOverride { shard_size: 1, tenants: vec!["x".into()], tenant_matcher: TenantMatcher::Exact };
    let eu = RingConfig {
        name: "eu".into(),
        tenants: vec!["a*".into()],
        tenant_matcher: TenantMatcher::Glob,
        endpoints: vec![Endpoint::new("n1:10901"), n2, Endpoint::new("[::1]:10901")],
        algorithm: Some(Algorithm::Ketama),
        external_labels: [("region".to_owned(), "eu".to_owned())].into(),
        shuffle_sharding: ShuffleSharding {
            shard_size: 2,
            cache_size: 5,
            zone_awareness_disabled: true,
            overrides: vec![one],
        },
    };
    assert_eq!(rings, [eu, RingConfig::default()]);
    let capnproto = ["n1:10901", "n1", "[::1]:10901"].map(|address| Endpoint::new(address).capnproto_address);
    assert_eq!(capnproto, ["n1:19391", "n1:19391", "[::1]:19391"]);
}

#[test]
fn null_is_the_default() {
    let text = r#"[{"hashring": null, "tenants": null, "endpoints": null, "algorithm": null, "shuffle_sharding_config": null}]"#;
    assert_eq!(parse_hashrings(text.as_bytes()).unwrap(), [RingConfig::default()]);
    let empty = parse_hashrings(br#"[{"algorithm": "", "tenant_matcher_type": ""}]"#).unwrap();
    assert_eq!(empty, [RingConfig::default()]);
}

#[test]
fn errors_name_the_place() {
    assert_eq!(error("[]"), "the list of hashrings is empty");
    assert_eq!(error("null"), "the list of hashrings is empty");
    assert_eq!(error("[{\n\"endpoints\": [\"\"]}]"), "the address is missing at line 2 column 16");
    assert!(error("[{\n\"endpoints\": [{\"az\": \"a\"}]}]").starts_with("the address is missing at line 2"));
    assert!(error("[{\n\"endpoints\": [7]}]").contains("expected an address, or an object with `address`"));
    assert!(
        error("[{\"endpoint\": []}]").starts_with("unknown field `endpoint`, expected one of `hashring`")
    );
    assert!(error("{}").contains("line 1 column"));
    assert!(error("").contains("line 1 column 0"));
}
