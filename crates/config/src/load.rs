//! Loads and checks a configuration file.

mod steps;

pub use steps::{ParsedSteps, parse_steps};

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tidegate_pipeline::Severity;

use crate::checks::check;
use crate::checks::pipelines::{self, Finding};
use crate::error::{ErrorCollector, Errors, SourcePosition};
use crate::files;
use crate::model::{Config, default_sinks};
use crate::reader::Reader;
use crate::setting::{Section, Setting};
use crate::substitute::{Substituted, Substitutions, no_file, read_file};
use crate::yaml::{self, Node, Value, source_range};

/// The longest configuration file, in bytes.
pub const LONGEST_FILE: usize = 1 << 20;

/// Reads a configuration. `source` is what to call the text in messages, usually the file's path;
/// `environment` gives the values for `${NAME}`. No file is read for `${file:PATH}`, which is an error here. An empty
/// text is the default configuration.
pub fn parse(
    source: &str,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Errors> {
    let outside = Substitutions { environment, files: &no_file };
    parse_with(source, text, outside, false).map(|loaded| loaded.config)
}

/// A configuration, and what somebody should know of it although it is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// A sentence for each file with keys, credentials or secrets that others can read.
    pub warnings: Vec<String>,
    /// The values of `${NAME}` and `${file:PATH}`, which may be secrets whatever the setting is.
    pub substituted: Substituted,
}

/// `look` also checks that the files that the configuration names can be read.
fn parse_with(source: &str, text: &str, outside: Substitutions<'_>, look: bool) -> Result<Loaded, Errors> {
    let text = bounded(source, text)?;
    let mut errors = ErrorCollector::new(text);
    let config = interpret(text, outside, look, &mut errors);
    let substituted = errors.substituted();
    match (errors.into_errors(source), config) {
        (Some(errors), _) => Err(errors),
        (None, interpreted) => {
            let (config, of_pipelines) = interpreted.unwrap_or_default();
            let mut warnings = files::warnings(&config, &substituted.files);
            warnings.extend(of_pipelines);
            Ok(Loaded { config, warnings, substituted })
        }
    }
}

/// A text that is not too long, without the mark that some editors put before it.
pub(crate) fn bounded<'a>(source: &str, text: &'a str) -> Result<&'a str, Errors> {
    if text.len() > LONGEST_FILE {
        let message = format!("the file is longer than {LONGEST_FILE} bytes");
        return Err(Errors::of_file(source, message, "is this really a configuration?"));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Reads the configuration file at `path`, with the process's environment and the files that `${file:PATH}` names. A
/// missing file is an error; for the default configuration there is [`Config::default`].
pub fn load(path: &Path) -> Result<Loaded, Errors> {
    load_with(path, false)
}

/// As [`load`], and also reports the files that the configuration names (certificates, keys, credentials) but that cannot
/// be read.
pub fn load_and_look(path: &Path) -> Result<Loaded, Errors> {
    load_with(path, true)
}

fn load_with(path: &Path, look: bool) -> Result<Loaded, Errors> {
    let source = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read the configuration {source}: {error}");
        Errors::of_file(&source, message, "check the path and its permissions")
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    file.take(LONGEST_FILE as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let message = format!("byte {} of {source} is not UTF-8", error.utf8_error().valid_up_to());
        Errors::of_file(&source, message, "save the file as UTF-8")
    })?;
    let environment = |name: &str| std::env::var(name).ok();
    parse_with(&source, &text, Substitutions { environment: &environment, files: &read_file }, look)
}

fn interpret(
    text: &str,
    outside: Substitutions<'_>,
    look: bool,
    errors: &mut ErrorCollector<'_>,
) -> Option<(Config, Vec<String>)> {
    let root = yaml::read(text, outside, errors)?;
    let mut config = Config::read(&root, &mut Reader::new(errors, Config::fields))?;
    if config.sinks.is_empty() {
        config.sinks = default_sinks();
    }
    let missing = if look { files::check(&config) } else { Vec::new() };
    for clash in check(&config).into_iter().chain(missing) {
        let places: Vec<_> = clash.about.iter().filter_map(|path| root.find(path)).collect();
        // A value that could not be read was replaced by its default: nothing follows from that.
        if places.iter().any(|node| errors.within(&node.at)) {
            continue;
        }
        // A hidden value takes precedence: the message may quote any of them.
        let hidden = places.iter().find(|node| errors.hides(&node.at));
        let at = hidden.or(places.first()).map_or(0..0, |node| node.at.clone());
        // Of a group nobody knows what is in it.
        let is_word = places.iter().any(|node| node.at == at && matches!(node.value, Value::Scalar(_)));
        if is_word {
            errors.note_shown(&at, clash.message, clash.help);
        } else {
            errors.note(&at, clash.message, clash.help);
        }
    }
    let warnings = pipelines::check(&config).into_iter().filter_map(|finding| note(finding, &root, errors));
    let warnings = warnings.collect();
    Some((config, warnings))
}

/// Notes an error in a pipeline; returns a warning.
fn note(finding: Finding, root: &Node, errors: &mut ErrorCollector<'_>) -> Option<String> {
    let Finding { path, range, severity, message, help } = finding;
    let (node, is_found) = root.nearest(&path);
    // An entry that could not be read is missing, so positions may have moved.
    if errors.within(&node.at) {
        return None;
    }
    let text = errors.text();
    let source = text.get(node.at.clone()).unwrap_or_default();
    let part = match (&node.value, range.filter(|_| is_found)) {
        (Value::Scalar(value), Some(range)) => source_range(source, value, &range),
        _ => None,
    };
    let at = part.map_or(node.at.clone(), |part| node.at.start + part.start..node.at.start + part.end);
    if severity == Severity::Warning {
        if errors.hides(&node.at) {
            return None;
        }
        let SourcePosition { line, column, .. } = SourcePosition::of(text, &at, None);
        let help = if help.is_empty() { help } else { format!(": {help}") };
        return Some(format!("line {line}, column {column}: {message}{help}"));
    }
    match &node.value {
        Value::Scalar(_) => errors.note_part(&at, &node.at, message, help),
        _ => errors.note(&at, message, help),
    }
    None
}
