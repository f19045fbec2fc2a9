//! Encodes entries into a batch.

use super::{FIELDS_BYTES, Interruption, ReaderSettings, Source};
use crate::counters::Counters;
use crate::cursor::Cursor;
use crate::export::Entry;
use crate::fields::Fields;
use crate::record::{Attribute, Value, received_ns, record_of, resource_of};
use std::borrow::Cow;
use tidegate_wire::otlp::logs::{Attributes, Body, EncodedLogs, LogRecord, LogsEncoder};
use tidegate_wire::output::Full;

/// The scope of all records.
const SCOPE: &str = "journald";

/// The place in the journal behind which reading goes on.
pub(super) enum Resume {
    /// The first entry is taken as it is.
    Anywhere,
    /// Behind this one.
    Behind(String),
    /// Behind the last one before this time, in nanoseconds since 1970.
    Since(u64),
}

/// The entry that was read last is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// The most entries that may be missing, where that is known.
    pub(super) missing: Option<u64>,
}

impl Resume {
    /// Whether an entry is not to be delivered: only the first one can be. If another comes in its place, those between
    /// them are gone.
    fn is_known(&mut self, first: Cursor<'_>, entry: &Entry) -> Result<bool, Gap> {
        let text = match std::mem::replace(self, Resume::Anywhere) {
            Resume::Anywhere => return Ok(false),
            Resume::Since(time_ns) => return Ok(received_ns(entry) < time_ns),
            Resume::Behind(text) => text,
        };
        let Some(cursor) = Cursor::parse(text.as_bytes()) else { return Ok(false) };
        if cursor.is_same(first) { Ok(true) } else { Err(Gap { missing: cursor.entries_before(first) }) }
    }
}

/// Encodes entries, and keeps the one for which a batch had no room.
pub(super) struct Encoder<'s> {
    settings: &'s Fields,
    further: &'s [(Box<str>, Box<str>)],
    resume: Resume,
    /// Found before the batch, or in it.
    gap: Option<Gap>,
    has_entry: bool,
    /// The failure that comes behind the batch.
    failure: Option<Interruption>,
    /// That of the last entry that is encoded or left out.
    cursor: Option<String>,
    resource: Vec<u8>,
    attributes: Vec<u8>,
}

/// A batch that is encoded.
pub(super) struct Filled {
    pub(super) logs: EncodedLogs,
    pub(super) source_bytes: u64,
    /// Entries that fit into no batch.
    pub(super) too_large: u64,
}

impl<'s> Encoder<'s> {
    pub(super) fn new(settings: &'s ReaderSettings, resume: Resume) -> Encoder<'s> {
        Encoder {
            settings: &settings.fields,
            further: &settings.attributes,
            resume,
            gap: None,
            has_entry: false,
            failure: None,
            cursor: None,
            resource: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Whether something waits for the next batch.
    pub(super) fn is_pending(&self) -> bool {
        self.has_entry || self.failure.is_some()
    }

    /// The cursor of the last entry of the batch.
    pub(super) fn take_cursor(&mut self) -> Option<String> {
        self.cursor.take()
    }

    /// The gap before an entry of the batch.
    pub(super) fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    /// Encodes the entries that are there without a wait, `most` at most.
    pub(super) fn fill(
        &mut self,
        source: &mut Source<'_>,
        out: &mut [u8],
        most: u32,
        counters: &Counters,
    ) -> Result<Filled, Interruption> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut logs = LogsEncoder::new(out);
        let (mut source_bytes, mut too_large) = (0, 0);
        let mut host: Option<Vec<u8>> = None;
        while logs.items() < most {
            if !self.has_entry {
                match source.next() {
                    Ok((used, is_complete)) => {
                        source_bytes += used as u64;
                        if !is_complete {
                            break;
                        }
                    }
                    Err(failure) if logs.items() == 0 => return Err(failure),
                    // The entries before it are delivered first.
                    Err(failure) => {
                        self.failure = Some(failure);
                        break;
                    }
                }
            }
            self.has_entry = false;
            let entry = source.decoder.entry();
            let Some(cursor) = entry.get("__CURSOR").and_then(Cursor::parse) else {
                // Without a cursor it is no entry of a journal, and could not be told from one that was read.
                counters.malformed();
                continue;
            };
            let is_known = self.resume.is_known(cursor, entry).unwrap_or_else(|gap| {
                self.gap = Some(gap);
                false
            });
            match if is_known { Ok(()) } else { self.encode(entry, &mut logs, &mut host, counters) } {
                Ok(()) => {}
                Err(Full) if logs.items() == 0 => too_large += 1,
                Err(Full) => {
                    self.has_entry = true;
                    break;
                }
            }
            let kept = self.cursor.get_or_insert_default();
            kept.clear();
            kept.push_str(cursor.as_str());
        }
        Ok(Filled { logs: logs.finish(), source_bytes, too_large })
    }

    fn encode(
        &mut self,
        entry: &Entry,
        logs: &mut LogsEncoder<'_>,
        host: &mut Option<Vec<u8>>,
        counters: &Counters,
    ) -> Result<(), Full> {
        let found = resource_of(entry);
        if host.as_deref() != Some(found.host) {
            let mut resource = Attributes::new(&mut self.resource, FIELDS_BYTES);
            if !found.host.is_empty() {
                resource.text_lossy("host.name", found.host)?;
            }
            if !found.machine.is_empty() {
                resource.text_lossy("host.id", found.machine)?;
            }
            self.further.iter().try_for_each(|(key, value)| resource.text(key, value))?;
            logs.resource(resource.as_bytes(), SCOPE)?;
            *host = Some(found.host.to_vec());
        }
        let mut attributes = Attributes::new(&mut self.attributes, 2 * FIELDS_BYTES);
        let mut key_of = String::new();
        let mut left_out = entry.left_out;
        let put = |Attribute { prefix, key, value }: Attribute<'_>| {
            key_of.clear();
            key_of.push_str(prefix);
            key_of.push_str(key);
            let put = match value {
                Value::Bytes(bytes) => attributes.text_lossy(&key_of, bytes),
                Value::Int(number) => attributes.int(&key_of, number),
            };
            left_out += u64::from(put.is_err());
            Ok::<_, Full>(())
        };
        let record = record_of(entry, self.settings, put)?;
        let body =
            String::from_utf8_lossy(if record.is_cut { whole_characters(record.body) } else { record.body });
        let pieces = [body.as_bytes()];
        logs.record(&LogRecord {
            time_ns: record.time_ns,
            observed_ns: record.observed_ns,
            severity: record.severity,
            severity_text: record.severity_text,
            body: Body::Text(&pieces),
            attributes: attributes.as_bytes(),
        })?;
        counters.irregular(record.is_cut, left_out, matches!(body, Cow::Owned(_)));
        Ok(())
    }
}

/// Without a character at the end that was cut.
fn whole_characters(text: &[u8]) -> &[u8] {
    match str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => text.get(..error.valid_up_to()).unwrap_or_default(),
        _ => text,
    }
}
