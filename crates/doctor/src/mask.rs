//! Masks secrets in whatever is shown or archived.
//!
//! Known secrets are those of the configuration, whole and in the forms in which they travel: a token without its scheme, a
//! user and a password out of Base64, the value of a URL's query, with its escapes and without. Values from files and variables are
//! masked whole, also where they are URLs: a secret may be in the path. Beyond those, whatever stands where a secret stands is masked
//! unread: a user in a URL, a query, the credentials of an `Authorization` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use tidegate_plain::without_url_secrets;

const MASK: &str = "***";
/// Shorter values are words, and replacing them would garble everything.
const SHORTEST: usize = 4;
/// The schemes of `Authorization`.
const SCHEMES: [&str; 5] = ["Bearer ", "Basic ", "ApiKey ", "Splunk ", "Token "];
/// Credentials are longer; what follows a scheme's name in prose is mostly shorter.
const SHORTEST_CREDENTIAL: usize = 8;

/// Values that are no secrets whatever they come from, and that everything is full of.
const WORDS: [&str; 3] = ["true", "false", "null"];
/// Messages quote so many characters of a value.
const QUOTED: usize = 60;

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
        Masker::of(known)
    }

    /// The same that also knows these values, all of each.
    #[must_use]
    pub fn hiding<'a>(self, values: impl IntoIterator<Item = &'a str>) -> Masker {
        let mut known = self.secrets;
        for value in values {
            add_whole(value.trim(), &mut known);
        }
        Masker::of(known)
    }

    fn of(mut known: Vec<String>) -> Masker {
        known.retain(|secret| secret.len() >= SHORTEST && secret != MASK && !WORDS.contains(&&**secret));
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

/// Appends all of `value`, and its parts where a part of it is shown.
fn add_whole(value: &str, known: &mut Vec<String>) {
    add(value, known);
    push(value, known);
    if value.chars().count() > QUOTED {
        known.push(value.chars().take(QUOTED).collect());
    }
    // Lines of a text are shown one by one.
    if value.contains('\n') {
        value.lines().for_each(|line| push(line.trim(), known));
    }
    let Some((_, rest)) = value.split_once("://") else { return };
    // URLs are shown without user and query, and with another path behind their own.
    let address = rest.split(['?', '#']).next().unwrap_or_default();
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    push(authority, known);
    let path = path.trim_matches('/');
    if !path.is_empty() {
        push(path, known);
        push(&format!("/{path}"), known);
    }
}

/// Appends it as it is, as JSON and the effective configuration have it, and without the escapes of a URL.
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
    known.push(as_yaml(secret));
}

/// The text as it stands in the effective configuration.
fn as_yaml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '$' => out.push_str("$$"),
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || !c.is_ascii() => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
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
            let ends = |c: char| c.is_whitespace() || "\"'`".contains(c);
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

    /// A URL from a file or a variable may have its secret anywhere.
    #[test]
    fn hides_the_whole_of_values_from_outside() {
        let long = format!("hunter{}", "x".repeat(80));
        let values = [
            "https://hooks.example/services/hunter1/B2?sig=hunter2",
            "hunter3$\"é",
            "hunter4-one\nhunter5-two",
            &long,
        ];
        let masker = Masker::default().hiding(values);
        for text in [
            "https://hooks.example/services/hunter1/B2",
            "https://hooks.example/services/hunter1/B2/v1/logs?***",
            "POST /services/hunter1/B2/v1/logs",
            r#"key: "hunter3$$\"\U000000e9""#,
            "the line hunter5-two",
            &format!("`{}…` is not a size", long.chars().take(60).collect::<String>()),
        ] {
            let masked = masker.mask(text);
            assert!(!masked.contains("hunter"), "{text} -> {masked}");
        }
        let words = Masker::default().hiding(["true", "abc", "null"]);
        assert_eq!(words.mask("true, abc, null"), "true, abc, null");
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
