//! The data folder: the gateway's alone.

use crate::Failure;
use std::path::Path;
use tidegate_files::{Access, Tightened, create_folder, tighten, tighten_folder};

/// The gateway's files there. A lake elsewhere takes care of itself.
const OURS: [&str; 5] = ["journal", "dead-letters", "lake", "accepted", "accepted.new"];

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
