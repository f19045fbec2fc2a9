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
