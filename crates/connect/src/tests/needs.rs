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

#[test]
fn a_tenant_in_a_certificate_needs_one_even_where_it_is_optional() {
    let tls = "listen: { tls: { cert_file: s, key_file: k, client_ca_file: c, client_auth: optional } }\n";
    let by_certificate = format!("{tls}tenants: {{ certificate: common_name }}");
    assert!(content("prometheus", &by_certificate).contains("cert_file: \"/etc/tidegate/client.pem\""));
    assert!(!content("prometheus", tls).contains("client.pem"));
    assert!(notes("otel-rust", &by_certificate).contains("has no tenant and is refused"));
}
