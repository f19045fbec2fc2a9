//! Series that are spread over the URLs.

use super::{Flags, bytes};
use crate::error::Errors;
use crate::import::document::{Map, Yaml};
use crate::import::notes::{ARGUMENTS, Notes};
use crate::import::references;
use crate::values::Bytes;

/// The most replicas of a sink.
const MOST_REPLICAS: usize = 7;
/// The least space for a URL whose requests have the default length.
const LEAST_QUOTA: u64 = 16 << 20;

/// How series are spread.
pub(super) struct Sharding {
    shard_by: Yaml,
    replicas: usize,
    /// Disk space for each URL, in bytes.
    quota: Option<u64>,
}

impl Sharding {
    /// Reads the flags; none where each of the `urls` gets all series.
    ///
    /// # Errors
    /// When flags exclude each other, as in vmagent.
    pub(super) fn read(
        flags: &mut Flags,
        urls: &[String],
        notes: &mut Notes,
    ) -> Result<Option<Sharding>, Errors> {
        if urls.len() < 2 || flags.one("remoteWrite.shardByURL").is_none_or(|on| on == "false") {
            return Ok(None);
        }
        let labels = flags.all("remoteWrite.shardByURL.labels");
        let ignored = flags.all("remoteWrite.shardByURL.ignoreLabels");
        let shard_by = match (labels.is_empty(), ignored.is_empty()) {
            (true, true) => "all".into(),
            (false, true) => Yaml::Flow(labels),
            (true, false) => {
                let mut without = Map::default();
                without.set("without", Yaml::Flow(ignored));
                without.into()
            }
            (false, false) => {
                let message = "`-remoteWrite.shardByURL.labels` and `-remoteWrite.shardByURL.ignoreLabels` exclude each other";
                return Err(Errors::of_file(ARGUMENTS, message.to_owned(), "take one of them out"));
            }
        };
        let replicas = flags.one("remoteWrite.shardByURLReplicas").and_then(|text| text.parse().ok());
        let wanted = replicas.unwrap_or(1_usize);
        let replicas = wanted.clamp(1, urls.len().min(MOST_REPLICAS));
        if replicas != wanted {
            let message = format!("{replicas} were chosen, of {} URLs", urls.len());
            let flag = "remoteWrite.shardByURLReplicas";
            notes.argument(flags.place(flag), &format!("-{flag}"), message);
        }
        let message = "the ring is not vmagent's: most series start anew at another URL, once";
        notes.argument(flags.place("remoteWrite.shardByURL"), "-remoteWrite.shardByURL", message);
        let quotas = flags.all("remoteWrite.maxDiskUsagePerURL");
        let quota = quotas.iter().filter_map(|text| bytes(text)).max().filter(|bytes| *bytes > 0);
        Ok(Some(Sharding { shard_by, replicas, quota }))
    }

    /// One sink for all `urls`, of the settings that each of them would have.
    pub(super) fn sink(self, urls: &[String], each: &[Map], flags: &Flags, notes: &mut Notes) -> Map {
        let mut alike = each.iter().map(|settings| {
            let mut settings = settings.clone();
            settings.remove("url");
            settings
        });
        let common = alike.next().unwrap_or_default();
        for (url, _) in urls.iter().skip(1).zip(alike).filter(|(_, other)| *other != common) {
            let message =
                format!("the settings of the first URL are those of all; those of {url} are others");
            notes.argument(flags.place("remoteWrite.url"), "-remoteWrite.url", message);
        }
        let mut sink = Map::default();
        sink.set("type", "prometheus_remote_write");
        let urls: Vec<String> = urls.iter().map(|url| references::plain(url).0).collect();
        let members = urls.len() as u64;
        sink.set("endpoints", Yaml::Flow(urls));
        sink.set("shard_by", self.shard_by);
        if self.replicas > 1 {
            sink.set("replicas", self.replicas.to_string());
        }
        if let Some(quota) = self.quota {
            let quota = quota.clamp(LEAST_QUOTA, 1 << 50);
            let handoff = sink.group("handoff");
            handoff.set("quota", Bytes::new(quota).to_string());
            handoff.set("total_quota", Bytes::new(quota.saturating_mul(members)).to_string());
            handoff.set("when_full", "drop_oldest");
        }
        let mut rest = common;
        // One request at a time for each URL, of 1.0.
        for key in ["type", "max_in_flight", "protocol"] {
            rest.remove(key);
        }
        sink.append(&rest);
        sink
    }
}
