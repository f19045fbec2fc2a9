//! The state of an aggregator, in a file that is replaced as a whole.
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `TDDM` |
//! | 4..8 | 1: the version of this layout, little-endian |
//! | 8..16 | the identity of the journal that it is about |
//! | 16.. | the state of the aggregator, which has a version of its own |

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tidegate_derived_metrics::{Aggregator, Settings, StateError};
use tidegate_files::Access;

const MAGIC: [u8; 4] = *b"TDDM";
const VERSION: u32 = 1;
/// The bytes that are written or read at once.
const BUFFER: usize = 64 << 10;

/// The file of a sink.
pub(super) struct StateFile {
    folder: PathBuf,
    path: PathBuf,
    journal: u64,
}

impl StateFile {
    /// The file of the sink `name` in `folder`, which is made where it is not there.
    pub(super) fn new(folder: &Path, name: &str, journal: u64) -> io::Result<StateFile> {
        tidegate_files::create_folder(folder, Access::Owner)?;
        Ok(StateFile { folder: folder.to_owned(), path: folder.join(format!("{name}.state")), journal })
    }

    /// The aggregator, and the first record that it has not counted. `None` where there is no file; and where there is one of another journal or of
    /// other metrics or a damaged one, which is logged.
    ///
    /// # Errors
    /// Those of reading; and a version that this program does not know.
    pub(super) fn read(&self, sink: &str, settings: &Settings) -> io::Result<Option<(Aggregator, u64)>> {
        let file = match tidegate_files::read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut input = BufReader::with_capacity(BUFFER, file);
        let began_anew = |why: &str| {
            tracing::warn!(sink, file = %self.path.display(), why, "what was counted is not used: counts begin anew");
            Ok(None)
        };
        let mut head = [0; 16];
        if let Err(error) = input.read_exact(&mut head) {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => began_anew("the file is damaged"),
                _ => Err(error),
            };
        }
        let [magic, version, journal_low, journal_high] = *head.as_chunks::<4>().0 else {
            return began_anew("the file is damaged");
        };
        if magic != MAGIC {
            return began_anew("the file is damaged");
        }
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(other_version(version));
        }
        let journal =
            u64::from(u32::from_le_bytes(journal_low)) | u64::from(u32::from_le_bytes(journal_high)) << 32;
        if journal != self.journal {
            return began_anew("it is about another journal");
        }
        match Aggregator::read_state(settings.clone(), &mut input) {
            Ok(read) => Ok(Some(read)),
            Err(StateError::Version(version)) => Err(other_version(version)),
            Err(StateError::Read(error)) => Err(error),
            Err(StateError::OtherSettings) => began_anew("the sink derives other metrics now"),
            Err(StateError::Damaged) => began_anew("the file is damaged"),
        }
    }

    /// Replaces the file. A crash leaves the old one or the new one.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn write(&self, aggregator: &Aggregator, position: u64) -> io::Result<()> {
        let new = self.path.with_extension("state.new");
        let file = tidegate_files::open(&new, Access::Owner, |options| {
            options.write(true).create(true).truncate(true)
        })?;
        let mut out = BufWriter::with_capacity(BUFFER, file);
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&self.journal.to_le_bytes())?;
        aggregator.write_state(position, &mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        // The rename is durable when the folder is.
        File::open(&self.folder)?.sync_all()
    }
}

fn other_version(version: u32) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("it was written by another version of tidegate, as version {version}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_derived_metrics::{Group, Instrument, InstrumentKind, Temporality};
    use tidegate_pipeline::{Measurements, Number, Observation};

    fn settings(name: &str) -> Settings {
        let instrument = Instrument {
            name: name.to_owned(),
            description: String::new(),
            unit: String::new(),
            kind: InstrumentKind::Count,
        };
        let group =
            Group { attributes: Some(Vec::new()), divisor: 1.0, instruments: vec![instrument], pairs: None };
        Settings {
            measures: vec![group],
            temporality: Temporality::Cumulative,
            max_series: 10,
            expire_ms: 0,
            exemplars: false,
            scope: "test".to_owned(),
            definition: String::new(),
        }
    }

    /// A file with one series, up to the record before 7.
    fn written(folder: &Path) -> StateFile {
        let file = StateFile::new(folder, "red", 5).unwrap();
        let mut aggregator = Aggregator::new(settings("calls"));
        aggregator.begin(b"", 1000);
        aggregator.observe(0, &Observation { value: Number::Int(1), count: 3, span: None });
        file.write(&aggregator, 7).unwrap();
        file
    }

    fn read(file: &StateFile, name: &str) -> io::Result<Option<(usize, u64)>> {
        let read = file.read("red", &settings(name))?;
        Ok(read.map(|(aggregator, position)| (aggregator.series(), position)))
    }

    #[test]
    fn what_was_counted_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path());
        assert_eq!(read(&file, "calls").unwrap(), Some((1, 7)));
        let missing = StateFile::new(folder.path(), "other", 5).unwrap();
        assert_eq!(read(&missing, "calls").unwrap(), None);
    }

    #[test]
    fn another_journal_and_other_metrics_begin_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path());
        assert_eq!(read(&file, "others").unwrap(), None);
        let other = StateFile::new(folder.path(), "red", 6).unwrap();
        assert_eq!(read(&other, "calls").unwrap(), None);
    }

    /// An unknown version is refused by name, and the file stays; what is damaged begins anew.
    #[test]
    fn an_unknown_version_is_not_taken_for_damage() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path());
        let whole = std::fs::read(&file.path).unwrap();
        for at in [4, 16 + 8] {
            let mut newer = whole.clone();
            newer[at] = 9;
            std::fs::write(&file.path, &newer).unwrap();
            let error = read(&file, "calls").unwrap_err();
            assert!(error.to_string().ends_with("as version 9"), "{error}");
        }
        for len in [0, 10, 30, whole.len() - 1] {
            std::fs::write(&file.path, &whole[..len]).unwrap();
            assert_eq!(read(&file, "calls").unwrap(), None, "{len} bytes");
        }
    }
}
