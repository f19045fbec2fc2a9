//! The header that says whose data a request carries.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tidegate_journal::Tenant;

/// Puts the tenant's name under `name`, where there is both. A request has the records of one tenant only.
pub(crate) fn put(name: Option<&HeaderName>, tenant: &Tenant, headers: &mut HeaderMap) {
    let Some(name) = name else { return };
    if *tenant == Tenant::NONE {
        headers.remove(name);
        return;
    }
    // A name that came in can stand in a header: it may have come in one, and is checked like one.
    if let Ok(value) = HeaderValue::from_str(tenant.as_str()) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tenant_is_sent_once() {
        let name = HeaderName::from_static("x-scope-orgid");
        let mut headers = HeaderMap::new();
        put(None, &Tenant::new("a").unwrap(), &mut headers);
        assert!(headers.is_empty());
        put(Some(&name), &Tenant::new("Team 1's (b)").unwrap(), &mut headers);
        put(Some(&name), &Tenant::new("a").unwrap(), &mut headers);
        assert_eq!(headers.get_all(&name).iter().collect::<Vec<_>>(), ["a"]);
        put(Some(&name), &Tenant::NONE, &mut headers);
        assert!(headers.is_empty(), "nobody's data is not said to be the last one's");
    }
}
