//! The data folder: the gateway's alone.

use crate::Failure;
use std::path::Path;
use tidegate_config::{Config, Sink};
use tidegate_files::{Access, Tightened, create_folder, tighten, tighten_folder};

/// The gateway's files there. A lake elsewhere takes care of itself.
const OURS: [&str; 6] = ["journal", "dead-letters", "lake", "accepted", "accepted.new", "fleet"];

/// Makes the folder where there is none, and takes from others what an earlier version let them read. Other files there
/// are left alone: nobody can reach them through a folder that is not theirs.
///
/// # Errors
/// When it cannot be made.
pub(super) fn prepare(data: &Path) -> Result<(), Failure> {
    create_folder(data, Access::Owner)
        .map_err(|error| format!("making the data folder {} (`data`): {error}", data.display()))?;
    let mut found = tighten_folder(data, Access::Owner);
    for name in OURS {
        found.add(tighten(&data.join(name), Access::Owner));
    }
    tell(data, found);
    Ok(())
}

/// Checks that the data folder and the lakes can be folders where `config` puts them. Nothing is made, and rights are not
/// checked: a configuration may be checked by another user than the gateway's.
///
/// # Errors
/// One for each that cannot.
pub(super) fn check(config: &Config) -> Vec<String> {
    let mut wrong: Vec<String> = possible("data", &config.data).err().into_iter().collect();
    for (name, sink) in &config.sinks {
        if let Sink::Lake(lake) = sink
            && lake.path.is_some()
        {
            wrong.extend(possible(&format!("sinks.{name}.path"), &lake.folder(&config.data)).err());
        }
    }
    wrong
}

/// Whether a folder can be at `path`: its nearest ancestor that exists is a folder, in a file system that stores files.
fn possible(setting: &str, path: &Path) -> Result<(), String> {
    let nearest = path.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Some((path, std::fs::metadata(path).ok()?))
    });
    let Some((nearest, metadata)) = nearest else { return Ok(()) };
    let shown = path.display();
    if !metadata.is_dir() {
        let nearest = nearest.display();
        return Err(format!("`{setting}` is {shown}, but {nearest} is not a folder; name a folder"));
    }
    let is_of_the_kernel = rustix::fs::statfs(nearest)
        .is_ok_and(|system| matches!(u64::try_from(system.f_type), Ok(PROC | SYSFS)));
    match is_of_the_kernel {
        true => {
            Err(format!("`{setting}` is {shown}, where the kernel keeps its own files; name another folder"))
        }
        false => Ok(()),
    }
}

/// The types of file systems that have the kernel's state and no files (`linux/magic.h`).
const PROC: u64 = 0x9fa0;
const SYSFS: u64 = 0x6265_6572;

fn tell(data: &Path, found: Tightened) {
    let data = data.display();
    if found.changed > 0 {
        tracing::warn!(%data, changed = found.changed, "removed other users' access to the data folder");
    }
    if let Some((path, error)) = found.first_kept {
        let path = path.display();
        tracing::warn!(%data, kept = found.kept, %path, %error, "others may read some of the data folder");
    }
    if let Some(link) = found.link {
        let link = link.display();
        tracing::warn!(%data, %link, "there is a symbolic link in the data folder: check who can read its target");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_found_by_a_check() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for bad in [file.clone(), file.join("below"), "/proc/nope".into(), "/sys/x/y".into()] {
            let error = possible("data", &bad).unwrap_err();
            assert!(error.starts_with("`data` is ") && error.contains("folder"), "{error}");
        }
        for good in [dir.path().to_owned(), dir.path().join("new/er"), "relative-and-new".into()] {
            possible("data", &good).unwrap();
        }
    }

    #[test]
    fn an_open_data_folder_is_closed_and_foreign_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("lake/v1/spans")).unwrap();
        for file in ["accepted", "lake/v1/spans/0.parquet", "notes.txt"] {
            fs::write(data.join(file), "").unwrap();
            fs::set_permissions(data.join(file), Permissions::from_mode(0o644)).unwrap();
        }
        for folder in ["", "lake", "lake/v1", "lake/v1/spans"] {
            fs::set_permissions(data.join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        prepare(&data).unwrap();
        for folder in ["", "lake", "lake/v1", "lake/v1/spans"] {
            assert_eq!(mode(&data.join(folder)), 0o700, "{folder}");
        }
        assert_eq!(mode(&data.join("lake/v1/spans/0.parquet")), 0o600);
        assert_eq!(mode(&data.join("accepted")), 0o600);
        assert_eq!(mode(&data.join("notes.txt")), 0o644, "not the gateway's");
    }

    #[test]
    fn a_new_data_folder_is_the_owners() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        prepare(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
    }
}
