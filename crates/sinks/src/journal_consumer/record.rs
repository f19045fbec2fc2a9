//! A record of the journal, as it goes on from a sink's pipeline.

use crate::pipeline_stage::StagedForm;
use std::ops::Deref;
use tidegate_journal::{self as journal, Meta};

/// A record that the sink is to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    record: journal::Record,
    /// Items passed over before it, since the sink was attached.
    pub(super) passed: u64,
    /// It was handed out before, and is looked at a second time.
    pub(super) recalled: bool,
    /// Its form in the journal, before the sink's pipeline.
    journalled: StagedForm,
}

impl Record {
    pub(super) fn new(record: journal::Record, passed: u64, recalled: bool) -> Record {
        let journal::Record { body_len, meta, .. } = record;
        let Meta { encoding, raw_len, items, .. } = meta;
        Record {
            record,
            passed,
            recalled,
            journalled: StagedForm { encoding, len: body_len, raw_len, items },
        }
    }

    /// The record as it goes on in `form`.
    pub(super) fn put(&mut self, form: StagedForm) {
        let journal::Record { body_len, meta, .. } = &mut self.record;
        *body_len = form.len;
        (meta.encoding, meta.raw_len, meta.items) = (form.encoding, form.raw_len, form.items);
    }

    /// The record as it is in the journal.
    pub(crate) fn as_journalled(&self) -> Record {
        let mut record = *self;
        record.put(self.journalled);
        record
    }
}

impl Deref for Record {
    type Target = journal::Record;

    fn deref(&self) -> &journal::Record {
        &self.record
    }
}
