//! The access logs of web servers, with the names that VRL gives to their fields.

use super::syntax::Call;

const COMMON: &str = r#"^(?P<host>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<timestamp>[^\]]+)\] "(?:-|(?P<message>(?P<method>\S+) (?P<path>\S+) (?P<protocol>[^"]+)|[^"]*))" (?:-|(?P<status>\d+)) (?:-|(?P<size>\d+))"#;
const APACHE_COMBINED: &str = r#"^(?P<host>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<timestamp>[^\]]+)\] "(?:-|(?P<message>(?P<method>\S+) (?P<path>\S+) (?P<protocol>[^"]+)|[^"]*))" (?:-|(?P<status>\d+)) (?:-|(?P<size>\d+)) "(?P<referrer>[^"]*)" "(?P<agent>[^"]*)""#;
const NGINX_COMBINED: &str = r#"^(?P<client>\S+) - (?P<user>\S+) \[(?P<timestamp>[^\]]+)\] "(?P<request>(?P<method>\S+) (?P<path>\S+) (?P<protocol>[^"]+)|[^"]*)" (?:-|(?P<status>\d+)) (?:-|(?P<size>\d+)) "(?P<referer>[^"]*)" "(?P<agent>[^"]*)""#;
/// The format of the time in all of them.
const TIME: &str = "%d/%b/%Y:%H:%M:%S %z";

/// The pattern of the lines that a call parses, and the format of their time.
pub(super) fn pattern(call: &Call) -> Option<(&'static str, &'static str)> {
    if !call.path.is_empty() || !call.has_only(2, &["value", "format"]) {
        return None;
    }
    let format = call.argument(1, "format").and_then(|format| format.as_text());
    let pattern = match (call.name.as_str(), format.as_deref()) {
        ("parse_common_log", None) | ("parse_apache_log", Some("common")) => COMMON,
        ("parse_apache_log", Some("combined")) => APACHE_COMBINED,
        ("parse_nginx_log", Some("combined")) => NGINX_COMBINED,
        _ => return None,
    };
    Some((pattern, TIME))
}
