//! The section of the service.

use super::plugin::{Lacking, Plugin};
use super::report::Report;
use super::section::Section;

const LACKING: &Lacking = &[
    ("flush", "not needed: each sink makes its own batches; `linger` bounds how long one waits"),
    ("grace", "not needed: at a stop, what was received is in the journal"),
    ("daemon", "not needed: the init system starts tidegate"),
    ("dns.mode", "not needed"),
    ("dns.resolver", "not needed"),
    ("dns.prefer_ipv4", "not needed"),
    ("dns.prefer_ipv6", "not needed"),
    ("log_file", "left out: the log goes to standard error"),
    ("log_level", "not needed: `--log` of `tidegate run` says what is logged"),
    ("http_server", "not needed: `/health`, `/metrics` and `/status` are served at `listen.admin`"),
    ("http_listen", "not needed: `/health`, `/metrics` and `/status` are served at `listen.admin`"),
    ("http_port", "not needed: `/health`, `/metrics` and `/status` are served at `listen.admin`"),
    ("health_check", "not needed: `/health` is served at `listen.admin`"),
    ("hc_errors_count", "not needed: `/health` is served at `listen.admin`"),
    ("hc_retry_failure_count", "not needed: `/health` is served at `listen.admin`"),
    ("hc_period", "not needed: `/health` is served at `listen.admin`"),
    ("hot_reload", "not needed: `SIGHUP` applies changes"),
    ("coro_stack_size", "not needed: stacks are part of the memory plan"),
    ("scheduler.cap", "left out: `backoff` of each sink bounds the time between tries"),
    ("scheduler.base", "left out: `backoff` of each sink bounds the time between tries"),
    ("json.convert_nan_to_null", "not needed"),
    ("json.escape_unicode", "not needed"),
    ("plugins_file", "left out: tidegate loads no plugins"),
    ("streams_file", "left out: tidegate runs no stream queries"),
    ("stream_processor", "left out: tidegate runs no stream queries"),
    ("sp.convert_from_str_to_num", "left out: tidegate runs no stream queries"),
    ("enable_chunk_trace", "not needed: `tidegate tap` shows items"),
    ("windows.maxstdio", "not needed"),
];

/// Notes the settings of the service: tidegate has other ones for the same things.
pub(super) fn service(section: &Section, report: &mut Report) {
    let Some(mut plugin) = Plugin::new(section, report) else { return };
    // The files are read already.
    plugin.all("parsers_file", report);
    plugin.lacks(LACKING, report);
    let storage =
        "not needed: everything is in the journal on disk, in the folder `data`; `journal.quota` bounds it";
    plugin.lacks_prefix("storage.", storage, report);
    let known: Vec<&'static str> = LACKING.iter().map(|(key, _)| *key).collect();
    plugin.finish(&known, report);
}
