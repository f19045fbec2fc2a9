//! Follows the console's orders: checks the configured file, or has it take effect.

use super::check::{CheckedFiles, look};
use super::run::reload;
use crate::Failure;
use crate::cli::ConfigArgs;
use crate::gateway::Gateway;
use tidegate_config::{Errors, Problem};
use tidegate_console::{
    ChangeEffect, ConfigurationError, ConfigurationOrder, ConfigurationReport, SettingChange,
};

const NO_FILE: &str =
    "the gateway runs without a configuration file: start it with `tidegate run --config FILE`";

/// Follows the orders that wait.
pub(crate) fn follow(args: &ConfigArgs, gateway: &Gateway) {
    while let Some(pending) = gateway.next_order() {
        let checked = check(args, gateway);
        let report = match pending.order {
            ConfigurationOrder::Reload if checked.ok => reloaded(args, gateway, checked),
            ConfigurationOrder::Check | ConfigurationOrder::Reload => checked,
        };
        pending.report(report);
    }
}

fn check(args: &ConfigArgs, gateway: &Gateway) -> ConfigurationReport {
    let Some(file) = &args.config else {
        return ConfigurationReport { message: NO_FILE.to_owned(), ..ConfigurationReport::default() };
    };
    let loaded = match tidegate_config::load(file) {
        Ok(loaded) => loaded,
        Err(errors) => return invalid(&errors),
    };
    let CheckedFiles { wrong, notes } = look(&loaded.config);
    let (reloadable, restarting) = gateway.differences(&loaded.config);
    let change = |effect| move |what| SettingChange { what, effect };
    let changes: Vec<SettingChange> = reloadable
        .into_iter()
        .map(change(ChangeEffect::Reload))
        .chain(restarting.into_iter().map(change(ChangeEffect::Restart)))
        .collect();
    let message = match (wrong.is_empty(), changes.len()) {
        (false, _) => "the file cannot take effect".to_owned(),
        (true, 0) => "the file is valid, and nothing in it differs from what is in effect".to_owned(),
        (true, 1) => "the file is valid; one setting differs from what is in effect".to_owned(),
        (true, many) => format!("the file is valid; {many} settings differ from what is in effect"),
    };
    ConfigurationReport {
        ok: wrong.is_empty(),
        message,
        errors: wrong
            .into_iter()
            .map(|message| ConfigurationError { message, ..Default::default() })
            .collect(),
        warnings: loaded.warnings.into_iter().chain(notes).collect(),
        changes,
    }
}

fn invalid(errors: &Errors) -> ConfigurationReport {
    ConfigurationReport {
        message: "the file is invalid".to_owned(),
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

fn reloaded(args: &ConfigArgs, gateway: &Gateway, checked: ConfigurationReport) -> ConfigurationReport {
    match reload(args, gateway) {
        Ok(waiting) if waiting.is_empty() => {
            ConfigurationReport { message: "the file is in effect".to_owned(), ..checked }
        }
        Ok(waiting) => ConfigurationReport {
            message: format!("the file is in effect, but for what needs a restart: {}", waiting.join(", ")),
            ..checked
        },
        Err(Failure(message)) => ConfigurationReport {
            ok: false,
            message: "the configuration was not changed".to_owned(),
            errors: vec![ConfigurationError { message: message.trim_end().to_owned(), ..Default::default() }],
            ..checked
        },
    }
}
