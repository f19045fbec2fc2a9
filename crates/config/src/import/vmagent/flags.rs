//! The flags of a Go program, and what is known of those that have no counterpart.

use crate::error::{Errors, quote};
use crate::import::notes::Notes;
use crate::suggest::nearest;

/// The flags of a command line.
pub(super) struct Flags {
    given: Vec<Flag>,
}

struct Flag {
    name: String,
    value: String,
    place: usize,
    is_taken: bool,
}

impl Flags {
    /// Reads `-name=value`, `--name=value`, `-name value` and `-name`.
    ///
    /// # Errors
    /// An argument that is no flag, or a misspelt one.
    pub(super) fn parse(arguments: &[String]) -> Result<Flags, Errors> {
        let mut given = Vec::new();
        let mut rest = arguments.iter().enumerate().peekable();
        while let Some((place, argument)) = rest.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                // The name of the program, as it is pasted.
                if place == 0 && argument.ends_with("vmagent") || argument.contains("vmagent-prod") {
                    continue;
                }
                let message = format!("{} is not a flag", quote(argument));
                return Err(Errors::of_file("arguments", message, "write flags as `-name=value`"));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, unquoted(value).to_owned()),
                None => match rest.next_if(|(_, next)| !next.starts_with('-') && !BOOLEANS.contains(&flag)) {
                    Some((_, value)) => (flag, unquoted(value).to_owned()),
                    None => (flag, "true".to_owned()),
                },
            };
            if name.starts_with("remoteWrite.") && !KNOWN.contains(&name) {
                let message = format!("there is no flag {}", quote(&format!("-{name}")));
                let help = match nearest(&name.to_lowercase(), KNOWN.iter().copied()) {
                    Some(meant) => format!("did you mean `-{meant}`?"),
                    None => "remove it, or look it up in the documentation of vmagent".to_owned(),
                };
                return Err(Errors::of_file("arguments", message, &help));
            }
            given.push(Flag { name: name.to_owned(), value, place, is_taken: false });
        }
        Ok(Flags { given })
    }

    /// All values of a flag, which may be repeated or divided by commas.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        for flag in self.given.iter_mut().filter(|flag| flag.name == name) {
            flag.is_taken = true;
            // A comma divides values, but not inside quotes; URLs and labels rarely have one.
            values.extend(flag.value.split(',').map(|value| unquoted(value).to_owned()));
        }
        values
    }

    /// The value of a flag for the URL at `index`: a single value is for all.
    pub(super) fn at(&mut self, name: &str, index: usize) -> Option<String> {
        let values = if name == "remoteWrite.headers" { self.whole(name) } else { self.all(name) };
        match values.as_slice() {
            [one] => Some(one.clone()),
            several => several.get(index).cloned(),
        }
    }

    /// All values of a flag, commas included.
    fn whole(&mut self, name: &str) -> Vec<String> {
        let flags = self.given.iter_mut().filter(|flag| flag.name == name);
        flags
            .map(|flag| {
                flag.is_taken = true;
                flag.value.clone()
            })
            .collect()
    }

    /// The last value of a flag.
    pub(super) fn one(&mut self, name: &str) -> Option<String> {
        self.whole(name).pop()
    }

    /// Where a flag stands.
    pub(super) fn place(&self, name: &str) -> usize {
        self.given.iter().find(|flag| flag.name == name).map_or(usize::MAX, |flag| flag.place)
    }

    /// Notes every flag that nobody took.
    pub(super) fn note_rest(&self, notes: &mut Notes) {
        for flag in self.given.iter().filter(|flag| !flag.is_taken) {
            notes.argument(flag.place, &format!("-{}", flag.name), reason(&flag.name));
        }
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Why a flag has no counterpart.
fn reason(name: &str) -> &'static str {
    if name.contains("streamAggr") {
        return "left out: tidegate does not aggregate";
    }
    if name.starts_with("promscrape.") {
        return "left out: tidegate does not scrape; let vmagent scrape and send to tidegate";
    }
    if name.starts_with("kafka.") || name.starts_with("gcp.") {
        return "left out: tidegate does not read from queues";
    }
    if name.starts_with("httpAuth.") || name.ends_with("AuthKey") {
        return "left out: `access.credentials_file` has the clients' credentials: `tidegate token` writes its lines";
    }
    match name {
        "remoteWrite.rateLimit" => {
            "left out: a sink sends as fast as its receiver answers; `limits` bounds what comes in"
        }
        "remoteWrite.shardByURL"
        | "remoteWrite.shardByURL.labels"
        | "remoteWrite.shardByURL.ignoreLabels"
        | "remoteWrite.shardByURLReplicas" => {
            "not needed: series are only spread with `-remoteWrite.shardByURL` and several URLs"
        }
        "remoteWrite.multitenantURL" | "enableMultitenantHandlers" | "enableMultiTenantV2" => {
            "left out: see `tenants` and the sink's `tenant_header`"
        }
        "remoteWrite.dropSamplesOnOverload" | "remoteWrite.disableOnDiskQueue" => {
            "left out: the journal is on disk; `journal.when_full` says what happens when it is full"
        }
        "remoteWrite.significantFigures" | "remoteWrite.roundDigits" => "left out: values are not rounded",
        "remoteWrite.forceVMProto" | "remoteWrite.vmProtoCompressLevel" => {
            "left out: tidegate sends Prometheus' protocol, which VictoriaMetrics accepts"
        }
        "remoteWrite.maxHourlySeries" | "remoteWrite.maxDailySeries" => "left out: series are not counted",
        "remoteWrite.keepDanglingQueues" => {
            "not needed: the data of a removed sink stays until `tidegate journal forget`"
        }
        "remoteWrite.sendMetadata" | "enableMetadata" => "not needed: metadata is sent as received",
        "remoteWrite.showURL" => "not needed: queries in URLs are never shown",
        "remoteWrite.proxyURL" => "left out: set the environment variable `https_proxy` or `http_proxy`",
        "memory.allowedPercent" => {
            "left out: `memory` is at most three quarters of the cgroup's limit by default"
        }
        "loggerLevel" | "loggerFormat" | "loggerOutput" => {
            "not needed: `--log` and `--log-format` of `tidegate run` say what is logged"
        }
        "relabelDebug" | "remoteWrite.urlRelabelDebug" | "remoteWrite.relabelDebug" => {
            "left out: `tidegate tap` shows what passes"
        }
        name if name.starts_with("remoteWrite.oauth2") || name.starts_with("remoteWrite.aws") => {
            "left out: tidegate cannot fetch tokens or sign requests"
        }
        _ => "left out: it has no counterpart",
    }
}

/// Flags without a value behind a blank.
const BOOLEANS: &[&str] = &[
    "tls",
    "remoteWrite.tlsInsecureSkipVerify",
    "remoteWrite.forcePromProto",
    "remoteWrite.forceVMProto",
    "remoteWrite.shardByURL",
    "remoteWrite.dropSamplesOnOverload",
    "remoteWrite.disableOnDiskQueue",
    "remoteWrite.keepDanglingQueues",
    "remoteWrite.showURL",
    "remoteWrite.sendMetadata",
    "promscrape.config.strictParse",
    "promscrape.dropOriginalLabels",
];

/// The flags of vmagent about remote writes.
const KNOWN: &[&str] = &[
    "remoteWrite.url",
    "remoteWrite.label",
    "remoteWrite.relabelConfig",
    "remoteWrite.urlRelabelConfig",
    "remoteWrite.relabelDebug",
    "remoteWrite.urlRelabelDebug",
    "remoteWrite.tmpDataPath",
    "remoteWrite.maxDiskUsagePerURL",
    "remoteWrite.queues",
    "remoteWrite.sendTimeout",
    "remoteWrite.flushInterval",
    "remoteWrite.retryMinInterval",
    "remoteWrite.retryMaxTime",
    "remoteWrite.maxRowsPerBlock",
    "remoteWrite.maxBlockSize",
    "remoteWrite.headers",
    "remoteWrite.bearerToken",
    "remoteWrite.bearerTokenFile",
    "remoteWrite.basicAuth.username",
    "remoteWrite.basicAuth.usernameFile",
    "remoteWrite.basicAuth.password",
    "remoteWrite.basicAuth.passwordFile",
    "remoteWrite.tlsCAFile",
    "remoteWrite.tlsCertFile",
    "remoteWrite.tlsKeyFile",
    "remoteWrite.tlsServerName",
    "remoteWrite.tlsInsecureSkipVerify",
    "remoteWrite.tlsHandshakeTimeout",
    "remoteWrite.forcePromProto",
    "remoteWrite.forceVMProto",
    "remoteWrite.vmProtoCompressLevel",
    "remoteWrite.rateLimit",
    "remoteWrite.shardByURL",
    "remoteWrite.shardByURL.labels",
    "remoteWrite.shardByURL.ignoreLabels",
    "remoteWrite.shardByURLReplicas",
    "remoteWrite.multitenantURL",
    "remoteWrite.dropSamplesOnOverload",
    "remoteWrite.disableOnDiskQueue",
    "remoteWrite.significantFigures",
    "remoteWrite.roundDigits",
    "remoteWrite.maxHourlySeries",
    "remoteWrite.maxDailySeries",
    "remoteWrite.keepDanglingQueues",
    "remoteWrite.sendMetadata",
    "remoteWrite.showURL",
    "remoteWrite.proxyURL",
    "remoteWrite.inmemoryQueues",
    "remoteWrite.oauth2.clientID",
    "remoteWrite.oauth2.clientSecret",
    "remoteWrite.oauth2.clientSecretFile",
    "remoteWrite.oauth2.endpointParams",
    "remoteWrite.oauth2.scopes",
    "remoteWrite.oauth2.tokenUrl",
    "remoteWrite.aws.accessKey",
    "remoteWrite.aws.ec2Endpoint",
    "remoteWrite.aws.region",
    "remoteWrite.aws.roleARN",
    "remoteWrite.aws.secretKey",
    "remoteWrite.aws.service",
    "remoteWrite.aws.stsEndpoint",
    "remoteWrite.aws.useSigv4",
    "remoteWrite.streamAggr.config",
    "remoteWrite.streamAggr.dedupInterval",
    "remoteWrite.streamAggr.dropInput",
    "remoteWrite.streamAggr.dropInputLabels",
    "remoteWrite.streamAggr.enableWindows",
    "remoteWrite.streamAggr.ignoreFirstIntervals",
    "remoteWrite.streamAggr.ignoreFirstSampleInterval",
    "remoteWrite.streamAggr.ignoreOldSamples",
    "remoteWrite.streamAggr.keepInput",
];
