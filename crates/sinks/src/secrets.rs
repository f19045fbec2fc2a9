//! Masks secrets in logs, in `/status` and in dead letters: keys in headers and in the query of a URL.
//!
//! A peer may repeat what it was sent, in the text of an error or in a redirection. So what it says is searched for them.

use crate::http_peer::EXCERPT;
use hyper::Uri;
use hyper::header::HeaderMap;
use std::fmt;

/// Shorter values are words like `true`, and replacing them would garble messages.
const SHORTEST: usize = 4;
/// The mask for a secret.
const MASK: &str = "***";

/// The secrets that go to one peer, longest first.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The query of `uri` and its values, the values of `headers` and what is behind the scheme in them (`Bearer …`).
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Secrets {
        let query = uri.query().unwrap_or_default();
        let values = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let headers: Vec<&str> = headers.values().filter_map(|value| value.to_str().ok()).collect();
        let tokens = headers.iter().filter_map(|value| Some(value.split_once(' ')?.1.trim()));
        let all = [query].into_iter().chain(values).chain(headers.iter().copied()).chain(tokens);
        let mut all: Vec<String> =
            all.filter(|secret| secret.len() >= SHORTEST).map(ToOwned::to_owned).collect();
        all.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Secrets(all)
    }

    /// The text with stars for every secret in it, also where it was cut within one.
    pub(crate) fn mask(&self, text: String) -> String {
        let mut text = text;
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        if text.len() < EXCERPT.saturating_sub(SHORTEST) {
            return text;
        }
        let half = |secret: &String| {
            let mut starts = (SHORTEST..secret.len()).rev().filter_map(|len| secret.get(..len));
            starts.find(|start| text.ends_with(start)).map(str::len)
        };
        if let Some(len) = self.0.iter().filter_map(half).max() {
            text.truncate(text.len() - len);
            text.push_str(MASK);
        }
        text
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A URL as it may be shown: without its query, and without a name and a password.
pub(crate) struct Shown<'a>(pub(crate) &'a Uri);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(uri) = self;
        if let Some(scheme) = uri.scheme_str() {
            write!(f, "{scheme}://")?;
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        f.write_str(authority.rsplit_once('@').map_or(authority, |(_, host)| host))?;
        f.write_str(uri.path())?;
        if uri.query().is_some() { write!(f, "?{MASK}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{AUTHORIZATION, HeaderValue};

    fn secrets() -> Secrets {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"));
        headers.insert("x-flag", HeaderValue::from_static("1"));
        Secrets::of(&"http://h/p?api_key=s3cret&x=1".parse().unwrap(), &headers)
    }

    #[test]
    fn secrets_in_a_response_are_masked() {
        let said = "no handler for /p?api_key=s3cret&x=1 with Bearer hunter2; s3cret, hunter2, 1";
        assert_eq!(secrets().mask(said.to_owned()), "no handler for /p?*** with ***; ***, ***, 1");
        assert_eq!(secrets().mask("all is well".to_owned()), "all is well");
    }

    #[test]
    fn a_secret_that_was_cut_is_masked() {
        let said = format!("{}hunt", "x".repeat(EXCERPT - 4));
        let masked = secrets().mask(said);
        assert!(masked.ends_with("x***"), "{masked}");
    }

    #[test]
    fn a_url_is_shown_without_its_query() {
        let shown = |url: &str| Shown(&url.parse().unwrap()).to_string();
        assert_eq!(shown("https://h:9/a?key=hunter2"), "https://h:9/a?***");
        assert_eq!(shown("http://u:hunter2@h/a"), "http://h/a");
        assert_eq!(format!("{:?}", secrets()), "***");
    }
}
