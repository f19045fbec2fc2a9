use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn loosen(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn new_files_are_readable_by_owner_or_group_only() {
    let dir = tempfile::tempdir().unwrap();
    for (access, name, folder_mode, file_mode) in
        [(Access::Owner, "a", 0o700, 0o600), (Access::Group, "b", 0o750, 0o640)]
    {
        let folder = dir.path().join(name).join("deeper");
        create_folder(&folder, access).unwrap();
        create_folder(&folder, access).unwrap();
        let file = folder.join("file");
        open(&file, access, |options| options.write(true).create_new(true)).unwrap();
        // A umask may take away more, and adds nothing.
        assert_eq!(mode(folder.parent().unwrap()) & !folder_mode, 0);
        assert_eq!(mode(&folder) & !folder_mode, 0);
        assert_eq!(mode(&file) & !file_mode, 0);
        assert_eq!(mode(&file) & 0o600, 0o600);
    }
}

#[test]
fn a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (precious, link) = (dir.path().join("precious"), dir.path().join("link"));
    fs::write(&precious, "mine").unwrap();
    symlink(&precious, &link).unwrap();
    let error = open(&link, Access::Owner, |options| options.write(true).create(true).truncate(true));
    assert!(error.unwrap_err().to_string().contains("it is a link"));
    assert!(read(&link).is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    // One that points nowhere creates nothing there.
    let (nowhere, link) = (dir.path().join("nowhere"), dir.path().join("dangling"));
    symlink(&nowhere, &link).unwrap();
    assert!(open(&link, Access::Owner, |options| options.write(true).create(true)).is_err());
    assert!(!nowhere.exists());
}

#[test]
fn tightening_removes_access_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let (top, outside) = (dir.path().join("top"), dir.path().join("outside"));
    let (folder, file) = (top.join("folder"), top.join("folder/file"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(&file, "").unwrap();
    fs::write(&outside, "").unwrap();
    symlink(&outside, top.join("link")).unwrap();
    loosen(&top, 0o777);
    loosen(&folder, 0o2755);
    loosen(&file, 0o666);
    loosen(&outside, 0o644);

    let found = tighten(&top, Access::Group);
    assert_eq!((found.changed, found.kept), (3, 0), "{found:?}");
    assert_eq!((mode(&top), mode(&folder), mode(&file)), (0o750, 0o2750, 0o640));
    let found = tighten(&top, Access::Owner);
    assert_eq!((found.changed, found.kept), (3, 0), "{found:?}");
    assert_eq!((mode(&top), mode(&folder), mode(&file)), (0o700, 0o2700, 0o600));
    assert_eq!(found.link.as_deref(), Some(&*top.join("link")));
    assert_eq!(mode(&outside), 0o644, "what a link points to is somebody else's");
    assert_eq!(tighten(&top, Access::Owner).changed, 0);
    assert_eq!(tighten(&dir.path().join("none"), Access::Owner).changed, 0);
}

#[test]
fn a_folder_that_everybody_shares_stays_shared() {
    let dir = tempfile::tempdir().unwrap();
    let shared = dir.path().join("tmp");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("theirs"), "").unwrap();
    loosen(&shared.join("theirs"), 0o644);
    loosen(&shared, 0o1777);
    let found = tighten(&shared, Access::Owner);
    assert_eq!((found.changed, found.kept), (0, 1));
    assert_eq!((mode(&shared), mode(&shared.join("theirs"))), (0o1777, 0o644));
}

/// The file has the new content and the mode of a new file, and nothing else is left in the folder.
#[test]
fn replace_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(dir.path().join("file.new"), "of a crash, and longer").unwrap();
    for content in ["first", "2"] {
        replace(&file, Access::Owner, content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(replace(Path::new("/"), Access::Owner, b"").is_err());
}
