//! `tidegate check`: what a configuration means, before anything starts.

use crate::cli::{CheckArgs, CheckFormat, ConfigArgs};
use crate::gateway::{self, plan};
use crate::{Failure, Outcome, logging, output};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;
use tidegate_config::{Config, Errors, Loaded, Problem};

/// The configuration that the arguments name, or the default one.
pub(crate) fn config(args: &ConfigArgs) -> Result<Config, Failure> {
    loaded(args).map(|loaded| loaded.config)
}

/// As [`config`], with its warnings on the log, and without what only `tidegate test` needs.
pub(crate) fn config_with_warnings(args: &ConfigArgs) -> Result<Config, Failure> {
    loaded(args).map(warned)
}

/// As [`config_with_warnings`], for a gateway that runs: what is wrong is for its log.
pub(crate) fn config_again(args: &ConfigArgs) -> Result<Config, Failure> {
    match &args.config {
        Some(file) => tidegate_config::load(file).map(warned).map_err(|errors| Failure(errors.to_string())),
        None => Ok(Config::default()),
    }
}

fn warned(Loaded { config, warnings, .. }: Loaded) -> Config {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Config { tests: Config::default().tests, ..config }
}

fn loaded(args: &ConfigArgs) -> Result<Loaded, Failure> {
    match &args.config {
        Some(file) => tidegate_config::load(file).map_err(|errors| shown(&errors)),
        None => Ok(Loaded::default()),
    }
}

fn shown(errors: &Errors) -> Failure {
    if std::io::stderr().is_terminal() && !logging::is_json_only() {
        output::coloured_error(&errors.coloured().to_string());
        return Failure(String::new());
    }
    Failure(errors.to_string())
}

/// `tidegate check FILE`
pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let file = &args.file;
    match (tidegate_config::load_and_look(file), args.format) {
        (Err(errors), CheckFormat::Text) => Err(shown(&errors)),
        (Err(errors), CheckFormat::Json) => {
            report(file, errors.problems().iter().map(problem).collect(), &[])
        }
        (Ok(Loaded { config, warnings, .. }), format) => {
            let CheckedFiles { wrong, mut notes } = look(&config);
            notes.extend(warnings);
            if format == CheckFormat::Json {
                let errors = wrong.iter().map(|message| json!({"message": message})).collect();
                return report(file, errors, &notes);
            }
            if !wrong.is_empty() {
                return Err(Failure(wrong.join("\n")));
            }
            let notes: String = notes.iter().map(|note| format!("# {note}\n")).collect();
            Ok(output::print(&format!(
                "# {} is valid and fits in its memory.\n{notes}# With every default written out:\n{}",
                file.display(),
                tidegate_config::effective(&config)
            ))?)
        }
    }
}

/// Errors that depend on the whole configuration.
pub(super) struct CheckedFiles {
    /// The errors that prevent a start.
    pub(super) wrong: Vec<String>,
    /// Warnings.
    pub(super) notes: Vec<String>,
}

/// Whether it fits, and whether the files that it names are what they should be.
pub(super) fn look(config: &Config) -> CheckedFiles {
    let planned = plan::of(config);
    let fits = plan::check(config, &planned).map_err(|Failure(message)| message);
    let usable = gateway::look_at_files(config).map_err(|Failure(message)| message);
    let enough = planned.files.check().map_err(|error| error.to_string());
    let short = planned.announced.iter().filter(|announced| announced.is_short());
    let (no_hashrings, hashring_notes) = gateway::sinks::kinds::thanos_receive::check(config);
    // Without a valid plan there are no limits to report.
    let has_plan = fits.is_ok();
    let short = short.filter(|_| has_plan);
    let bodies =
        short.map(|announced| format!("{}: {}", announced.source.max_body_setting, announced.shortfall()));
    let files = planned.files.is_short().then(|| planned.files.to_string());
    CheckedFiles {
        wrong: [fits, usable, enough]
            .into_iter()
            .filter_map(Result::err)
            .chain(gateway::check_folders(config))
            .chain(gateway::sources::check(config))
            .chain(no_hashrings)
            .collect(),
        notes: bodies
            .chain(files)
            .chain(planned.pipelines.notes(config))
            .chain(planned.source_pipelines.notes())
            .chain(hashring_notes)
            .chain(has_plan.then(|| gateway::search::shortfall(config, &planned)).flatten())
            .collect(),
    }
}

/// Prints one object, and fails when there are errors, which are all in it.
fn report(file: &Path, errors: Vec<Value>, notes: &[String]) -> Outcome {
    let valid = errors.is_empty();
    let count = errors.len();
    let report =
        json!({"file": file.display().to_string(), "valid": valid, "errors": errors, "notes": notes});
    output::print(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    if valid { Ok(()) } else { Err(Failure(format!("{} has errors: {count}", file.display()))) }
}

fn problem(problem: &Problem) -> Value {
    let mut value = json!({"message": problem.message});
    if let Some(object) = value.as_object_mut() {
        if !problem.help.is_empty() {
            object.insert("help".to_owned(), json!(problem.help));
        }
        if let Some(place) = &problem.place {
            object.insert("line".to_owned(), json!(place.line));
            object.insert("column".to_owned(), json!(place.column));
            object.insert("width".to_owned(), json!(place.width));
        }
    }
    value
}
