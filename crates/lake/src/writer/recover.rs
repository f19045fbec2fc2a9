//! Opening a lake, and going on after an error: what the manifests name stays, the rest goes.

use super::{OpenFiles, Writer, WriterSettings};
use crate::buffer_sizes::BufferSizes;
use crate::file::TableSchema;
use crate::gatherer::Gatherer;
use crate::layout::{Layout, is_of, names};
use crate::manifest;
use crate::retention::RetainedBytes;
use crate::{Error, Table};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use tidegate_files::Access;
use xxhash_rust::xxh64::xxh64;

impl Writer {
    /// Opens the lake, alone, and takes away what was not committed. Also returns the sequence after which to
    /// go on: the caller follows the journal from there, or from its own cursor when that is further.
    pub fn open(settings: WriterSettings) -> Result<(Writer, Option<u64>), Error> {
        settings.check()?;
        let shape = BufferSizes::of(settings.slice)?;
        let layout = Layout::new(&settings.dir);
        let temporary = layout.temporary();
        let access = settings.access;
        tidegate_files::create_folder(&temporary, access).map_err(Error::io("creating", &temporary))?;
        let lock = lock(&layout)?;
        tighten(&layout, access);
        let kind = |table| TableSchema::new(table, &shape, &temporary.join("spill"), access);
        let kinds: Result<Vec<TableSchema>, Error> = Table::ALL.into_iter().map(kind).collect();
        let files = OpenFiles { kinds: kinds?, temporary, footer_bytes: shape.footer_bytes, open: None };
        let mut writer = Writer {
            rows: Gatherer::new(&shape, xxh64(settings.node.as_bytes(), 0), files),
            settings,
            layout,
            durable: None,
            kept: RetainedBytes::default(),
            failed: false,
            cut: None,
            #[cfg(test)]
            fail_at: None,
            _lock: lock,
        };
        let resume_after = writer.recover()?;
        Ok((writer, resume_after))
    }

    /// Forgets and removes what was not committed, and returns the sequence after which to push again.
    pub fn recover(&mut self) -> Result<Option<u64>, Error> {
        self.failed = true;
        self.rows.overflow.open = None;
        self.rows.clear();
        // A line of which it is not known whether it is on the disk must not be taken for one that is.
        if let Some((hour, whole)) = self.cut {
            let path = self.layout.manifest(hour);
            match manifest::cut(&path, whole) {
                Err(error) if !error.is_missing() => return Err(error),
                _ => self.cut = None,
            }
        }
        let temporary = self.layout.temporary();
        remove_all(&temporary)?;
        // Whoever cleared the disk may have taken it.
        tidegate_files::create_folder(&temporary, self.settings.access)
            .map_err(Error::io("creating", &temporary))?;
        self.read_manifests()?;
        self.failed = false;
        Ok(self.durable)
    }

    fn read_manifests(&mut self) -> Result<(), Error> {
        let looking = |error| Error::io("looking into", self.layout.root())(error);
        let mut hours = self.layout.manifest_hours().map_err(looking)?;
        for table in Table::ALL {
            hours.extend(self.layout.table_hours(table).map_err(looking)?);
        }
        hours.sort_unstable();
        hours.dedup();
        self.kept = RetainedBytes::default();
        self.durable = None;
        for hour in hours {
            let manifest = manifest::read(&self.layout, hour)?;
            if manifest.torn {
                manifest::cut(&self.layout.manifest(hour), manifest.whole)?;
                tracing::warn!(%hour, "cut the torn end of a manifest");
            }
            let files = || manifest.lines.iter().flat_map(|line| &line.files);
            if files().next().is_some() {
                self.kept.add(hour, files().map(|file| file.bytes).sum());
            }
            let mine = manifest.lines.iter().filter(|line| line.node == self.settings.node);
            self.durable = self.durable.max(mine.map(|line| line.last).max());
            if manifest.damaged > 0 {
                // One of the lines that cannot be read may name them.
                tracing::warn!(%hour, lines = manifest.damaged, "kept files that are missing from a damaged manifest");
                continue;
            }
            for table in Table::ALL {
                let named: HashSet<&str> =
                    files().filter(|file| file.table == table.name()).map(|file| &*file.file).collect();
                let folder = self.layout.partition(table, hour);
                for name in names(&folder).map_err(Error::io("looking into", &folder))? {
                    if !named.contains(&*name) && is_of(&name, &self.settings.node) {
                        remove(&folder.join(name))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn lock(layout: &Layout) -> Result<File, Error> {
    let path = layout.lock();
    let open = tidegate_files::open(&path, Access::Owner, |options| {
        options.create(true).truncate(false).write(true)
    });
    let file = open.map_err(Error::io("opening", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Error::Locked(layout.root().to_path_buf()))?;
    Ok(file)
}

/// Permissions left open by an earlier version.
fn tighten(layout: &Layout, access: Access) {
    let found = tidegate_files::tighten(layout.root(), access);
    let lake = layout.root().display();
    if found.changed > 0 {
        tracing::warn!(%lake, changed = found.changed, "removed other users' access to files of the lake");
    }
    if let Some((path, error)) = found.first_kept {
        let path = path.display();
        tracing::warn!(%lake, kept = found.kept, %path, %error, "others may read some of the lake");
    }
}

fn remove_all(folder: &Path) -> Result<(), Error> {
    for name in names(folder).map_err(Error::io("looking into", folder))? {
        remove(&folder.join(name))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(Error::io("removing", path))
}
