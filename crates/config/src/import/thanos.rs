//! The limits file of Thanos Receive (`--receive.limits-config-file`), as of 0.42.
//!
//! In it zero stands for no limit, and a tenant has the default's value where it sets none.

use std::collections::BTreeMap;

use crate::declare::settings;
use crate::error::{ErrorCollector, Errors};
use crate::load::bounded;
use crate::model::Allowance;
use crate::reader::Reader;
use crate::setting::{PlainValue, Section, Setting, Shape};
use crate::substitute::{Substitutions, no_file};
use crate::values::{Bytes, TenantName, Text, Url};
use crate::yaml::{self, Node};

settings! {
    /// The whole file.
    pub struct File {
        /// All of it.
        write: Write = Write::default(),
    }
}

settings! {
    /// Limits on writing.
    pub struct Write {
        /// Of everybody together.
        global: Global = Global::default(),
        /// Of each tenant.
        default: Tenant = Tenant::default(),
        /// Of single tenants.
        tenants: BTreeMap<TenantName, Tenant> = BTreeMap::new(),
    }
}

settings! {
    /// Limits of everybody together.
    pub struct Global {
        /// Requests at a time.
        max_concurrency: Option<u32> = None,
        /// Where the number of series is asked for.
        meta_monitoring_url: Option<Url> = None,
        /// How.
        meta_monitoring_http_client: Anything = Anything(false),
        /// With which query.
        meta_monitoring_limit_query: Option<Text> = None,
    }
}

settings! {
    /// Limits of one tenant.
    pub struct Tenant {
        /// Of each request.
        request: Request = Request::default(),
        /// Of series in the store.
        head_series_limit: Option<u32> = None,
    }
}

settings! {
    /// Limits of one request.
    pub struct Request {
        /// Bytes, when decompressed.
        size_bytes_limit: Option<u32> = None,
        /// Series.
        series_limit: Option<u32> = None,
        /// Samples.
        samples_limit: Option<u32> = None,
    }
}

/// A value that is not looked at; whether there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anything(bool);

impl Setting for Anything {
    fn read(_node: &Node, _reader: &mut Reader<'_, '_>) -> Option<Anything> {
        Some(Anything(true))
    }

    fn shape() -> Shape {
        Shape::Section(Vec::new())
    }

    fn plain(&self) -> PlainValue {
        PlainValue::Unset
    }
}

/// The limits in `text` as a configuration of tidegate, with comments on what has no counterpart. `source` is what to
/// call the text in messages.
///
/// # Errors
/// Every mistake in it, with its place.
pub fn thanos_limits(source: &str, text: &str) -> Result<String, Errors> {
    let text = bounded(source, text)?;
    let mut errors = ErrorCollector::new(text);
    let root = yaml::read(text, Substitutions { environment: &|_| None, files: &no_file }, &mut errors);
    let file = root.and_then(|root| File::read(&root, &mut Reader::new(&mut errors, File::fields)));
    match (errors.into_errors(source), file) {
        (Some(errors), _) => Err(errors),
        (None, file) => Ok(written(&file.unwrap_or_default().write)),
    }
}

fn written(write: &Write) -> String {
    let Write { global, default, tenants } = write;
    let mut out = format!("# The limits of Thanos Receive, as tidegate has them.\n{}", remarks(write));
    let most = global.max_concurrency.filter(|most| *most > 0);
    let url = global.meta_monitoring_url.as_ref();
    if most.is_some() || url.is_some() {
        out.push_str("limits:\n");
    }
    if let Some(most) = most {
        out.push_str("  sources:\n    prometheus_remote_write:\n");
        out.push_str(&format!("      requests_at_once: {most}\n"));
    }
    if let Some(url) = url {
        out.push_str(&format!("  head_series:\n    url: {:?}\n", url.expose()));
        if let Some(query) = &global.meta_monitoring_limit_query {
            out.push_str(&format!("    query: {:?}\n", query.as_str()));
        }
    }
    out.push_str("tenants:\n  header: THANOS-TENANT\n  default: default-tenant\n");
    let head_series = |tenant: &Tenant| tenant.head_series_limit.filter(|_| url.is_some());
    if let Some(limit) = head_series(default).filter(|limit| *limit > 0) {
        out.push_str(&format!("  head_series: {limit}\n"));
    }
    push(&mut out, "  ", &allowance(&default.request, &Request::default()));
    if !tenants.is_empty() {
        out.push_str(&format!("  most: {}\n  overrides:\n", tenants.len().clamp(200, 1000)));
    }
    for (name, tenant) in tenants {
        let allowance = allowance(&tenant.request, &default.request);
        let limit = head_series(tenant);
        if allowance == Allowance::default() && limit.is_none() {
            out.push_str(&format!("    {name:?}: {{}}\n", name = name.as_str()));
            continue;
        }
        out.push_str(&format!("    {name:?}:\n", name = name.as_str()));
        if let Some(limit) = limit {
            out.push_str(&format!("      head_series: {limit}\n"));
        }
        push(&mut out, "      ", &allowance);
    }
    out
}

/// Comments on what is not said by the settings.
fn remarks(write: &Write) -> String {
    let Write { global, default, tenants } = write;
    let any = |set: fn(&Tenant) -> Option<u32>| {
        tenants.values().chain([default]).any(|tenant| set(tenant).is_some_and(|limit| limit > 0))
    };
    let mut out = String::new();
    if any(|tenant| tenant.request.series_limit) {
        out.push_str(
            "# Left out: `series_limit`. Series are not counted; `request_items` limits their items.\n",
        );
    }
    if any(|tenant| tenant.request.samples_limit) {
        out.push_str("# `samples_limit` is `request_items`, which counts histograms and exemplars too.\n");
    }
    if global.meta_monitoring_http_client == Anything(true) {
        out.push_str(
            "# Left out: `meta_monitoring_http_client`. `limits.head_series` has `ca_file` and `token_file`.\n",
        );
    }
    if any(|tenant| tenant.head_series_limit) && global.meta_monitoring_url.is_none() {
        out.push_str("# Left out: `head_series_limit`, which needs `meta_monitoring_url`.\n");
    }
    out
}

/// The limit of one request: its own value, else the default's; zero means no limit.
fn allowance(own: &Request, default: &Request) -> Allowance {
    let bytes = own.size_bytes_limit.or(default.size_bytes_limit).filter(|bytes| *bytes > 0);
    let items = own.samples_limit.or(default.samples_limit).filter(|items| *items > 0);
    Allowance {
        // At least the smallest that can be set here.
        request_bytes: bytes.map(|bytes| Bytes::new(bytes.into()).max(Bytes::kib(1))),
        request_items: items.map(|items| items.min(1_000_000_000)),
        ..Allowance::default()
    }
}

fn push(out: &mut String, indent: &str, allowance: &Allowance) {
    let Allowance { request_bytes, request_items, .. } = allowance;
    if request_bytes.is_none() && request_items.is_none() {
        return;
    }
    out.push_str(&format!("{indent}limits:\n"));
    if let Some(bytes) = request_bytes {
        out.push_str(&format!("{indent}  request_bytes: {bytes}\n"));
    }
    if let Some(items) = request_items {
        out.push_str(&format!("{indent}  request_items: {items}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::parse;

    const LIMITS: &str = "\
write:
  global:
    max_concurrency: 30
    meta_monitoring_url: http://meta:9090
    meta_monitoring_http_client: { tls_config: { insecure_skip_verify: true } }
  default:
    request: { size_bytes_limit: 1048576, series_limit: 1000, samples_limit: 10 }
    head_series_limit: 1000
  tenants:
    acme:
      request: { size_bytes_limit: 0, samples_limit: 500 }
    ajax:
      head_series_limit: 0
";

    /// The output is a valid configuration with the limits that Thanos would have enforced.
    #[test]
    fn limits_are_what_they_were() {
        let text = thanos_limits("limits.yaml", LIMITS).unwrap();
        let config = parse("printed", &text, &|_| None).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        assert_eq!(config.limits.sources.prometheus_remote_write.requests_at_once, Some(30));
        assert!(config.tenants.are_on());
        let limits =
            |allowance: &Allowance| (allowance.request_bytes.map(Bytes::get), allowance.request_items);
        assert_eq!(limits(&config.tenants.limits), (Some(1 << 20), Some(10)));
        let named = |name: &str| &config.tenants.overrides[&name.parse::<TenantName>().unwrap()].limits;
        assert_eq!(limits(named("acme")), (None, Some(500)), "zero is no limit");
        assert_eq!(limits(named("ajax")), (Some(1 << 20), Some(10)), "what is not set is as for everybody");
        assert!(text.contains("`series_limit`") && text.contains("`meta_monitoring_http_client`"), "{text}");
        assert!(config.limits.head_series.is_some_and(|query| query.url.expose() == "http://meta:9090"));
        assert_eq!(config.tenants.head_series, 1000);
        let series = |name: &str| config.tenants.overrides[&name.parse::<TenantName>().unwrap()].head_series;
        assert_eq!((series("acme"), series("ajax")), (None, Some(0)), "zero is no limit");
    }

    /// Nothing is limited by an empty file.
    #[test]
    fn nothing_is_nothing() {
        let text = thanos_limits("limits.yaml", "").unwrap();
        let config = parse("printed", &text, &|_| None).unwrap();
        assert_eq!(config.tenants.limits, Allowance::default());
        assert!(config.tenants.overrides.is_empty());
    }

    /// Mistakes are told with their place, as in our own file.
    #[test]
    fn mistakes_are_reported_with_their_positions() {
        let wrong = "write:\n  default:\n    request:\n      size_byte_limit: 5\n  tenants: { a/b: {} }\n";
        let errors = thanos_limits("limits.yaml", wrong).unwrap_err().to_string();
        assert!(errors.contains("size_bytes_limit") && errors.contains("limits.yaml"), "{errors}");
        assert!(errors.contains("a/b"), "{errors}");
    }
}
