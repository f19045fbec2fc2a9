//! Follows the console's orders: checks the configured file, or has it take effect.

use super::check::{CheckedFiles, look};
use super::run::take_over;
use crate::Failure;
use crate::cli::ConfigArgs;
use crate::gateway::Gateway;
use tidegate_config::{Config, Errors, Problem};
use tidegate_console::{
    ChangeEffect, ConfigurationError, ConfigurationOrder, ConfigurationReport, SettingChange,
};

const NO_FILE: &str =
    "the gateway runs without a configuration file: start it with `tidegate run --config FILE`";

/// Follows the orders that wait.
pub(crate) fn follow(args: &ConfigArgs, gateway: &Gateway) {
    while let Some(pending) = gateway.next_order() {
        let report = followed(pending.order, args, gateway);
        pending.report(report);
    }
}

fn followed(order: ConfigurationOrder, args: &ConfigArgs, gateway: &Gateway) -> ConfigurationReport {
    let Some(file) = &args.config else {
        return ConfigurationReport { message: NO_FILE.to_owned(), ..ConfigurationReport::default() };
    };
    match (tidegate_config::load(file), order) {
        (Ok(loaded), ConfigurationOrder::Check) => checked(&loaded.config, loaded.warnings, gateway),
        (Ok(loaded), ConfigurationOrder::Reload) => reloaded(loaded.config, loaded.warnings, gateway),
        (Err(errors), ConfigurationOrder::Check) => invalid(&errors),
        (Err(errors), ConfigurationOrder::Reload) => {
            let _logged = take_over(gateway, Err(Failure(errors.to_string())));
            invalid(&errors)
        }
    }
}

/// The settings that differ from those in effect.
fn changes(config: &Config, gateway: &Gateway) -> Vec<SettingChange> {
    let (reloadable, restarting) = gateway.differences(config);
    let change = |effect| move |what| SettingChange { what, effect };
    let restarting = restarting.into_iter().map(change(ChangeEffect::Restart));
    reloadable.into_iter().map(change(ChangeEffect::Reload)).chain(restarting).collect()
}

fn checked(config: &Config, mut warnings: Vec<String>, gateway: &Gateway) -> ConfigurationReport {
    let CheckedFiles { wrong, notes } = look(config);
    warnings.extend(notes);
    let changes = changes(config, gateway);
    let message = match (wrong.is_empty(), changes.len()) {
        (false, _) => "the gateway could not start with the file".to_owned(),
        (true, 0) => "the file is valid, and nothing in it differs from what is in effect".to_owned(),
        (true, 1) => "the file is valid; one setting differs from what is in effect".to_owned(),
        (true, many) => format!("the file is valid; {many} settings differ from what is in effect"),
    };
    ConfigurationReport { ok: wrong.is_empty(), message, errors: messages(wrong), warnings, changes }
}

/// Does what SIGHUP does.
fn reloaded(config: Config, warnings: Vec<String>, gateway: &Gateway) -> ConfigurationReport {
    let changes = changes(&config, gateway);
    let config = Config { tests: Config::default().tests, ..config };
    match take_over(gateway, Ok(config)) {
        Ok(waiting) => {
            let message = match waiting.is_empty() {
                true => "the file is in effect".to_owned(),
                false => {
                    format!("the file is in effect, but for what needs a restart: {}", waiting.join(", "))
                }
            };
            ConfigurationReport { ok: true, message, errors: Vec::new(), warnings, changes }
        }
        Err(Failure(message)) => ConfigurationReport {
            ok: false,
            message: "the configuration was not changed".to_owned(),
            errors: messages(vec![message.trim_end().to_owned()]),
            warnings,
            changes,
        },
    }
}

fn messages(messages: Vec<String>) -> Vec<ConfigurationError> {
    messages.into_iter().map(|message| ConfigurationError { message, ..Default::default() }).collect()
}

fn invalid(errors: &Errors) -> ConfigurationReport {
    ConfigurationReport {
        message: "the file is invalid; nothing has changed".to_owned(),
        errors: errors.problems().iter().map(error).collect(),
        ..ConfigurationReport::default()
    }
}

fn error(problem: &Problem) -> ConfigurationError {
    let place = problem.place.as_ref();
    ConfigurationError {
        message: problem.message.clone(),
        suggestion: Some(problem.help.clone()).filter(|help| !help.is_empty()),
        line: place.map(|place| place.line as u64),
        column: place.map(|place| place.column as u64),
        excerpt: place.map(|place| place.excerpt.clone()),
    }
}
