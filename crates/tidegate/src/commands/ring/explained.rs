//! A placement, as text and as JSON.

use super::Labels;
use serde_json::{Value, json};
use std::fmt;
use tidegate_ring::{Algorithm, Explanation, Match, Replica, Section};

/// Where a series is, and why.
pub(super) struct Explained {
    pub(super) sink: String,
    pub(super) placed_by: PlacedBy,
    /// Those that are sent.
    pub(super) labels: Labels,
    pub(super) explanation: Explanation,
    pub(super) warnings: Vec<String>,
}

/// What a series is placed by.
pub(super) enum PlacedBy {
    /// Its tenant, and all labels.
    Tenant(String, TenantOrigin),
    /// These labels.
    Labels(Labels),
}

/// Where the tenant's name comes from.
#[derive(Debug)]
pub(super) enum TenantOrigin {
    Argument,
    /// The label that the sink takes it from.
    Label(String),
    Default,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explained { sink, placed_by, labels, explanation, warnings } = self;
        let Explanation { ring, matched, algorithm, endpoints, shard, hash, section, replicas } = explanation;
        writeln!(f, "sink       {sink}")?;
        writeln!(f, "series     {}", Series(labels))?;
        match placed_by {
            PlacedBy::Tenant(tenant, origin) => {
                let origin = match origin {
                    TenantOrigin::Argument => String::new(),
                    TenantOrigin::Label(label) => format!(", from the label {label}"),
                    TenantOrigin::Default => ", the default tenant".to_owned(),
                };
                let why = match matched {
                    Match::Everyone => "it is for all tenants".to_owned(),
                    Match::Exact => "it lists the tenant".to_owned(),
                    Match::Glob(pattern) => format!("its pattern {pattern} matches the tenant"),
                };
                writeln!(f, "tenant     {tenant}{origin}")?;
                writeln!(f, "hashring   {ring}: {why}")?;
            }
            PlacedBy::Labels(key) if key == labels => {
                writeln!(f, "key        all labels, whatever the tenant")?;
            }
            PlacedBy::Labels(key) => {
                writeln!(f, "key        {}, by `shard_by`, whatever the tenant", Series(key))?;
            }
        }
        writeln!(f, "algorithm  {}, {endpoints} endpoints", name_of(algorithm))?;
        if let Some(shard) = shard {
            let from = shard
                .override_position
                .map_or("of the hashring".to_owned(), |position| format!("of override {position}"));
            let members: Vec<String> = shard.endpoints.iter().map(member).collect();
            writeln!(f, "shard      {} endpoints for the shard size {} {from}:", members.len(), shard.size)?;
            for member in members {
                writeln!(f, "           {member}")?;
            }
        }
        writeln!(f, "hash       {hash:016x}")?;
        if let Some(Section { position, of, hash, owner, number }) = section {
            let number = number.map_or_else(String::new, |number| format!("number {number} "));
            writeln!(
                f,
                "section    {position} of {of}, which ends at {hash:016x}: {number}of {}",
                member(owner)
            )?;
        }
        for (replica, position) in replicas.iter().zip(1..) {
            writeln!(f, "replica {position}  {}", member(replica))?;
        }
        warnings.iter().try_for_each(|warning| writeln!(f, "warning    {warning}"))
    }
}

impl Explained {
    /// The same as one object. Hashes are hexadecimal: numbers of JSON have 53 bits.
    pub(super) fn json(&self) -> Value {
        let Explained { sink, placed_by, labels, explanation, warnings } = self;
        let Explanation { ring, matched, algorithm, endpoints, shard, hash, section, replicas } = explanation;
        let (matched, pattern) = match matched {
            Match::Everyone => ("everyone", None),
            Match::Exact => ("exact", None),
            Match::Glob(pattern) => ("glob", Some(pattern)),
        };
        let object = |labels: &Labels| -> Value {
            labels
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let (tenant, origin, key) = match placed_by {
            PlacedBy::Tenant(tenant, TenantOrigin::Argument) => (Some(tenant), Some("argument"), None),
            PlacedBy::Tenant(tenant, TenantOrigin::Label(_)) => (Some(tenant), Some("label"), None),
            PlacedBy::Tenant(tenant, TenantOrigin::Default) => (Some(tenant), Some("default"), None),
            PlacedBy::Labels(key) => (None, None, Some(object(key))),
        };
        json!({
            "sink": sink,
            "tenant": tenant,
            "tenant_from": origin,
            "labels": object(labels),
            "key": key,
            "hashring": {
                "position": ring.position, "name": ring.name, "matched": matched, "pattern": pattern,
                "algorithm": name_of(algorithm), "endpoints": endpoints,
            },
            "shard": shard.as_ref().map(|shard| json!({
                "size": shard.size,
                "override": shard.override_position,
                "endpoints": shard.endpoints.iter().map(member_json).collect::<Vec<_>>(),
            })),
            "hash": format!("{hash:016x}"),
            "section": section.as_ref().map(|section| json!({
                "position": section.position,
                "of": section.of,
                "hash": format!("{:016x}", section.hash),
                "owner": member_json(&section.owner),
                "number": section.number,
            })),
            "replicas": replicas.iter().map(member_json).collect::<Vec<_>>(),
            "warnings": warnings,
        })
    }
}

/// Labels in Prometheus' notation.
struct Series<'a>(&'a Labels);

impl fmt::Display for Series<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}

/// The algorithm that is used.
fn name_of(algorithm: &Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ketama => "ketama",
        Algorithm::Hashmod | Algorithm::Unknown(_) => "hashmod",
    }
}

fn member(replica: &Replica) -> String {
    match replica.zone.as_str() {
        "" => replica.address.clone(),
        zone => format!("{}, zone {zone}", replica.address),
    }
}

fn member_json(replica: &Replica) -> Value {
    let zone = Some(&replica.zone).filter(|zone| !zone.is_empty());
    json!({"address": replica.address, "zone": zone})
}
