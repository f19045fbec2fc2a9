//! A logger for the `log` crate.

use crate::clock;
use crate::record::{Attributes, Log, Severity, Value};
use crate::sender::Sender;
use crate::worker::on_sending_thread;

/// Sends what is logged through the `log` crate. What is enabled is `log`'s own affair
/// (`log::set_max_level`); nothing is allocated on the way.
///
/// ```
/// let sender = tidegate_sender::Sender::builder().start()?;
/// log::set_boxed_logger(Box::new(tidegate_sender::Logger::new(sender.clone())))?;
/// log::set_max_level(log::LevelFilter::Info);
/// log::info!("listening");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Logger {
    sender: Sender,
}

impl Logger {
    /// A logger on that sender.
    pub fn new(sender: Sender) -> Logger {
        Logger { sender }
    }
}

impl log::Log for Logger {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        !on_sending_thread()
    }

    fn log(&self, record: &log::Record<'_>) {
        if on_sending_thread() {
            return;
        }
        let now = clock::now();
        let event = Log {
            time: now,
            observed: now,
            severity: match record.level() {
                log::Level::Error => Severity::ERROR,
                log::Level::Warn => Severity::WARN,
                log::Level::Info => Severity::INFO,
                log::Level::Debug => Severity::DEBUG,
                log::Level::Trace => Severity::TRACE,
            },
            body: record.args().as_str().map_or(Value::Display(record.args()), Value::Str),
            attributes: &Origin(record),
            ..Log::default()
        };
        // Counted if it is refused; a logger has nobody to tell.
        let _ = self.sender.log(&event);
    }

    /// Waits for up to a second.
    fn flush(&self) {
        let _ = self.sender.flush(std::time::Duration::from_secs(1));
    }
}

/// Where in the program a record was made.
struct Origin<'a>(&'a log::Record<'a>);

impl Attributes for Origin<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        visit("log.target", Value::Str(self.0.target()));
        if let Some(file) = self.0.file() {
            visit("code.file.path", Value::Str(file));
        }
        if let Some(line) = self.0.line() {
            visit("code.line.number", line.into());
        }
    }
}
