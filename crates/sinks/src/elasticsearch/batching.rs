//! From records to batches: joined by tenant, until a batch is full or has waited long enough.

use super::documents::{is_spoken, outgoing_len};
use super::parcel::Job;
use super::sift::Pick;
use super::unavailable::Oversize;
use super::{Batch, Elasticsearch, OPEN};
use crate::batch::{Limits, Why, joined_most};
use crate::inbox::Record;
use crate::losses::Losses;
use tidegate_arena::rounded;
use tidegate_journal::{Encoding, IN_FLIGHT};
use tidegate_ledger::Dropped;
use tokio::time::Instant;

impl Elasticsearch {
    /// Takes in the record that was read last.
    pub(super) async fn take(&mut self, record: Record) {
        self.reached = self.reached.max(record.sequence + 1);
        if self.unavailable.has(record.sequence) {
            return;
        }
        if !is_spoken(&record.meta) {
            let losses = Losses::of(Dropped::Untranslatable, u64::from(record.meta.items));
            self.inbox.settle_each([record.sequence], losses);
            return;
        }
        if self.roomless == Some(record.sequence) || self.needed(&record) > self.room.part() {
            self.oversize = Some(Oversize { record, follows: None });
            self.close_all();
            return;
        }
        let limits = self.limits();
        let alone = record.sequence < self.singly_before;
        if !alone && self.joins(&record, limits) {
            return;
        }
        let usual = if alone { 0 } else { self.usual.min(limits.kept) };
        let out_len = outgoing_len(&record.meta, &self.settings);
        match Batch::of(&record, (), 0, out_len, usual, &self.room, &mut self.inbox).await {
            Ok(batch) if alone || batch.is_full(limits) => self.prepare_batch(batch),
            Ok(batch) => self.open.push(batch),
            // The journal counts it, and goes on to the next.
            Err(Why::Damaged) => {}
            Err(Why::Room(_)) => {
                self.close_all();
                // Something that is held is given back some day, if there is anything.
                self.crowded = !self.is_idle();
                if self.crowded {
                    self.held = Some(record);
                } else {
                    self.oversize = Some(Oversize { record, follows: None });
                }
            }
        }
    }

    /// Adds the record to the batch that it belongs to. False when there is none, or none any more; then there is
    /// room for another.
    fn joins(&mut self, record: &Record, limits: Limits) -> bool {
        let mut joined = false;
        if let Some(at) = self.open.iter().position(|batch| batch.meta.tenant == record.meta.tenant)
            && let Some(batch) = self.open.get_mut(at)
        {
            let out_len = outgoing_len(&record.meta, &self.settings);
            joined = batch.add(record, out_len, limits, &mut self.inbox);
            if !joined || batch.is_full(limits) {
                self.close(at);
            }
        }
        if !joined && self.open.len() == OPEN {
            self.close(0);
        }
        joined
    }

    fn close(&mut self, at: usize) {
        let batch = self.open.remove(at);
        self.usual = batch.window.len();
        self.prepare_batch(batch);
    }

    pub(super) fn close_all(&mut self) {
        self.jobs.extend(self.open.drain(..).map(|batch| Job::Batch(batch, Pick::All, None)));
    }

    fn prepare_batch(&mut self, batch: Batch) {
        self.jobs.push_back(Job::Batch(batch, Pick::All, None));
    }

    /// Closes the batches that have waited long enough.
    pub(super) fn close_old(&mut self) {
        let now = Instant::now();
        let linger = self.settings.linger;
        let old = self.open.extract_if(.., |batch| batch.opened + linger <= now);
        self.jobs.extend(old.map(|batch| Job::Batch(batch, Pick::All, None)));
    }

    /// How large a batch may become now.
    pub(super) fn limits(&self) -> Limits {
        let part = self.room.part();
        // All that are on their way, and those that are being filled, are in the window of the cursor.
        let records = IN_FLIGHT / (self.settings.max_in_flight + OPEN).max(1);
        Limits { out: self.most().min(part / 6), kept: joined_most(part), records: records.max(1) }
    }

    /// The most bytes of a request before compression: as configured, or what the nodes are known to take.
    pub(super) fn most(&self) -> usize {
        let smaller = self.smaller.filter(|(_, until)| Instant::now() < *until).map(|(most, _)| most);
        self.settings.max_request_bytes.min(smaller.unwrap_or(usize::MAX))
    }

    /// What a record needs of the room when it is sent alone, in whole steps.
    pub(super) fn needed(&self, record: &Record) -> usize {
        let out = outgoing_len(&record.meta, &self.settings);
        let raw = match record.meta.encoding {
            Encoding::Identity => 0,
            _ => rounded(record.meta.raw_len as usize + crate::decoding::SLACK),
        };
        rounded(record.body_len as usize) + raw + rounded(out) + rounded(out / 4)
    }
}
