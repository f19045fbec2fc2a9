//! What the commands print: results on standard output, failures on standard error; a gateway whose log is JSON only
//! logs.

use std::io::{self, Write};

/// Prints a result. A reader that went away (`tidegate … | head`) is no failure.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
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
    let _ = writeln!(io::stderr().lock(), "tidegate: {}", message.trim_end());
}
