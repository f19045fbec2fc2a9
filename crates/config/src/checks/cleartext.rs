//! Keys and passwords that everybody on the way could read.

use std::collections::BTreeMap;

use super::{Clash, path};
use crate::values::{HeaderName, Name, Secret, Url};

/// Refuses credentials that would leave this machine without TLS. `shown` are the settings with credentials that the sink
/// has beside `headers`.
pub(super) fn check<'a>(
    name: &Name,
    setting: &str,
    urls: impl IntoIterator<Item = &'a Url>,
    shown: &[&str],
    headers: &BTreeMap<HeaderName, Secret>,
    insecure: bool,
    clashes: &mut Vec<Clash>,
) {
    if insecure {
        return;
    }
    let header = || headers.keys().find(|header| header.is_credential());
    for url in urls.into_iter().filter(|url| !url.is_https() && !url.is_loopback()) {
        let what = match (shown.first(), header(), url.key()) {
            (Some(setting), ..) => format!("its `{setting}`"),
            (None, Some(header), _) => format!("its header `{header}`"),
            (None, None, Some(key)) => format!("the parameter `{key}` in its URL"),
            (None, None, None) => continue,
        };
        clashes.push(Clash {
            about: vec![path(["sinks", name.as_str(), setting])],
            message: format!("`sinks.{name}` would send {what} unencrypted, to {}", url.host()),
            help: "use `https`; or, where the network is trusted, set `insecure: true` for this sink"
                .to_owned(),
        });
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clash(url: &str, shown: &[&str], headers: &[&str], insecure: bool) -> Option<String> {
        let headers =
            headers.iter().map(|name| (name.parse().unwrap(), "hunter2".parse().unwrap())).collect();
        let mut clashes = Vec::new();
        let name = "up".parse().unwrap();
        check(&name, "url", [&url.parse().unwrap()], shown, &headers, insecure, &mut clashes);
        clashes.pop().map(|clash| clash.message)
    }

    #[test]
    fn credentials_do_not_leave_the_machine_in_the_clear() {
        for (url, shown, headers, about) in [
            ("http://es.internal:9200", &["api_key"][..], &[][..], "its `api_key`"),
            ("http://10.0.0.1/w", &[], &["Authorization"], "its header `authorization`"),
            ("http://10.0.0.1/w", &[], &["X-Api-Key"], "its header `x-api-key`"),
            ("http://vm/w?token=hunter2", &[], &[], "the parameter `token`"),
        ] {
            let message = clash(url, shown, headers, false).expect(url);
            assert!(message.contains(about) && !message.contains("hunter2"), "{message}");
            assert_eq!(clash(url, shown, headers, true), None, "{url}");
            assert_eq!(clash(&url.replacen("http", "https", 1), shown, headers, false), None);
        }
    }

    #[test]
    fn loopback_urls_and_requests_without_credentials_pass() {
        for host in
            ["127.0.0.1:9200", "localhost", "es.localhost", "[::1]:9200", "[::ffff:127.0.0.1]", "127.8.0.1"]
        {
            assert_eq!(clash(&format!("http://{host}/w"), &["api_key"], &["authorization"], false), None);
        }
        assert_eq!(
            clash("http://far/w?db=x&keyspace=y", &[], &["x-scope-orgid", "content-language"], false),
            None
        );
        for host in ["localhost.example", "127.0.0.1.example", "128.0.0.1", "[::2]"] {
            assert!(clash(&format!("http://{host}/w"), &["api_key"], &[], false).is_some(), "{host}");
        }
    }
}
