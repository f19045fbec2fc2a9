//! Masks secrets in configurations that agents report: by lines, on YAML and JSON alike, rather too much than too little.

/// The replacement for a secret.
const MASK: &str = "********";
/// Words in the names of settings that hold secrets.
const WORDS: [&str; 22] = [
    "password",
    "passwd",
    "passphrase",
    "accesskey",
    "access_key",
    "accountkey",
    "privatekey",
    "connectionstring",
    "community",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "_key",
    "-key",
    "bearer",
    "cookie",
    "headers",
    "connection_string",
    "dsn",
    "_pem",
];
/// Names of settings that hold secrets.
const NAMES: [&str; 4] = ["key", "sig", "pwd", "pass"];
/// The longest name of a secret in a list of names and values, in bytes.
const LONGEST_NAME: usize = 256;
/// Words in front of credentials in a value.
const SCHEMES: [&str; 3] = ["bearer ", "basic ", "apikey "];

/// The text without secrets, of at most `most` bytes.
pub(crate) fn masked(text: &str, most: usize) -> String {
    let mut out = String::new();
    // Lines below a setting that is masked are masked as well: its indentation, and whether its value was still to come.
    let mut below: Option<(usize, bool)> = None;
    // The line before named a secret, whose value follows as `value:`.
    let mut is_named = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let is_within = below.is_some_and(|(of, is_open)| {
            indent > of
                || trimmed.is_empty()
                || trimmed.starts_with('#')
                || (indent == of && trimmed.starts_with("- "))
                || (is_open && !names_setting(trimmed))
        });
        let kept = if is_within {
            below = below.map(|(of, _)| (of, false));
            line.get(..indent).unwrap_or_default().to_owned() + if trimmed.is_empty() { "" } else { MASK }
        } else {
            below = None;
            let is_value = is_named && is_value(trimmed);
            if !trimmed.starts_with('#') {
                is_named = names_secret(trimmed);
            }
            match secret_value(line, is_value) {
                Some(at) => {
                    let value = line.get(at..).unwrap_or_default().trim();
                    // `- password: x` is as deep as its name is.
                    let dashes = trimmed.len() - trimmed.trim_start_matches(['-', ' ']).len();
                    below = Some((indent + dashes, value.is_empty()));
                    let head = line.get(..at).unwrap_or_default();
                    if value.is_empty() { head.to_owned() } else { format!("{head} {MASK}") }
                }
                None => without_user(line),
            }
        };
        if out.len() + kept.len() + 1 > most {
            out.push('…');
            break;
        }
        out.push_str(&kept);
        out.push('\n');
    }
    out
}

/// Whether a line begins with the name of a setting.
fn names_setting(trimmed: &str) -> bool {
    trimmed
        .split_once(':')
        .is_some_and(|(name, rest)| (rest.is_empty() || rest.starts_with(' ')) && !name.contains(['"', '\'']))
}

/// Whether a line is `name: DB_PASSWORD` or the like.
fn names_secret(trimmed: &str) -> bool {
    let trimmed = trimmed.trim_start_matches(['-', ' ']).to_ascii_lowercase();
    let named = trimmed.strip_prefix("name:").or_else(|| trimmed.strip_prefix("\"name\":"));
    named.is_some_and(|name| is_secret(name.trim_matches([' ', '"', '\'', ','])))
}

/// Whether a line is `value: …`.
fn is_value(trimmed: &str) -> bool {
    trimmed.starts_with("value:") || trimmed.starts_with("\"value\":")
}

/// Where the first secret of a line begins. In a line that `is_value` of a secret, it begins behind the first colon.
fn secret_value(line: &str, is_value: bool) -> Option<usize> {
    if is_value {
        return line.find(':').map(|at| at + 1);
    }
    let lower = line.to_ascii_lowercase();
    let of_setting = lower.match_indices([':', '=']).find_map(|(at, _)| {
        let before = lower.get(..at)?.trim_end_matches([' ', '"', '\'']);
        // Up to the separator before: a long line costs no more for having many.
        let name = before.rsplit([' ', '{', ',', '"', '\'', '[', '\t', '?', '&', ':', '=', ';']).next()?;
        is_secret(name).then_some(at + 1)
    });
    let of_named = value_of_named(&lower);
    let of_scheme = SCHEMES.iter().filter_map(|scheme| Some(lower.find(scheme)? + scheme.len())).min();
    of_setting.into_iter().chain(of_named).chain(of_scheme).min()
}

/// Where the value of `{name: DB_PASSWORD, value: …}` begins, on one line.
fn value_of_named(lower: &str) -> Option<usize> {
    let last = lower.rfind("value")?;
    lower.match_indices("name").find_map(|(at, word)| {
        let rest = lower.get(at + word.len()..last)?.trim_start_matches(['"', '\'']);
        let name = rest.trim_start().strip_prefix(':')?.trim_start().trim_start_matches(['"', '\'']);
        let begin = last - name.len();
        let name = name.get(..name.floor_char_boundary(LONGEST_NAME))?;
        let name = name.split([',', '}', '"', '\'']).next()?;
        if !is_secret(name.trim_end()) {
            return None;
        }
        let value = begin + lower.get(begin..)?.find("value")?;
        lower.get(value..)?.find(':').map(|colon| value + colon + 1)
    })
}

/// Whether a setting with this name holds a secret.
fn is_secret(name: &str) -> bool {
    NAMES.contains(&name) || WORDS.iter().any(|word| name.contains(word))
}

/// A line without the user and password of URLs and of names of data sources (`user:password@tcp(host)/name`).
fn without_user(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(&without_pair(before));
        out.push_str("://");
        // What separates URLs in a list may be part of a password.
        let end = after.find(['/', '?', '#', ' ', '"']).unwrap_or(after.len());
        let authority = after.get(..end).unwrap_or_default();
        rest = match authority.rfind('@') {
            Some(at) => {
                out.push_str(MASK);
                after.get(at..).unwrap_or_default()
            }
            None => after,
        };
    }
    out.push_str(&without_pair(rest));
    out
}

/// Text without a word of the form `user:password@…` that is no URL.
fn without_pair(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\t']) {
        let pair = word.rfind('@').filter(|at| {
            word.get(..*at).is_some_and(|before| {
                before.trim_start_matches(['"', '\'']).find(':').is_some_and(|colon| colon > 0)
            })
        });
        match pair {
            Some(at) => {
                out.push_str(MASK);
                out.push_str(word.get(at..).unwrap_or_default());
            }
            None => out.push_str(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a line is written, masking it is done in no time.
    #[test]
    fn a_long_line_of_separators_is_looked_at_once() {
        let begun = std::time::Instant::now();
        for line in ["a:", "=", ":", "x=y&", "name:key ", "value name:key,"] {
            let text = line.repeat((1 << 16) / line.len());
            assert!(!masked(&text, 1 << 17).is_empty());
        }
        let took = begun.elapsed();
        assert!(
            took < std::time::Duration::from_secs(2),
            "{took:?}: it took tens of seconds when it was quadratic"
        );
    }

    /// No secret is left, however it is written, and what is no secret stays.
    #[test]
    fn secrets_are_masked() {
        let text = r#"
exporters:
  otlp:
    endpoint: https://user:S3@host:4317/S-path
    headers:
      authorization: Bearer S3
      x-scope: S3
    sending_queue: {enabled: true}
  elasticsearch: {api_key: S3, hosts: [a]}
  kafka:
    auth:
      plain_text:
        username: me
        password: >
          S3
          S3
        other: kept
    headers:
    - key: S3
      value: S3
    tls:
      key_pem: "S3"
  json: {"token":"S3"}
  oauth:
    client_secret:
      S3
    scopes: [kept]
  text: "Authorization=Basic S3"
  commented:
    headers:
      a: S3
# a comment
      b: S3
  event_hub: {connection: "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=S3;EntityPath=p"}
  blob: {connectionString: "AccountName=a;AccountKey=S3"}
  sqlquery: {driver: mysql, datasource: "me:S3@tcp(db:3306)/name"}
  hosts: [https://u:p,S3@a, "https://u:it'sS3@b/path"]
  snmp: {community: S3}
  smtp: {pass: S3, accessKey: S3}
  tls2:
    privateKey: |
      S3
  env:
    - name: DB_PASSWORD
      value: S3
    - name: LEVEL
      value: kept-too
  env2: [{name: DB_PASSWORD, value: S3}]
  env3: {"name":"API_TOKEN","value":"S3"}
  env4: [{name: LEVEL, value: kept-as-well}]
"#;
        let masked = masked(text, 1 << 16);
        assert!(!masked.contains("S3"), "{masked}");
        for kept in [
            "endpoint: https://",
            "@host:4317/S-path",
            "sending_queue: {enabled: true}",
            "username: me",
            "other: kept",
            "scopes: [kept]",
            "value: kept-too",
            "value: kept-as-well",
            "driver: mysql",
            "@tcp(db:3306)/name",
        ] {
            assert!(masked.contains(kept), "{kept} in {masked}");
        }
        assert!(!super::masked("{\n\"password\":\n\"S3\"\n}", 100).contains("S3"));
        assert!(super::masked(&"a: b\n".repeat(100), 50).len() <= 53);
    }
}
