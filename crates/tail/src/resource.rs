//! The resource of a file's records.

use crate::file::FileInfo;
use crate::settings::Input;
use std::time::Duration;
use tidegate_lines::Stream;
use tidegate_wire::otlp::logs::Attributes;
use tidegate_wire::output::Full;

/// Says of which resource the records of a file are.
pub trait FileResource: Send + 'static {
    /// Writes the attributes of the resource of `file` to `out`. `known_for`: how long the file is known.
    ///
    /// Called for each group of records, so the answer may change from one batch to the next.
    fn resource(
        &mut self,
        file: &FileInfo<'_>,
        known_for: Duration,
        out: &mut Attributes<'_>,
    ) -> ResourceState;

    /// Takes note of the inputs: at the start, and when they are replaced.
    fn set_inputs(&mut self, inputs: &[Input]) {
        let _ = inputs;
    }

    /// Forgets a file.
    fn forget(&mut self, file: &FileInfo<'_>) {
        let _ = file;
    }
}

/// The state of a file's resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceState {
    /// The attributes are written.
    Ready,
    /// The attributes are written, and lines of this output are left out.
    ReadyWithout(Stream),
    /// They will be known soon: the file is read a little later.
    Wait,
    /// The file is not read at all.
    Exclude,
}

/// Attributes by the path: `log.file.path`, `log.file.name`, `log.file.path_resolved` for links, and those of the input.
#[derive(Debug, Default)]
pub struct PathResource {
    /// In the order of the inputs.
    attributes: Vec<Vec<(Box<str>, Box<str>)>>,
}

impl FileResource for PathResource {
    fn resource(&mut self, file: &FileInfo<'_>, _: Duration, out: &mut Attributes<'_>) -> ResourceState {
        let further = self.attributes.get(file.input).map(Vec::as_slice).unwrap_or_default();
        let written = path_attributes(file, out)
            .and_then(|()| further.iter().try_for_each(|(key, value)| out.text(key, value)));
        // Attributes that do not fit are left out: the configuration bounds them.
        let _: Result<(), Full> = written;
        ResourceState::Ready
    }

    fn set_inputs(&mut self, inputs: &[Input]) {
        self.attributes = inputs.iter().map(|input| input.attributes.clone()).collect();
    }
}

/// Writes the attributes of a file's path.
///
/// # Errors
/// When they do not fit.
pub fn path_attributes(file: &FileInfo<'_>, out: &mut Attributes<'_>) -> Result<(), Full> {
    out.text_lossy("log.file.path", file.path.as_os_str().as_encoded_bytes())?;
    if let Some(name) = file.path.file_name() {
        out.text_lossy("log.file.name", name.as_encoded_bytes())?;
    }
    if let Some(resolved) = file.resolved {
        out.text_lossy("log.file.path_resolved", resolved.as_os_str().as_encoded_bytes())?;
        if let Some(name) = resolved.file_name() {
            out.text_lossy("log.file.name_resolved", name.as_encoded_bytes())?;
        }
    }
    Ok(())
}
