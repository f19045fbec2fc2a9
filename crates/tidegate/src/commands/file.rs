//! `tidegate file ls`: the files that a running gateway follows.

use super::admin::{Admin, invalid};
use crate::cli::{FileCommand, FileLsArgs, FileSort};
use crate::{Failure, Outcome, output};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_arena::Bytes;

/// The files of a page: as many as the gateway gives.
const PAGE: usize = 500;
/// How long the gateway may take for a page.
const WAIT: Duration = Duration::from_secs(10);
/// How long to wait when it has no answer now, and how often.
const PAUSE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 5;

/// `tidegate file …`
pub(crate) fn file(command: &FileCommand) -> Outcome {
    match command {
        FileCommand::Ls(args) => ls(args),
    }
}

fn ls(args: &FileLsArgs) -> Outcome {
    let mut admin = Admin::named(&args.admin, &args.config)?;
    let limit = if args.all { usize::MAX } else { args.limit.get() };
    let mut listing = None;
    if args.sort == FileSort::Lag && limit <= PAGE {
        let page = first_page(&mut admin, &query(args, &format!("sort=lag&limit={limit}")))?;
        listing = Some(page).filter(|page| page.has_most(limit));
    }
    let listing = match listing {
        Some(listing) => listing,
        None => whole_listing(&mut admin, args)?,
    };
    let Listing { mut files, sources } = listing;
    match args.sort {
        FileSort::Lag => files.sort_by_key(|file| Reverse(file.number("lag_bytes"))),
        FileSort::Path => files.sort_by(|one, other| one.text("path").cmp(other.text("path"))),
        FileSort::Size => files.sort_by_key(|file| Reverse(file.number("size"))),
    }
    files.truncate(limit);
    if args.json {
        return print_json(&files, &sources);
    }
    print_table(&files, &sources)
}

/// The answer of the gateway.
#[derive(Default)]
struct Listing {
    files: Vec<Entry>,
    sources: Vec<Entry>,
}

impl Listing {
    /// Whether these are all files that match, or `limit` of them: a page ends early where paths are long.
    fn has_most(&self, limit: usize) -> bool {
        let matching: u64 = self.sources.iter().map(|source| source.number("matching")).sum();
        self.files.len() as u64 >= matching.min(limit as u64)
    }
}

/// An object of the answer.
struct Entry(Value);

impl Entry {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or_default()
    }
}

fn query(args: &FileLsArgs, rest: &str) -> String {
    let mut query = format!("/files.json?{rest}");
    for (name, value) in [("match", &args.pattern), ("source", &args.source)] {
        if let Some(value) = value {
            let _ = write!(query, "&{name}={}", encoded(value));
        }
    }
    query
}

fn first_page(admin: &mut Admin, target: &str) -> Result<Listing, Failure> {
    let page = ask(admin, target)?;
    Ok(Listing { files: entries(&page, "files"), sources: sources_of(&page)? })
}

/// All files that match, page after page.
fn whole_listing(admin: &mut Admin, args: &FileLsArgs) -> Result<Listing, Failure> {
    let mut listing = Listing::default();
    let mut rest = format!("sort=none&limit={PAGE}");
    let mut seen = BTreeSet::new();
    loop {
        let page = ask(admin, &query(args, &rest))?;
        listing.files.extend(entries(&page, "files"));
        listing.sources = sources_of(&page)?;
        let Some(next) = page.get("next").and_then(Value::as_str) else { return Ok(listing) };
        if !seen.insert(next.to_owned()) {
            return Err(Failure::from("the gateway gives the same page again and again; please report this"));
        }
        rest = format!("limit={PAGE}&after={}", encoded(next));
    }
}

fn entries(page: &Value, name: &str) -> Vec<Entry> {
    let entries = page.get(name).and_then(Value::as_array);
    entries.into_iter().flatten().map(|entry| Entry(entry.clone())).collect()
}

fn sources_of(page: &Value) -> Result<Vec<Entry>, Failure> {
    let sources = entries(page, "sources");
    if sources.is_empty() {
        return Err(Failure::from(
            "no source of this gateway follows files: configure `sources.file.inputs`, and restart it",
        ));
    }
    Ok(sources)
}

/// One request, again if the gateway has no answer now.
fn ask(admin: &mut Admin, target: &str) -> Result<Value, Failure> {
    for attempt in 1.. {
        let (status, body) = admin.ask("GET", target, WAIT).map_err(|error| {
            Failure(format!(
                "asking the gateway at {} for its files: {error}; is it running, and is that its `listen.admin`? Name \
                 another with --admin, or the configuration with --config",
                admin.address()
            ))
        })?;
        let body = body.trim_end();
        match status {
            200 => {
                return serde_json::from_str(body)
                    .map_err(|_| Failure(invalid("the answer is not JSON").to_string()));
            }
            401 => return Err(Failure(format!("{body}: name the file with a token in --admin-token-file"))),
            404 => {
                return Err(Failure::from(
                    "the gateway has no /files, so it is another program or an older version",
                ));
            }
            503 if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
            _ => return Err(Failure(body.to_owned())),
        }
    }
    Err(Failure::from("the gateway does not answer"))
}

/// One line of JSON for each file, and for each path that cannot be read.
fn print_json(files: &[Entry], sources: &[Entry]) -> Outcome {
    let mut text = String::new();
    for file in files {
        let _ = writeln!(text, "{}", file.0);
    }
    for (source, path) in unreadable(sources) {
        let entry = serde_json::json!({
            "source": source, "path": path.text("path"), "state": "unreadable", "reason": path.text("reason"),
        });
        let _ = writeln!(text, "{entry}");
    }
    Ok(output::print(&text)?)
}

fn unreadable(sources: &[Entry]) -> Vec<(&str, Entry)> {
    let mut all = Vec::new();
    for source in sources {
        all.extend(entries(&source.0, "unreadable").into_iter().map(|path| (source.text("name"), path)));
    }
    all
}

const COLUMNS: [&str; 8] = ["path", "input", "state", "offset", "size", "lag", "lines/s", ""];
/// Columns of numbers, which end on the right.
const NUMBERS: std::ops::RangeInclusive<usize> = 3..=6;

fn print_table(files: &[Entry], sources: &[Entry]) -> Outcome {
    let mut rows: Vec<[String; 8]> = files.iter().map(row).collect();
    for (source, path) in unreadable(sources) {
        let mut row: [String; 8] = Default::default();
        row[0] = tidegate_plain::line(path.text("path")).into_owned();
        row[1] = source.to_owned();
        row[2] = "unreadable".to_owned();
        row[7] = tidegate_plain::line(path.text("reason")).into_owned();
        rows.push(row);
    }
    let mut text = String::new();
    if !rows.is_empty() {
        rows.insert(0, COLUMNS.map(str::to_owned));
        let widths: [usize; 8] =
            std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
        for row in &rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
                let _ = if NUMBERS.contains(&at) {
                    write!(line, "{cell:>width$}  ")
                } else {
                    write!(line, "{cell:<width$}  ")
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push('\n');
    }
    sources.iter().for_each(|source| text.push_str(&summary(source)));
    let matching: u64 = sources.iter().map(|source| source.number("matching")).sum();
    let more = matching.saturating_sub(files.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "{more} more files are not shown: use --all, --limit, or a pattern");
    }
    Ok(output::print(&text)?)
}

fn row(file: &Entry) -> [String; 8] {
    let bytes = |name: &str| Bytes(file.number(name)).to_string();
    let rate = file.0.get("records_per_second").and_then(Value::as_f64).unwrap_or_default();
    [
        tidegate_plain::line(file.text("path")).into_owned(),
        file.text("input").to_owned(),
        file.text("state").to_owned(),
        bytes("offset"),
        bytes("size"),
        bytes("lag_bytes"),
        format!("{rate:.1}"),
        tidegate_plain::line(file.text("reason")).into_owned(),
    ]
}

/// The totals of a source, in a line or two.
fn summary(source: &Entry) -> String {
    let number = |name: &str| source.number(name);
    let mut text = format!(
        "{}: {} files match of {} known, {} behind\n",
        source.text("name"),
        number("matching"),
        number("known"),
        Bytes(number("lag_bytes"))
    );
    if number("held") > 0 {
        let _ = writeln!(
            text,
            "{}: {} files without a name are held, which take {} of disk space",
            source.text("name"),
            number("held"),
            Bytes(number("held_bytes"))
        );
    }
    if number("untracked") > 0 {
        let _ = writeln!(
            text,
            "{}: {} files are not read: raise `max_files`",
            source.text("name"),
            number("untracked")
        );
    }
    text
}

/// A value of a query.
fn encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        let _ = if byte.is_ascii_alphanumeric() || b"-_./".contains(&byte) {
            write!(out, "{}", char::from(byte))
        } else {
            write!(out, "%{byte:02x}")
        };
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Characters that mean something in a query arrive as they are.
    #[test]
    fn values_are_encoded() {
        assert_eq!(encoded("/var/*.{log,txt}&a=b é"), "/var/%2a.%7blog%2ctxt%7d%26a%3db%20%c3%a9");
    }

    /// A page that was cut short is not all that was asked for.
    #[test]
    fn a_page_that_is_cut_short_is_told_apart() {
        let page = |files: usize, matching: &[u64]| Listing {
            files: (0..files).map(|_| Entry(json!({}))).collect(),
            sources: matching.iter().map(|matching| Entry(json!({"matching": matching}))).collect(),
        };
        assert!(page(3, &[2, 1]).has_most(10) && page(3, &[9, 9]).has_most(3));
        assert!(!page(3, &[3, 1]).has_most(10) && !page(2, &[9]).has_most(3));
    }

    /// A summary names what costs disk space and what is not read.
    #[test]
    fn the_summary_tells_of_held_and_left_out_files() {
        let source = json!({
            "name": "file", "known": 9, "matching": 4, "lag_bytes": 2048, "held": 1, "held_bytes": 1048576, "untracked": 3,
        });
        assert_eq!(
            summary(&Entry(source)),
            "file: 4 files match of 9 known, 2 KiB behind\n\
             file: 1 files without a name are held, which take 1 MiB of disk space\n\
             file: 3 files are not read: raise `max_files`\n"
        );
    }
}
