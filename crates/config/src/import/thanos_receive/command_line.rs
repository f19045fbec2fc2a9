//! A command line by the rules of kingpin v2, the library with which Thanos reads it.

use super::ReadFile;
use super::flags::{FLAGS, Values, find};
use crate::error::{Errors, quote};
use crate::import::notes::{ARGUMENTS, Notes};
use crate::import::references;
use crate::suggest::nearest;
use std::iter::Peekable;

/// How deeply files of arguments may name others.
const DEEPEST: usize = 8;

/// The most arguments.
const MOST: usize = 10_000;

/// The flags of a command line.
#[derive(Debug)]
pub(super) struct CommandLine {
    given: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    name: &'static str,
    value: String,
    place: usize,
    is_taken: bool,
}

/// A problem of the command line.
pub(super) fn mistake(message: String, help: &str) -> Errors {
    Errors::of_file(ARGUMENTS, message, help)
}

impl CommandLine {
    /// Reads `--flag=value`, `--flag value`, `--switch`, `--no-switch`, and `@FILE` with an argument on each line; also as a manifest has
    /// them, with a dash before each.
    ///
    /// # Errors
    /// The arguments that Thanos would refuse, or that are none of `thanos receive`.
    pub(super) fn parse(arguments: &[String], read: ReadFile<'_>) -> Result<CommandLine, Errors> {
        let mut expanded = Vec::new();
        expand(arguments, read, 0, &mut expanded)?;
        let mut line = CommandLine { given: Vec::new() };
        let mut rest = expanded.iter().map(String::as_str).enumerate().peekable();
        let (mut has_command, mut mistakes) = (false, None::<Errors>);
        while let Some((place, argument)) = rest.next() {
            let read = match argument.strip_prefix("--") {
                Some(flag) => line.read_flag(flag, place, &mut rest),
                None => command(argument, place, has_command).map(|found| has_command = found),
            };
            if let Err(mistake) = read {
                match &mut mistakes {
                    Some(mistakes) => mistakes.append(mistake),
                    None => mistakes = Some(mistake),
                }
            }
        }
        mistakes.map_or(Ok(line), Err)
    }

    /// Reads a flag, whose value may be the next argument.
    fn read_flag<'a>(
        &mut self,
        flag: &str,
        place: usize,
        rest: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Errors> {
        if flag.is_empty() {
            return Ok(());
        }
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let mut next = || rest.next_if(|(_, next)| !next.starts_with('-')).map(|(_, value)| value);
        let (known, is_inverted) = match (find(name), name.strip_prefix("no-").and_then(find)) {
            (Some(known), _) => (known, false),
            (None, Some(known)) if known.values == Values::Switch => (known, true),
            _ => {
                // What may be its value is no mistake of its own.
                _ = value.or_else(next);
                return Err(unknown(name));
            }
        };
        let value = match (known.values, value) {
            (Values::Switch, None) => (!is_inverted).to_string(),
            (Values::Switch, Some(_)) => {
                let help = format!("write `--{0}` or `--no-{0}`", known.name);
                return Err(mistake(format!("`--{name}` takes no value"), &help));
            }
            (_, Some(value)) => value.to_owned(),
            (_, None) => match next() {
                Some(value) => value.to_owned(),
                None => {
                    let help = format!("write `--{name}=VALUE`");
                    return Err(mistake(format!("`--{name}` has no value"), &help));
                }
            },
        };
        if known.values != Values::Many && self.given.iter().any(|given| given.name == known.name) {
            let message = format!("`--{}` cannot be repeated", known.name);
            return Err(mistake(message, "remove all but one"));
        }
        self.given.push(Given { name: known.name, value, place, is_taken: false });
        Ok(())
    }

    /// The value of a flag as it stands there; none when it is absent or empty.
    pub(super) fn verbatim(&mut self, name: &'static str) -> Option<String> {
        self.all(name).pop()
    }

    /// The value of a flag in our syntax: Kubernetes' `$(X)` is `${X}`.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.verbatim(name).map(|value| references::kubernetes(&value).0)
    }

    /// All values of a flag that are not empty.
    pub(super) fn all(&mut self, name: &'static str) -> Vec<String> {
        let mut values = Vec::new();
        for given in self.given.iter_mut().filter(|given| given.name == name) {
            given.is_taken = true;
            values.extend(Some(given.value.clone()).filter(|value| !value.is_empty()));
        }
        values
    }

    /// A switch, if it is given.
    pub(super) fn switch(&mut self, name: &'static str) -> Option<bool> {
        self.verbatim(name).map(|value| value == "true")
    }

    /// Notes what became of a flag.
    pub(super) fn note(&self, name: &str, message: &str, notes: &mut Notes) {
        let given = self.given.iter().find(|given| given.name == name);
        notes.argument(given.map_or(usize::MAX, |given| given.place), &format!("--{name}"), message);
    }

    /// Notes every flag that nobody took.
    pub(super) fn note_rest(&self, notes: &mut Notes) {
        for given in self.given.iter().filter(|given| !given.is_taken) {
            let reason = find(given.name).map_or("", |flag| flag.reason);
            let reason = if reason.is_empty() { "left out: it has no effect here" } else { reason };
            notes.argument(given.place, &format!("--{}", given.name), reason);
        }
    }
}

/// Replaces each `@FILE` by the lines of the file.
fn expand(
    arguments: &[String],
    read: ReadFile<'_>,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<(), Errors> {
    for argument in arguments.iter().filter_map(|argument| without_list_syntax(argument)) {
        // `--flag @FILE` is expanded too: kingpin does not look at what stands before.
        let Some(path) = argument.strip_prefix('@') else {
            if out.len() >= MOST {
                let message = format!("there are more than {MOST} arguments");
                return Err(mistake(message, "is this the command line of `thanos receive`?"));
            }
            out.push(argument.to_owned());
            continue;
        };
        if depth >= DEEPEST {
            let message = format!("the files of arguments name each other: {}", quote(path));
            return Err(mistake(message, "remove the `@`"));
        }
        let text = read(path).map_err(|error| {
            let message = format!("cannot read the arguments in {path}: {error}");
            mistake(message, "check the path; it is relative to the working directory")
        })?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        expand(&lines, read, depth + 1, out)?;
    }
    Ok(())
}

/// An argument without what a manifest or a shell has around it: the dash of a list, quotes with a comma behind them, a backslash at the end
/// of a line. Nothing where there is nothing else, and for the name of the list.
fn without_list_syntax(argument: &str) -> Option<&str> {
    let item = argument.trim();
    let item = item.strip_suffix('\\').map_or(item, str::trim_end);
    let item = item.strip_prefix("- ").map_or(item, str::trim_start);
    let unquoted = |quote| item.strip_suffix(',').unwrap_or(item).strip_prefix(quote)?.strip_suffix(quote);
    let item = ['"', '\''].into_iter().find_map(unquoted).unwrap_or(item);
    (!["", "-", "args:", "command:"].contains(&item)).then_some(item)
}

/// Whether the command has been named with `argument`, which is no flag.
fn command(argument: &str, place: usize, has_command: bool) -> Result<bool, Errors> {
    let program = argument.rsplit('/').next().unwrap_or_default();
    match argument {
        "receive" if !has_command => Ok(true),
        _ if place == 0 && program.starts_with("thanos") => Ok(false),
        "query" | "query-frontend" | "sidecar" | "store" | "compact" | "rule" | "tools" if !has_command => {
            let message = format!("this is the command line of `thanos {argument}`");
            Err(mistake(message, "give that of `thanos receive`"))
        }
        _ => {
            let message = format!("{} is not a flag", quote(argument));
            Err(mistake(message, "write flags as `--name=value`"))
        }
    }
}

fn unknown(name: &str) -> Errors {
    let message = format!("there is no flag {}", quote(&format!("--{name}")));
    let folded = |name: &str| name.to_lowercase().replace('-', "_");
    let names: Vec<String> = FLAGS.iter().map(|flag| folded(flag.name)).collect();
    let meant = nearest(&folded(name), names.iter().map(String::as_str));
    let meant = meant.and_then(|meant| FLAGS.iter().find(|flag| folded(flag.name) == meant));
    match meant {
        Some(meant) => mistake(message, &format!("did you mean `--{}`?", meant.name)),
        None => mistake(
            message,
            "remove it, or look it up in `thanos receive --help`: the flags of Thanos 0.42 are known here",
        ),
    }
}
