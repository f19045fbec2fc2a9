//! The limits file of Thanos Receive (`--receive.limits-config-file`), as of 0.42.
//!
//! In it zero stands for no limit, and a tenant has the default's value where it sets none.

use std::collections::BTreeMap;

use super::document::Map;
use super::notes::{Imported, Notes};
use super::references;
use crate::declare::settings;
use crate::error::{ErrorCollector, Errors};
use crate::load::bounded;
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

/// Converts the limits in `text`. `source` is what to call the text in messages.
///
/// # Errors
/// Every mistake in it, with its place.
pub fn thanos_limits(source: &str, text: &str) -> Result<Imported, Errors> {
    let (mut configuration, mut notes) = (Map::default(), Notes::default());
    limits_into(source, text, &mut configuration, &mut notes)?;
    // Limits of tenants hold at addresses that have tenants.
    let listener = configuration.group("listen").group("thanos_receive");
    listener.set("tenant_header", "THANOS-TENANT");
    listener.set("default_tenant", "default-tenant");
    let title = format!("Converted from {source}, limits of Thanos Receive.");
    Ok(notes.print(source, &title, &configuration, &[]))
}

/// Adds the limits in `text` to `configuration`.
///
/// # Errors
/// Every mistake in it, with its place.
pub(super) fn limits_into(
    source: &str,
    text: &str,
    configuration: &mut Map,
    notes: &mut Notes,
) -> Result<(), Errors> {
    let text = bounded(source, text)?;
    let mut errors = ErrorCollector::new(text);
    let root = yaml::read(text, Substitutions { environment: &|_| None, files: &no_file }, &mut errors);
    let file = root.and_then(|root| File::read(&root, &mut Reader::new(&mut errors, File::fields)));
    if let Some(errors) = errors.into_errors(source) {
        return Err(errors);
    }
    let write = file.unwrap_or_default().write;
    note(source, &write, notes);
    let Write { global, default, tenants } = &write;
    if let Some(most) = global.max_concurrency.filter(|most| *most > 0) {
        let sources = configuration.group("limits").group("sources");
        sources.group("prometheus_remote_write").set("requests_at_once", most.to_string());
        sources.group("otlp").set("requests_at_once", most.to_string());
    }
    let url = global.meta_monitoring_url.as_ref();
    if let Some(url) = url {
        let query = configuration.group("limits").group("head_series");
        query.set("url", references::plain(url.expose()).0);
        let text = global.meta_monitoring_limit_query.as_ref();
        query.set_some("query", text.map(|text| references::plain(text.as_str()).0));
    }
    let head_series = |tenant: &Tenant| tenant.head_series_limit.filter(|_| url.is_some());
    let mut settings = Map::default();
    settings.set_some(
        "head_series",
        head_series(default).filter(|limit| *limit > 0).map(|limit| limit.to_string()),
    );
    settings.set_group("limits", allowance(&default.request, &Request::default()));
    if !tenants.is_empty() {
        settings.set("most", tenants.len().clamp(200, 250).to_string());
    }
    for (name, tenant) in tenants {
        let mut own = Map::default();
        own.set_some("head_series", head_series(tenant).map(|limit| limit.to_string()));
        own.set_group("limits", allowance(&tenant.request, &default.request));
        settings.group("overrides").set(name.as_str(), own);
    }
    configuration.set_group("tenants", settings);
    Ok(())
}

/// Notes the limits without an exact counterpart.
fn note(source: &str, write: &Write, notes: &mut Notes) {
    let Write { global, default, tenants } = write;
    let any = |set: fn(&Tenant) -> Option<u32>| {
        tenants.values().chain([default]).any(|tenant| set(tenant).is_some_and(|limit| limit > 0))
    };
    if any(|tenant| tenant.request.series_limit) {
        let message = "left out: series are not counted; `request_items` limits their items";
        notes.whole(source, "series_limit", message);
    }
    if any(|tenant| tenant.request.samples_limit) {
        let message = "became `request_items`, which counts histograms and exemplars too";
        notes.whole(source, "samples_limit", message);
    }
    if global.max_concurrency.is_some_and(|most| most > 0) {
        let message = "holds for remote write and for OTLP each, and at every address; requests beyond it are answered 429 \
                       instead of waiting";
        notes.whole(source, "max_concurrency", message);
    }
    if global.meta_monitoring_http_client == Anything(true) {
        let message = "left out: `limits.head_series` has `ca_file` and `token_file`";
        notes.whole(source, "meta_monitoring_http_client", message);
    }
    if any(|tenant| tenant.head_series_limit) && global.meta_monitoring_url.is_none() {
        let message = "left out: it has no effect without `meta_monitoring_url`";
        notes.whole(source, "head_series_limit", message);
    }
}

/// The limit of one request: its own value, else the default's; zero means no limit.
fn allowance(own: &Request, default: &Request) -> Map {
    let bytes = own.size_bytes_limit.or(default.size_bytes_limit).filter(|bytes| *bytes > 0);
    let items = own.samples_limit.or(default.samples_limit).filter(|items| *items > 0);
    let mut limits = Map::default();
    // At least the smallest that can be set here.
    let bytes = bytes.map(|bytes| Bytes::new(bytes.into()).max(Bytes::kib(1)).to_string());
    limits.set_some("request_bytes", bytes);
    limits.set_some("request_items", items.map(|items| items.min(1_000_000_000).to_string()));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::parse;
    use crate::model::Allowance;

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
        let text = thanos_limits("limits.yaml", LIMITS).unwrap().configuration;
        let config = parse("printed", &text, &|_| None).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        assert_eq!(config.limits.sources.prometheus_remote_write.requests_at_once, Some(30));
        assert!(config.has_tenants() && !config.tenants.are_on(), "other addresses need no tenant");
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
        let text = thanos_limits("limits.yaml", "").unwrap().configuration;
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
