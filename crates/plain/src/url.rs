//! URLs in a text without what is secret in them.

/// The text in the place of a secret.
const MASK: &str = "***";

/// The text without what is secret in the URLs in it: a name and a password before the host, and the query, in which many a server
/// takes its key.
///
/// A URL ends at a blank or a quote and nowhere else: passwords hold commas, braces and slashes, and a mask that is too long does no
/// harm.
pub fn without_url_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let len = after.find(|c: char| c.is_whitespace() || "\"'`".contains(c)).unwrap_or(after.len());
        let (url, behind) = after.split_at(len);
        push_masked(url, &mut shown);
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// Appends what follows `://` in a URL.
fn push_masked(url: &str, shown: &mut String) {
    let before_query = url.split('?').next().unwrap_or_default();
    // A password may hold a slash or a question mark: what stands before the last `@` is no host.
    let user = match before_query.rsplit_once('@') {
        Some((user, _)) => Some(user),
        None if is_host(before_query.split('/').next().unwrap_or_default()) => None,
        None => url.rsplit_once('@').map(|(user, _)| user),
    };
    let rest = user.and_then(|user| url.get(user.len() + 1..));
    if rest.is_some() {
        shown.push_str(MASK);
        shown.push('@');
    }
    let url = rest.unwrap_or(url);
    match url.split_once('?') {
        Some((path, _)) => [path, "?", MASK].iter().for_each(|part| shown.push_str(part)),
        None => shown.push_str(url),
    }
}

/// Whether this may be a host, with or without a port.
fn is_host(authority: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    authority.ends_with(']') || authority.rsplit_once(':').is_none_or(|(_, port)| is_port(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn users_passwords_and_queries_are_masked() {
        for (text, expected) in [
            ("http://u:hunter2@h/p?q=a@b c", "http://***@h/p?*** c"),
            ("http://u:hun/ter2@h", "http://***@h"),
            ("http://u:hun,te;r}2@h/p", "http://***@h/p"),
            ("http://u:hun(te)<r>2@h/p", "http://***@h/p"),
            ("http://u:hun@ter2@h/p", "http://***@h/p"),
            ("http://u:hun?ter2@h/p?k", "http://***@h/p?***"),
            ("http://u:?hunter2@h", "http://***@h"),
            ("GET https://h/p?k=a,b;c}d failed", "GET https://h/p?*** failed"),
            ("a http://x/y 'https://u@h?k'", "a http://x/y 'https://***@h?***'"),
            ("`https://h?k`: refused", "`https://h?***`: refused"),
            ("http://[::1]:9/p?e=a@b", "http://[::1]:9/p?***"),
            ("plain ?x=1", "plain ?x=1"),
        ] {
            assert_eq!(without_url_secrets(text), expected);
        }
    }

    proptest! {
        /// Whatever a password holds, it is not shown. Some of the signs that end it in a URL are tried above: of `1/a?b@c` nobody can
        /// say whether it is one.
        #[test]
        fn no_password_is_shown(password in "[!#-&(-.0->A-_a-~é]{0,9}hunter2[!#-&(-.0->A-_a-~é]{0,9}") {
            let shown = without_url_secrets(&format!("to http://user:{password}@host:80/path: no"));
            prop_assert!(!shown.contains("hunter2"), "{}", shown);
            prop_assert!(shown.starts_with("to http://***@host:80/path"), "{}", shown);
        }

        /// No text panics.
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            without_url_secrets(&format!("{text}://{text}"));
        }
    }
}
