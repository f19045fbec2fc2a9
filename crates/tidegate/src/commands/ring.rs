//! `tidegate ring`: where the series of a sink are.

mod explained;

use crate::cli::{ConfigArgs, ExplainArgs, RingCommand};
use crate::commands::check;
use crate::gateway::sinks::kinds::prometheus_remote_write::sharded;
use crate::gateway::sinks::kinds::thanos_receive::{DEFAULT_TENANT, described};
use crate::{Failure, Outcome, output};
use explained::{Explained, PlacedBy, TenantOrigin};
use tidegate_config::{RemoteWriteSink, Sink, ThanosReceiveSink};
use tidegate_ring::{MultiRing, SeriesHasher, series_hash};
use tidegate_trial::encode_series;
use tidegate_wire::remote_write::v1;

/// The labels of a series, in order of their names.
type Labels = Vec<(String, String)>;

const NO_RING: &str =
    "the configuration has no sink `thanos_receive`, and none with `shard_by`: name the file with `--config`";

/// `tidegate ring …`
pub(crate) fn ring(command: &RingCommand) -> Outcome {
    match command {
        RingCommand::Explain(args) => explain(args),
    }
}

fn explain(args: &ExplainArgs) -> Outcome {
    let (sink, ring) = sink(&args.config, args.sink.as_deref())?;
    let labels = labels(&args.labels)?;
    let explained = match &ring {
        Sink::ThanosReceive(ring) => by_tenant(sink, ring, args.tenant.as_deref(), labels)?,
        Sink::PrometheusRemoteWrite(ring) => by_key(sink, ring, labels)?,
        _ => return Err(Failure(NO_RING.to_owned())),
    };
    output::print(&if args.json {
        format!("{}\n", serde_json::to_string_pretty(&explained.json())?)
    } else {
        explained.to_string()
    })?;
    Ok(())
}

/// Where Thanos' hashrings place a series.
fn by_tenant(
    name: String,
    sink: &ThanosReceiveSink,
    given: Option<&str>,
    mut labels: Labels,
) -> Result<Explained, Failure> {
    let (tenant, origin) = tenant(sink, given, &mut labels);
    let (configs, settings) = described(sink)?;
    let rings = MultiRing::new(&configs, &settings)?;
    let explanation = rings
        .explain(&tenant, series_hash(tenant.as_bytes(), hashed(&labels)))
        .map_err(|unplaced| Failure(format!("the series of tenant `{tenant}` go nowhere: {unplaced}")))?;
    let warnings = MultiRing::warnings(&configs, &settings).iter().map(ToString::to_string).collect();
    Ok(Explained { sink: name, placed_by: PlacedBy::Tenant(tenant, origin), labels, explanation, warnings })
}

/// Where `shard_by` places a series.
fn by_key(name: String, sink: &RemoteWriteSink, labels: Labels) -> Result<Explained, Failure> {
    let (shard_by, ring, settings) = sharded::described(sink)
        .ok_or_else(|| Failure(NO_RING.to_owned()))?
        .map_err(|Failure(error)| Failure(format!("sink `{name}`: {error}")))?;
    let mut key: Labels = labels.iter().filter(|(name, _)| shard_by.has(name.as_bytes())).cloned().collect();
    if key.is_empty() {
        // As in the sink.
        key.clone_from(&labels);
    }
    let rings = MultiRing::new(&[ring], &settings)?;
    let mut hasher = SeriesHasher::new();
    hashed(&key).for_each(|(name, value)| hasher.label(name, value));
    let explanation = rings.explain("", hasher.finish()).map_err(|error| Failure(error.to_string()))?;
    Ok(Explained { sink: name, placed_by: PlacedBy::Labels(key), labels, explanation, warnings: Vec::new() })
}

fn hashed(labels: &Labels) -> impl Iterator<Item = (&[u8], &[u8])> {
    labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// The sink with a ring that is meant.
fn sink(config: &ConfigArgs, wanted: Option<&str>) -> Result<(String, Sink), Failure> {
    let config = check::config(config)?;
    let has_ring = |sink: &Sink| match sink {
        Sink::ThanosReceive(_) => true,
        Sink::PrometheusRemoteWrite(sink) => sink.shard_by.is_some(),
        _ => false,
    };
    let mut sinks = config
        .sinks
        .into_iter()
        .filter(|(name, sink)| has_ring(sink) && wanted.is_none_or(|wanted| wanted == name.as_str()))
        .map(|(name, sink)| (name.as_str().to_owned(), sink));
    match (sinks.next(), sinks.next(), wanted) {
        (Some(sink), None, _) => Ok(sink),
        (Some(_), Some(_), _) => {
            Err(Failure("several sinks have a ring of series: name one with `--sink`".to_owned()))
        }
        (None, _, Some(name)) => Err(Failure(format!(
            "the configuration has no sink `{name}` of the type `thanos_receive`, or with `shard_by`"
        ))),
        (None, _, None) => Err(Failure(NO_RING.to_owned())),
    }
}

/// The labels of a series in Prometheus' notation, sorted as senders have to send them.
fn labels(text: &str) -> Result<Labels, Failure> {
    let body = encode_series([text]).map_err(|error| Failure(error.why.to_string()))?;
    let request = v1::Request::new(&body);
    let labels = request.series().flat_map(|series| series.labels().collect::<Vec<_>>());
    let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let labels: Labels = labels.map(|label| (owned(label.name), owned(label.value))).collect();
    if let Some((name, _)) = labels.iter().find(|(name, _)| name.is_empty() || name.ends_with(['!', '~'])) {
        return Err(Failure(format!("`{name}` is no label: give each as NAME=\"VALUE\"")));
    }
    if let Some((name, _)) = labels.windows(2).find_map(|pair| match pair {
        [first, second] if first.0 == second.0 => Some(first),
        _ => None,
    }) {
        return Err(Failure(format!("the label `{name}` is given twice")));
    }
    Ok(labels)
}

/// The tenant of a series, which loses the label that names it.
fn tenant(sink: &ThanosReceiveSink, given: Option<&str>, labels: &mut Labels) -> (String, TenantOrigin) {
    let split = sink.split_tenant_label.as_ref();
    let at = split.and_then(|split| labels.iter().position(|(name, _)| name == split));
    if let Some(at) = at
        // As in the sink, a value that cannot be a tenant stays a label.
        && tidegate_journal::Tenant::new(&labels[at].1).is_some()
    {
        let (name, value) = labels.remove(at);
        return (value, TenantOrigin::Label(name));
    }
    match given {
        Some(tenant) => (tenant.to_owned(), TenantOrigin::Argument),
        None => {
            let default = sink.default_tenant.as_ref().map_or(DEFAULT_TENANT, |tenant| tenant.as_str());
            (default.to_owned(), TenantOrigin::Default)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        labels(text).unwrap_or_else(|Failure(error)| panic!("{text}: {error}"))
    }

    #[test]
    fn labels_are_those_of_prometheus_notation_in_order() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(r#"{job="x", __name__="up"}"#), [pair("__name__", "up"), pair("job", "x")]);
        assert_eq!(read(r#"up{job="x",}"#), read(r#"{ __name__ = "up", job="x" }"#));
        assert_eq!(read(r#"up{path="C:\\a\n\"é\u00e9"}"#)[1], pair("path", "C:\\a\n\"éé"));
        assert_eq!(read(r#"{"a.name", "a label"="1"}"#), [pair("__name__", "a.name"), pair("a label", "1")]);
    }

    #[test]
    fn what_is_no_series_is_an_error() {
        for text in ["", "{}", r#"{a="1""#, r#"{a=~"1"}"#, r#"{a!="1"}"#, r#"{a="1",a="2"}"#, r#"{="1"}"#] {
            assert!(labels(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tenant_in_a_label_replaces_the_given_one() {
        let sink = ThanosReceiveSink { split_tenant_label: Some("team".to_owned()), ..Default::default() };
        let mut series = read(r#"up{team="a"}"#);
        let (tenant_name, origin) = tenant(&sink, Some("b"), &mut series);
        assert_eq!((tenant_name.as_str(), series.len()), ("a", 1));
        assert!(matches!(origin, TenantOrigin::Label(label) if label == "team"));
        assert_eq!(tenant(&sink, Some("b"), &mut series).0, "b");
        assert_eq!(tenant(&sink, None, &mut series).0, DEFAULT_TENANT);
    }
}
