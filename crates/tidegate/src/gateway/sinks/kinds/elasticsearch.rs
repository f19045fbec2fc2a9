//! The sink `elasticsearch`.

use super::{SinkKind, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use hyper::header::{AUTHORIZATION, HeaderValue};
use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, ElasticsearchSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{
    Elasticsearch, ElasticsearchSettings, IndexTemplate, Mapping, Need, PatternPart, Probe, Product,
};
use tidegate_wire::base64;

impl SinkKind for ElasticsearchSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        network::starter(self, settings, Elasticsearch::start, Elasticsearch::run)
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Elasticsearch::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        network::declared(
            "connections to Elasticsearch, and coders",
            settings(self).map(|settings| Elasticsearch::bytes(&settings)),
        )
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        Ok(Elasticsearch::probes(&settings(self)?)?)
    }

    fn files(&self) -> u64 {
        network::files(self.max_in_flight, &self.endpoints)
    }
}

/// Converts the configuration to the sink's settings.
pub(crate) fn settings(sink: &ElasticsearchSink) -> Result<ElasticsearchSettings, Failure> {
    let mut headers = network::headers(&sink.delivery.headers)?;
    let secret = match (&sink.api_key, &sink.user, &sink.password) {
        (Some(key), ..) => Some(format!("ApiKey {}", key.expose())),
        (None, Some(user), Some(password)) => {
            Some(format!("Basic {}", base64::encoded(format!("{user}:{}", password.expose()).as_bytes())))
        }
        _ => None,
    };
    if let Some(secret) = secret {
        let mut value = HeaderValue::from_str(&secret)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(ElasticsearchSettings {
        endpoints: network::endpoints(&sink.endpoints)?,
        flavour: match sink.product {
            config::Product::Elasticsearch => Product::Elasticsearch,
            config::Product::OpenSearch => Product::OpenSearch,
        },
        headers,
        tenant_header: network::tenant_header(sink.delivery.tenant_header.as_ref())?,
        tls: network::tls(&sink.delivery.tls),
        gzip: match sink.compression {
            config::BulkCompression::None => None,
            config::BulkCompression::Gzip => Some(network::GZIP),
        },
        mapping: match sink.mapping {
            config::Mapping::Otel => Mapping::Otel,
            config::Mapping::Ecs => Mapping::Ecs,
        },
        dataset: sink.dataset.clone(),
        namespace: sink.namespace.clone(),
        index: sink.index.as_ref().map(index),
        ids: sink.ids,
        metric_ids: sink.metric_ids,
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
    })
}

/// The pattern that was configured, as documents are written by.
fn index(pattern: &config::IndexPattern) -> IndexTemplate {
    let piece = |piece: &config::IndexPiece| match piece {
        config::IndexPiece::Text(text) => PatternPart::Text(text.clone()),
        config::IndexPiece::Type => PatternPart::Type,
        config::IndexPiece::Dataset => PatternPart::Dataset,
        config::IndexPiece::Namespace => PatternPart::Namespace,
        config::IndexPiece::Service => PatternPart::Service,
        config::IndexPiece::Tenant => PatternPart::Tenant,
        config::IndexPiece::Year => PatternPart::Year,
        config::IndexPiece::Month => PatternPart::Month,
        config::IndexPiece::Day => PatternPart::Day,
        config::IndexPiece::Hour => PatternPart::Hour,
    };
    IndexTemplate::new(pattern.pieces().iter().map(piece).collect())
}
