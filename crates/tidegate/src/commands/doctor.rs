//! `tidegate doctor`: what is wrong with a gateway, how one knows, and what to do.

mod subject;

use super::token::authorization;
use crate::cli::{CheckFormat, DoctorArgs};
use crate::{Failure, output};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use tidegate_doctor::{Examination, Options, Report, Severity, archive, examine};

/// The exit codes, beside those of failures (1) and of wrong arguments (2).
const AT_RISK: u8 = 3;
const BROKEN: u8 = 4;

/// `tidegate doctor`
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    if let Some(file) = &args.archive {
        check_name(file)?;
    }
    let header = authorization(args.admin_token_file.as_deref(), args.admin_token.as_deref())?;
    let value = header.trim().strip_prefix("Authorization: ").unwrap_or_default().to_owned();
    let options = Options { is_offline: args.offline, authorization: value };
    let subject = subject::of(&args.config);
    let seen = examine(&subject, &options);
    let report = seen.report();
    match args.format {
        CheckFormat::Json => output::print(&format!("{:#}\n", report.json(crate::VERSION, false)))?,
        CheckFormat::Text => print(&report)?,
    }
    if let Some(file) = &args.archive {
        write(&seen, &report, file)?;
    }
    Ok(match report.worst() {
        Severity::Fine | Severity::Note => ExitCode::SUCCESS,
        Severity::AtRisk => ExitCode::from(AT_RISK),
        Severity::Broken => ExitCode::from(BROKEN),
    })
}

fn print(report: &Report) -> Result<(), Failure> {
    let has_colours = output::may_have_colours();
    let mut text = String::new();
    report.write_text(&mut text, has_colours)?;
    Ok(output::print_coloured(&text)?)
}

fn check_name(file: &Path) -> Result<(), Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.ends_with(".tar.gz") || name.ends_with(".tgz") {
        true => Ok(()),
        false => Err(Failure(format!("--archive {}: the archive is a tar.gz; name it so", file.display()))),
    }
}

fn write(seen: &Examination<'_>, report: &Report, file: &Path) -> Result<(), Failure> {
    let archive = archive(seen, report);
    archive.write(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure(format!("writing the archive: there is a file {} already; name another", file.display()))
        }
        _ => Failure(format!("writing the archive {}: {error}", file.display())),
    })?;
    let names: Vec<&str> = archive.files().map(|(name, _)| name).collect();
    output::note(&format!(
        "wrote {} ({}): look at it before you give it away",
        file.display(),
        names.join(", ")
    ));
    Ok(())
}
