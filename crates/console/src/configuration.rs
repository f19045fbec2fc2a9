//! The configuration in effect, and what a changed file would do: `/console/configuration`, `/console/check` and
//! `/console/reload`.
//!
//! A check reads the configured file and no pasted text: a text could name variables of the gateway's environment and files that
//! only the gateway may read, and its errors would show them.

use serde::{Serialize, Serializer};
use std::pin::Pin;
use std::sync::Arc;

/// The configuration in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningConfiguration {
    /// The file that it was read from, if there is one.
    pub file: Option<String>,
    /// Every setting, as YAML with secrets masked.
    #[serde(serialize_with = "shared_text")]
    pub text: Arc<str>,
}

fn shared_text<S: Serializer>(text: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(text)
}

/// What is done with the configured file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigurationOrder {
    /// It is read, and compared with what is in effect.
    Check,
    /// It is read, and takes effect as far as it can while running.
    Reload,
}

/// The outcome of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConfigurationReport {
    /// Whether the file is valid; after a reload, whether it is in effect.
    pub ok: bool,
    /// The outcome as a sentence.
    pub message: String,
    /// What is wrong, at most [`MOST`](Self::MOST).
    pub errors: Vec<ConfigurationError>,
    /// What is worth knowing, at most [`MOST`](Self::MOST).
    pub warnings: Vec<String>,
    /// The settings that differ from those in effect, at most [`MOST`](Self::MOST).
    pub changes: Vec<SettingChange>,
}

/// An error in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConfigurationError {
    /// In words.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column in characters, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The line, without values that may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// Its path: `limits.sources`.
    pub what: String,
    /// What makes it take effect.
    pub effect: ChangeEffect,
}

/// What makes a changed setting take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeEffect {
    /// Reading the configuration again.
    Reload,
    /// Starting the gateway again.
    Restart,
}

/// The report of an order.
///
/// # Errors
/// Why the order cannot be given now, in a sentence.
pub type ConfigurationFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ConfigurationReport, String>> + Send + 'a>>;

impl ConfigurationReport {
    /// The most errors, warnings and changes that a report has.
    pub const MOST: usize = 64;

    /// The same with no more errors, warnings and changes than are shown.
    #[must_use]
    pub fn limited(mut self) -> ConfigurationReport {
        self.errors.truncate(ConfigurationReport::MOST);
        self.warnings.truncate(ConfigurationReport::MOST);
        self.changes.truncate(ConfigurationReport::MOST);
        self
    }
}
