//! The commands' output: results on standard output, failures on standard error; a gateway whose log is JSON writes
//! only log lines.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Prints a result. A reader that went away (`tidegate … | head`) is no failure.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // A pipe gets the very bytes. A terminal gets tabs, which shells' completions have, and nothing else that it obeys.
    let text = if out.is_terminal() {
        tidegate_plain::lines(&text.replace('\t', "    ")).into_owned().into()
    } else {
        Cow::Borrowed(text)
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Prints why the command failed. When even that cannot be written, the exit code has to do.
pub(crate) fn error(message: &str) {
    if crate::logging::is_json_only() {
        tracing::error!("{}", message.trim_end());
        return;
    }
    // It may contain text from a peer or a file.
    let _ = writeln!(io::stderr().lock(), "tidegate: {}", tidegate_plain::lines(message.trim_end()));
}

/// Prints a remark beside a result.
pub(crate) fn note(message: &str) {
    // It may contain text from a file.
    let _ = writeln!(io::stderr().lock(), "{}", tidegate_plain::lines(message.trim_end()));
}

/// Whether results may have colours: a terminal reads them, and nobody has asked for none (<https://no-color.org>).
pub(crate) fn may_have_colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints a result with colours in it: whoever made it has escaped all else that a terminal obeys.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_coloured(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Prints a text with colours in it: whoever made it has escaped all else that a terminal obeys.
pub(crate) fn coloured_error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "tidegate: {}", text.trim_end());
}
