//! Masks secrets in whatever is shown or archived.
//!
//! Known secrets are those of the configuration, whole and in the forms in which they travel: a token without its scheme, a
//! user and a password out of Base64, the value of a URL's query, with its escapes and without. Beyond those, whatever stands where
//! a secret stands is masked unread: a user in a URL, a query, the credentials of an `Authorization` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

const MASK: &str = "***";
/// Shorter values are words, and replacing them would garble everything.
const SHORTEST: usize = 4;
/// The schemes of `Authorization`.
const SCHEMES: [&str; 5] = ["Bearer ", "Basic ", "ApiKey ", "Splunk ", "Token "];
/// Credentials are longer; what follows a scheme's name in prose is mostly shorter.
const SHORTEST_CREDENTIAL: usize = 8;

/// Knows secrets, and hides them.
#[derive(Clone, Default)]
pub struct Masker {
    /// Longest first, so that no part of one is left.
    secrets: Vec<String>,
}

impl Masker {
    /// One that knows these secrets, as they are written in a configuration.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Masker {
        let mut known = Vec::new();
        for secret in secrets {
            add(secret.trim(), &mut known);
        }
        known.retain(|secret| secret.len() >= SHORTEST && secret != MASK);
        known.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Masker { secrets: known }
    }

    /// The text with stars for every secret.
    pub fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        without_credentials(&without_url_secrets(&text))
    }
}

/// Appends `secret` and its parts.
fn add(secret: &str, known: &mut Vec<String>) {
    if let Some((_, rest)) = secret.split_once("://") {
        // Most of a URL is no secret.
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        if let Some((user, _)) = address.rsplit_once('@') {
            push(user, known);
            user.splitn(2, ':').skip(1).for_each(|password| push(password, known));
        }
        push(query, known);
        query
            .split('&')
            .filter_map(|pair| Some(pair.split_once('=')?.1))
            .for_each(|value| push(value, known));
        return;
    }
    push(secret, known);
    let Some((scheme, credentials)) = secret.split_once(' ') else { return };
    push(credentials.trim(), known);
    if scheme.eq_ignore_ascii_case("basic") || scheme.eq_ignore_ascii_case("apikey") {
        let decoded = STANDARD.decode(credentials.trim());
        let Some(pair) = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok()) else { return };
        push(&pair, known);
        pair.splitn(2, ':').skip(1).for_each(|password| push(password, known));
    }
}

/// Appends it as it is, as JSON has it, and without the escapes of a URL.
fn push(secret: &str, known: &mut Vec<String>) {
    if secret.is_empty() {
        return;
    }
    known.push(secret.to_owned());
    if let Ok(plain) = percent_decode_str(secret).decode_utf8() {
        known.push(plain.into_owned());
    }
    let json = serde_json::Value::from(secret).to_string();
    known.push(json.trim_matches('"').to_owned());
}

/// The text without users, passwords and queries in the URLs in it.
fn without_url_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let len = after.find(|c: char| c.is_whitespace() || "\"'`,;}<>()".contains(c)).unwrap_or(after.len());
        let (url, behind) = after.split_at(len);
        let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
        match path.rsplit_once('@') {
            Some((_, host)) => [MASK, "@", host].iter().for_each(|part| shown.push_str(part)),
            None => shown.push_str(path),
        }
        if query.is_some() {
            shown.push('?');
            shown.push_str(MASK);
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// The text without what follows the name of a scheme.
fn without_credentials(text: &str) -> String {
    let mut text = text.to_owned();
    for scheme in SCHEMES {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(scheme) {
            shown.push_str(before);
            shown.push_str(scheme);
            let ends = |c: char| c.is_whitespace() || "\"'`,;}<>()".contains(c);
            let len = after.find(ends).unwrap_or(after.len());
            let (word, behind) = after.split_at(len);
            shown.push_str(if word.len() >= SHORTEST_CREDENTIAL { MASK } else { word });
            rest = behind;
        }
        shown.push_str(rest);
        text = shown;
    }
    text
}

/// Without the secrets.
impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Masker of {} secrets", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No form in which a secret travels survives.
    #[test]
    fn hides_every_form_of_a_secret() {
        let masker = Masker::new([
            "Bearer hunter2-token",
            "Basic dXNlcjpodW50ZXIzLXBhc3M=",
            "https://peer:9/write?key=hunter4%2Bkey&x=1",
            "postgres://fleet:hunter5pass@db/fleet",
            "hunter6\"quoted",
        ]);
        for text in [
            "hunter2-token",
            "dXNlcjpodW50ZXIzLXBhc3M=",
            "hunter3-pass",
            "user:hunter3-pass",
            "key=hunter4%2Bkey",
            "hunter4+key",
            "hunter5pass",
            r#"{"a":"hunter6\"quoted"}"#,
            "http://somebody:hunter7@proxy:3128/",
            "GET https://h/p?sig=hunter8 failed",
            "Authorization: Bearer hunter9-unknown",
            "'ApiKey aHVudGVyMTA6aHVudGVyMTE='",
        ] {
            let masked = masker.mask(text);
            assert!(!masked.contains("hunter") && !masked.contains("aHVudGV"), "{text} -> {masked}");
            assert!(masked.contains(MASK), "{text} -> {masked}");
        }
    }

    #[test]
    fn leaves_the_rest_alone() {
        let masker = Masker::new(["Bearer hunter2-token", "https://peer:9/write?key=k123"]);
        for text in ["connecting to https://peer:9/write: refused", "Basic auth is off", "x=1, y=2 ?"] {
            assert_eq!(masker.mask(text), text);
        }
        assert_eq!(format!("{masker:?}"), "Masker of 4 secrets");
    }
}
