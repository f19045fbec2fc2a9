//! Loads a configuration with the files that it names.

use std::ops::Range;
use std::path::Path;

use super::ReadFile;
use super::classic::{self, Item};
use super::report::Report;
use super::section::{Section, SectionKind};
use super::yaml;
use crate::error::{Errors, quote};
use crate::load::bounded;

/// The most files that one configuration consists of.
const MOST_FILES: usize = 100;
/// The most bytes of all files together.
const MOST_BYTES: usize = 8 << 20;

/// Reads files into sections.
pub(super) struct Loader<'r> {
    read: ReadFile<'r>,
    bytes: usize,
    pub(super) report: Report,
    pub(super) sections: Vec<Section>,
    /// Whether a file with parsers is not here, so that parsers may exist that are not known.
    pub(super) lacks_parsers: bool,
}

impl<'r> Loader<'r> {
    /// Loads the configuration `text`, which is called `source`.
    ///
    /// # Errors
    /// If it is too long.
    pub(super) fn load(source: &str, text: &str, read: ReadFile<'r>) -> Result<Loader<'r>, Errors> {
        let text = bounded(source, text)?;
        let mut loader = Loader {
            read,
            bytes: text.len(),
            report: Report::default(),
            sections: Vec::new(),
            lacks_parsers: false,
        };
        loader.file(source, text);
        loader.parsers();
        Ok(loader)
    }

    fn file(&mut self, name: &str, text: &str) {
        let file = self.report.add_file(name, text);
        if classic::is_classic(text) {
            for item in classic::read(file, text, &mut self.report) {
                match item {
                    Item::Section(section) => self.sections.push(section),
                    Item::Include { path, at } => self.include(file, &path, &at),
                }
            }
        } else if file == 0 || !text.trim().is_empty() {
            let document = yaml::read(file, text, &mut self.report);
            // As Fluent Bit does, what is included comes behind.
            self.sections.extend(document.sections);
            for (path, at) in document.includes {
                self.include(file, &path, &at);
            }
        }
    }

    fn include(&mut self, file: usize, path: &str, at: &Range<usize>) {
        let path = self.report.translate(path);
        if path.contains(['*', '?', '[']) {
            let message = format!("{} is a pattern, and patterns are not expanded here", quote(&path));
            return self.report.error(file, at, message, "name each file that it stands for");
        }
        let full = self.relative(file, &path);
        if self.report.has_file(&full) {
            let help = "remove one of the two";
            return self.report.error(file, at, format!("{full} is included twice"), help);
        }
        match self.text(&full) {
            Ok(text) => self.file(&full, &text),
            Err(error) => self.report.unreadable(file, at, &full, &error),
        }
    }

    /// Reads the files with parsers that the service names.
    fn parsers(&mut self) {
        let named: Vec<(usize, Range<usize>, String)> = self
            .sections
            .iter()
            .filter(|section| section.kind == SectionKind::Service)
            .flat_map(|section| section.properties.iter().map(move |property| (section.file, property)))
            .filter(|(_, property)| property.key == "parsers_file")
            .flat_map(|(file, property)| {
                let paths = property.value.split(',').map(str::trim).filter(|path| !path.is_empty());
                paths.map(|path| (file, property.at.clone(), path.to_owned())).collect::<Vec<_>>()
            })
            .collect();
        for (file, at, path) in named {
            let full = self.relative(file, &self.report.translate(&path));
            if self.report.has_file(&full) {
                continue;
            }
            match self.text(&full) {
                Ok(text) => self.file(&full, &text),
                Err(error) if full.rsplit('/').next() == Some("parsers.conf") => {
                    self.lacks_parsers = true;
                    let message = format!(
                        "{full} cannot be read ({error}): of the parsers that Fluent Bit has in it, the well-known ones are \
                         converted; copy it from the container for the others"
                    );
                    self.report.note(file, &at, "service.parsers_file", message);
                }
                Err(error) => self.report.unreadable(file, &at, &full, &error),
            }
        }
    }

    /// A path that is relative to the file that names it.
    fn relative(&self, file: usize, path: &str) -> String {
        let parent = Path::new(self.report.name_of(file)).parent();
        parent.map_or_else(|| path.to_owned(), |parent| parent.join(path).display().to_string())
    }

    fn text(&mut self, path: &str) -> Result<String, String> {
        if self.report.files() >= MOST_FILES {
            return Err(format!("there are more than {MOST_FILES} files"));
        }
        let text = (self.read)(path)?;
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            return Err(format!("all files together are longer than {MOST_BYTES} bytes"));
        }
        Ok(bounded(path, &text).map_err(|errors| errors.to_string())?.to_owned())
    }
}
