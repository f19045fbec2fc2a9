//! `tidegate top`: a running gateway in a terminal.

use super::admin::Admin;
use crate::cli::TopArgs;
use crate::{Failure, Outcome, output};
use std::io::{self, IsTerminal};
use std::time::Duration;
use tidegate_top::{Ended, Frame, Theme};

/// How long the gateway may take for a whole status.
const PATIENCE: Duration = Duration::from_secs(3);

/// `tidegate top`
pub(crate) fn top(args: &TopArgs) -> Outcome {
    let mut admin = Admin::named(&args.admin, &args.config)?.with_patience(PATIENCE);
    let address = admin.address().to_string();
    if !args.once && !io::stdout().is_terminal() {
        return Err(Failure(format!(
            "`tidegate top` needs a terminal, and standard output is none: use `tidegate top --once` for the overview as \
             text, or `curl http://{address}/status` for everything"
        )));
    }
    let theme = Theme::of_environment();
    let first = status(&mut admin).map_err(|error| match error {
        NoStatus::NoAnswer(error) => Failure(format!(
            "asking the gateway at {address} for its status: {error}; is it running, and is that its `listen.admin`? Name \
             another with --admin, or the configuration with --config"
        )),
        NoStatus::Refused(words) => Failure(words),
    })?;
    if args.once {
        return Ok(output::print(&tidegate_top::once(&first, &address, theme))?);
    }
    let fetch = move || {
        status(&mut admin).map_err(|error| match error {
            NoStatus::NoAnswer(error) => error.to_string(),
            NoStatus::Refused(words) => words,
        })
    };
    let using = |error| Failure(format!("using the terminal: {error}"));
    if tidegate_top::is_dumb() {
        return match tidegate_top::run_dumb(&address, first, fetch) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(using(error)),
            _ => Ok(()),
        };
    }
    match tidegate_top::run(address, first, fetch, theme).map_err(using)? {
        Ended::ByUser => Ok(()),
        // As if nobody had listened: whoever waits for this process sees what ended it.
        Ended::BySignal(signal) => Ok(signal_hook::low_level::emulate_default_handler(signal)?),
    }
}

/// Why there is no status.
enum NoStatus {
    /// Nobody answers.
    NoAnswer(io::Error),
    /// The answer is another one.
    Refused(String),
}

fn status(admin: &mut Admin) -> Result<Frame, NoStatus> {
    let (status, body) = admin.ask("GET", "/status.json", Duration::ZERO).map_err(NoStatus::NoAnswer)?;
    let text = body.trim_end();
    Err(NoStatus::Refused(match status {
        200 => match Frame::parse(&body) {
            Ok(frame) => return Ok(frame),
            Err(error) => format!(
                "{error}: it is another program, or a version of tidegate that this one does not know"
            ),
        },
        401 => format!("{text}: name the file with a token in --admin-token-file"),
        404 => "the gateway has no /status.json, so it is another program or an older version".to_owned(),
        _ => format!("the gateway answers {status} instead of its status: {text}"),
    }))
}
