//! `tidegate tap`: asks a running gateway for what passes, and prints it.

use super::admin::{Admin, invalid};
use super::check;
use crate::cli::TapArgs;
use crate::{Failure, Outcome, output};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use tidegate_config::Name;
use tidegate_tap::TapFilter;

/// How long the gateway waits for something to show before it answers that there was nothing.
const WAIT: Duration = Duration::from_secs(1);
/// How long to wait when the gateway has no answer now.
const PAUSE: Duration = Duration::from_secs(1);

/// `tidegate tap`
pub(crate) fn tap(args: &TapArgs) -> Outcome {
    let sinks = args.pipeline.as_ref().map(|name| sinks_of(name, args)).transpose()?;
    let mut look = look(args, sinks.as_deref())?;
    let mut admin = Admin::named(&args.admin, &args.config)?;
    let deadline = deadline(args)?;
    end_on_signal(&admin, &look)?;
    let mut left = args.count;
    let mut missed = SkippedItems::default();
    let mut out = io::stdout().lock();
    let outcome = loop {
        let time = deadline.map_or(WAIT, |deadline| deadline.saturating_duration_since(Instant::now()));
        if time.is_zero() || left == Some(0) {
            break Ok(());
        }
        look.wait = time.min(WAIT);
        match ask(&mut admin, &look) {
            Ok(Answer::Lines(lines)) => {
                match print(&mut out, &lines, sinks.as_deref(), &mut left, &mut missed) {
                    Ok(()) => {}
                    // The reader of a pipe has seen enough.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break Ok(()),
                    Err(error) => break Err(Failure(format!("printing items: {error}"))),
                }
            }
            Ok(Answer::Later(words)) => {
                output::error(&words);
                std::thread::sleep(PAUSE.min(time));
            }
            Ok(Answer::No(words)) => break Err(Failure(words)),
            Err(error) => {
                break Err(Failure(format!(
                    "asking the gateway at {} for a look: {error}; is it running, and is that its \
                     `listen.admin`? Name another with --admin, or the configuration with --config",
                    admin.address()
                )));
            }
        }
    };
    end(&mut admin, &look);
    missed.say(true);
    outcome
}

/// Has the gateway end the look, so that its memory and its place are free at once. Should that fail, the end of the
/// connection does it, or time.
fn end(admin: &mut Admin, look: &TapFilter) {
    let _free = admin.ask("DELETE", &format!("/tap?{}", look.to_query()), Duration::ZERO);
}

/// Ends the look when a signal ends the command.
fn end_on_signal(admin: &Admin, look: &TapFilter) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure(format!("listening to signals: {error}")))?;
    let (mut admin, look) = (admin.another(), look.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            end(&mut admin, &look);
            // As if nobody had listened: whoever waits for this process sees what ended it.
            let _ends_here = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// The number of skipped items, for standard error.
#[derive(Default)]
struct SkippedItems {
    records: u64,
    lines: u64,
    /// As far as it was said, and when.
    said: (u64, u64),
    last: Option<Instant>,
}

impl SkippedItems {
    /// Says what was missed since the last time: once in a while, and at the end.
    fn say(&mut self, end: bool) {
        let now = (self.records, self.lines);
        let lately = self.last.is_some_and(|last| last.elapsed() < Duration::from_secs(5));
        if now == self.said || (lately && !end) {
            return;
        }
        (self.said, self.last) = (now, Some(Instant::now()));
        let words = format!(
            "so far {} records were not caught, and {} items did not fit into a response; use --every N, --signal or --source to select fewer",
            self.records, self.lines
        );
        output::error(&words);
    }
}

/// An answer of the gateway.
enum Answer {
    /// The caught items, and the line about skipped ones.
    Lines(String),
    /// Not now.
    Later(String),
    /// Not so.
    No(String),
}

fn print(
    out: &mut impl Write,
    lines: &str,
    sinks: Option<&[String]>,
    left: &mut Option<u64>,
    missed: &mut SkippedItems,
) -> io::Result<()> {
    let is_terminal = io::stdout().is_terminal();
    for line in lines.lines() {
        if line.starts_with("{\"missed_records\":") {
            let last: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let count = |name: &str| last.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
            missed.records += count("missed_records");
            missed.lines += count("lines_without_room");
        } else if *left != Some(0) && sinks.is_none_or(|sinks| is_of(line, sinks)) {
            // A pipe gets the very bytes.
            let line = if is_terminal { tidegate_plain::json(line) } else { line.into() };
            writeln!(out, "{line}")?;
            *left = left.map(|left| left - 1);
        }
    }
    out.flush()?;
    missed.say(false);
    Ok(())
}

/// The sinks with the pipeline `name`.
fn sinks_of(name: &str, args: &TapArgs) -> Result<Vec<String>, Failure> {
    let config = check::config(&args.config)?;
    let sinks: Vec<String> = match name.parse::<Name>() {
        Ok(name) => config.sinks_of(&name).map(Name::to_string).collect(),
        Err(_) => Vec::new(),
    };
    if sinks.is_empty() {
        let file = "name the gateway's configuration with --config";
        return Err(Failure(format!("--pipeline {name}: no sink in the configuration has it; {file}")));
    }
    Ok(sinks)
}

/// Whether an item comes from a source, or from one of these sinks.
fn is_of(line: &str, sinks: &[String]) -> bool {
    let item: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let place = item.get("at").and_then(serde_json::Value::as_str).unwrap_or_default();
    place.strip_prefix("sink:").is_none_or(|sink| sinks.iter().any(|wanted| wanted == sink))
}

fn look(args: &TapArgs, sinks: Option<&[String]>) -> Result<TapFilter, Failure> {
    let (source, sink) = match sinks {
        None => (args.source.clone(), args.sink.clone()),
        Some([only]) => (Some("*".to_owned()), Some(only.clone())),
        Some(_) => (Some("*".to_owned()), Some("*".to_owned())),
    };
    // Through the same words as in a request, so that mistakes are told before anything is asked.
    let id = format!("{}-{}", std::process::id(), jiff::Timestamp::now().as_millisecond());
    let look = TapFilter {
        id,
        source,
        sink,
        service: args.service.clone(),
        name: args.name.clone(),
        contains: args.contains.clone(),
        every: args.every,
        bound: true,
        ..TapFilter::default()
    };
    let mut query = look.to_query();
    if let Some(signal) = &args.signal {
        if !signal.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(Failure(format!(
                "--signal {signal}: the signals are metrics, logs, traces and profiles"
            )));
        }
        query.push_str("&signal=");
        query.push_str(signal);
    }
    Ok(TapFilter::from_query(&query)?)
}

fn deadline(args: &TapArgs) -> Result<Option<Instant>, Failure> {
    let Some(duration) = &args.duration else { return Ok(None) };
    let parsed: tidegate_config::Duration = duration.parse().map_err(|error: tidegate_config::Invalid| {
        format!("--for {duration}: {}; {}", error.message, error.help)
    })?;
    Ok(Instant::now().checked_add(parsed.get()))
}

/// One request.
fn ask(admin: &mut Admin, look: &TapFilter) -> io::Result<Answer> {
    let (status, body) = admin.ask("GET", &format!("/tap?{}", look.to_query()), look.wait)?;
    Ok(match status {
        200 => Answer::Lines(body),
        401 => Answer::No(format!("{}: name the file with a token in --admin-token-file", body.trim_end())),
        409 | 429 | 503 => Answer::Later(body),
        404 if body.starts_with("unknown path") || body.starts_with("nothing is served") => {
            return Err(invalid("it has no /tap, so it is another program or an older version"));
        }
        _ => Answer::No(body),
    })
}
