//! The types of event fields, as in APM Server's decoder (apm-data, `input/elasticapm`), in one table.

use super::EventKind;

/// The valid types of a field. `null` means a missing field everywhere.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// A string.
    Text,
    /// A string of at most 1,024 characters.
    Keyword,
    /// The name of a service: letters, digits, blanks, `_` and `-`.
    ServiceName,
    /// A string or a number.
    TextOrNumber,
    /// One of `success`, `failure`, `unknown`.
    Outcome,
    /// A number.
    Number,
    /// A number that is not negative.
    Positive,
    /// A number without a fraction.
    Integer,
    /// `true` or `false`.
    Bool,
    /// A list of anything.
    Array,
    /// An object of anything.
    Object,
    /// An object of strings, numbers and truth values.
    Labels,
    /// An object of metrics.
    Samples,
    /// An object with these fields.
    Fields(&'static Fields),
}

/// A field by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) rule: Rule,
    pub(super) required: bool,
}

/// The fields of an object that are known; others may be anything.
#[derive(Debug)]
pub(super) struct Fields {
    /// At most 64.
    pub(super) fields: &'static [Field],
    /// By the length of a name, one bit for each field that is called so; longer ones are with the longest here.
    lengths: [u64; LENGTHS],
    /// One bit for each that is required.
    pub(super) required: u64,
    /// At least one of these is required, if there are any.
    pub(super) one_of: (u64, &'static str),
    /// Where one of the first is given, the second is required.
    pub(super) with: (u64, u64),
}

/// Lengths of names that are told apart.
const LENGTHS: usize = 24;

const fn must(name: &'static str, rule: Rule) -> Field {
    Field { name, rule, required: true }
}

const fn may(name: &'static str, rule: Rule) -> Field {
    Field { name, rule, required: false }
}

const fn of(fields: &'static [Field]) -> Fields {
    assert!(fields.len() <= 64, "a bit for each");
    let mut required = 0;
    let mut lengths = [0; LENGTHS];
    let mut at = 0;
    while at < fields.len() {
        #[allow(clippy::indexing_slicing, reason = "of constants, when the program is built")]
        {
            if fields[at].required {
                required |= 1 << at;
            }
            let len = fields[at].name.len();
            lengths[if len < LENGTHS { len } else { LENGTHS - 1 }] |= 1 << at;
        }
        at += 1;
    }
    Fields { fields, lengths, required, one_of: (0, ""), with: (0, 0) }
}

impl Fields {
    /// The field of this name, and where it stands among them.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<(u32, &'static Field)> {
        let mut left = self.lengths.get(name.len().min(LENGTHS - 1)).copied().unwrap_or(0);
        while left != 0 {
            let at = left.trailing_zeros();
            let field = self.fields.get(at as usize)?;
            if field.name.as_bytes() == name {
                return Some((at, field));
            }
            left &= left - 1;
        }
        None
    }

    const fn one_of(self, bits: u64, words: &'static str) -> Fields {
        Fields { one_of: (bits, words), ..self }
    }

    const fn with(self, given: u64, required: u64) -> Fields {
        Fields { with: (given, required), ..self }
    }
}

/// The fields of an event.
pub(super) fn fields_of(kind: EventKind) -> &'static Fields {
    match kind {
        EventKind::Metadata => &METADATA,
        EventKind::Transaction => &TRANSACTION,
        EventKind::Span => &SPAN,
        EventKind::Error => &ERROR,
        EventKind::Metricset => &METRICSET,
        EventKind::Log => &LOG,
    }
}

static METADATA: Fields = of(&[
    must("service", Rule::Fields(&METADATA_SERVICE)),
    may("process", Rule::Fields(&PROCESS)),
    may("system", Rule::Fields(&SYSTEM)),
    may("cloud", Rule::Fields(&METADATA_CLOUD)),
    may("user", Rule::Fields(&USER)),
    may("labels", Rule::Labels),
    may("network", Rule::Object),
]);

static METADATA_SERVICE: Fields = of(&[
    must("name", Rule::ServiceName),
    must("agent", Rule::Fields(&METADATA_AGENT)),
    may("environment", Rule::Keyword),
    may("version", Rule::Keyword),
    may("language", Rule::Fields(&METADATA_LANGUAGE)),
    may("runtime", Rule::Fields(&METADATA_RUNTIME)),
    may("framework", Rule::Fields(&NAMED)),
    may("node", Rule::Fields(&SERVICE_NODE)),
    may("id", Rule::Text),
]);

static METADATA_AGENT: Fields = of(&[
    must("name", Rule::Keyword),
    must("version", Rule::Keyword),
    may("ephemeral_id", Rule::Keyword),
    may("activation_method", Rule::Keyword),
]);

static METADATA_LANGUAGE: Fields = of(&[must("name", Rule::Keyword), may("version", Rule::Keyword)]);

static METADATA_RUNTIME: Fields = of(&[must("name", Rule::Keyword), must("version", Rule::Keyword)]);

static NAMED: Fields = of(&[may("name", Rule::Keyword), may("version", Rule::Keyword)]);

static SERVICE_NODE: Fields = of(&[may("configured_name", Rule::Keyword)]);

static PROCESS: Fields = of(&[
    must("pid", Rule::Integer),
    may("ppid", Rule::Integer),
    may("title", Rule::Keyword),
    may("argv", Rule::Array),
]);

static SYSTEM: Fields = of(&[
    may("architecture", Rule::Keyword),
    may("configured_hostname", Rule::Keyword),
    may("detected_hostname", Rule::Keyword),
    may("hostname", Rule::Keyword),
    may("platform", Rule::Keyword),
    may("container", Rule::Object),
    may("kubernetes", Rule::Object),
]);

static METADATA_CLOUD: Fields = of(&[
    must("provider", Rule::Keyword),
    may("region", Rule::Keyword),
    may("availability_zone", Rule::Keyword),
    may("account", Rule::Object),
    may("instance", Rule::Object),
    may("machine", Rule::Object),
    may("project", Rule::Object),
    may("service", Rule::Object),
]);

static USER: Fields = of(&[
    may("id", Rule::TextOrNumber),
    may("username", Rule::Keyword),
    may("email", Rule::Keyword),
    may("domain", Rule::Keyword),
]);

static TRANSACTION: Fields = of(&[
    must("id", Rule::Keyword),
    must("trace_id", Rule::Keyword),
    must("type", Rule::Keyword),
    must("duration", Rule::Positive),
    must("span_count", Rule::Fields(&SPAN_COUNT)),
    may("name", Rule::Keyword),
    may("timestamp", Rule::Integer),
    may("parent_id", Rule::Keyword),
    may("result", Rule::Keyword),
    may("outcome", Rule::Outcome),
    may("sampled", Rule::Bool),
    may("sample_rate", Rule::Number),
    may("context", Rule::Fields(&CONTEXT)),
    may("dropped_spans_stats", Rule::Array),
    may("faas", Rule::Object),
    may("otel", Rule::Fields(&OTEL)),
    may("links", Rule::Array),
    may("marks", Rule::Object),
    may("experience", Rule::Object),
    may("session", Rule::Fields(&SESSION)),
]);

static SPAN_COUNT: Fields = of(&[must("started", Rule::Integer), may("dropped", Rule::Integer)]);

static SESSION: Fields = of(&[must("id", Rule::Keyword), may("sequence", Rule::Integer)]);

static OTEL: Fields = of(&[may("span_kind", Rule::Text), may("attributes", Rule::Object)]);

static CONTEXT: Fields = of(&[
    may("tags", Rule::Labels),
    may("user", Rule::Fields(&USER)),
    may("request", Rule::Fields(&REQUEST)),
    may("response", Rule::Object),
    may("custom", Rule::Object),
    may("service", Rule::Object),
    may("page", Rule::Object),
    may("message", Rule::Object),
    may("cloud", Rule::Object),
]);

static REQUEST: Fields = of(&[must("method", Rule::Keyword)]);

static SPAN: Fields = of(&[
    must("id", Rule::Keyword),
    must("trace_id", Rule::Keyword),
    must("parent_id", Rule::Keyword),
    must("name", Rule::Keyword),
    must("type", Rule::Keyword),
    must("duration", Rule::Positive),
    may("timestamp", Rule::Integer),
    may("start", Rule::Number),
    may("transaction_id", Rule::Keyword),
    may("subtype", Rule::Keyword),
    may("action", Rule::Keyword),
    may("sync", Rule::Bool),
    may("outcome", Rule::Outcome),
    may("sample_rate", Rule::Number),
    may("context", Rule::Fields(&SPAN_CONTEXT)),
    may("stacktrace", Rule::Array),
    may("composite", Rule::Fields(&COMPOSITE)),
    may("child_ids", Rule::Array),
    may("otel", Rule::Fields(&OTEL)),
    may("links", Rule::Array),
])
.one_of(1 << 6 | 1 << 7, "'start';'timestamp'");

static COMPOSITE: Fields = of(&[
    must("count", Rule::Integer),
    must("sum", Rule::Positive),
    must("compression_strategy", Rule::Text),
]);

static SPAN_CONTEXT: Fields = of(&[
    may("tags", Rule::Labels),
    may("db", Rule::Object),
    may("destination", Rule::Object),
    may("http", Rule::Object),
    may("message", Rule::Object),
    may("service", Rule::Object),
]);

static ERROR: Fields = of(&[
    must("id", Rule::Keyword),
    may("exception", Rule::Fields(&EXCEPTION)),
    may("log", Rule::Fields(&ERROR_LOG)),
    may("timestamp", Rule::Integer),
    may("trace_id", Rule::Keyword),
    may("parent_id", Rule::Keyword),
    may("transaction_id", Rule::Keyword),
    may("transaction", Rule::Object),
    may("context", Rule::Fields(&CONTEXT)),
    may("culprit", Rule::Keyword),
])
.one_of(1 << 1 | 1 << 2, "'exception';'log'")
.with(1 << 4 | 1 << 5 | 1 << 6, 1 << 4 | 1 << 5);

static EXCEPTION: Fields = of(&[
    may("message", Rule::Text),
    may("type", Rule::Keyword),
    may("module", Rule::Keyword),
    may("code", Rule::TextOrNumber),
    may("handled", Rule::Bool),
    may("attributes", Rule::Object),
    may("stacktrace", Rule::Array),
    may("cause", Rule::Array),
])
.one_of(1 << 0 | 1 << 1, "'message';'type'");

static ERROR_LOG: Fields = of(&[
    must("message", Rule::Text),
    may("level", Rule::Keyword),
    may("logger_name", Rule::Keyword),
    may("param_message", Rule::Keyword),
    may("stacktrace", Rule::Array),
]);

static METRICSET: Fields = of(&[
    must("samples", Rule::Samples),
    may("timestamp", Rule::Integer),
    may("tags", Rule::Labels),
    may("span", Rule::Fields(&SPAN_REFERENCE)),
    may("transaction", Rule::Fields(&TRANSACTION_REFERENCE)),
    may("service", Rule::Object),
    may("faas", Rule::Object),
]);

static SPAN_REFERENCE: Fields = of(&[may("type", Rule::Keyword), may("subtype", Rule::Keyword)]);

static TRANSACTION_REFERENCE: Fields = of(&[may("type", Rule::Keyword), may("name", Rule::Keyword)]);

static LOG: Fields = of(&[may("labels", Rule::Labels), may("message", Rule::Text)]);

/// A metric of a metricset: a value, or the values and counts of a histogram.
pub(super) static SAMPLE: Fields = of(&[
    may("value", Rule::Number),
    may("values", Rule::Array),
    may("counts", Rule::Array),
    may("type", Rule::Text),
    may("unit", Rule::Text),
])
.one_of(1 << 0 | 1 << 1, "'value';'values'")
.with(1 << 1, 1 << 2);
