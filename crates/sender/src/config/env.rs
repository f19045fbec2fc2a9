//! Environment variables of OpenTelemetry and Elastic APM, in one table.

use super::{Builder, Compression, Protocol};
use crate::class::Signal;
use std::time::Duration;

/// A supported environment variable.
pub struct Setting {
    /// Its name; `{signal}` stands for `TRACES`, `LOGS` and `METRICS`, and nothing.
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
    apply: fn(&mut Builder, Option<Signal>, &str) -> Result<(), String>,
}

/// All variables, in the order of reading: later ones override earlier ones.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "OTEL_SDK_DISABLED",
        what: "`true`: accept events, but send none",
        apply: |builder, _, value| {
            builder.disabled |= truth(value)?;
            Ok(())
        },
    },
    Setting {
        name: "OTEL_RESOURCE_ATTRIBUTES",
        what: "`key=value,…`, percent-encoded: attributes of the resource",
        apply: |builder, _, value| {
            for (key, value) in pairs(value)? {
                put(builder, &key, value);
            }
            Ok(())
        },
    },
    Setting {
        name: "OTEL_SERVICE_NAME",
        what: "`service.name`",
        apply: |builder, _, value| resource(builder, "service.name", value),
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_PROTOCOL",
        what: "`http/protobuf`; with `grpc` or `http/json` the sender warns and uses `http/protobuf`; with `grpc` it also replaces port 4317 by 4318",
        apply: |_, _, value| match value {
            // Resolved when the endpoints are known.
            "http/protobuf" | GRPC | JSON => Ok(()),
            _ => Err("is not supported: set http/protobuf".to_owned()),
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_ENDPOINT",
        what: "URL; `/v1/…` is appended to the general one, but not to a signal's own",
        apply: |builder, signal, value| {
            match signal.and_then(|signal| builder.signal_endpoints.get_mut(signal as usize)) {
                Some(endpoint) => *endpoint = Some(value.to_owned()),
                None => value.clone_into(&mut builder.endpoint),
            }
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_HEADERS",
        what: "`key=value,…`, percent-encoded: headers of every request, or of the signal's requests",
        apply: |builder, signal, value| {
            builder.headers.extend(pairs(value)?.into_iter().map(|(name, value)| (signal, name, value)));
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_TIMEOUT",
        what: "request timeout in milliseconds (one value for all signals: the last one read)",
        apply: |builder, _, value| {
            builder.timeout = Duration::from_millis(number(value)?);
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_COMPRESSION",
        what: "`gzip` or `none` (one value for all signals: the last one read)",
        apply: |builder, _, value| {
            builder.compression = match value {
                "gzip" => Compression::Gzip,
                "none" => Compression::None,
                _ => return Err("is unknown: set gzip or none".to_owned()),
            };
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_CERTIFICATE",
        what: "PEM file with the certificate authorities to trust, instead of the system's",
        apply: |builder, _, value| {
            builder.authorities = Some(value.into());
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_CLIENT_CERTIFICATE",
        what: "PEM file with the client certificate",
        apply: |builder, _, value| {
            builder.identity.get_or_insert_default().0 = value.into();
            Ok(())
        },
    },
    Setting {
        name: "OTEL_EXPORTER_OTLP_{signal}_CLIENT_KEY",
        what: "PEM file with its private key",
        apply: |builder, _, value| {
            builder.identity.get_or_insert_default().1 = value.into();
            Ok(())
        },
    },
    Setting {
        name: "OTEL_BSP_SCHEDULE_DELAY",
        what: "longest time in milliseconds that an event waits to be batched",
        apply: |builder, _, value| {
            builder.flush_interval = Duration::from_millis(number(value)?);
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_SERVER_URLS",
        what: "the first of a list, as `ELASTIC_APM_SERVER_URL`",
        apply: |builder, _, value| {
            server(builder, value.split(',').next().unwrap_or_default().trim());
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_SERVER_URL",
        what: "URL of an Elastic APM Server; `/intake/v2/events` is appended",
        apply: |builder, _, value| {
            server(builder, value);
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_SECRET_TOKEN",
        what: "`Authorization: Bearer …`",
        apply: |builder, _, value| elastic_header(builder, format!("Bearer {value}")),
    },
    Setting {
        name: "ELASTIC_APM_API_KEY",
        what: "`Authorization: ApiKey …`; wins over the secret token",
        apply: |builder, _, value| elastic_header(builder, format!("ApiKey {value}")),
    },
    Setting {
        name: "ELASTIC_APM_SERVICE_NAME",
        what: "`service.name`",
        apply: |builder, _, value| resource(builder, "service.name", value),
    },
    Setting {
        name: "ELASTIC_APM_SERVICE_VERSION",
        what: "`service.version`",
        apply: |builder, _, value| resource(builder, "service.version", value),
    },
    Setting {
        name: "ELASTIC_APM_SERVICE_NODE_NAME",
        what: "`service.instance.id`",
        apply: |builder, _, value| resource(builder, "service.instance.id", value),
    },
    Setting {
        name: "ELASTIC_APM_ENVIRONMENT",
        what: "`deployment.environment.name`",
        apply: |builder, _, value| resource(builder, "deployment.environment.name", value),
    },
    Setting {
        name: "ELASTIC_APM_GLOBAL_LABELS",
        what: "`key=value,…`: attributes of the resource",
        apply: |builder, _, value| {
            for (key, value) in pairs(value)? {
                put(builder, &key, value);
            }
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_SERVER_TIMEOUT",
        what: "request timeout: `5s`, `500ms`, `1m`",
        apply: |builder, _, value| {
            builder.timeout = duration(value)?;
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_API_REQUEST_TIME",
        what: "longest time that an event waits to be batched: `10s`",
        apply: |builder, _, value| {
            builder.flush_interval = duration(value)?;
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_API_REQUEST_SIZE",
        what: "largest uncompressed request: `750kb`",
        apply: |builder, _, value| {
            builder.batch_bytes = size(value)?;
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_API_BUFFER_SIZE",
        what: "size of the ring: `1mb`",
        apply: |builder, _, value| {
            builder.ring_bytes = size(value)?;
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_VERIFY_SERVER_CERT",
        what: "`false`: accept any server certificate",
        apply: |builder, _, value| {
            builder.unverified = !truth(value)?;
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_SERVER_CA_CERT_FILE",
        what: "PEM file with the certificate authorities to trust, instead of the system's",
        apply: |builder, _, value| {
            builder.authorities = Some(value.into());
            Ok(())
        },
    },
    Setting {
        name: "ELASTIC_APM_ENABLED",
        what: "`false`: take all events, send none",
        apply: |builder, _, value| {
            builder.disabled |= !truth(value)?;
            Ok(())
        },
    },
];

const GRPC: &str = "grpc";
const JSON: &str = "http/json";

impl Builder {
    /// The defaults, overridden by the environment: see [`SETTINGS`].
    pub fn from_env() -> Builder {
        Builder::from_variables(|name| std::env::var(name).ok())
    }

    /// The same, with variables from another source. Empty variables count as unset.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Builder {
        let mut builder = Builder::default();
        for setting in SETTINGS {
            // General variables first, so that the signal's own takes precedence.
            for signal in [None].into_iter().chain(Signal::ALL.map(Some)) {
                let Some(name) = setting.name_for(signal) else { continue };
                let Some(value) = variable(&name).filter(|value| !value.trim().is_empty()) else { continue };
                if let Err(problem) = (setting.apply)(&mut builder, signal, value.trim()) {
                    // Header values may be secret.
                    let shown = if name.ends_with("HEADERS") { "…" } else { value.trim() };
                    builder.mistakes.push(format!("{name}: `{shown}` {problem}"));
                }
            }
        }
        builder.fall_back_to_http(variable);
        builder
    }

    /// A program configured for gRPC or JSON sends protobuf over HTTP instead.
    fn fall_back_to_http(&mut self, variable: impl Fn(&str) -> Option<String>) {
        let value = |signal: Option<Signal>| {
            let name = match signal {
                Some(signal) => format!("OTEL_EXPORTER_OTLP_{}_PROTOCOL", signal.name().to_uppercase()),
                None => "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(),
            };
            let value =
                variable(&name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            (name, value)
        };
        let (_, general) = value(None);
        for signal in [None].into_iter().chain(Signal::ALL.map(Some)) {
            let (name, own) = value(signal);
            let meant = own.as_ref().or(general.as_ref()).map(String::as_str);
            let endpoint = match signal {
                Some(signal) => self.signal_endpoints.get_mut(signal as usize).and_then(Option::as_mut),
                None => Some(&mut self.endpoint).filter(|endpoint| !endpoint.is_empty()),
            };
            if meant == Some(GRPC)
                && let Some(endpoint) = endpoint
            {
                *endpoint = over_http(endpoint, signal);
            }
            if let Some(meant) = own.filter(|own| own == GRPC || own == JSON) {
                self.warnings.push(format!(
                    "{name}: `{meant}` is not supported; using protobuf over HTTP instead{}. Set http/protobuf, and an endpoint that accepts it",
                    if meant == GRPC { ", to port 4318 where 4317 is named" } else { "" }
                ));
            }
        }
    }
}

/// An endpoint of gRPC as one of HTTP: with a scheme, the other one of the two usual ports, and for one signal
/// the path that gRPC has no use for.
fn over_http(endpoint: &str, signal: Option<Signal>) -> String {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or(("http", endpoint));
    if endpoint.starts_with("unix:") {
        return endpoint.to_owned();
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority =
        authority.strip_suffix(":4317").map_or(authority.to_owned(), |host| format!("{host}:4318"));
    let path = match signal {
        Some(signal) if path.is_empty() || path == "/" => format!("/v1/{}", signal.name()),
        _ => path.to_owned(),
    };
    format!("{scheme}://{authority}{path}")
}

impl Setting {
    fn name_for(&self, signal: Option<Signal>) -> Option<String> {
        match (self.name.contains("{signal}"), signal) {
            (true, Some(signal)) => Some(self.name.replace("{signal}", &signal.name().to_uppercase())),
            (true, None) => Some(self.name.replace("{signal}_", "")),
            (false, None) => Some(self.name.to_owned()),
            (false, Some(_)) => None,
        }
    }
}

fn server(builder: &mut Builder, url: &str) {
    if !goes_to_otlp(builder) {
        builder.protocol = Protocol::ElasticApm;
        url.clone_into(&mut builder.endpoint);
    }
}

/// Never send one endpoint's secret to another.
fn elastic_header(builder: &mut Builder, value: String) -> Result<(), String> {
    if !goes_to_otlp(builder) {
        builder.headers.retain(|(_, name, _)| name != "Authorization");
        builder.headers.push((None, "Authorization".to_owned(), value));
    }
    Ok(())
}

/// An OTLP endpoint was named before.
fn goes_to_otlp(builder: &Builder) -> bool {
    let named = !builder.endpoint.is_empty() || builder.signal_endpoints.iter().any(Option::is_some);
    named && builder.protocol == Protocol::Otlp
}

fn resource(builder: &mut Builder, name: &str, value: &str) -> Result<(), String> {
    put(builder, name, value.to_owned());
    Ok(())
}

fn put(builder: &mut Builder, name: &str, value: String) {
    builder.resource.retain(|(other, _)| other != name);
    builder.resource.push((name.to_owned(), value));
}

fn pairs(list: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((percent_decoded(key.trim())?, percent_decoded(value.trim())?))
    };
    let parts = list.split(',').filter(|part| !part.trim().is_empty());
    let pairs: Option<Vec<_>> = parts.map(pair).collect();
    pairs.ok_or_else(|| "is no list of key=value with commas between".to_owned())
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn truth(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("is neither true nor false".to_owned()),
    }
}

fn number(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| "is no number of milliseconds".to_owned())
}

fn duration(value: &str) -> Result<Duration, String> {
    let (number, unit) = with_unit(value).ok_or("is no duration: write 500ms, 10s or 1m")?;
    let milliseconds = match unit.as_str() {
        "ms" => number,
        "s" | "" => number.saturating_mul(1000),
        "m" => number.saturating_mul(60_000),
        _ => return Err("is no duration: write 500ms, 10s or 1m".to_owned()),
    };
    Ok(Duration::from_millis(milliseconds))
}

fn size(value: &str) -> Result<usize, String> {
    let wrong = "is no size: write 750kb or 1mb";
    let (number, unit) = with_unit(value).ok_or(wrong)?;
    let scale = match unit.as_str() {
        "b" | "" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return Err(wrong.to_owned()),
    };
    usize::try_from(number.saturating_mul(scale)).map_err(|_| wrong.to_owned())
}

fn with_unit(value: &str) -> Option<(u64, String)> {
    let digits = value.find(|char: char| !char.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    Some((number.parse().ok()?, unit.trim().to_ascii_lowercase()))
}
