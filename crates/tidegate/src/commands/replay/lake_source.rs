//! Rows of a lake as requests, table by table.

use super::selection::Selection;
use super::{Replayed, Source};
use crate::Failure;
use crate::cli::ReplayArgs;
use crate::commands::lake::folder;
use std::collections::VecDeque;
use std::path::PathBuf;
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_lake::{Hour, Replay, ReplayLosses, ReplayPosition, ReplayProtocol, ReplayQuery, Table};
use tidegate_wire::snappy;

/// The longest request, in bytes, without compression: small beside what any gateway takes.
const LONGEST: usize = 1 << 20;

/// The rows of a lake that are asked for.
pub(super) struct LakeSource {
    dir: PathBuf,
    selection: Selection,
    to: String,
    tenant: Tenant,
    /// The tables that are left.
    tables: VecDeque<Table>,
    open: Option<Replay>,
    /// Where the first table goes on.
    resume: Option<ReplayPosition>,
    position: Option<ReplayPosition>,
    losses: ReplayLosses,
    encoder: snappy::Encoder,
}

impl LakeSource {
    /// Reads the lake that the arguments name, behind `position`.
    ///
    /// # Errors
    /// When there is none, or the position is none.
    pub(super) fn open(
        args: &ReplayArgs,
        selection: Selection,
        to: &str,
        position: Option<&str>,
    ) -> Result<LakeSource, Failure> {
        let resume = position.map(str::parse::<ReplayPosition>).transpose()?;
        let mut tables: VecDeque<Table> =
            Table::ALL.into_iter().filter(|table| selection.has_signal(signal_of(*table), false)).collect();
        if let Some(resume) = &resume {
            while tables.front().is_some_and(|table| *table != resume.table()) {
                tables.pop_front();
            }
        }
        let name = args.tenant.as_deref().unwrap_or_default();
        let tenant = Tenant::new(name)
            .ok_or_else(|| Failure(format!("--tenant {name}: no tenant has so long a name")))?;
        Ok(LakeSource {
            dir: folder(&args.data)?,
            selection,
            to: to.to_owned(),
            tenant,
            tables,
            open: None,
            resume,
            position: None,
            losses: ReplayLosses::default(),
            encoder: snappy::Encoder::new(),
        })
    }

    fn query(&self, table: Table) -> ReplayQuery {
        let Selection { from_ns, until_ns, .. } = self.selection;
        ReplayQuery {
            table,
            first: (from_ns > 0).then(|| Hour::of_ns(from_ns)),
            // The hour in which the last nanosecond before the end is.
            last: Some(Hour::of_ns(until_ns.saturating_sub(1))),
            max_request_bytes: LONGEST,
        }
    }

    /// A file that cannot be read is said and passed over.
    fn pass_over(&mut self, error: &tidegate_lake::Error) -> Result<(), Failure> {
        match self.open.as_mut().and_then(Replay::skip_file) {
            Some(file) => {
                crate::output::error(&format!("{error}; {} is passed over", file.display()));
                Ok(())
            }
            None => Err(Failure(error.to_string())),
        }
    }
}

fn signal_of(table: Table) -> Signal {
    match table {
        Table::MetricPoints | Table::MetricHistograms => Signal::Metrics,
        Table::Spans => Signal::Traces,
        Table::Logs => Signal::Logs,
    }
}

impl Source for LakeSource {
    fn next(&mut self) -> Result<Option<Replayed>, Failure> {
        loop {
            let Some(table) = self.tables.front().copied() else { return Ok(None) };
            if self.open.is_none() {
                self.open = Some(Replay::open(&self.dir, self.query(table), self.resume.take())?);
            }
            let request = match self.open.as_mut().map(Replay::next) {
                Some(Ok(Some(request))) => request,
                Some(Err(error)) => {
                    self.pass_over(&error)?;
                    continue;
                }
                Some(Ok(None)) | None => {
                    let losses = self.open.take().map(|done| done.losses()).unwrap_or_default();
                    self.losses.missing_files += losses.missing_files;
                    self.losses.damaged_manifest_lines += losses.damaged_manifest_lines;
                    self.losses.skipped_files += losses.skipped_files;
                    self.tables.pop_front();
                    continue;
                }
            };
            let raw_len = u32::try_from(request.body.len()).unwrap_or(u32::MAX);
            let (protocol, encoding, body) = match request.protocol {
                ReplayProtocol::Otlp => (Protocol::Otlp, Encoding::Identity, request.body),
                ReplayProtocol::RemoteWrite => {
                    (Protocol::RemoteWrite1, Encoding::Snappy, compressed(&mut self.encoder, &request.body)?)
                }
            };
            let meta = Meta {
                tenant: self.tenant,
                signal: signal_of(table),
                protocol,
                encoding,
                items: request.items,
                raw_len,
                received_at_ns: request.position.hour().start_ns(),
            };
            let label = format!("{table} of {}", request.position.hour());
            self.position = Some(request.position);
            return Ok(Some(Replayed { meta, body, label, to: self.to.clone() }));
        }
    }

    fn position(&self) -> Option<String> {
        self.position.as_ref().map(ToString::to_string)
    }

    fn remarks(&self) -> Vec<String> {
        let ReplayLosses { missing_files, damaged_manifest_lines, skipped_files } = self.losses;
        let remark = |count: u64, text: &str| (count > 0).then(|| format!("{count} {text}"));
        [
            remark(missing_files, "files of the lake are not there any more"),
            remark(damaged_manifest_lines, "lines of its manifests cannot be read"),
            remark(skipped_files, "damaged files were passed over"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn compressed(encoder: &mut snappy::Encoder, raw: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut body = vec![0; snappy::max_compressed_len(raw.len())?];
    let len = encoder.compress(raw, &mut body)?;
    body.truncate(len);
    Ok(body)
}
