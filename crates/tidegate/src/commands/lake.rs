//! `tidegate lake ls|cat|verify|views`: the lake as it is on disk, whether or not a gateway is running.

mod trace;

use super::check::config;
use crate::cli::{CatArgs, DataArgs, Format, LakeCommand};
use crate::{Failure, Outcome, output};
use jiff::Timestamp;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tidegate_arena::Bytes;
use tidegate_config::Sink;
use tidegate_lake::{Error, Matcher, Output, Query, Scan, Table};

/// `tidegate lake …`
pub(crate) fn lake(command: &LakeCommand) -> Outcome {
    match command {
        LakeCommand::Ls(args) => ls(args),
        LakeCommand::Cat(args) => cat(args),
        LakeCommand::Verify(args) => verify(args),
        LakeCommand::Views(args) => Ok(output::print(&tidegate_lake::duckdb_views(&folder(&args.data)?)?)?),
    }
}

/// The folder of the lake: under the data folder, or where the configuration has its (first) lake.
pub(super) fn folder(args: &DataArgs) -> Result<PathBuf, Failure> {
    let folder = match &args.data {
        Some(data) => data.join("lake"),
        None => {
            let config = config(&args.config)?;
            let configured = config.sinks.values().find_map(|sink| match sink {
                Sink::Lake(lake) => Some(lake.folder(&config.data)),
                _ => None,
            });
            configured.unwrap_or_else(|| config.data.join("lake"))
        }
    };
    if !folder.is_dir() {
        return Err(Failure(format!(
            "there is no lake at {}: name the data folder with --data, or the configuration with --config",
            folder.display()
        )));
    }
    Ok(folder)
}

fn ls(args: &DataArgs) -> Outcome {
    let partitions = tidegate_lake::list(&folder(args)?)?;
    let mut text = format!(
        "{:<18} {:<14} {:>6} {:>12} {:>10}  {:<24} {}\n",
        "table", "hour (UTC)", "files", "rows", "bytes", "first sample", "last sample"
    );
    for partition in &partitions {
        let hour = Timestamp::from_second((partition.hour.start_ns() / 1_000_000_000).cast_signed())?;
        text.push_str(&format!(
            "{:<18} {:<14} {:>6} {:>12} {:>10}  {:<24} {}\n",
            partition.table.name(),
            hour.strftime("%Y-%m-%d %H").to_string(),
            partition.files,
            partition.rows,
            Bytes(partition.bytes),
            time(partition.times_us.0),
            time(partition.times_us.1),
        ));
    }
    Ok(output::print(&text)?)
}

fn time(microseconds: i64) -> String {
    Timestamp::from_microsecond(microseconds).map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

/// For who looks sooner than there can be something.
const NO_ROWS: &str = "no rows; the latest rows appear when their file is finished: after the sink's `file_age`, a minute by default, or when the gateway is stopped";

fn cat(args: &CatArgs) -> Outcome {
    // With `--trace`, show its spans.
    let default = if args.trace.is_some() { Table::Spans } else { Table::MetricPoints };
    let name = args.table.as_deref().unwrap_or(default.name());
    let Some(table) = Table::of_name(name) else {
        let known: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        return Err(Failure(format!("there is no table `{name}`; there are: {}", known.join(", "))));
    };
    let mut query = Query::new(table);
    if let Some(last) = &args.last {
        let duration: tidegate_config::Duration =
            last.parse().map_err(|error: tidegate_config::Invalid| {
                format!("--last {last}: {}; {}", error.message, error.help)
            })?;
        query = query.last(duration.get(), Timestamp::now());
    }
    if let Some(from) = &args.from {
        query.from = Some(moment("--from", from)?);
    }
    query.to = args.to.as_deref().map(|to| moment("--to", to)).transpose()?;
    query.metric.clone_from(&args.metric);
    query.trace_id = args.trace.as_deref().map(trace_id).transpose()?;
    query.service.clone_from(&args.service);
    query.name.clone_from(&args.name);
    query.contains.clone_from(&args.contains);
    query.severity = args.severity.as_deref().map(severity).transpose()?;
    query.limit = args.limit;
    query.columns.clone_from(&args.columns);
    for matcher in &args.labels {
        query.labels.push(matcher.parse::<Matcher>().map_err(|error| format!("--label {matcher}: {error}"))?);
    }
    let folder = folder(&args.data)?;
    if table == Table::Spans
        && args.trace.is_some()
        && args.columns.is_empty()
        && args.format == Format::Table
    {
        return trace::print(&folder, &query);
    }
    let mut scan = tidegate_lake::scan(&folder, &query)?;
    let format = match args.format {
        Format::Table => tidegate_lake::Format::Table,
        Format::Ndjson => tidegate_lake::Format::Ndjson,
        Format::Csv => tidegate_lake::Format::Csv,
    };
    let out = Output::new(format, BufWriter::new(io::stdout().lock()), scan.columns()?);
    let mut out = out.on_terminal(io::stdout().is_terminal());
    let mut rows = 0;
    let written = scan.try_for_each(|batch| {
        let batch = batch?;
        rows += batch.num_rows();
        out.write(&batch)
    });
    match written.and_then(|()| out.finish().map(drop)) {
        // The reader of a pipe has seen enough.
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Ok(()) if rows == 0 => {
            output::error(&elsewhere(&folder, &query)?.unwrap_or_else(|| NO_ROWS.to_owned()));
            told_of_missing(&scan)
        }
        outcome => outcome.map_err(Failure::from).and_then(|()| told_of_missing(&scan)),
    }
}

/// Fails when files were missing: what was printed is not all that there should be.
fn told_of_missing(scan: &Scan) -> Outcome {
    let (missing, count) = scan.missing();
    if count == 0 {
        return Ok(());
    }
    let named: Vec<String> = missing.iter().map(|path| path.display().to_string()).collect();
    Err(Failure(format!(
        "files that the lake's manifest names are missing, and their rows with them: {count}\n{}\n\
         `tidegate lake verify` looks at all of them",
        named.join("\n")
    )))
}

/// Where rows of the name that was asked for are, when they are in the other table of metrics.
fn elsewhere(folder: &Path, query: &Query) -> Result<Option<String>, Failure> {
    let Some(name) = query.metric.as_deref().or(query.name.as_deref()) else { return Ok(None) };
    let (other, what) = match query.table {
        Table::MetricPoints => (Table::MetricHistograms, "a histogram"),
        Table::MetricHistograms => (Table::MetricPoints, "no histogram"),
        Table::Spans | Table::Logs => return Ok(None),
    };
    // Of a histogram that came whole there are no series of its parts.
    let parts = ["_bucket", "_count", "_sum"].iter().filter_map(|part| name.strip_suffix(part));
    for name in std::iter::once(name).chain(parts) {
        let columns = vec!["metric_name".to_owned()];
        let query = Query { metric: Some(name.to_owned()), limit: Some(1), columns, ..Query::new(other) };
        if tidegate_lake::scan(folder, &query)?.next().transpose()?.is_some() {
            let table = other.name();
            return Ok(Some(format!(
                "no rows here: `{name}` is {what}; look with `tidegate lake cat {table} --metric {name}`"
            )));
        }
    }
    Ok(None)
}

fn trace_id(digits: &str) -> Result<[u8; 16], Failure> {
    let are_digits = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| are_digits).map(u128::to_be_bytes).ok_or_else(|| {
        Failure(format!("--trace {digits}: a trace id has 32 hexadecimal digits, 0-9 and a-f"))
    })
}

/// The least number of a severity's name, as OpenTelemetry numbers them.
fn severity(text: &str) -> Result<i32, Failure> {
    const NAMES: [(&str, i32); 6] =
        [("trace", 1), ("debug", 5), ("info", 9), ("warn", 13), ("error", 17), ("fatal", 21)];
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|&(_, number)| number);
    named.or_else(|| text.parse().ok().filter(|number| (1..=24).contains(number))).ok_or_else(|| {
        Failure(format!("--severity {text}: write trace, debug, info, warn, error, fatal, or 1 to 24"))
    })
}

/// A time among the arguments.
pub(super) fn moment(option: &str, text: &str) -> Result<Timestamp, Failure> {
    let example = "write it as 2026-01-31T12:00:00Z";
    text.parse().map_err(|error: jiff::Error| Failure(format!("{option} {text}: {error}; {example}")))
}

fn verify(args: &DataArgs) -> Outcome {
    let folder = folder(args)?;
    let report = tidegate_lake::verify(&folder)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{} files, {} rows, {} are sound", report.files, report.rows, Bytes(report.bytes))?;
    for orphan in &report.orphans {
        writeln!(out, "not in a manifest (a commit in progress, or left by a crash): {}", plain(orphan))?;
    }
    for (path, problem) in &report.problems {
        writeln!(out, "{}: {}", plain(path), tidegate_plain::line(problem))?;
    }
    if report.is_sound() {
        return Ok(());
    }
    Err(Failure(format!("{} problems in the lake at {}", report.problem_count, folder.display())))
}

/// A path on one line: anybody may have named the file.
fn plain(path: &Path) -> String {
    tidegate_plain::line(&path.display().to_string()).into_owned()
}
