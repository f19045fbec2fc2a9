//! A question to both, and the comparison of their answers.

use serde::{Deserialize, Serialize};
use tidegate_ring::{
    Algorithm, MultiRing, RingError, RingSettings, ShardError, Unplaced, Warning, parse_hashrings,
    series_hash,
};

/// Rings and series to place on them, as `tests/real/thanos/oracle.go` reads them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) algorithm: String,
    pub(crate) replication: usize,
    /// The text of a file of hashrings.
    pub(crate) config: String,
    pub(crate) queries: Vec<Query>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Query {
    pub(crate) tenant: String,
    pub(crate) labels: Vec<(String, String)>,
}

/// Thanos' answer: an error for all, or a list for each query, where errors begin with an exclamation mark.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) case: Case,
    pub(crate) answer: Answer,
}

/// How many series were placed alike, how many of them in a shard, and how many were refused alike.
#[derive(Default)]
pub(crate) struct Agreement {
    pub(crate) sharded: usize,
    pub(crate) placed: usize,
    pub(crate) refused: usize,
}

impl Recorded {
    /// Addresses as their positions in the file, and errors without their ends.
    pub(crate) fn shortened(mut self) -> Self {
        let addresses = addresses(&self.case.config);
        for member in self.answer.answers.iter_mut().flatten() {
            match addresses.iter().position(|address| address == member) {
                Some(position) => *member = position.to_string(),
                None => member.truncate(60),
            }
        }
        self
    }

    /// The opposite, but for the errors.
    pub(crate) fn lengthened(mut self) -> Self {
        let addresses = addresses(&self.case.config);
        for member in self.answer.answers.iter_mut().flatten() {
            if let Ok(position) = member.parse::<usize>() {
                member.clone_from(&addresses[position]);
            }
        }
        self
    }
}

fn addresses(config: &str) -> Vec<String> {
    let rings = parse_hashrings(config.as_bytes()).unwrap_or_default();
    rings.into_iter().flat_map(|ring| ring.endpoints).map(|endpoint| endpoint.address).collect()
}

impl Case {
    fn settings(&self) -> RingSettings {
        let algorithm = Algorithm::from(self.algorithm.as_str());
        RingSettings { algorithm, replication: self.replication, cached_tenants: 8 }
    }

    /// Leaves out queries over which Thanos never ends; `None` if it does not end over the rings.
    pub(crate) fn without_endless(mut self) -> Option<Case> {
        let configs = parse_hashrings(self.config.as_bytes()).ok()?;
        match MultiRing::new(&configs, &self.settings()) {
            Ok(ring) => {
                self.queries.retain(|query| !is_endless(ring.for_tenant(&query.tenant).err().as_ref()))
            }
            Err(RingError::UnevenZones { .. }) => return None,
            // Another ring of the list may be endless.
            Err(RingError::TooFewEndpoints { .. } | RingError::TwoZones { .. }) => return None,
            Err(_) => {}
        }
        Some(self)
    }
}

fn is_endless(error: Option<&Unplaced>) -> bool {
    matches!(error, Some(Unplaced::Shard { source: ShardError::UnevenZones { .. }, .. }))
}

/// Compares our answer with Thanos'.
pub(crate) fn compare(case: &Case, answer: &Answer) -> Result<Agreement, String> {
    let configs = match (parse_hashrings(case.config.as_bytes()), answer.error.as_str()) {
        (Ok(configs), _) => configs,
        (Err(error), "") => return Err(format!("we refuse, Thanos does not: {error} in {}", case.config)),
        (Err(_), _) => return Ok(Agreement { refused: 1, ..Agreement::default() }),
    };
    let settings = case.settings();
    let ring = match (MultiRing::new(&configs, &settings), answer.error.as_str()) {
        (Ok(ring), "") => ring,
        (Ok(_), error) => return Err(format!("Thanos refuses, we do not: {error} in {}", case.config)),
        (Err(error), "") => return Err(format!("we refuse, Thanos does not: {error} in {}", case.config)),
        (Err(_), _) => return Ok(Agreement { refused: 1, ..Agreement::default() }),
    };
    let malformed = MultiRing::warnings(&configs, &settings);
    let malformed = malformed.iter().any(|warning| matches!(warning, Warning::Pattern { .. }));
    let mut agreement = Agreement::default();
    if case.queries.len() != answer.answers.len() {
        return Err("there is not an answer to each query".to_owned());
    }
    for (query, theirs) in case.queries.iter().zip(&answer.answers) {
        let differ = |ours: &dyn std::fmt::Debug| {
            Err(format!(
                "{query:?}: we say {ours:?}, Thanos {theirs:?} for {} of {}",
                case.replication, case.config
            ))
        };
        match ring.for_tenant(&query.tenant) {
            Ok(found) => {
                let labels = query.labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                let hash = series_hash(query.tenant.as_bytes(), labels);
                let members = found.members(hash);
                let ours: Vec<&str> =
                    members.iter().map(|&member| &*ring.members()[usize::from(member)].address).collect();
                // Thanos comes to patterns in a random order.
                let alike = |(ours, theirs): (&&str, &String)| {
                    ours == theirs || malformed && theirs.starts_with("!error matching tenant pattern")
                };
                if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(alike) {
                    return differ(&ours);
                }
                let explained = ring.explain(&query.tenant, hash).map_err(|error| error.to_string())?;
                if !explained.replicas.iter().map(|replica| &replica.address).eq(&ours) {
                    return Err(format!("{query:?}: members are {ours:?}, explained are {explained:?}"));
                }
                agreement.sharded += usize::from(explained.shard.is_some());
                agreement.placed += 1;
            }
            Err(error) => {
                let reason = reason(&error);
                let alike = |theirs: &String| {
                    theirs.contains(reason)
                        || malformed && theirs.starts_with("!error matching tenant pattern")
                        || theirs.starts_with("!panic: runtime error: makeslice")
                };
                if !theirs.iter().all(alike) {
                    return differ(&error);
                }
                agreement.refused += 1;
            }
        }
    }
    Ok(agreement)
}

/// The answer of Thanos in such a case.
fn reason(error: &Unplaced) -> &'static str {
    match error {
        Unplaced::NoRing => "!no matching hashring",
        Unplaced::Pattern { .. } => "!error matching tenant pattern",
        Unplaced::Shard { source: ShardError::ZoneTooSmall { .. }, .. } => "!shard size ",
        Unplaced::Shard { source: ShardError::TooFewEndpoints { .. }, .. } => {
            "amount of endpoints needs to be larger"
        }
        Unplaced::Shard { source: ShardError::UnevenZones { .. }, .. } => "!never",
    }
}
